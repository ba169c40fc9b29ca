#include "host/loops.h"

#include "host/values.h"

namespace pyc::host {
namespace {

open::OpenType declared(DType dtype, const Ints& dims) {
  open::OpenType type;
  type.kind = open::OpenType::Kind::kTensor;
  type.dtype = dtype;
  type.shape.emplace();
  for (const int64_t d : dims) type.shape->push_back({d, ""});
  return type;
}

// Adds the iteration number to what is carried; goes on while the sum is below 3.
Result<Values> add_iteration(Values in) {
  const int64_t sum = to_ints(in[2])[0] + to_ints(in[0])[0];
  return Values{DynValue::of_bool(sum < 3), DynValue::of_int(sum), DynValue::of_int(sum * 10)};
}

LoopSpec loop_spec() {
  LoopSpec spec;
  spec.carried = {DynValue::of_int(0)};
  spec.scans = 1;
  spec.scan_elements = {declared(DType::kI64, {})};
  return spec;
}

TEST(Loops, TripCountAlone) {
  LoopSpec spec = loop_spec();
  spec.trips = 4;
  const auto out = run_loop(spec, add_iteration);
  ASSERT_TRUE(out.ok());
  expect_value((*out)[0], DynValue::of_int(6));
  expect_value((*out)[1], ints({4}, {0, 10, 30, 60}));
}

TEST(Loops, ConditionEndsIt) {
  LoopSpec spec = loop_spec();
  spec.condition = true;
  const auto out = run_loop(spec, add_iteration);
  ASSERT_TRUE(out.ok());
  expect_value((*out)[1], ints({3}, {0, 10, 30}));
}

TEST(Loops, NoIterationGivesDeclaredElements) {
  LoopSpec spec = loop_spec();
  spec.trips = 0;
  spec.scan_elements = {declared(DType::kF32, {2, -1})};
  const auto out = run_loop(spec, add_iteration);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[1].to_string(), "f32[0,2,0]");
  spec.scan_elements = {open::OpenType{}};
  expect_refused(run_loop(spec, add_iteration), Code::kUnsupported);
}

TEST(Loops, BodyWithWrongOutputsIsRefused) {
  LoopSpec spec = loop_spec();
  spec.trips = 1;
  expect_refused(run_loop(spec, [](Values) { return Result<Values>(Values{}); }),
                 Code::kInvalidArgument);
  expect_refused(run_loop(spec, [](Values) { return Result<Values>(Values(3)); }),
                 Code::kDtypeMismatch);
}

Result<Values> running_sum(Values in) {
  const DynValue sum = DynValue::of_int(to_ints(in[0])[0] + to_ints(in[1])[0]);
  return Values{sum, sum};
}

TEST(Loops, ScanInBothDirections) {
  ScanSpec spec;
  spec.states = {DynValue::of_int(0)};
  spec.inputs = {ints({3}, {1, 2, 3})};
  spec.input_axes = {-1};
  spec.input_reversed = {true};
  spec.outputs = 1;
  spec.output_axes = {0};
  spec.output_reversed = {false};
  spec.output_elements.resize(1);
  auto out = run_scan(spec, running_sum);
  ASSERT_TRUE(out.ok());
  expect_value((*out)[1], ints({3}, {3, 5, 6}));
  spec.output_reversed = {true};
  out = run_scan(spec, running_sum);
  expect_value((*out)[1], ints({3}, {6, 5, 3}));
  spec.input_axes = {1};
  expect_refused(run_scan(spec, running_sum), Code::kInvalidArgument);
}

TEST(Loops, BatchedScanPadsShortSequences) {
  BatchedScanSpec spec;
  spec.states = {ints({2}, {0, 100})};
  spec.inputs = {ints({2, 3}, {1, 2, 3, 4, 5, 6})};
  spec.input_reversed = {false};
  spec.outputs = 1;
  spec.output_elements.resize(1);
  spec.lengths = Ints{3, 1};
  const auto out = run_batched_scan(spec, running_sum);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  expect_value((*out)[0], ints({2}, {6, 104}));
  expect_value((*out)[1], ints({2, 3}, {1, 3, 6, 104, 0, 0}));
  spec.lengths = Ints{4, 1};
  expect_refused(run_batched_scan(spec, running_sum), Code::kInvalidArgument);
}

TEST(Loops, MapNeedsSequencesOfOneLength) {
  const DynValue two = DynValue::of_items({DynValue::of_int(1), DynValue::of_int(2)});
  const auto out = map_sequence({two, DynValue::of_int(5)}, 2, running_sum);
  ASSERT_TRUE(out.ok());
  expect_value((*(*out)[0].items)[1], DynValue::of_int(7));
  expect_refused(map_sequence({two, DynValue::of_items({})}, 2, running_sum), Code::kSizeMismatch);
  expect_refused(map_sequence({DynValue::of_int(1)}, 1, running_sum), Code::kDtypeMismatch);
}

}  // namespace
}  // namespace pyc::host

// Carried values and ordered loops, on kernels in text form.

#include <gtest/gtest.h>

#include "eval/run_kernel.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::eval {
namespace {

Elements ints(const std::vector<int64_t>& values) {
  Elements e{DType::kI64, {}};
  for (int64_t v : values) e.words.push_back(static_cast<Word>(v));
  return e;
}

// The written buffers after a run, one after the other.
std::vector<int64_t> result_of(const std::string& text, const std::vector<Elements>& inputs) {
  auto kernel = loop::parse_kernel("kernel {\n" + text + "\n}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  if (!kernel.ok()) return {};
  const Status status = loop::verify_kernel(*kernel);
  EXPECT_TRUE(status.ok()) << status.to_string();
  const Outcome outcome = run_kernel(*kernel, inputs);
  EXPECT_EQ(outcome.fault, 0);
  std::vector<int64_t> values;
  for (size_t i = 0; i < outcome.buffers.size(); ++i) {
    if (kernel->buffers[i].access != loop::Access::kWrite) continue;
    for (Word w : outcome.buffers[i].words) values.push_back(static_cast<int64_t>(w));
  }
  return values;
}

using Values = std::vector<int64_t>;

TEST(Carry, RunningSum) {
  EXPECT_EQ(result_of(R"(
buffer b0: i64[6] read
buffer b1: i64[6] write
buffer b2: i64[2] write
parallel v0 < 2
loop v1 < 3 {
  carry v2: i64 = 100
  b1[v0*3 + v1] = v2
  next v2 = v2 + b0[v0*3 + v1] then v3
}
b2[v0] = v3)",
                      {ints({1, 2, 3, 10, 20, 30})}),
            (Values{100, 101, 103, 100, 110, 130, 106, 160}));
}

TEST(Carry, StepsAllAtOnce) {
  EXPECT_EQ(result_of(R"(
buffer b0: i64[5] write
loop v1 < 5 {
  carry v2: i64 = 0
  carry v3: i64 = 1
  b0[v1] = v2
  next v2 = v3 then v4
  next v3 = v2 + v3 then v5
})",
                      {}),
            (Values{0, 1, 1, 2, 3}));
}

TEST(Carry, WithoutIterationsKeepsTheStart) {
  EXPECT_EQ(result_of(R"(
buffer b0: i64[2] read
buffer b1: i64[2] write
parallel v0 < 2
loop v1 < 0 {
  carry v2: i64 = b0[v0]
  next v2 = v2 + 1 then v3
}
b1[v0] = v3)",
                      {ints({7, 8})}),
            (Values{7, 8}));
}

// The step sees what the iteration stored, and comes after the reductions.
TEST(Carry, ReadsScratchAfterTheBody) {
  EXPECT_EQ(result_of(R"(
buffer b0: i64[3] scratch
buffer b1: i64[2] write
loop v1 < 3 {
  carry v2: i64 = 5
  b0[v1] = v2 * 2
  reduce v3: i64 = exact sum(v2)
  next v2 = b0[v1] then v4
}
b1[0] = v3
b1[1] = v4)",
                      {}),
            (Values{35, 40}));
}

TEST(Ordered, LaterStoresWinAndReadsSeeEarlierOnes) {
  EXPECT_EQ(result_of(R"(
buffer b0: i64[6] read
buffer b1: i64[3] write
loop v0 < 3 vector { b1[v0] = 0 }
loop v1 < 6 ordered {
  b1[min(max(b0[v1], 0), 2)] = b1[min(max(b0[v1], 0), 2)] * 10 + v1
})",
                      {ints({0, 2, 0, 1, 2, 0})}),
            (Values{25, 3, 14}));
}

}  // namespace
}  // namespace pyc::eval

// Every op of the table has a gradient that directional differences agree with, or says why not.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "autograd/gradient.h"
#include "ops/registry.h"
#include "support/compare.h"
#include "support/directional.h"

namespace pyc::test {
namespace {

bool has_gradient(const ir::OpDef& op) { return op.no_gradient.empty(); }

TEST(GradientTable, EveryOpHasARuleAFormADecompositionOrAReason) {
  int differentiable = 0;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    const int stated = (op->gradient != nullptr ? 1 : 0) + (op->gradient_form != nullptr ? 1 : 0) +
                       (op->no_gradient.empty() ? 0 : 1);
    EXPECT_LE(stated, 1) << op->name << " states its gradient twice";
    EXPECT_TRUE(stated == 1 || op->decompose != nullptr) << op->name << " says nothing";
    differentiable += has_gradient(*op) ? 1 : 0;
  }
  EXPECT_GT(differentiable, 130);
}

// Checks of one op that must agree before it counts as proven.
constexpr int kChecks = 8;
constexpr uint64_t kTries = 400;
constexpr uint64_t kSecondTries = 12;

struct Count {
  int agreed = 0;
  int compared = 0;  // reference and CPU
};

Count prove(const ir::OpDef& op, bool second, int checks = kChecks) {
  Count count;
  std::vector<Pair> pairs;
  for (const Pair& pair : all_pairs()) {
    if (pair.op == &op) pairs.push_back(pair);
  }
  const uint64_t tries = second ? kSecondTries : kTries;
  for (uint64_t seed = 1; seed <= tries && count.agreed < checks && !pairs.empty(); ++seed) {
    // Mostly as f64; some ops have their floats in other operands.
    Pair pair{&op, DType::kF64};
    if (seed % 4 == 0) pair = pairs[(seed / 4) % pairs.size()];
    const auto drawn = draw_node(seed, pair, Values::kTame);
    if (!drawn.ok()) continue;
    const auto loss = with_loss(*drawn, seed);
    if (!loss) continue;
    const Verdict v = second ? check_second(*loss, seed) : check_gradient(*loss, seed);
    if (v.outcome == Agreement::kDiffers) {
      ADD_FAILURE() << op.name << " seed " << seed << ": " << v.message << "\n"
                    << ir::print(loss->graph);
      return count;
    }
    if (v.outcome == Agreement::kUnfit) continue;
    ++count.agreed;
    if (second || count.compared > 0) continue;
    const auto gradients = gradient_graph(*loss);
    const std::string found = difference(*gradients, {cpu_options(0, 2)});
    EXPECT_EQ(found, "") << op.name << " seed " << seed << "\n" << ir::print(gradients->graph);
    ++count.compared;
  }
  return count;
}

void agrees_with_differences(const ir::OpDef& op) {
  // It takes f32 alone: proven by hand in models.gradients.
  const int checks = op.name == "dynamic_quantize" ? 0 : kChecks;
  EXPECT_EQ(prove(op, false, checks).agreed, checks) << op.name << " was checked too rarely";
}

// Some are linear, so that there is nothing to differ: only what differs is a fault.
void can_be_differentiated_twice(const ir::OpDef& op) { prove(op, true, 2); }

// The sum of all float outputs, in f64, differentiated in all float inputs. Nothing without both.
Result<std::optional<DrawnGraph>> summed_gradients(const DrawnGraph& drawn) {
  std::vector<ValueId> wanted;
  for (ValueId v : drawn.graph.inputs) {
    if (is_float(drawn.graph.type(v).dtype)) wanted.push_back(v);
  }
  ir::Graph graph = drawn.graph;
  graph.outputs.clear();
  ir::GraphBuilder builder(ops::all_ops(), std::move(graph));
  PYC_ASSIGN(ValueId loss, builder.scalar(DType::kF64, 0.0));
  const ValueId nothing = loss;
  for (ValueId v : drawn.graph.outputs) {
    if (!is_float(drawn.graph.type(v).dtype)) continue;
    PYC_ASSIGN(const ValueId wide, builder.op("cast", {v}, {{"to", DType::kF64}}));
    PYC_ASSIGN(const ValueId part, builder.op("reduce_sum", {wide}, {{"keepdims", false}}));
    PYC_ASSIGN(loss, builder.op("add", {loss, part}));
  }
  if (loss == nothing || wanted.empty()) return std::optional<DrawnGraph>();
  PYC_TRY(builder.output(loss));
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(builder).take()));
  PYC_ASSIGN(
      const ir::VerifiedGraph made,
      autograd::differentiate(verified, loss, wanted, ops::all_ops(), {.allow_unused = true}));
  return std::optional<DrawnGraph>(DrawnGraph{*made, drawn.inputs, {}});
}

// Types fit in every dtype an op takes; as f32 the CPU gives the reference's bits.
void is_differentiated_in_every_dtype(const ir::OpDef& op) {
  for (const Pair& pair : all_pairs()) {
    if (pair.op != &op) continue;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const auto drawn = draw_node(seed, pair, Values::kTame);
      if (!drawn.ok()) continue;
      const auto made = summed_gradients(*drawn);
      const std::string refusal = made.ok() ? "" : made.status().message();
      if (refusal.find("it has none in input") != std::string::npos) continue;
      ASSERT_EQ(refusal, "") << dtype_name(pair.dtype) << "\n" << ir::print(drawn->graph);
      if (!*made || pair.dtype != DType::kF32 || seed > 1) continue;
      EXPECT_EQ(difference(**made, {cpu_options(0, 2)}), "") << ir::print((*made)->graph);
    }
  }
}

// All pairs of an op and a dtype are drawn once per process, which takes longer than most ops do:
// so a test takes a share of the ops.
constexpr size_t kShares = 6;

class EveryOp : public testing::TestWithParam<size_t> {
 protected:
  static void of_this_share(const std::function<void(const ir::OpDef&)>& check) {
    size_t seen = 0;
    size_t checked = 0;
    for (const ir::OpDef* op : ops::all_ops().all()) {
      if (!has_gradient(*op) || seen++ % kShares != GetParam()) continue;
      SCOPED_TRACE(op->name);
      check(*op);
      ++checked;
    }
    EXPECT_GT(checked, 20U);
  }
};

TEST_P(EveryOp, AgreesWithDifferences) { of_this_share(agrees_with_differences); }

TEST_P(EveryOp, CanBeDifferentiatedTwice) { of_this_share(can_be_differentiated_twice); }

TEST_P(EveryOp, IsDifferentiatedInEveryDtype) { of_this_share(is_differentiated_in_every_dtype); }

INSTANTIATE_TEST_SUITE_P(Gradient, EveryOp, testing::Range(size_t{0}, kShares));

}  // namespace
}  // namespace pyc::test

// Where halves are rounded: a model has the bits of one that writes every rounding down, and no
// bit depends on what shares a kernel.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "passes/run_text.h"
#include "tooling/optimize.h"
#include "tooling/seeded_run.h"

namespace pyc::passes {
namespace {

struct HalfModel {
  const char* name;
  std::string text;    // T stands for the half type
  std::string stated;  // the same with its roundings as casts
};

std::string with_type(std::string text, std::string_view type) {
  for (size_t at = text.find('T'); at != std::string::npos; at = text.find('T', at)) {
    text.replace(at, 1, type);
  }
  return text;
}

const std::vector<HalfModel>& half_models() {
  static const std::vector<HalfModel> kHalfModels = {
      {"product_bias_gelu_transpose_product",
       "graph @g(%x: T[5,300], %v: T[5,3]) -> (%y) {\n"
       "  %w = const T[300,7] random(seed=1, lo=-0.2, hi=0.2)\n"
       "  %b = const T[7] random(seed=2, lo=-0.5, hi=0.5)\n"
       "  %p = matmul(%x, %w)\n  %s = add(%p, %b)\n  %g = gelu(%s)\n"
       "  %t = transpose(%g) {perm=[1, 0]}\n  %y = matmul(%t, %v)\n}\n",
       "graph @g(%x: T[5,300], %v: T[5,3]) -> (%y) {\n"
       "  %w = const T[300,7] random(seed=1, lo=-0.2, hi=0.2)\n"
       "  %b = const T[7] random(seed=2, lo=-0.5, hi=0.5)\n"
       "  %wb = cast(%b) {to=f32}\n"
       "  %p = matmul(%x, %w) {to=f32}\n  %s = add(%p, %wb)\n  %g = gelu(%s)\n"
       "  %t = transpose(%g) {perm=[1, 0]}\n  %r = cast(%t) {to=T}\n"
       "  %y = matmul(%r, %v)\n}\n"},
      {"movement_between",
       "graph @g(%x: T[6,40], %z: T[48]) -> (%y) {\n"
       "  %w = const T[40,16] random(seed=3, lo=-0.5, hi=0.5)\n"
       "  %p = matmul(%x, %w)\n"
       "  %a, %b = split(%p) {axis=1, sizes=[8, 8]}\n  %e = swish(%a)\n  %m = mul(%e, %b)\n"
       "  %t = transpose(%m) {perm=[1, 0]}\n  %f = reshape(%t) {shape=[48]}\n"
       "  %y = sub(%f, %z)\n}\n",
       "graph @g(%x: T[6,40], %z: T[48]) -> (%y) {\n"
       "  %w = const T[40,16] random(seed=3, lo=-0.5, hi=0.5)\n"
       "  %p = matmul(%x, %w) {to=f32}\n"
       "  %a, %b = split(%p) {axis=1, sizes=[8, 8]}\n  %e = swish(%a)\n  %m = mul(%e, %b)\n"
       "  %t = transpose(%m) {perm=[1, 0]}\n  %f = reshape(%t) {shape=[48]}\n"
       "  %wz = cast(%z) {to=f32}\n  %d = sub(%f, %wz)\n  %y = cast(%d) {to=T}\n}\n"},
      {"several_readers_get_the_rounded_value",
       "graph @g(%x: T[9,33]) -> (%y, %o) {\n"
       "  %w = const T[33,9] random(seed=4, lo=-0.5, hi=0.5)\n"
       "  %p = matmul(%x, %w)\n  %o = tanh(%p)\n  %e = exp(%o)\n  %s = sigmoid(%p)\n"
       "  %y = mul(%e, %s)\n}\n",
       "graph @g(%x: T[9,33]) -> (%y, %o) {\n"
       "  %w = const T[33,9] random(seed=4, lo=-0.5, hi=0.5)\n"
       "  %p = matmul(%x, %w)\n  %o = tanh(%p)\n  %wo = cast(%o) {to=f32}\n  %e = exp(%wo)\n"
       "  %wp = cast(%p) {to=f32}\n  %s = sigmoid(%wp)\n  %m = mul(%e, %s)\n"
       "  %y = cast(%m) {to=T}\n}\n"},
      {"conv_norm_by_hand",
       "graph @g(%x: T[1,4,9,9], %k: T[1,6,1,1]) -> (%y) {\n"
       "  %w = const T[6,4,3,3] random(seed=5, lo=-0.3, hi=0.3)\n"
       "  %b = const T[6] random(seed=6, lo=-0.5, hi=0.5)\n"
       "  %c = conv(%x, %w, %b) {pads=[1, 1, 1, 1]}\n  %m = mul(%c, %k)\n  %h = hard_swish(%m)\n"
       "  %y = leaky_relu(%h)\n}\n",
       "graph @g(%x: T[1,4,9,9], %k: T[1,6,1,1]) -> (%y) {\n"
       "  %w = const T[6,4,3,3] random(seed=5, lo=-0.3, hi=0.3)\n"
       "  %b = const T[6] random(seed=6, lo=-0.5, hi=0.5)\n"
       "  %c = conv(%x, %w, %b) {pads=[1, 1, 1, 1], to=f32}\n  %wk = cast(%k) {to=f32}\n"
       "  %m = mul(%c, %wk)\n  %h = hard_swish(%m)\n  %l = leaky_relu(%h)\n"
       "  %y = cast(%l) {to=T}\n}\n"},
      {"gemm_and_contract",
       "graph @g(%x: T[8,50], %q: T[2,8,5]) -> (%y) {\n"
       "  %w = const T[7,50] random(seed=7, lo=-0.4, hi=0.4)\n"
       "  %b = const T[7] random(seed=8, lo=-0.5, hi=0.5)\n"
       "  %g = gemm(%x, %w, %b) {trans_b=true, alpha=0.7}\n  %r = elu(%g)\n"
       "  %c = contract(%q, %r) {equation=\"bij,ik->bjk\"}\n  %y = softplus(%c)\n}\n",
       "graph @g(%x: T[8,50], %q: T[2,8,5]) -> (%y) {\n"
       "  %w = const T[7,50] random(seed=7, lo=-0.4, hi=0.4)\n"
       "  %b = const T[7] random(seed=8, lo=-0.5, hi=0.5)\n"
       "  %g = gemm(%x, %w, %b) {trans_b=true, alpha=0.7, to=f32}\n  %r = elu(%g)\n"
       "  %h = cast(%r) {to=T}\n"
       "  %c = contract(%q, %h) {equation=\"bij,ik->bjk\", to=f32}\n  %s = softplus(%c)\n"
       "  %y = cast(%s) {to=T}\n}\n"},
      {"pad_concat_gather_expand",
       "graph @g(%x: T[3,20], %i: T[2,4]) -> (%y) {\n"
       "  %w = const T[20,4] random(seed=9, lo=-0.5, hi=0.5)\n"
       "  %at = const i64[3] dense(4, 0, 2)\n"
       "  %p = matmul(%x, %w)\n  %j = concat(%p, %i) {axis=0}\n"
       "  %t = gather(%j, %at) {axis=0}\n  %d = pad(%t) {pads=[0, 1, 0, 0], value=0.3}\n"
       "  %u = unsqueeze(%d) {axes=[0]}\n  %e = expand(%u) {shape=[2, 3, 5]}\n"
       "  %y = cos(%e)\n}\n",
       "graph @g(%x: T[3,20], %i: T[2,4]) -> (%y) {\n"
       "  %w = const T[20,4] random(seed=9, lo=-0.5, hi=0.5)\n"
       "  %at = const i64[3] dense(4, 0, 2)\n"
       "  %p = matmul(%x, %w) {to=f32}\n  %wi = cast(%i) {to=f32}\n"
       "  %j = concat(%p, %wi) {axis=0}\n"
       "  %t = gather(%j, %at) {axis=0}\n  %d = pad(%t) {pads=[0, 1, 0, 0], value=0.3}\n"
       "  %u = unsqueeze(%d) {axes=[0]}\n  %e = expand(%u) {shape=[2, 3, 5]}\n"
       "  %c = cos(%e)\n  %y = cast(%c) {to=T}\n}\n"},
  };
  return kHalfModels;
}

std::vector<Bytes> half_inputs(const ir::Graph& graph) {
  std::vector<Bytes> inputs;
  for (const ir::ValueId v : graph.inputs) {
    inputs.push_back(tooling::seeded_data(graph.type(v), v)->bytes.copy());
  }
  return inputs;
}

using HalfCase = std::tuple<size_t, const char*>;

class HalfChains : public testing::TestWithParam<HalfCase> {
 protected:
  const HalfModel& model() const { return half_models()[std::get<0>(GetParam())]; }
  std::string text() const { return with_type(model().text, std::get<1>(GetParam())); }
};

TEST_P(HalfChains, AreRoundedWhereTheyAreLeft) {
  const ir::Graph graph = driver::parse_model(text()).value();
  const std::vector<Bytes> inputs = half_inputs(graph);
  const Outcome chain = run_graph(graph, {}, inputs);
  const Outcome each = run_graph(graph, {"widen_half_chains"}, inputs);
  const Outcome by_hand =
      run_text(with_type(model().stated, std::get<1>(GetParam())), {"widen_half_chains"}, inputs);
  ASSERT_EQ(chain.error + each.error + by_hand.error, "");
  EXPECT_EQ(chain.outputs, by_hand.outputs);
  EXPECT_NE(chain.outputs, each.outputs) << "rounding at every value gives the same bits";
}

// Whatever shares a kernel or a buffer, on whichever device and at whichever width.
TEST_P(HalfChains, HaveTheSameBitsHoweverTheyAreGrouped) {
  const ir::Graph graph = driver::parse_model(text()).value();
  const std::vector<Bytes> inputs = half_inputs(graph);
  const Outcome plain = run_graph(graph, {}, inputs);
  ASSERT_EQ(plain.error, "");
  for (const char* device : {"reference", "cpu"}) {
    for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7}) {
      driver::CompileOptions options;
      options.device = device;
      options.cache = false;
      options.fuse = (bits & 1) != 0;
      options.reuse = (bits & 2) != 0;
      options.threads = (bits & 4) != 0 ? 3 : 1;
      options.lanes = (bits & 4) != 0 ? 4 : 0;
      options.determinism =
          (bits & 2) != 0 ? driver::Determinism::kStrict : driver::Determinism::kBalanced;
      std::vector<Bytes> outputs;
      const Status status = run_into(graph, options, inputs, outputs);
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(outputs, plain.outputs) << device << " setting " << bits;
    }
  }
}

// The bit-preserving passes behind it may be left out, one by one.
TEST_P(HalfChains, HaveTheSameBitsWithoutTheOtherPasses) {
  const ir::Graph graph = driver::parse_model(text()).value();
  const std::vector<Bytes> inputs = half_inputs(graph);
  const Outcome all = run_graph(graph, {}, inputs);
  for (const Pass& pass : pipeline()) {
    if (pass.required || pass.value_changing) continue;
    const Outcome without = run_graph(graph, {std::string(pass.name)}, inputs);
    ASSERT_EQ(without.error, "");
    EXPECT_EQ(without.outputs, all.outputs) << pass.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HalfChains,
                         testing::Combine(testing::Range(size_t{0}, half_models().size()),
                                          testing::Values("f16", "bf16")),
                         [](const auto& info) {
                           return fmt::format("{}_{}", half_models()[std::get<0>(info.param)].name,
                                              std::get<1>(info.param));
                         });

}  // namespace
}  // namespace pyc::passes

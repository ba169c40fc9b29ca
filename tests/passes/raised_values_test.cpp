// The value-changing passes that match patterns: each on the reference with it and without, within
// a stated tolerance; and that they really changed the graph.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/convert.h"
#include "base/files.h"
#include "passes/run_text.h"
#include "tooling/optimize.h"
#include "tooling/seeded_run.h"

namespace pyc::passes {
namespace {

struct Case {
  const char* file;  // of tests/passes, up to ---
  const char* pass;
  double tolerance;  // of the largest magnitude of an output
  const char* made;  // an op the canonical graph without `decompose` must have
};

constexpr Case kCases[] = {
    {"raise_attention_scaled_masked", "raise_attention", 1e-6, "attention"},
    {"raise_attention_factors_on_operands", "raise_attention", 1e-6, "attention"},
    {"raise_attention_where", "raise_attention", 1e-6, "attention"},
    {"raise_attention_grouped", "raise_attention", 1e-6, "attention"},
    {"raise_attention_flat_rows", "raise_attention", 1e-6, "attention"},
    {"raise_attention_joined_batch", "raise_attention", 1e-6, "attention"},
    // One step of the output's integers, where a sum lies within rounding of the border.
    {"integerize_qdq_conv", "integerize_qdq", 1.0 / 255, "conv_integer"},
    {"integerize_qdq_products", "integerize_qdq", 1e-6, "matmul_integer"},
    {"integerize_qdq_same_scale", "integerize_qdq", 0.0, "max_pool"},
    // Half a unit in the last place of each of three roundings, amplified by exp.
    {"widen_half_chains", "widen_half_chains", 4e-3, "cast"},
};

class RaisedValues : public testing::TestWithParam<Case> {};

ir::Graph graph_of(const Case& c) {
  const std::string path = fmt::format("{}/tests/passes/{}.ir", PYC_SOURCE_DIR, c.file);
  const std::string text = read_file(path, 1 << 20).value();
  return driver::parse_model(text.substr(0, text.find("---"))).value();
}

std::vector<double> numbers(const Bytes& bytes, const ir::TensorType& type) {
  std::vector<double> out;
  for (int64_t i = 0; i < type.elements(); ++i) {
    out.push_back(word_to_double(load_word(bytes.data() + i * dtype_size(type.dtype), type.dtype),
                                 type.dtype));
  }
  return out;
}

TEST_P(RaisedValues, StayWithinTheTolerance) {
  const ir::Graph graph = graph_of(GetParam());
  std::vector<Bytes> inputs;
  for (const ir::ValueId v : graph.inputs) {
    inputs.push_back(tooling::seeded_data(graph.type(v), v)->bytes.copy());
  }
  const Outcome plain = run_graph(graph, {GetParam().pass}, inputs);
  const Outcome raised = run_graph(graph, {}, inputs);
  ASSERT_EQ(plain.error, "");
  ASSERT_EQ(raised.error, "");
  EXPECT_NE(plain.canonical, raised.canonical);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::TensorType& type = graph.type(graph.outputs[i]);
    const auto a = numbers(plain.outputs[i], type);
    const auto b = numbers(raised.outputs[i], type);
    double largest = 0.0;
    for (const double x : a) largest = std::max(largest, std::abs(x));
    EXPECT_GT(largest, 0.0) << "an output of zeros shows nothing";
    for (size_t k = 0; k < a.size(); ++k) {
      ASSERT_LE(std::abs(a[k] - b[k]), GetParam().tolerance * largest)
          << "output " << i << " element " << k << ": " << a[k] << " became " << b[k];
    }
  }
}

TEST_P(RaisedValues, TheOpIsThere) {
  const std::vector<std::string> names{GetParam().pass};
  const auto result = tooling::run_passes(graph_of(GetParam()), names);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_NE(ir::print(result->graph).find(fmt::format("= {}(", GetParam().made)),
            std::string::npos);
  bool said = false;
  for (const Decision& d : result->log) {
    said |= d.what.starts_with(fmt::format("{}:%", GetParam().pass)) && d.chosen != "kept";
  }
  EXPECT_TRUE(said);
}

INSTANTIATE_TEST_SUITE_P(All, RaisedValues, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.file); });

// What stands in a log after a pass: "name reason" for each refusal.
std::string refusals(const char* file, const char* pass) {
  const std::vector<std::string> names{pass};
  const auto result = tooling::run_passes(graph_of({file, pass, 0.0, ""}), names);
  if (!result.ok()) return result.status().to_string();
  std::string out;
  for (const Decision& d : result->log) {
    if (d.what.starts_with(fmt::format("{}:%", pass))) out += d.what + " " + d.reason + "\n";
  }
  return out;
}

TEST(RaisedRefusals, AttentionSaysWhyWhenItWasClose) {
  EXPECT_EQ(refusals("raise_attention_refuses", "raise_attention"),
            "raise_attention:%a read_elsewhere\n"
            "raise_attention:%b softmax_axis\n"
            "raise_attention:%d scale_not_constant\n"
            "raise_attention:%e mask_broadcasts_scores\n"
            "raise_attention:%h mask_fill_is_a_score\n");
}

TEST(RaisedRefusals, IntegersSayWhy) {
  EXPECT_EQ(refusals("integerize_qdq_refuses", "integerize_qdq"),
            "integerize_qdq:%v scales_along_the_sum\n"
            "integerize_qdq:%x factors\n"
            "integerize_qdq:%y sum_may_overflow\n");
}

// A quantized value is what it was before, whatever the integer: the rule behind `same_scale`.
TEST(IntegerizeQdq, QuantizingAgainGivesEveryIntegerBack) {
  for (const char* scale : {"0.1", "1e-29", "3.7e29", "0.0078125", "0.333333343"}) {
    for (const char* type : {"u8", "i8"}) {
      const std::string text = fmt::format(
          "graph @g(%x: {0}[256]) -> (%y) {{\n  %s = const f32[] splat({1})\n"
          "  %z = const {0}[] splat(77)\n  %r = dequantize(%x, %s, %z) {{to=f32}}\n"
          "  %y = quantize(%r, %s, %z) {{to={0}}}\n}}\n",
          type, scale);
      Bytes all(256);
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
      const Outcome plain = run_text(text, {"integerize_qdq"}, {all});
      ASSERT_EQ(plain.error, "");
      EXPECT_TRUE(std::equal(all.begin(), all.end(), plain.outputs[0].begin())) << text;
    }
  }
}

}  // namespace
}  // namespace pyc::passes

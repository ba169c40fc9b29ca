// The precision policy: f32 models whose products read halves stay near, have the same bits
// wherever they run, and say for every product what was decided.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "base/files.h"
#include "passes/run_text.h"
#include "session/model.h"
#include "tooling/optimize.h"
#include "tooling/seeded_run.h"

namespace pyc::passes {
namespace {

std::string test_text(const std::string& file) {
  const std::string path = fmt::format("{}/tests/{}.ir", PYC_SOURCE_DIR, file);
  const std::string text = read_file(path, 1 << 24).value();
  return text.substr(0, text.find("---"));
}

driver::CompileOptions narrowed(const char* device, DType precision) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = 2;
  options.precision = precision;
  return options;
}

// Each output's largest difference over its largest magnitude.
double distance(const ir::Graph& graph, const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  double worst = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    double largest = 0.0;
    double apart = 0.0;
    for (int64_t k = 0; k < graph.type(graph.outputs[i]).elements(); ++k) {
      const auto at = [&](const std::vector<Bytes>& outputs) {
        return word_to_double(load_word(outputs[i].data() + k * 4, DType::kF32), DType::kF32);
      };
      largest = std::max(largest, std::abs(at(a)));
      apart = std::max(apart, std::abs(at(a) - at(b)));
    }
    EXPECT_GT(largest, 0.0) << "an output of zeros shows nothing";
    worst = std::max(worst, apart / largest);
  }
  return worst;
}

TEST(NarrowProducts, StayNearAndHaveTheSameBitsEverywhere) {
  // 2^-8 and 2^-11 for an operand, and what a few layers make of it.
  const std::pair<DType, double> tolerances[] = {{DType::kBF16, 2e-2}, {DType::kF16, 2.5e-3}};
  for (const char* name : {"cnn", "mlp", "linear_relu", "transformer_block"}) {
    const ir::Graph graph = driver::parse_model(test_text("models/" + std::string(name))).value();
    std::vector<Bytes> inputs;
    for (const ir::ValueId v : graph.inputs) {
      inputs.push_back(tooling::seeded_data(graph.type(v), v)->bytes.copy());
    }
    std::vector<Bytes> exact;
    ASSERT_TRUE(run_into(graph, narrowed("cpu", DType::kF32), inputs, exact).ok());
    for (const auto& [precision, tolerance] : tolerances) {
      SCOPED_TRACE(fmt::format("{} {}", name, dtype_name(precision)));
      driver::CompileOptions plain = narrowed("reference", precision);
      plain.fuse = false;
      std::vector<Bytes> expected;
      std::vector<Bytes> found;
      ASSERT_TRUE(run_into(graph, plain, inputs, expected).ok());
      // From the cache of compiled models, if its key forgot the precision.
      ASSERT_TRUE(run_into(graph, narrowed("cpu", precision), inputs, found).ok());
      EXPECT_EQ(found, expected);
      EXPECT_NE(found, exact);
      EXPECT_LT(distance(graph, exact, found), tolerance);
    }
  }
}

std::string decisions(const std::string& file, DType precision) {
  const std::vector<std::string> names{"narrow_products"};
  const auto result =
      tooling::run_passes(driver::parse_model(test_text(file)).value(), names, false, precision);
  if (!result.ok()) return result.status().to_string();
  std::string out;
  for (const Decision& d : result->log) {
    if (d.what.starts_with("narrow_products:%")) {
      out += fmt::format("{} {}: {}, {}\n", d.what.substr(d.what.find('%')), d.detail, d.chosen,
                         d.reason);
    }
  }
  return out;
}

TEST(NarrowProducts, SayWhatWasDecidedForEach) {
  EXPECT_EQ(decisions("passes/narrow_products", DType::kBF16),
            "%p matmul: operands in bf16, value_changing\n"
            "%y gemm: operands in bf16, value_changing\n"
            "%c conv: operands in bf16, value_changing\n"
            "%e contract: operands in bf16, value_changing\n");
  EXPECT_EQ(decisions("passes/narrow_products_refuses", DType::kF16),
            "%y matmul: kept in f32, constant_overflows\n"
            "%s contract: kept in f32, no_product\n"
            "%m deform_conv: kept in f32, not_in_policy\n");
  EXPECT_EQ(decisions("passes/narrow_products_attention", DType::kBF16),
            "%y attention: operands in bf16, value_changing\n"
            "%z attention: kept in f32, other_output_read\n"
            "%w attention: kept in f32, row_not_for_units\n");
  EXPECT_EQ(decisions("passes/narrow_products", DType::kF32), "");
}

TEST(NarrowProducts, OtherPrecisionsAreRefused) {
  const ir::Graph graph = driver::parse_model(test_text("models/linear_relu")).value();
  const auto refused = session::compile(graph, narrowed("cpu", DType::kI8));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnknownOption);
  EXPECT_EQ(refused.status().message(), "precision 'i8' is not known; known are f32, bf16, f16");
}

}  // namespace
}  // namespace pyc::passes

// Every op against the expected values of its .cases file, on every backend (README.md).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/convert.h"
#include "base/sanitizers.h"
#include "ir/graph.h"
#include "ir/literal.h"
#include "ops/case_graph.h"
#include "ops/registry.h"
#include "session/model.h"
#include "support/capability_page.h"

// Cases of a recipe are of an op that no page of PyC's own has.
#ifdef PYC_CASES_DIR
constexpr bool kOwnCases = false;
#else
constexpr bool kOwnCases = true;
#define PYC_CASES_DIR PYC_SOURCE_DIR "/tests/ops"
#endif

namespace pyc::test {
namespace {

using driver::CompileOptions;

struct Setting {
  CompileOptions options;
  bool constants = false;  // all inputs but the first are constants

  std::string text() const {
    return options.device + " lanes=" + std::to_string(options.lanes) +
           " threads=" + std::to_string(options.threads) + (options.fuse ? "" : " fuse=off") +
           (constants ? " constants" : "");
  }
};

// Memory that faults or tells when a kernel leaves it.
Result<runtime::TensorView> make_view(const runtime::IoSpec& spec, const Bytes& content,
                                      std::vector<AlignedBuffer>& memory) {
  PYC_ASSIGN(AlignedBuffer buffer,
             AlignedBuffer::create(static_cast<size_t>(spec.bytes), AlignedBuffer::Mode::kGuarded));
  std::copy(content.begin(), content.end(), buffer.data());
  memory.push_back(std::move(buffer));
  return runtime::TensorView{memory.back().data(), spec.dtype, spec.shape, spec.bytes};
}

Status run(const Case& c, const std::vector<Tensor>& inputs, const Setting& setting,
           std::vector<Tensor>* outputs) {
  PYC_ASSIGN(ir::Graph graph, ir::parse(graph_text(c, setting.constants), ops::all_ops()));
  PYC_ASSIGN(auto model, session::compile(std::move(graph), setting.options));
  std::vector<AlignedBuffer> memory;
  std::vector<runtime::TensorView> input_views;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    PYC_ASSIGN(input_views.emplace_back(), make_view(model->inputs()[i], inputs[i].bytes, memory));
  }
  std::vector<runtime::TensorView> output_views;
  for (const runtime::IoSpec& spec : model->outputs()) {
    PYC_ASSIGN(output_views.emplace_back(), make_view(spec, {}, memory));
  }
  Status status = model->run(input_views, output_views);
  for (const AlignedBuffer& buffer : memory) {
    EXPECT_TRUE(buffer.check_canary()) << "written outside of a buffer";
  }
  outputs->clear();
  for (const runtime::TensorView& v : output_views) {
    const auto* begin = static_cast<const std::byte*>(v.data);
    outputs->push_back(
        {{v.dtype, {v.shape.begin(), v.shape.end()}}, Bytes(begin, begin + v.bytes)});
  }
  return status;
}

// The position of a float among all floats of its type, -0 and +0 at the same place.
int64_t rank_of(Word bits, DType t) {
  const Word sign = Word{1} << (dtype_bits(t) - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

bool matches(Word found, Word expected, DType t, const Tolerance& tolerance) {
  if (found == expected) return true;
  if (!is_float(t)) return false;
  const double x = word_to_double(found, t);
  const double y = word_to_double(expected, t);
  if (std::isnan(x) || std::isnan(y)) return false;
  if (tolerance.ulp > 0) {
    const int64_t distance = rank_of(found, t) - rank_of(expected, t);
    if (std::abs(distance) <= tolerance.ulp) return true;
  }
  const double difference = std::fabs(x - y);
  return (tolerance.abs > 0 && difference <= tolerance.abs) ||
         (tolerance.rel > 0 && difference <= tolerance.rel * std::fabs(y));
}

std::string index_text(int64_t flat, const ir::Shape& shape) {
  ir::Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return ir::shape_to_string(index);
}

// The first difference, or "".
std::string first_difference(const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                             const Tolerance& tolerance) {
  if (found.size() != expected.size()) return "another number of outputs";
  for (size_t o = 0; o < found.size(); ++o) {
    const ir::TensorType& type = expected[o].type;
    if (found[o].type != type) {
      return "output " + std::to_string(o) + " is " + found[o].type.to_string() + ", expected " +
             type.to_string();
    }
    for (int64_t i = 0; i < type.elements(); ++i) {
      const Word x = found[o].word(i);
      const Word y = expected[o].word(i);
      if (matches(x, y, type.dtype, tolerance)) continue;
      return "output " + std::to_string(o) + " at " + index_text(i, type.shape) + ": found " +
             ir::format_element(x, type.dtype) + ", expected " + ir::format_element(y, type.dtype) +
             (is_float(type.dtype)
                  ? ", " + std::to_string(rank_of(x, type.dtype) - rank_of(y, type.dtype)) + " ulp"
                  : "");
    }
  }
  return "";
}

void check_refusal(const Refusal& refusal, const Status& status) {
  EXPECT_EQ(code_name(status.code()), refusal.code) << status.to_string();
  EXPECT_NE(status.message().find(refusal.message), std::string::npos)
      << "expected a message with \"" << refusal.message << "\", found \"" << status.message()
      << "\"";
}

Setting make_setting(std::string device, int threads = 1, int lanes = 0) {
  Setting setting;
  setting.options.device = std::move(device);
  setting.options.threads = threads;
  setting.options.lanes = lanes;
  return setting;
}

std::vector<Setting> cpu_settings() {
  std::vector<Setting> settings;
  settings.push_back(make_setting("cpu", 2, 4));
  if (kSanitized) return settings;  // sanitizers do not see generated code: one width is enough
  settings.push_back(make_setting("cpu", 1, 8));
  settings.push_back(make_setting("cpu", 2, 16));
  settings.push_back(make_setting("cpu"));
  settings.back().options.fuse = false;
  settings.push_back(make_setting("cpu"));
  settings.back().constants = true;
  return settings;
}

// Runs the case on every device and notes the type of its elements where it agreed.
void check_case(const Case& c, RanTypes& ran) {
  if (c.refusal && !c.refusal->at_run) {
    const auto graph = ir::parse(graph_text(c, false), ops::all_ops());
    return check_refusal(*c.refusal, graph.ok() ? Status() : graph.status());
  }
  const std::vector<Tensor> inputs = parse_tensors(c.inputs);
  const std::vector<Tensor> expected = parse_tensors(c.outputs);
  const auto agreed = [&](const std::string& device) {
    if (c.refusal) return;
    ran[device].insert((inputs.empty() ? expected : inputs)[0].type.dtype);
  };
  std::vector<Tensor> reference;
  const Status status = run(c, inputs, make_setting("reference"), &reference);
  if (c.refusal) {
    check_refusal(*c.refusal, status);
  } else {
    ASSERT_TRUE(status.ok()) << "reference: " << status.to_string();
    EXPECT_EQ(first_difference(reference, expected, c.tolerance), "") << "reference";
    agreed("reference");
  }
  for (const Setting& setting : cpu_settings()) {
    if (setting.constants && c.inputs.size() <= 1) continue;
    SCOPED_TRACE(setting.text());
    std::vector<Tensor> found;
    const Status cpu = run(c, inputs, setting, &found);
    if (c.refusal) {
      check_refusal(*c.refusal, cpu);
      continue;
    }
    ASSERT_TRUE(cpu.ok()) << cpu.to_string();
    EXPECT_EQ(first_difference(found, reference, {}), "") << "cpu against reference";
  }
  agreed("cpu");
}

std::vector<std::string> case_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(PYC_CASES_DIR)) {
    if (entry.path().extension() == ".cases") stems.push_back(entry.path().stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

class OpCases : public testing::TestWithParam<std::string> {};

TEST_P(OpCases, AgreeWithExpectedValuesAndBackends) {
  const std::string path = PYC_CASES_DIR "/" + GetParam() + ".cases";
  RanTypes ran;
  for (const Case& c : read_cases(path)) {
    SCOPED_TRACE(path + ":" + std::to_string(c.line) + ": case " + c.name);
    EXPECT_EQ(op_name(c.op), GetParam());
    EXPECT_TRUE(c.refusal || c.outputs.size() == result_count(c))
        << "a case needs all outputs or a refusal";
    try {
      check_case(c, ran);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  if (kOwnCases) expect_on_page(GetParam(), ran);
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, testing::ValuesIn(case_files()),
                         [](const auto& info) { return info.param; });

TEST(OpCasesFiles, EveryOpHasOne) {
  const std::vector<std::string> stems = case_files();
  for (const ir::OpDef* op : ops::all_ops().all()) {
    EXPECT_TRUE(std::binary_search(stems.begin(), stems.end(), op->name)) << op->name;
  }
}

TEST(OpCasesFiles, ThePageOfCapabilitiesHasNoOtherOps) {
  if (kOwnCases) {
    EXPECT_EQ(ops_on_page(), case_files());
  }
}

// Rows of the file must be able to fail: a planted wrong value is found, with its place.
TEST(OpCasesFiles, DifferencesAreFound) {
  const auto a = parse_tensors({"f32[2,2] dense(1.0, 2.0, 3.0, nan)"});
  const auto b = parse_tensors({"f32[2,2] dense(1.0, 2.0, 3.0000002, nan)"});
  const auto c = parse_tensors({"f32[2,2] dense(1.0, 2.0, 3.0, 0x7fc00001)"});
  const auto d = parse_tensors({"f32[2,2] dense(1.0, 2.0, -3.0, nan)"});
  EXPECT_EQ(first_difference(a, a, {}), "");
  EXPECT_EQ(first_difference(b, a, {}), "output 0 at [1,0]: found 3.0000002, expected 3.0, 1 ulp");
  EXPECT_EQ(first_difference(b, a, {.ulp = 1}), "");
  EXPECT_NE(first_difference(c, a, {.ulp = 1}), "");
  EXPECT_NE(first_difference(d, a, {.ulp = 9}), "");
}

}  // namespace
}  // namespace pyc::test

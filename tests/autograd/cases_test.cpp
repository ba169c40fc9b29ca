// Every case of the .gradients files (README.md): values, and bits between devices.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "autograd/gradient.h"
#include "base/convert.h"
#include "ops/case_file.h"
#include "ops/registry.h"
#include "support/compare.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;

struct Tensor {
  ir::TensorType type;
  Bytes bytes;

  double at(int64_t i) const {
    return word_to_double(load_word(bytes.data() + i * dtype_size(type.dtype), type.dtype),
                          type.dtype);
  }
};

std::vector<Tensor> read_tensors(const std::vector<std::string>& texts) {
  std::string names;
  std::string statements;
  for (size_t i = 0; i < texts.size(); ++i) {
    names += fmt::format("{}%t{}", i == 0 ? "" : ", ", i);
    statements += fmt::format("  %t{} = const {}\n", i, texts[i]);
  }
  const auto graph =
      ir::parse(fmt::format("graph @t() -> ({}) {{\n{}}}\n", names, statements), ops::all_ops());
  if (!graph.ok()) throw std::runtime_error(graph.status().to_string());
  std::vector<Tensor> out;
  for (ValueId v : graph->outputs) {
    out.push_back({graph->type(v), graph->value(v).constant->bytes.copy()});
  }
  return out;
}

// The attributes of a case, as the parser of text IR reads them.
Result<ir::Graph> node_graph(const Case& c, size_t operands) {
  std::string inputs;
  std::string names;
  for (size_t i = 0; i < operands; ++i) {
    inputs += fmt::format("{}%x{}: {}", i == 0 ? "" : ", ", i, type_of(c.inputs[i]));
    names += fmt::format("{}%x{}", i == 0 ? "" : ", ", i);
  }
  const std::string op = op_name(c.op);
  const ir::OpDef* def = ops::all_ops().find(op);
  if (def == nullptr) return Status(Code::kUnknownOp, op);
  // How many results a variadic op has is found by trying.
  Result<ir::Graph> made = Status(Code::kInternal, "no number of results fits");
  const int most = def->outputs == ir::kVariadic ? 4 : def->outputs;
  for (int n = def->outputs == ir::kVariadic ? 1 : most; n <= most && !made.ok(); ++n) {
    std::string results = "%y0";
    for (int i = 1; i < n; ++i) results += fmt::format(", %y{}", i);
    made = ir::parse(fmt::format("graph @c({}) -> ({}) {{\n  {} = {}({}){}\n}}\n", inputs, results,
                                 results, op, names, c.op.substr(op.size())),
                     ops::all_ops());
  }
  return made;
}

// The gradients of the op's float inputs, as a graph of its inputs and what arrives.
Result<DrawnGraph> case_graph(const Case& c, const std::vector<Tensor>& inputs) {
  // Arriving gradients are one per float result: the number of operands is what is left.
  const ir::OpDef* def = ops::all_ops().find(op_name(c.op));
  if (def == nullptr) return Status(Code::kUnknownOp, c.op);
  Result<ir::Graph> node = Status(Code::kInternal, "the inputs do not fit the op");
  size_t operands = inputs.size();
  while (operands > 0) {
    node = node_graph(c, --operands);
    if (!node.ok()) continue;
    size_t floats = 0;
    for (ValueId v : node->outputs) floats += is_float(node->type(v).dtype) ? 1 : 0;
    if (operands + floats == inputs.size()) break;
    node = Status(Code::kInternal, "the inputs do not fit the op");
  }
  if (!node.ok()) return node.status();
  const std::vector<ValueId> results = node->outputs;
  node->outputs.clear();
  std::vector<ValueId> wanted;
  for (ValueId v : node->inputs) {
    if (is_float(node->type(v).dtype)) wanted.push_back(v);
  }
  ir::GraphBuilder builder(ops::all_ops(), std::move(*node));
  ValueId loss = ir::kNoId;
  size_t next = operands;
  for (ValueId y : results) {
    if (!is_float(builder.type(y).dtype)) continue;
    PYC_ASSIGN(const ValueId g, builder.input(fmt::format("g{}", next), inputs[next].type));
    ++next;
    PYC_ASSIGN(const ValueId product, builder.op("mul", {y, g}));
    PYC_ASSIGN(const ValueId part, builder.op("reduce_sum", {product}, {{"keepdims", false}}));
    if (loss == ir::kNoId) {
      loss = part;
    } else {
      PYC_ASSIGN(loss, builder.op("add", {loss, part}));
    }
  }
  PYC_TRY(builder.output(loss));
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(builder).take()));
  PYC_ASSIGN(const ir::VerifiedGraph made,
             autograd::differentiate(verified, loss, wanted, ops::all_ops()));
  DrawnGraph result{*made, {}, {}};
  for (const Tensor& t : inputs) result.inputs.push_back(t.bytes);
  return result;
}

bool close(double found, double expected, const Tolerance& tolerance, DType t) {
  if (found == expected || (std::isnan(found) && std::isnan(expected))) return true;
  const double difference = std::fabs(found - expected);
  const double ulp = (t == DType::kF64 ? 0x1p-52 : 0x1p-23) * std::fabs(expected);
  return difference <= tolerance.abs || difference <= tolerance.rel * std::fabs(expected) ||
         difference <= static_cast<double>(tolerance.ulp) * ulp;
}

void check_gradients(const Case& c) {
  const std::vector<Tensor> inputs = read_tensors(c.inputs);
  const std::vector<Tensor> expected = read_tensors(c.outputs);
  const auto graph = case_graph(c, inputs);
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const auto found = run_drawn(*graph, plain_reference());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_EQ(found->size(), expected.size() + 1);  // the loss comes first
  for (size_t o = 0; o < expected.size(); ++o) {
    const Tensor result{graph->graph.type(graph->graph.outputs[o + 1]), (*found)[o + 1]};
    ASSERT_EQ(result.type, expected[o].type);
    for (int64_t i = 0; i < result.type.elements(); ++i) {
      EXPECT_TRUE(close(result.at(i), expected[o].at(i), c.tolerance, result.type.dtype))
          << "gradient " << o << " at " << i << ": found " << result.at(i) << ", expected "
          << expected[o].at(i);
    }
  }
  EXPECT_EQ(difference(*graph, {cpu_options(0, 2)}), "");
}

std::vector<std::string> gradient_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(PYC_SOURCE_DIR "/tests/autograd")) {
    if (entry.path().extension() == ".gradients") stems.push_back(entry.path().stem().string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

class GradientCases : public testing::TestWithParam<std::string> {};

TEST_P(GradientCases, AgreeWithExpectedValuesAndBetweenDevices) {
  const std::string path = PYC_SOURCE_DIR "/tests/autograd/" + GetParam() + ".gradients";
  for (const Case& c : read_cases(path)) {
    SCOPED_TRACE(path + ":" + std::to_string(c.line) + ": case " + c.name);
    try {
      check_gradients(c);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientCases, testing::ValuesIn(gradient_files()),
                         [](const auto& info) { return info.param; });

// Ops whose gradients are checked by differences alone.
TEST(GradientCaseFiles, MostOpsHaveOne) {
  const std::set<std::string_view> by_differences{"adagrad", "adam",     "deform_conv", "gru",
                                                  "lstm",    "momentum", "roi_align"};
  std::set<std::string> seen;
  for (const std::string& stem : gradient_files()) {
    for (const Case& c : read_cases(PYC_SOURCE_DIR "/tests/autograd/" + stem + ".gradients")) {
      seen.insert(op_name(c.op));
    }
  }
  for (const ir::OpDef* op : ops::all_ops().all()) {
    if (!op->no_gradient.empty() || by_differences.contains(op->name)) continue;
    EXPECT_TRUE(seen.contains(std::string(op->name))) << op->name << " has no gradient case";
  }
}

}  // namespace
}  // namespace pyc::test

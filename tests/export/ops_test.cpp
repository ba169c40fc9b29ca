// Every case of every op's .cases file goes through ONNX and keeps its bits, or is refused by name.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "base/files.h"
#include "export/round_trip.h"
#include "import/onnx/proto.h"
#include "import/onnx/rules.h"
#include "ops/case_file.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

// Ops that ONNX says with others: close, but not the same bits.
const std::set<std::string> kClose = {"exp2", "expm1", "log1p", "log2", "resample"};
// Ops that no rule, or only a refusal, stands for.
const std::set<std::string> kRefused = {"attend",    "bernoulli",     "multinomial",
                                        "nll_terms", "random_normal", "random_uniform"};

size_t result_count(const Case& c, const ir::OpDef& op) {
  if (op.outputs == ir::kVariadic) return std::max<size_t>(c.outputs.size(), 1);
  return static_cast<size_t>(op.outputs);
}

// One node on the case's own numbers as constants; an input without any is one of the graph.
std::string graph_text(const Case& c, const ir::OpDef& op) {
  std::string inputs;
  std::string statements;
  std::string operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = "%x" + std::to_string(i);
    operands += (i == 0 ? "" : ", ") + name;
    if (c.inputs[i].find(' ') == std::string::npos) {
      inputs += (inputs.empty() ? "" : ", ") + name + ": " + c.inputs[i];
    } else {
      statements += "  " + name + " = const " + c.inputs[i] + "\n";
    }
  }
  std::string results = "%y";
  for (size_t i = 1; i < result_count(c, op); ++i) results += ", %y" + std::to_string(i);
  const std::string name(op.name);
  return "graph @g(" + inputs + ") -> (" + results + ") {\n" + statements + "  " + results + " = " +
         name + "(" + operands + ")" + c.op.substr(name.size()) + "\n}\n";
}

struct Count {
  int same = 0;
  int refused = 0;
};

// Whether an attribute is a number that no f32, which ONNX has them as, holds.
bool has_wide_numbers(const ir::Graph& graph) {
  const auto is_wide = [](double x) { return static_cast<double>(static_cast<float>(x)) != x; };
  for (const auto& [name, attr] : graph.nodes[0].attrs) {
    if (const auto* f = std::get_if<double>(&attr); f != nullptr && is_wide(*f)) return true;
    const auto* list = std::get_if<std::vector<double>>(&attr);
    if (list != nullptr && std::any_of(list->begin(), list->end(), is_wide)) return true;
  }
  return false;
}

void check(const Case& c, const ir::OpDef& op, Count& count) {
  SCOPED_TRACE(std::string(op.name) + " case " + c.name);
  auto graph = ir::parse(graph_text(c, op), ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const auto bytes = onnx::export_model(*graph);
  if (!bytes.ok()) {
    EXPECT_EQ(bytes.status().code(), Code::kUnsupported) << bytes.status().to_string();
    EXPECT_NE(bytes.status().message().find("'y' (" + std::string(op.name) + ")"),
              std::string::npos)
        << bytes.status().to_string();
    ++count.refused;
    return;
  }
  auto again = import_again(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  ASSERT_EQ(again->outputs.size(), graph->outputs.size());
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    EXPECT_EQ(again->type(again->outputs[i]), graph->type(graph->outputs[i]));
  }
  const bool may_differ = kClose.contains(std::string(op.name)) || has_wide_numbers(*graph);
  const auto before = outputs_of(std::move(*graph));
  const auto after = outputs_of(std::move(*again));
  ASSERT_EQ(before.ok(), after.ok()) << before.status().to_string() << after.status().to_string();
  if (!before.ok()) return;
  for (size_t i = 0; i < before->size(); ++i) {
    const Output& x = (*before)[i];
    const Output& y = (*after)[i];
    EXPECT_TRUE(x == y || (may_differ && close(y, x))) << "output " << i;
  }
  ++count.same;
}

std::vector<Case> cases_of(const ir::OpDef& op) {
  const fs::path file =
      fs::path(PYC_SOURCE_DIR) / "tests" / "ops" / (std::string(op.name) + ".cases");
  return fs::exists(file) ? read_cases(file.string()) : std::vector<Case>{};
}

class Ops : public testing::TestWithParam<const ir::OpDef*> {};

TEST_P(Ops, KeepTheirBits) {
  const ir::OpDef& op = *GetParam();
  const std::string name(op.name);
  const std::vector<Case> cases = cases_of(op);
  ASSERT_FALSE(cases.empty()) << "no cases";
  Count count;
  for (const Case& c : cases) {
    if (!c.refusal) check(c, op, count);
  }
  if (kRefused.contains(name)) {
    EXPECT_EQ(count.same, 0);
    EXPECT_GT(count.refused, 0);
  } else {
    EXPECT_GT(count.same, 0);
  }
}

// Of ONNX's own operators: those that cases of ops are written as, and those that the tests of the
// import build a node of.
TEST(EveryOperator, HasACaseOfItsOwn) {
  std::set<std::string_view> missing;
  for (const std::string_view name : onnx::rule_names("")) missing.insert(name);
  ASSERT_GT(missing.size(), 190U);
  for (const ir::OpDef* op : ops::all_ops().all()) {
    for (const Case& c : cases_of(*op)) {
      if (c.refusal) continue;
      const auto bytes = onnx::export_model(ir::parse(graph_text(c, *op), ops::all_ops()).value());
      if (!bytes.ok()) continue;
      const auto model = onnx::parse_model(std::as_bytes(std::span(*bytes)));
      ASSERT_TRUE(model.ok()) << model.status().to_string();
      for (const auto& node : model->graph.nodes) {
        if (node.domain.empty()) missing.erase(node.op);
      }
    }
  }
  const std::regex node("(?:node|two_inputs)\\(\\s*\"(\\w+)\"");
  for (const auto& entry : fs::directory_iterator(fs::path(PYC_SOURCE_DIR) / "tests" / "onnx")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_file(entry.path().string(), 1 << 20).value();
    for (std::sregex_iterator it(text.begin(), text.end(), node), end; it != end; ++it) {
      missing.erase((*it)[1].str());
    }
  }
  EXPECT_EQ(missing, std::set<std::string_view>{});
}

INSTANTIATE_TEST_SUITE_P(All, Ops,
                         testing::ValuesIn(ops::all_ops().all().begin(),
                                           ops::all_ops().all().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace pyc::test

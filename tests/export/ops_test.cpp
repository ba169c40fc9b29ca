// Every case of every op's .cases file goes through ONNX and keeps its bits, or is refused by name.

#include <gtest/gtest.h>

#include <set>

#include "export/case_graph.h"
#include "export/round_trip.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

// Ops that ONNX says with others: close, but not the same bits.
const std::set<std::string> kClose = {"exp2", "expm1", "log1p", "log2", "resample"};
// Ops that no rule, or only a refusal, stands for.
const std::set<std::string> kRefused = {"attend",    "bernoulli",     "multinomial",
                                        "nll_terms", "random_normal", "random_uniform"};

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

INSTANTIATE_TEST_SUITE_P(All, Ops,
                         testing::ValuesIn(ops::all_ops().all().begin(),
                                           ops::all_ops().all().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace pyc::test

// The pass of docs/adding-a-pass.md on its text case.

#include <gtest/gtest.h>

#include "base/files.h"
#include "eval/node_evaluator.h"
#include "ops/registry.h"
#include "passes/passes.h"

namespace pyc::passes {

Result<bool> join_concats(ir::Graph& graph, const PassContext& context);

namespace {

TEST(PassRecipe, DoesWhatItsPageSays) {
  const std::string text = read_file(PYC_RECIPE_CASE, 1 << 20).value();
  const size_t cut = text.find("--- expect\n");
  ASSERT_NE(cut, std::string::npos);
  auto graph = ir::parse(text.substr(0, cut), ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  DecisionLog log;
  Rewrites rewrites;
  eval::Evaluators evaluators;
  const PassContext context{
      .ops = ops::all_ops(), .log = log, .rewrites = rewrites, .evaluators = evaluators};
  const auto changed = join_concats(*graph, context);
  ASSERT_TRUE(changed.ok()) << changed.status().to_string();
  EXPECT_TRUE(*changed);
  EXPECT_TRUE(ir::verify_graph(*graph).ok());
  EXPECT_EQ(ir::print(*graph), text.substr(text.find('\n', cut) + 1));
  EXPECT_FALSE(join_concats(*graph, context).value());
}

}  // namespace
}  // namespace pyc::passes

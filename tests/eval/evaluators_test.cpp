#include <gtest/gtest.h>

#include "eval/node_evaluator.h"
#include "ops/registry.h"

namespace pyc::eval {
namespace {

TEST(Evaluators, NodesAlikeShareOne) {
  const ir::OpSet& ops = ops::all_ops();
  const ir::OpDef& add = *ops.find("add");
  const ir::OpDef& sub = *ops.find("sub");
  const ir::TensorType scalar{.dtype = DType::kI64, .shape = {}};
  const ir::TensorType two{.dtype = DType::kI64, .shape = {2}};
  const std::vector<ir::TensorType> scalars{scalar, scalar};
  const std::vector<ir::TensorType> pairs{two, two};
  Evaluators evaluators;
  const auto of = [&](const ir::OpDef& op, const std::vector<ir::TensorType>& inputs) {
    auto made = evaluators.of(ops, op, inputs, {});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *made : nullptr;
  };
  const auto first = of(add, scalars);
  EXPECT_EQ(of(add, scalars), first);
  EXPECT_NE(of(sub, scalars), first);
  EXPECT_NE(of(add, pairs), first);
  EXPECT_EQ(of(add, scalars), first);
}

TEST(Evaluators, AttributesTellNodesApart) {
  const ir::OpSet& ops = ops::all_ops();
  const ir::OpDef& transpose = *ops.find("transpose");
  const std::vector<ir::TensorType> input{{.dtype = DType::kI64, .shape = {2, 2}}};
  Evaluators evaluators;
  const ir::Attrs swapped{{"perm", std::vector<int64_t>{1, 0}}};
  const ir::Attrs same{{"perm", std::vector<int64_t>{0, 1}}};
  const auto first = evaluators.of(ops, transpose, input, swapped);
  const auto second = evaluators.of(ops, transpose, input, same);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace pyc::eval

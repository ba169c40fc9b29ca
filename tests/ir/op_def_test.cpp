#include "ir/op_def.h"

#include <gtest/gtest.h>

#include "ir/rules.h"
#include "ir/test_ops.h"

namespace pyc::ir {
namespace {

using testing::test_ops;

TEST(OpSet, FindsByNameInOrder) {
  const OpSet& ops = test_ops();
  ASSERT_NE(ops.find("matmul"), nullptr);
  EXPECT_EQ(ops.find("matmul")->name, "matmul");
  EXPECT_EQ(ops.find("matmu"), nullptr);
  EXPECT_EQ(ops.find(""), nullptr);
  for (size_t i = 1; i < ops.all().size(); ++i) {
    EXPECT_LT(ops.all()[i - 1]->name, ops.all()[i]->name);
  }
}

TEST(OpSet, RefusesTwoOpsOfOneName) {
  const OpDef a{.name = "a", .summary = ""};
  EXPECT_THROW(OpSet({&a, &a}), InternalError);
}

TEST(OpSet, Suggests) {
  const OpSet& ops = test_ops();
  EXPECT_EQ(ops.suggest("matmull"), "matmul");
  EXPECT_EQ(ops.suggest("mamtul"), "matmul");
  EXPECT_EQ(ops.suggest("MatMul"), "matmul");
  EXPECT_EQ(ops.suggest("Relu"), "relu");
  EXPECT_EQ(ops.suggest("splt"), "split");
  EXPECT_EQ(ops.suggest("convolution"), "");
  EXPECT_EQ(ops.suggest(""), "");
  EXPECT_EQ(ops.suggest(std::string(1 << 20, 'a')), "");
  EXPECT_EQ(OpSet({}).suggest("x"), "");
}

TEST(CompleteAttrs, AddsDefaults) {
  const auto attrs = complete_attrs(*test_ops().find("split"), {});
  ASSERT_TRUE(attrs.ok());
  EXPECT_EQ(*attrs, (Attrs{{"axis", int64_t{-1}}, {"keep", false}}));
}

TEST(CompleteAttrs, KeepsWhatIsGiven) {
  const auto attrs = complete_attrs(*test_ops().find("split"), {{"axis", int64_t{2}}});
  EXPECT_EQ(*attrs, (Attrs{{"axis", int64_t{2}}, {"keep", false}}));
}

TEST(CompleteAttrs, TakesIntegersAsFloats) {
  const auto attrs = complete_attrs(
      *test_ops().find("tag"), {{"alpha", int64_t{2}}, {"weights", std::vector<int64_t>{1, 2}}});
  ASSERT_TRUE(attrs.ok());
  EXPECT_EQ(attrs->at("alpha"), Attr(2.0));
  EXPECT_EQ(attrs->at("weights"), Attr(std::vector<double>{1.0, 2.0}));
  // 2^53 + 1 is no double.
  EXPECT_FALSE(complete_attrs(*test_ops().find("tag"), {{"alpha", (int64_t{1} << 53) + 1}}).ok());
}

TEST(CompleteAttrs, Refusals) {
  const auto message = [](std::string_view op, Attrs attrs) {
    const auto result = complete_attrs(*test_ops().find(op), std::move(attrs));
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_EQ(message("split", {{"axs", int64_t{1}}}),
            "[unknown_attr] op 'split' has no attribute 'axs', did you mean 'axis'?");
  EXPECT_EQ(message("relu", {{"axis", int64_t{1}}}),
            "[unknown_attr] op 'relu' has no attribute 'axis'");
  EXPECT_EQ(message("cast", {}), "[missing_attr] op 'cast' needs attribute 'to' (dtype)");
  EXPECT_EQ(message("split", {{"axis", 1.5}}),
            "[bad_attr_kind] attribute 'axis' of op 'split': expected int, found float 1.5");
  EXPECT_EQ(message("cast", {{"to", static_cast<DType>(77)}}),
            "[bad_attr_value] attribute 'to' of op 'cast': expected a dtype, found dtype#77");
}

TEST(InferArgs, ReadsAttributes) {
  const Attrs attrs = {{"b", true},
                       {"d", DType::kI8},
                       {"f", 0.5},
                       {"i", int64_t{3}},
                       {"l", std::vector<int64_t>{4}},
                       {"s", std::string("t")}};
  const InferArgs args{{}, attrs};
  EXPECT_TRUE(args.attr_bool("b"));
  EXPECT_EQ(args.attr_dtype("d"), DType::kI8);
  EXPECT_EQ(args.attr_float("f"), 0.5);
  EXPECT_EQ(args.attr_int("i"), 3);
  EXPECT_EQ(args.attr_ints("l"), std::vector<int64_t>{4});
  EXPECT_EQ(args.attr_string("s"), "t");
  EXPECT_THROW(args.attr_int("none"), InternalError);
  EXPECT_THROW(args.attr_int("f"), InternalError);
}

}  // namespace
}  // namespace pyc::ir

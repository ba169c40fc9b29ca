// What ops say about the node of ONNX that they are (ir::OnnxNode), and who reads it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "export/onnx/rules.h"
#include "import/onnx/rules.h"
#include "ops/registry.h"

namespace pyc::test {
namespace {

std::vector<const ir::OpDef*> named_ops() {
  std::vector<const ir::OpDef*> out;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    if (!op->onnx.name.empty()) out.push_back(op);
  }
  return out;
}

bool has_attr(const ir::OpDef& op, std::string_view name) {
  return std::ranges::any_of(op.attrs, [&](const ir::AttrDef& a) { return a.name == name; });
}

TEST(OnnxNodes, AreOfOneOpEach) {
  EXPECT_GT(named_ops().size(), 100U);
  std::map<std::string, std::string_view> owners;
  for (const ir::OpDef* op : named_ops()) {
    const auto [it, fresh] =
        owners.emplace(fmt::format("{}.{}", op->onnx.domain, op->onnx.name), op->name);
    EXPECT_TRUE(fresh) << op->name << " and " << it->second << " are both " << it->first;
  }
}

TEST(OnnxNodes, NameWhatTheOpHas) {
  for (const ir::OpDef* op : named_ops()) {
    SCOPED_TRACE(op->name);
    for (const ir::OnnxWord& word : ir::onnx_words(op->onnx.attrs)) {
      EXPECT_TRUE(has_attr(*op, word.own)) << word.own;
      EXPECT_NE(word.own, "with");
    }
    for (const ir::OnnxWord& word : ir::onnx_words(op->onnx.dtypes)) {
      EXPECT_TRUE(dtype_from_name(word.own)) << word.own;
    }
    EXPECT_EQ(!op->onnx.optional.empty(), has_attr(*op, "with"));
  }
}

// What has no default must be named, or no node could be read.
TEST(OnnxNodes, NameAllThatIsRequired) {
  for (const ir::OpDef* op : named_ops()) {
    if (onnx::find_rule(op->onnx.domain, op->onnx.name, op->onnx.since)->same == nullptr) continue;
    for (const ir::AttrDef& attr : op->attrs) {
      if (!attr.required) continue;
      EXPECT_TRUE(std::ranges::any_of(ir::onnx_words(op->onnx.attrs),
                                      [&](const auto& word) { return word.own == attr.name; }))
          << op->name << " needs " << attr.name;
    }
  }
}

TEST(OnnxNodes, WordsAreSplit) {
  const auto words = ir::onnx_words("axis transA=trans_a");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].onnx, "axis");
  EXPECT_EQ(words[0].own, "axis");
  EXPECT_EQ(words[1].onnx, "transA");
  EXPECT_EQ(words[1].own, "trans_a");
  EXPECT_TRUE(ir::onnx_words("").empty());
}

// Older versions keep the rule of import/, whose host function serves all.
TEST(OnnxNodes, AreReadFromTheirVersionOn) {
  const auto same = [](std::string_view op, int version) {
    const open::OpenOp* rule = onnx::find_rule("", op, version);
    return rule == nullptr || rule->same == nullptr ? "" : rule->same->name;
  };
  EXPECT_EQ(same("Add", 6), "");
  EXPECT_EQ(same("Add", 7), "add");
  EXPECT_EQ(same("Softmax", 12), "");
  EXPECT_EQ(same("Softmax", 13), "softmax");
  EXPECT_EQ(same("Relu", 1), "relu");
  EXPECT_EQ(onnx::find_rule("", "BitCast", 25), nullptr);
  EXPECT_EQ(onnx::first_version("", "BitCast"), 26);
  ASSERT_EQ(same("Equal", 13), "equal");
  EXPECT_NE(onnx::find_rule("", "Equal", 13)->host, nullptr);
}

// A rule goes before, each in its own direction.
TEST(OnnxNodes, AreOverruled) {
  EXPECT_EQ(onnx::find_rule("", "Conv", 22)->same, nullptr);
  EXPECT_EQ(onnx::exporting::find_rule("conv"), nullptr);
  EXPECT_NE(onnx::find_rule("", "Gather", 22)->same, nullptr);
  EXPECT_NE(onnx::exporting::find_rule("gather"), nullptr);
}

}  // namespace
}  // namespace pyc::test

// What a report holds of a compile, and that nothing in it can become markup.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <pyc/pyc.hpp>

#include "driver/compile.h"
#include "driver/stages.h"
#include "report/draw.h"
#include "report/gather.h"
#include "report/page.h"

namespace pyc::report {
namespace {

CompileRows rows_of_model(std::string_view text, driver::CompileOptions options = {}) {
  auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok()) << verified.status().to_string();
  auto stages = driver::stages(std::move(*verified), options);
  EXPECT_TRUE(stages.ok()) << stages.status().to_string();
  return gather(*stages);
}

constexpr std::string_view kLayer = R"(graph @layer(%x: f32[4,8]) -> (%y) {
  %w = const f32[8,16] random(seed=1, lo=-0.5, hi=0.5)
  %b = const f32[16] random(seed=2, lo=-0.1, hi=0.1)
  %product = matmul(%x, %w)
  %sum = add(%product, %b)
  %soft = softmax(%sum)
  %y = relu(%soft)
}
)";

int count(const GraphPart& part, BoxKind kind) {
  int n = 0;
  for (const BoxRow& box : part.boxes) n += box.kind == kind ? 1 : 0;
  return n;
}

TEST(Report, DrawsTheGraphAsGiven) {
  const CompileRows rows = rows_of_model(kLayer);
  EXPECT_EQ(count(rows.before, BoxKind::kInput), 1);
  EXPECT_EQ(count(rows.before, BoxKind::kNode), 4);
  EXPECT_EQ(count(rows.before, BoxKind::kOutput), 1);
  EXPECT_EQ(count(rows.before, BoxKind::kGroup), 0);
  ASSERT_EQ(rows.before.edges.size(), 5u);  // x, product, sum, soft, y, output
  EXPECT_EQ(rows.before.nodes[0].op, "matmul");
  EXPECT_EQ(rows.before.values[rows.before.nodes[0].outputs[0]].type, "f32[4,16]");
}

// Members lie inside of their group's box, and every node of the canonical graph is drawn.
TEST(Report, DrawsMembersInTheirGroups) {
  const CompileRows rows = rows_of_model(kLayer);
  ASSERT_FALSE(rows.groups.empty());
  EXPECT_EQ(count(rows.after, BoxKind::kGroup), static_cast<int>(rows.groups.size()));
  size_t members = 0;
  std::vector<bool> drawn(rows.after.nodes.size(), false);
  for (const BoxRow& box : rows.after.boxes) {
    if (box.kind == BoxKind::kNode) drawn[box.item] = true;
    if (box.parent == kNone) continue;
    ++members;
    const BoxRow& group = rows.after.boxes[box.parent];
    ASSERT_EQ(group.kind, BoxKind::kGroup);
    EXPECT_GE(box.corner.x, group.corner.x);
    EXPECT_GE(box.corner.y, group.corner.y);
    EXPECT_LE(box.corner.x + box.size.width, group.corner.x + group.size.width);
    EXPECT_LE(box.corner.y + box.size.height, group.corner.y + group.size.height);
  }
  EXPECT_GT(members, rows.groups.size());
  for (size_t n = 0; n < drawn.size(); ++n) EXPECT_TRUE(drawn[n]) << rows.after.nodes[n].op;
}

TEST(Report, SaysWhatBecameOfEachNode) {
  const CompileRows rows = rows_of_model(kLayer);
  for (const NodeRow& node : rows.before.nodes) EXPECT_FALSE(node.groups.empty()) << node.op;
  for (const GroupRow& group : rows.groups) {
    EXPECT_FALSE(group.kernel.empty());
    EXPECT_EQ(group.members.size(), group.reasons.size());
  }
}

TEST(Report, HasTheArenaOfThePlan) {
  driver::CompileOptions options;
  options.fuse = false;
  const CompileRows rows = rows_of_model(kLayer, options);
  ASSERT_EQ(rows.places.size(), 1u);
  EXPECT_GT(rows.places[0].arena_bytes, 0);
  EXPECT_LE(rows.places[0].lower_bound_bytes, rows.places[0].arena_bytes);
  ASSERT_FALSE(rows.instances.empty());
  for (const InstanceRow& instance : rows.instances) {
    EXPECT_LE(instance.offset + instance.taken_bytes, rows.places[0].arena_bytes);
    EXPECT_LE(instance.first, instance.last);
    EXPECT_LT(static_cast<size_t>(instance.last), rows.plan_steps.size());
  }
  EXPECT_EQ(rows.runs.size(), rows.plan_steps.size());
}

TEST(Report, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(shown("short"), "short");
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "ü";
  EXPECT_EQ(shown(umlauts), umlauts.substr(0, 160) + "…");
  EXPECT_EQ(shown("x" + umlauts), "x" + umlauts.substr(0, 158) + "…");
  EXPECT_EQ(shown(std::string(300, '\xff')), std::string(160, '\xff') + "…");
}

TEST(Page, HoldsTheDocumentWithoutMarkup) {
  const std::string json =
      R"({"strings":["</script><img src=x onerror=alert(1)>","<!--<script>"]})";
  const std::string html = page(json);
  const std::string empty = page("");
  EXPECT_EQ(html.find("onerror=alert(1)>\",\"<"), std::string::npos);
  const auto markup = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '<');
  };
  EXPECT_EQ(markup(html), markup(empty));
  EXPECT_NE(
      html.find(R"(["\u003c/script>\u003cimg src=x onerror=alert(1)>","\u003c!--\u003cscript>"])"),
      std::string::npos);
  // It loads nothing from anywhere.
  EXPECT_NE(empty.find("Content-Security-Policy\" content=\"default-src 'none'"),
            std::string::npos);
  EXPECT_EQ(empty.find("http://"), std::string::npos);
  EXPECT_EQ(empty.find("https://"), std::string::npos);
  EXPECT_EQ(empty.find("innerHTML"), std::string::npos);
}

// A chain with residuals, of `nodes` nodes that do not all fuse.
std::string large_model(int nodes) {
  std::string text = "graph @large(%x: f32[4,8]) -> (%v0) {\n  %w = const f32[8,8] splat(0.125)\n";
  std::string before = "x";
  std::string residual = "x";
  for (int i = nodes - 1; i >= 0; --i) {
    const std::string name = fmt::format("v{}", i);
    if (i % 5 == 0) {
      text += fmt::format("  %{} = add(%{}, %{})\n", name, before, residual);
      residual = name;
    } else if (i % 5 == 3) {
      text += fmt::format("  %{} = matmul(%{}, %w)\n", name, before);
    } else {
      text += fmt::format("  %{} = tanh(%{})\n", name, before);
    }
    before = name;
  }
  return text + "}\n";
}

TEST(Report, OfFiveThousandNodesIsUnderFiveMegabytes) {
  constexpr size_t kMost = 5'000'000;
  const auto file = api1::ModelFile::read(large_model(5000));
  api1::CompileOptions options;
  options.set("device", "reference");
  const api1::Graph graph = file.graph(options);
  const api1::Model model(graph, options);
  const std::string html = api1::take_text([&](char** out, pyc_error** e) {
    return pyc_model_report(model.get(), graph.get(), nullptr, PYC_REPORT_HTML, out, e);
  });
  EXPECT_LT(html.size(), kMost);
  EXPECT_GT(html.size(), 500'000u);  // it is all in there
}

}  // namespace
}  // namespace pyc::report

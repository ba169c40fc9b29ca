// Layouts that the compiler chooses: where it chooses them, that it says so, and that no bit of any
// result depends on them.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "lower/lower.h"
#include "ops/registry.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct LayoutRun {
  std::string digest;
  std::string choice;  // of the first set of values, "" if there was none to make
  bool operator==(const LayoutRun&) const = default;
};

LayoutRun run_with(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return {graph.status().to_string(), "error"};
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return {model.status().to_string(), "error"};
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return {seeded.status().to_string(), "error"};
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  if (!status.ok()) return {status.to_string(), "error"};
  LayoutRun out{seeded->digest(0).hex(), ""};
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("layouts:") && out.choice.empty()) out.choice = d.chosen;
  }
  return out;
}

LayoutRun run_on(const std::string& text, const char* device, bool layouts, int threads = 1,
                 int lanes = 0) {
  CompileOptions options;
  options.device = device;
  options.layouts = layouts;
  options.threads = threads;
  options.lanes = lanes;
  return run_with(text, options);
}

// Of the one kernel that is no matrix product.
std::string kernel_of_window(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return graph.status().to_string();
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return model.status().to_string();
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:") && !d.chosen.starts_with("f32_matmul")) return d.chosen;
  }
  return "none";
}

// A net of convolutions of all kinds, pools and what stands between them.
class DrawnNet {
 public:
  explicit DrawnNet(uint32_t seed) : random_(seed) {}

  std::string text() {
    channels_ = pick(1, 6);
    dims_ = pick(1, 2);
    for (int64_t d = 0; d < dims_; ++d) planes_.push_back(pick(5, 17));
    batch_ = pick(1, 2);
    const std::string input = fmt::format("%v0: f32[{},{},{}]", batch_, channels_, list(planes_));
    const int64_t layers = pick(2, 5);
    for (int64_t i = 0; i < layers; ++i) layer();
    if (pick(0, 2) == 0) pool_all();
    return fmt::format("graph @g({}) -> (%v{}) {{\n{}}}\n", input, last_, body_);
  }

 private:
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint32_t>(hi - lo + 1));
  }
  static std::string list(const std::vector<int64_t>& v) {
    return fmt::format("{}", fmt::join(v, ","));
  }
  std::string constant(const std::string& shape) {
    const int n = constants_++;
    body_ += fmt::format("  %c{} = const f32[{}] random(seed={}, lo=-1, hi=1)\n", n, shape, n);
    return fmt::format("%c{}", n);
  }
  void node(const std::string& call) {
    const int next = last_ + 1;
    body_ += fmt::format("  %v{} = {}\n", next, call);
    last_ = next;
  }

  void layer() {
    switch (pick(0, 5)) {
      case 0:
        return pool();
      case 1:
        return residual();
      case 2:
        return conv(channels_, channels_, 1);  // depthwise
      case 3:
        return conv(channels_ % 2 == 0 ? 2 : 1, pick(1, 9) * 2, 0);
      default:
        return conv(1, pick(1, 20), 0);
    }
  }

  void conv(int64_t groups, int64_t out, int64_t in) {
    in = in == 0 ? channels_ / groups : in;
    std::vector<int64_t> kernel;
    std::vector<int64_t> strides;
    std::vector<int64_t> pads(static_cast<size_t>(2 * dims_));
    for (size_t d = 0; d < planes_.size(); ++d) {
      kernel.push_back(std::min(pick(1, 4), planes_[d]));
      strides.push_back(planes_[d] > 6 ? pick(1, 2) : 1);
      pads[d] = pick(0, 2);
      pads[d + planes_.size()] = pick(0, 2);
      const int64_t padded = planes_[d] + pads[d] + pads[d + planes_.size()];
      planes_[d] = (padded - kernel[d]) / strides[d] + 1;
    }
    const std::string w = constant(fmt::format("{},{},{}", out, in, list(kernel)));
    const std::string b = constant(fmt::format("{}", out));
    node(fmt::format("conv(%v{}, {}, {}) {{group={}, strides=[{}], pads=[{}]}}", last_, w, b,
                     groups, list(strides), list(pads)));
    channels_ = out;
    if (pick(0, 1) == 0) node(fmt::format("relu(%v{})", last_));
  }

  void residual() {
    const int from = last_;
    const std::string w = constant(fmt::format("{},{},{}", channels_, channels_, ones()));
    node(fmt::format("conv(%v{}, {})", last_, w));
    node(fmt::format("add(%v{}, %v{})", last_, from));
  }

  void pool() {
    if (*std::min_element(planes_.begin(), planes_.end()) < 3) return residual();
    const std::vector<int64_t> kernel(planes_.size(), 3);
    const std::vector<int64_t> pads(2 * planes_.size(), 1);
    node(fmt::format("{}(%v{}) {{kernel=[{}], strides=[{}], pads=[{}]}}",
                     pick(0, 1) == 0 ? "max_pool" : "avg_pool", last_, list(kernel),
                     list(std::vector<int64_t>(planes_.size(), 2)), list(pads)));
    for (int64_t& p : planes_) p = (p - 1) / 2 + 1;
  }

  void pool_all() { node(fmt::format("global_avg_pool(%v{})", last_)); }

  std::string ones() const { return list(std::vector<int64_t>(planes_.size(), 1)); }

  std::mt19937 random_;
  std::string body_;
  int last_ = 0;
  int constants_ = 0;
  int64_t batch_ = 1;
  int64_t channels_ = 1;
  int64_t dims_ = 2;
  std::vector<int64_t> planes_;
};

TEST(ChosenLayouts, ChangeNoBitOfDrawnNets) {
  int chosen = 0;
  constexpr int kLanes[] = {0, 4, 8, 16};
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const std::string text = DrawnNet(seed).text();
    const LayoutRun plain = run_on(text, "cpu", false);
    const LayoutRun reference = run_on(text, "reference", true);
    EXPECT_EQ(plain.choice, "") << text;
    EXPECT_EQ(reference.choice, "") << text;
    const LayoutRun ordered =
        run_on(text, "cpu", true, 1 + static_cast<int>(seed % 3), kLanes[seed % 4]);
    ASSERT_EQ(ordered.digest, plain.digest) << "seed " << seed << "\n" << text;
    ASSERT_EQ(ordered.digest, reference.digest) << "seed " << seed << "\n" << text;
    chosen += ordered.choice == "channels last" ? 1 : 0;
  }
  EXPECT_GT(chosen, 20);
}

constexpr const char* kBlock = R"(graph @g(%x: f32[1,16,20,20]) -> (%y) {
  %w1 = const f32[32,16,1,1] random(seed=1, lo=-1, hi=1)
  %w2 = const f32[32,1,3,3] random(seed=2, lo=-1, hi=1)
  %w3 = const f32[16,32,1,1] random(seed=3, lo=-1, hi=1)
  %a = conv(%x, %w1)
  %b = relu(%a)
  %c = conv(%b, %w2) {group=32, pads=[1,1,1,1]}
  %d = relu(%c)
  %e = conv(%d, %w3)
  %y = add(%e, %x)
})";

// Results between convolutions lie channels last, and so do the weights of the one whose lanes are
// channels; the others' are packed anyway. What comes in and goes out is row-major.
TEST(ChosenLayouts, AreChannelsLastBetweenConvolutions) {
  auto graph = parse_model(kBlock);
  ASSERT_TRUE(graph.ok());
  const auto verified = ir::verify_graph(std::move(*graph));
  ASSERT_TRUE(verified.ok());
  const lower::LayoutFacts facts{.tile_product = 0.03,
                                 .generic_product = 0.1,
                                 .read = 0.05,
                                 .strided_read = 0.6,
                                 .packed_read = 0.15};
  DecisionLog log;
  const lower::Layouts layouts = lower::choose_layouts(**verified, facts, log);
  const auto order = [&](const std::string& name) {
    for (ir::ValueId v = 0; v < (*verified)->values.size(); ++v) {
      if ((*verified)->value(v).name == name) return layouts.of(v);
    }
    return lower::Layout{-1};
  };
  const lower::Layout last{0, 2, 3, 1};
  const lower::Layout row_major;
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(order(name), last) << name;
  EXPECT_EQ(order("w2"), (lower::Layout{1, 2, 3, 0}));
  for (const char* name : {"x", "w1", "w3", "y"}) EXPECT_EQ(order(name), row_major) << name;
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].chosen, "channels last");
  EXPECT_LT(log[0].alternatives[1].cost_ns, log[0].alternatives[0].cost_ns);

  // The same from the same graph; nothing without facts.
  DecisionLog again;
  lower::choose_layouts(**verified, facts, again);
  EXPECT_EQ(again[0].to_string(), log[0].to_string());
  DecisionLog none;
  lower::choose_layouts(**verified, {}, none);
  EXPECT_TRUE(none.empty());
}

// Where what the window between gains is little beside the products around it, and they lose as
// much, nothing is turned over.
TEST(ChosenLayouts, StayRowMajorForALittle) {
  const char* text = R"(graph @g(%x: f32[1,256,8,8]) -> (%y) {
  %w1 = const f32[4,256,1,1] random(seed=1, lo=-1, hi=1)
  %w2 = const f32[4,1,3,3] random(seed=2, lo=-1, hi=1)
  %w3 = const f32[256,4,1,1] random(seed=3, lo=-1, hi=1)
  %a = conv(%x, %w1)
  %c = conv(%a, %w2) {group=4, pads=[1,1,1,1]}
  %e = conv(%c, %w3)
  %y = add(%e, %x)
})";
  const ir::VerifiedGraph graph = ir::verify_graph(parse_model(text).value()).value();
  const lower::LayoutFacts facts{.tile_product = 0.03,
                                 .generic_product = 0.1,
                                 .read = 0.05,
                                 .strided_read = 0.6,
                                 .packed_read = 0.15};
  DecisionLog log;
  const lower::Layouts layouts = lower::choose_layouts(*graph, facts, log);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].chosen, "row-major") << log[0].to_string();
  EXPECT_EQ(log[0].reason, "too_little_to_gain");
  for (ir::ValueId v = 0; v < graph->values.size(); ++v) EXPECT_TRUE(layouts.is_row_major(v));
}

// Windows that are no products, several points at a time and without guards inside, at every edge.
TEST(ChosenLayouts, WindowsInBlocksHaveTheBitsOfTheReference) {
  const auto net = [](const std::string& window) {
    return fmt::format(R"(graph @g(%x: f32[2,3,13,20]) -> (%y) {{
  %w1 = const f32[21,3,1,1] random(seed=1, lo=-1, hi=1)
  %w2 = const f32[21,1,3,3] random(seed=2, lo=-1, hi=1)
  %w5 = const f32[21,1,7,5] random(seed=2, lo=-1, hi=1)
  %w3 = const f32[2,21,1,1] random(seed=3, lo=-1, hi=1)
  %a = conv(%x, %w1)
  %b = {}
  %c = relu(%b)
  %y = conv(%c, %w3)
}})",
                       window);
  };
  for (const char* window :
       {"conv(%a, %w2) {group=21, pads=[1,1,1,1]}",
        "conv(%a, %w2) {group=21, pads=[2,3,0,1], dilations=[2,1]}",
        "conv(%a, %w2) {group=21, pads=[1,1,1,1], strides=[2,2]}",
        "conv(%a, %w2) {group=21, pads=[0,1,0,1]}", "conv(%a, %w5) {group=21, pads=[3,2,3,2]}",
        "max_pool(%a) {kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}",
        "max_pool(%a) {kernel=[2,2], strides=[2,2]}"}) {
    const std::string text = net(window);
    const std::string expected = run_on(text, "reference", true).digest;
    for (const int lanes : {0, 8, 16}) {
      CompileOptions options;
      options.threads = 1 + lanes / 8;
      options.lanes = lanes;
      EXPECT_EQ(run_with(text, options).digest, expected) << window << lanes;
      if (text.find("group=") != std::string::npos) {
        EXPECT_EQ(kernel_of_window(text, options).substr(0, 13), "loop_blocks__") << window;
      }
      options.kernels = {"loop_blocks"};
      EXPECT_EQ(run_with(text, options).digest, expected) << window << lanes;
    }
  }
}

TEST(ChosenLayouts, AreNotAskedOfMatrixProducts) {
  const std::string text = R"(graph @g(%x: f32[2,8,16]) -> (%y) {
  %w = const f32[16,16] random(seed=1, lo=-1, hi=1)
  %a = matmul(%x, %w)
  %b = relu(%a)
  %y = matmul(%b, %w)
})";
  EXPECT_EQ(run_on(text, "cpu", true), run_on(text, "cpu", false));
}

}  // namespace
}  // namespace pyc::driver

// The tuner: what it measures, what it keeps, and what compiles make of it.

#include "tune/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/tuning.h"
#include "runtime/host_engine.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "tooling/seeded_run.h"
#include "tune/timing.h"

namespace pyc::tune {
namespace {

using driver::CompileOptions;
using driver::TunedGroup;
using driver::TuningStore;
using driver::TuningTable;

const backends::Backend& cpu() { return **driver::find_backend("cpu"); }

TuningStore store_of(const std::string& folder) {
  return {Store(folder), cpu(), artifact::version()};
}

// Two products, unlike each other, with several kernels each.
ir::VerifiedGraph two_products() {
  auto graph = driver::parse_model(R"(graph @g(%x: f32[48,40]) -> (%z) {
  %w = const f32[40,64] random(seed=1, lo=-1, hi=1)
  %v = const f32[64,96] random(seed=2, lo=-1, hi=1)
  %h = matmul(%x, %w)
  %y = relu(%h)
  %z = matmul(%y, %v)
}
)");
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok()) << verified.status().to_string();
  return *verified;
}

// A folder in which the machine is known already, so that nobody waits for the probe.
struct Folder {
  Folder() {
    TuningTable table;
    for (const int threads : {1, 2}) table.probes[threads] = {1.0, 1.0, 1.0};
    EXPECT_TRUE(store_of(options.cache_dir).add(table).ok());
  }
  TempFolder temporary;
  CompileOptions options{.threads = 1, .cache = false, .cache_dir = temporary.file("cache")};
};

Report tuned(const Folder& folder, const Request& request = {}) {
  auto report = tune(two_products(), folder.options, request);
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  return report.ok() ? *report : Report{};
}

struct Made {
  std::string digest;
  DecisionLog kernels;
};

Made compiled(const CompileOptions& options) {
  auto model = session::compile(two_products(), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  auto data = tooling::SeededRun::create(**model, 1);
  EXPECT_TRUE((*model)->run(data->inputs(), data->outputs()).ok());
  Made out{data->digest(0).hex(), {}};
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:")) out.kernels.push_back(d);
  }
  return out;
}

TEST(TuningTable, IsTheSameAfterItWasReadAgain) {
  TuningTable table;
  table.probes[2] = {.flops_per_ns = 81.25, .bytes_per_ns = 13.1, .step_ns = 2100};
  table.groups["b"] = {.untuned = "x", .chosen = "y", .kernels = {{"x", 5, 4, 6, 9, false}}};
  table.groups["a"] = {.untuned = "x", .chosen = "x", .kernels = {{"z", 5, 0, 0, 0, true}}};
  const std::string text = table.print();
  const auto again = TuningTable::parse(text);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, table);
  EXPECT_EQ(again->print(), text);
}

TEST(TuningTable, NamesTheLineThatIsNone) {
  for (const char* bad : {"", "group a x\n", "kernel x 1 2 3 4 right\n", "probe 1 2\n",
                          "group a x x\nkernel x 1 2 3 -4 right\n", "group a x x\ngroup a x x\n"}) {
    const std::string head = *bad == '\0' ? "another table\n" : "pyc tuning 1\n";
    const auto table = TuningTable::parse(head + bad);
    ASSERT_FALSE(table.ok()) << bad;
    EXPECT_NE(table.status().message().find("line"), std::string::npos);
  }
}

TEST(TuningStore, IsOfOneCompilerAndIgnoresDamage) {
  const TempFolder folder;
  const std::string path = folder.file("cache");
  TuningTable table;
  table.groups["a"] = {.untuned = "x", .chosen = "x", .kernels = {}};
  ASSERT_TRUE(store_of(path).add(table).ok());
  EXPECT_EQ(store_of(path).read(), table);
  EXPECT_EQ(TuningStore(Store(path), cpu(), "another").read(), TuningTable{});
  // Another machine's key is another entry.
  const backends::Backend& other = **driver::find_backend("reference");
  EXPECT_EQ(TuningStore(Store(path), other, artifact::version()).read(), TuningTable{});
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    std::ofstream(file.path(), std::ios::app) << "more";
  }
  std::string problem;
  EXPECT_EQ(store_of(path).read(&problem), TuningTable{});
  EXPECT_NE(problem, "");
}

TEST(Timing, IsThatOfFixedRanks) {
  std::vector<int64_t> samples;
  for (int64_t i = 20; i >= 1; --i) samples.push_back(10 * i);
  const Timing timing = timing_of(samples);
  EXPECT_EQ(timing.best_ns, 10);
  EXPECT_EQ(timing.p50_ns, 100);
  EXPECT_EQ(timing.p95_ns, 190);
  EXPECT_EQ(timing_of({7}).p95_ns, 7);
  // Ahead in the fastest run alone, or by too little, is not ahead.
  EXPECT_TRUE(is_faster({90, 95, 99}, {100, 105, 300}));
  EXPECT_FALSE(is_faster({90, 106, 110}, {100, 105, 300}));
  EXPECT_FALSE(is_faster({100, 100, 100}, {100, 105, 300}));
}

TEST(Tune, CompilesChooseByWhatWasMeasured) {
  const Folder folder;
  const Made before = compiled(folder.options);
  for (const Decision& d : before.kernels) EXPECT_EQ(d.reason, "least_cost") << d.to_string();
  const Report report = tuned(folder);
  EXPECT_EQ(report.groups, 2);
  EXPECT_EQ(report.measured, 2);
  EXPECT_EQ(report.wrong, 0);
  const Made after = compiled(folder.options);
  EXPECT_EQ(after.digest, before.digest);
  ASSERT_EQ(after.kernels.size(), 2U);
  for (const Decision& d : after.kernels) {
    EXPECT_EQ(d.reason, "tuned") << d.to_string();
    const auto measured = [](const Alternative& a) { return a.measured_ns > 0; };
    EXPECT_GE(std::ranges::count_if(d.alternatives, measured), 2) << d.to_string();
    const auto chosen = std::ranges::find(d.alternatives, d.chosen, &Alternative::name);
    EXPECT_GT(chosen->measured_ns, 0) << d.to_string();
  }
}

TEST(Tune, GoesOnWhereItWasEnded) {
  const Folder folder;
  const Report first = tuned(folder, {.after_group = [](const Step&) { return false; }});
  EXPECT_EQ(first.measured, 1);
  EXPECT_EQ(first.left(), 1);
  const TuningTable kept = store_of(folder.options.cache_dir).read();
  EXPECT_EQ(kept.groups.size(), 1U);
  // Not even a group that is begun would fit.
  const Report none = tuned(folder, {.budget_ms = 1});
  EXPECT_EQ(none.known, 1);
  EXPECT_GE(none.left() + none.measured, 1);
  const Report rest = tuned(folder);
  EXPECT_EQ(rest.known + rest.measured, 2);
  EXPECT_EQ(rest.left(), 0);
  const TuningTable all = store_of(folder.options.cache_dir).read();
  EXPECT_EQ(all.groups.at(kept.groups.begin()->first), kept.groups.begin()->second);
  EXPECT_EQ(tuned(folder).measured, 0);
}

TEST(Tune, NeedsAFolder) {
  const auto report = tune(two_products(), {}, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kInvalidArgument);
}

TEST(Tune, AnyKernelOfTheTableHasTheSameBits) {
  const Folder folder;
  const std::string digest = compiled(folder.options).digest;
  tuned(folder);
  const TuningStore store = store_of(folder.options.cache_dir);
  TuningTable table = store.read();
  size_t most = 0;
  for (const auto& [key, group] : table.groups) most = std::max(most, group.kernels.size());
  EXPECT_GE(most, 2U);
  for (size_t i = 0; i < most; ++i) {
    for (auto& [key, group] : table.groups) {
      group.chosen = group.kernels[std::min(i, group.kernels.size() - 1)].name;
    }
    ASSERT_TRUE(store.add(table).ok());
    const Made made = compiled(folder.options);
    EXPECT_EQ(made.digest, digest);
    for (const Decision& d : made.kernels) {
      EXPECT_EQ(d.reason, "tuned");
      EXPECT_TRUE(std::ranges::any_of(table.groups, [&](const auto& entry) {
        return entry.second.chosen == d.chosen;
      })) << d.to_string();
    }
  }
}

TEST(Tune, AKernelThatIsGoneLeavesTheEstimates) {
  const Folder folder;
  const Made before = compiled(folder.options);
  tuned(folder);
  const TuningStore store = store_of(folder.options.cache_dir);
  TuningTable table = store.read();
  for (auto& [key, group] : table.groups) group.chosen = "gone__4";
  ASSERT_TRUE(store.add(table).ok());
  const Made after = compiled(folder.options);
  EXPECT_EQ(after.digest, before.digest);
  for (size_t i = 0; i < after.kernels.size(); ++i) {
    EXPECT_EQ(after.kernels[i].chosen, before.kernels[i].chosen);
    EXPECT_EQ(after.kernels[i].reason, "tuned_kernel_missing");
    EXPECT_NE(after.kernels[i].detail.find("gone__4"), std::string::npos);
  }
}

// The CPU with one more candidate: the cheapest by its estimate, and the fastest there is, since
// it computes the first point alone.
class Planted final : public backends::Backend {
 public:
  std::string_view name() const override { return cpu().name(); }
  backends::Capabilities capabilities() const override { return cpu().capabilities(); }
  std::string native_target() const override { return cpu().native_target(); }
  std::vector<backends::Candidate> candidates(
      const ir::Graph& graph, const lower::Group& group,
      const backends::BackendOptions& options) const override {
    std::vector<backends::Candidate> out = cpu().candidates(graph, group, options);
    const auto generic = std::ranges::find_if(out, [](const backends::Candidate& c) {
      return c.rejected.empty() && c.name.starts_with("loop_generic");
    });
    backends::Candidate planted = *generic;
    planted.name = "planted";
    planted.cost_ns = out.front().cost_ns;
    for (const backends::Candidate& c : out) {
      if (c.rejected.empty()) planted.cost_ns = std::min(planted.cost_ns, c.cost_ns * 0.9);
    }
    out.push_back(std::move(planted));
    return out;
  }
  Result<std::vector<backends::CompiledGroup>> compile(
      const lower::LoweredGraph& lowered, std::span<const backends::Candidate> chosen,
      const backends::BackendOptions& options, backends::CompileStats* stats) const override {
    auto made = cpu().compile(lowered, chosen, options, stats);
    if (!made.ok() || chosen[0].name != "planted") return made;
    for (backends::CompiledStep& step : (*made)[0].steps) step.launch = runtime::host_launch(1);
    return made;
  }
  const runtime::Loader& loader() const override { return cpu().loader(); }
  Result<std::string> dump(const lower::LoweredGraph&, size_t, const backends::Candidate&,
                           const backends::BackendOptions&, std::string_view) const override {
    return Status(Code::kUnsupported, "");
  }
};

TEST(Tune, AWrongKernelNeverWins) {
  const Folder folder;
  const Planted planted;
  const Report report = tuned(folder, {.backend = &planted});
  EXPECT_EQ(report.measured, 2);
  EXPECT_EQ(report.wrong, 2);
  const TuningTable table =
      TuningStore(Store(folder.options.cache_dir), planted, artifact::version()).read();
  ASSERT_EQ(table.groups.size(), 2U);
  for (const auto& [key, group] : table.groups) {
    EXPECT_EQ(group.untuned, "planted");
    EXPECT_NE(group.chosen, "planted");
    EXPECT_TRUE(group.find("planted")->wrong);
    EXPECT_EQ(group.find("planted")->best_ns, 0);
  }
}

// Time passes by one with each look.
struct CountingClock final : Clock {
  int64_t now_ns() override { return ++looks; }
  int64_t looks = 0;
};

TEST(Tune, MeasuresEachCandidateAsOftenAsTheOthers) {
  const Folder folder;
  CountingClock clock;
  tuned(folder, {.clock = &clock});
  int64_t kernels = 0;
  for (const auto& [key, group] : store_of(folder.options.cache_dir).read().groups) {
    EXPECT_EQ(group.chosen, group.untuned);  // by this clock all take the same time
    kernels += static_cast<int64_t>(group.kernels.size());
    for (const driver::MeasuredKernel& k : group.kernels) EXPECT_EQ(k.best_ns, k.p95_ns);
  }
  EXPECT_EQ(clock.looks % ((kRepeats + 1) * kernels), 0);
}

}  // namespace
}  // namespace pyc::tune

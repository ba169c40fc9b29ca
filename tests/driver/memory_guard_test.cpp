// The memory of the committed models is what it was, or less; it is what the allocator hands out,
// and reuse saves a quarter of it at least.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/allocation_meter.h"
#include "base/files.h"
#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

namespace fs = std::filesystem;

const fs::path kGuardModels = fs::path(PYC_SOURCE_DIR) / "tests" / "models";
const fs::path kGuardBaseline = fs::path(PYC_SOURCE_DIR) / "tests" / "golden" / "memory.txt";

std::vector<std::string> guarded_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGuardModels)) {
    if (entry.path().extension() == ".ir") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<runtime::Model> guarded_model(const std::string& name,
                                              const CompileOptions& options) {
  auto text = read_file((kGuardModels / (name + ".ir")).string(), 1 << 24);
  if (!text.ok()) throw std::runtime_error(text.status().to_string());
  auto graph = parse_model(*text);
  if (!graph.ok()) throw std::runtime_error(graph.status().to_string());
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) throw std::runtime_error(model.status().to_string());
  return std::move(model).value();
}

// The reference has the same plan on every machine.
CompileOptions guard_options(std::string_view mode) {
  CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.mode = mode;
  options.cache = false;
  return options;
}

struct GuardBytes {
  int64_t peak = 0;
  int64_t arena = 0;
};

// By model and mode.
std::map<std::string, GuardBytes> memory_now() {
  std::map<std::string, GuardBytes> out;
  for (const std::string& name : guarded_models()) {
    for (const std::string_view mode : {"balanced", "memory_first", "latency_first"}) {
      const runtime::MemoryReport memory = guarded_model(name, guard_options(mode))->memory();
      out[name + " " + std::string(mode)] = {memory.peak_bytes, memory.arena_bytes};
    }
  }
  return out;
}

std::string baseline_text(const std::map<std::string, GuardBytes>& rows) {
  std::ostringstream text;
  for (const auto& [key, bytes] : rows) {
    text << key << " " << bytes.peak << " " << bytes.arena << "\n";
  }
  return text.str();
}

std::map<std::string, GuardBytes> parsed_baseline(const std::string& text) {
  std::map<std::string, GuardBytes> out;
  std::istringstream in(text);
  std::string model;
  std::string mode;
  GuardBytes bytes;
  while (in >> model >> mode >> bytes.peak >> bytes.arena) out[model + " " + mode] = bytes;
  return out;
}

// What is above the baseline by more than two percent, or missing there.
std::vector<std::string> above_baseline(const std::map<std::string, GuardBytes>& baseline,
                                        const std::map<std::string, GuardBytes>& now) {
  const auto more = [](int64_t a, int64_t b) { return a * 100 > b * 102; };
  std::vector<std::string> out;
  for (const auto& [key, bytes] : now) {
    const auto was = baseline.find(key);
    if (was == baseline.end() || more(bytes.peak, was->second.peak) ||
        more(bytes.arena, was->second.arena)) {
      out.push_back(key);
    }
  }
  return out;
}

// PYC_UPDATE_GOLDEN=1 writes the baseline instead of checking it.
TEST(MemoryGuard, NoModelTakesMoreThanItsBaseline) {
  const std::map<std::string, GuardBytes> now = memory_now();
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(kGuardBaseline.string(), baseline_text(now)).ok());
  }
  const auto stored = read_file(kGuardBaseline.string(), 1 << 20);
  ASSERT_TRUE(stored.ok()) << stored.status().to_string();
  const std::map<std::string, GuardBytes> baseline = parsed_baseline(*stored);
  EXPECT_EQ(baseline.size(), now.size());
  EXPECT_EQ(above_baseline(baseline, now), std::vector<std::string>{});
  std::map<std::string, GuardBytes> planted = now;
  planted.begin()->second.arena = planted.begin()->second.arena * 6 / 5;
  EXPECT_EQ(above_baseline(baseline, planted), std::vector<std::string>{now.begin()->first});
}

// Bytes of arena and scratch, by the allocator's own count.
TEST(MemoryGuard, ReuseSavesAQuarterOfWhatIsHandedOut) {
  const auto handed_out = [](const std::string& name, bool reuse) {
    CompileOptions options = guard_options("balanced");
    options.reuse = reuse;
    const int64_t before = allocated_now();
    const auto model = guarded_model(name, options);
    const int64_t bytes = allocated_now() - before;
    EXPECT_EQ(bytes, model->memory().measured_arena_bytes) << name;
    EXPECT_GT(model->memory().peak_bytes, 0) << name;
    return bytes;
  };
  int64_t with = 0;
  int64_t without = 0;
  for (const std::string& name : guarded_models()) {
    with += handed_out(name, true);
    without += handed_out(name, false);
  }
  EXPECT_LE(with * 4, without * 3) << with << " of " << without;
}

// A level promises bits, and no memory of another kind.
TEST(MemoryGuard, LevelsAndRepetitionsHaveOneProfile) {
  for (const std::string& name : guarded_models()) {
    SCOPED_TRACE(name);
    CompileOptions options = guard_options("balanced");
    const runtime::MemoryReport first = guarded_model(name, options)->memory();
    for (int i = 0; i < 5; ++i) {
      options.determinism = i % 2 == 0 ? Determinism::kStrict : Determinism::kBalanced;
      const runtime::MemoryReport again = guarded_model(name, options)->memory();
      EXPECT_EQ(again.class_bytes, first.class_bytes);
      EXPECT_EQ(again.peak_bytes, first.peak_bytes);
      EXPECT_EQ(again.arena_bytes, first.arena_bytes);
    }
  }
}

// Six profiles of one network: what is planned is what a run is handed out at most.
TEST(MemoryGuard, NoProfileTakesMoreThanItsPlan) {
  int64_t before_peak = 0;
  for (const int64_t batch : {1, 2, 4, 8, 16, 32}) {
    SCOPED_TRACE(batch);
    const std::string rows = std::to_string(batch);
    auto graph = parse_model("graph @profile(%x: f32[" + rows +
                             ",64]) -> (%y) {\n"
                             "  %w = const f32[64,64] random(seed=1, lo=-0.1, hi=0.1)\n"
                             "  %v = const f32[64,64] random(seed=2, lo=-0.1, hi=0.1)\n"
                             "  %a = matmul(%x, %w)\n"
                             "  %s = softmax(%a) {axis=-1}\n"
                             "  %y = matmul(%s, %v)\n"
                             "}\n");
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    CompileOptions options;
    options.threads = 2;
    options.cache = false;
    const int64_t before = allocated_now();
    auto model = session::compile(std::move(*graph), options);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    auto run = tooling::SeededRun::create(**model, 1);
    ASSERT_TRUE(run.ok());
    take_allocated_peak();
    ASSERT_TRUE((*model)->run(run->inputs(), run->outputs()).ok());
    EXPECT_LE(take_allocated_peak() - before, (*model)->memory().peak_bytes);
    EXPECT_GT((*model)->memory().peak_bytes, before_peak);
    before_peak = (*model)->memory().peak_bytes;
  }
}

}  // namespace
}  // namespace pyc::driver

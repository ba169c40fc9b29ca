// Compiled programs kept in a folder (base/store.h): found again, replaced when damaged, and never
// in the way of a compile.

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/store.h"
#include "driver/compile.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

namespace fs = std::filesystem;

ir::Graph graph_of(int width) {
  const std::string n = std::to_string(width);
  auto graph = parse_model("graph @g(%x: f32[4," + n + "]) -> (%y) {\n  %w = const f32[" + n +
                           ",8] random(seed=1, lo=-1, hi=1)\n  %m = matmul(%x, %w)\n  %y = "
                           "relu(%m)\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

struct Made {
  std::string digest;
  DecisionLog log;

  // What the cache on disk did: "written not_found".
  std::string disk() const {
    std::string text;
    for (const Decision& d : log) {
      if (d.what == "disk_cache") text += (text.empty() ? "" : ", ") + d.chosen + " " + d.reason;
    }
    return text;
  }
};

Made make(int width, CompileOptions options) {
  options.cache = false;
  auto model = session::compile(graph_of(width), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  auto data = tooling::SeededRun::create(**model, 1);
  EXPECT_TRUE((*model)->run(data->inputs(), data->outputs()).ok());
  return {data->digest(0).hex(), (*model)->decisions()};
}

TEST(DiskCache, TheSecondCompileIsALoad) {
  const TempFolder folder;
  const CompileOptions on{.cache_dir = folder.file("cache")};
  const Made without = make(16, {});
  EXPECT_EQ(without.disk(), "");
  const Made first = make(16, on);
  const Made second = make(16, on);
  EXPECT_EQ(first.disk(), "written not_found");
  EXPECT_EQ(second.disk(), "loaded found");
  EXPECT_EQ(first.digest, without.digest);
  EXPECT_EQ(second.digest, without.digest);
  EXPECT_EQ(Store(on.cache_dir).list()->size(), 1U);
}

TEST(DiskCache, GraphsAndOptionsHaveEntriesOfTheirOwn) {
  const TempFolder folder;
  CompileOptions on{.cache_dir = folder.path()};
  EXPECT_EQ(make(16, on).disk(), "written not_found");
  EXPECT_EQ(make(17, on).disk(), "written not_found");
  on.threads = 3;
  EXPECT_EQ(make(16, on).disk(), "written not_found");
  on.determinism = Determinism::kStrict;
  EXPECT_EQ(make(16, on).disk(), "written not_found");
  EXPECT_EQ(make(16, on).disk(), "loaded found");
  on.device = "reference";
  EXPECT_EQ(make(16, on).disk(), "") << "an interpreter has nothing to keep";
  EXPECT_EQ(Store(folder.path()).list()->size(), 4U);
}

TEST(DiskCache, DamagedEntriesAreReplaced) {
  const TempFolder folder;
  const CompileOptions on{.cache_dir = folder.path()};
  const std::string digest = make(16, on).digest;
  const Store cache(folder.path());
  const std::string path = folder.file(cache.list()->front().file);
  const std::string good = *read_file(path, 1 << 30);
  for (const size_t size : {size_t{0}, size_t{100}, good.size() - 1}) {
    ASSERT_TRUE(write_file_atomic(path, good.substr(0, size)).ok());
    EXPECT_NE(cache.verify()->front().problem, "");
    const Made again = make(16, on);
    EXPECT_EQ(again.disk(), "compiled_again unusable_entry, written not_found");
    EXPECT_EQ(again.digest, digest);
    EXPECT_EQ(cache.verify()->front().problem, "");
    EXPECT_EQ(*read_file(path, 1 << 30), good) << "the same bytes as before";
  }
}

TEST(DiskCache, AnEntryUnderAnotherKeyIsNotTaken) {
  const TempFolder folder;
  const CompileOptions on{.cache_dir = folder.path()};
  make(16, on);
  const Store cache(folder.path());
  const std::string first = cache.list()->front().file;
  make(17, on);
  std::string second = cache.list()->back().file;
  if (second == first) second = cache.list()->front().file;
  // As if two keys had one hash.
  fs::copy_file(folder.file(first), folder.file(second), fs::copy_options::overwrite_existing);
  EXPECT_EQ(make(17, on).disk(), "compiled_again unusable_entry, written not_found");
  EXPECT_EQ(make(17, on).disk(), "loaded found");
}

// Entries are compared by the graph and not by a hash of it.
TEST(DiskCache, AnEntryHoldsAllThatItWasCompiledFrom) {
  const TempFolder folder;
  make(16, {.cache_dir = folder.path()});
  const std::string name = Store(folder.path()).list()->front().file;
  const std::string entry = *read_file(folder.file(name), 1 << 30);
  EXPECT_NE(entry.find(ir::fingerprint_key(graph_of(16))), std::string::npos);
  EXPECT_EQ(entry.find(ir::fingerprint_key(graph_of(17))), std::string::npos);
}

TEST(DiskCache, AFolderThatCannotBeWrittenStopsNothing) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.file("file"), "text").ok());
  const Made made = make(16, {.cache_dir = folder.file("file/below")});
  EXPECT_TRUE(made.disk().starts_with("not_written ")) << made.disk();
  EXPECT_EQ(made.digest, make(16, {}).digest);
}

TEST(DiskCache, ManyThreadsMayUseOneFolder) {
  const TempFolder folder;
  const std::string expected = make(16, {}).digest;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(make(16 + i % 2, {.cache_dir = folder.path()}).digest.empty(), false);
      }
    });
  }
  threads.clear();
  const Store cache(folder.path());
  const auto entries = cache.verify();
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 2U);
  for (const auto& entry : *entries) EXPECT_EQ(entry.problem, "");
  EXPECT_EQ(make(16, {.cache_dir = folder.path()}).digest, expected);
}

}  // namespace
}  // namespace pyc::driver

// The cache of artefacts on disk: found again, replaced when damaged, bounded, and never in the way
// of a compile.

#include "driver/disk_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/mapped_file.h"
#include "driver/artifacts.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"
#include "support/temp_folder.h"

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
  auto model = compile(graph_of(width), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  auto data = SeededRun::create(**model, 1);
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
  EXPECT_EQ(DiskCache(on.cache_dir).list()->size(), 1U);
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
  EXPECT_EQ(DiskCache(folder.path()).list()->size(), 4U);
}

TEST(DiskCache, DamagedEntriesAreReplaced) {
  const TempFolder folder;
  const CompileOptions on{.cache_dir = folder.path()};
  const std::string digest = make(16, on).digest;
  const DiskCache cache(folder.path());
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
  const DiskCache cache(folder.path());
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
  const std::string name = DiskCache(folder.path()).list()->front().file;
  const auto entry = artifact::decode(*map_file(folder.file(name)));
  ASSERT_TRUE(entry.ok()) << entry.status().to_string();
  EXPECT_NE(entry->key.find(ir::fingerprint_key(graph_of(16))), std::string::npos);
  EXPECT_EQ(entry->key.find(ir::fingerprint_key(graph_of(17))), std::string::npos);
}

// Two keys under one hash, in the cache itself.
TEST(DiskCache, ACollisionIsNeitherTakenNorKept) {
  const TempFolder folder;
  const DiskCache cache(folder.path());
  const auto of = [](int width) { return *compile_artifact(graph_of(width), {}); };
  ASSERT_TRUE(cache.insert("sixteen", of(16)).ok());
  fs::rename(cache.path_of("sixteen"), cache.path_of("seventeen"));
  EXPECT_EQ(cache.find("seventeen").status().code(), Code::kParseError);
  ASSERT_TRUE(cache.insert("seventeen", of(17)).ok());
  const auto found = cache.find("seventeen");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->key, "seventeen");
}

TEST(DiskCache, AFolderThatCannotBeWrittenStopsNothing) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder.file("file"), "text").ok());
  const Made made = make(16, {.cache_dir = folder.file("file/below")});
  EXPECT_TRUE(made.disk().starts_with("not_written ")) << made.disk();
  EXPECT_EQ(made.digest, make(16, {}).digest);
}

TEST(DiskCache, WhatWasNotUsedForLongestGoesFirst) {
  const TempFolder folder;
  // One artefact under three names, so that all entries are of one size.
  const auto made = compile_artifact(graph_of(16), {});
  ASSERT_TRUE(made.ok());
  const DiskCache all(folder.path());
  ASSERT_TRUE(all.insert("a", *made).ok());
  const int64_t bytes = all.list()->front().bytes;
  const DiskCache two(folder.path(), 2 * bytes + bytes / 2);
  ASSERT_TRUE(two.insert("b", *made).ok());
  // The clock of files is coarse: make sure that "a" was used last.
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ASSERT_TRUE(two.find("a").ok());
  ASSERT_TRUE(two.insert("c", *made).ok());
  EXPECT_EQ(two.list()->size(), 2U);
  EXPECT_TRUE(two.find("a").ok());
  EXPECT_EQ(two.find("b").status().code(), Code::kNotFound);
  EXPECT_TRUE(two.find("c").ok());
}

TEST(DiskCache, ClearTakesEntriesAndNothingElse) {
  const TempFolder folder;
  make(16, {.cache_dir = folder.path()});
  ASSERT_TRUE(write_file_atomic(folder.file("notes.pycm"), "mine").ok());
  ASSERT_TRUE(write_file_atomic(folder.file(".pyc-tmp.1.0"), "left behind").ok());
  const DiskCache cache(folder.path());
  EXPECT_EQ(*cache.clear(), 1);
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_TRUE(fs::exists(folder.file("notes.pycm")));
  EXPECT_EQ(*cache.clear(), 0);
  EXPECT_EQ(*DiskCache(folder.file("none")).clear(), 0);
  EXPECT_TRUE(DiskCache(folder.file("none")).list()->empty());
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
  const DiskCache cache(folder.path());
  const auto entries = cache.verify();
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 2U);
  for (const auto& entry : *entries) EXPECT_EQ(entry.problem, "");
  EXPECT_EQ(make(16, {.cache_dir = folder.path()}).digest, expected);
}

}  // namespace
}  // namespace pyc::driver

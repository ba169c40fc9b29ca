// The store keeps what it is given or nothing: no damage, collision, race or full disk gives other
// bytes than those that were put.

#include "base/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/files.h"
#include "support/temp_folder.h"

namespace pyc {
namespace {

namespace fs = std::filesystem;

SharedBytes kept_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Status put(const Store& store, std::string_view key, std::string_view content) {
  const SharedBytes piece = kept_bytes(content);
  return store.put(key, std::span(&piece, 1));
}

// "nothing", or what is there in brackets.
std::string got(const Store& store, std::string_view key, std::string* problem = nullptr) {
  const auto found = store.get(key, problem);
  if (!found) return "nothing";
  return "[" + std::string(reinterpret_cast<const char*>(found->data()), found->size()) + "]";
}

// Writes without waiting for the disk.
void overwrite(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// The exit code of a child process that runs `body`.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(Store, GivesBackWhatWasPut) {
  const TempFolder folder;
  const Store store(folder.file("made/of/folders"));
  std::string problem = "old";
  EXPECT_EQ(got(store, "key", &problem), "nothing");
  EXPECT_EQ(problem, "");
  const std::string zeros("\0a\0", 3);
  for (const std::string& key : {std::string("key"), std::string(), std::string(200, 'k'), zeros}) {
    ASSERT_TRUE(put(store, key, "of " + key).ok());
  }
  EXPECT_EQ(got(store, "key"), "[of key]");
  EXPECT_EQ(got(store, ""), "[of ]");
  EXPECT_EQ(got(store, std::string(200, 'k')), "[of " + std::string(200, 'k') + "]");
  EXPECT_EQ(got(store, zeros), "[of " + zeros + "]");
  ASSERT_TRUE(put(store, "key", "").ok());
  EXPECT_EQ(got(store, "key"), "[]");
  EXPECT_EQ(store.list()->size(), 4U);
}

TEST(Store, PiecesStandOneBehindTheOtherAndAligned) {
  const TempFolder folder;
  const Store store(folder.path());
  const std::vector<SharedBytes> pieces = {kept_bytes("ab"), SharedBytes(), kept_bytes("c")};
  ASSERT_TRUE(store.put("a key of some bytes", pieces).ok());
  const auto content = store.get("a key of some bytes");
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, kept_bytes("abc"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(content->data()) % 64, 0U);
}

TEST(Store, EveryFlippedBitIsFound) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "the content").ok());
  const std::string good = *read_file(store.path_of("key"), 1 << 20);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    overwrite(store.path_of("key"), bad);
    std::string problem;
    ASSERT_EQ(got(store, "key", &problem), "nothing") << "bit " << bit;
    ASSERT_NE(problem, "") << "bit " << bit;
  }
  EXPECT_NE(store.verify()->front().problem, "");
  ASSERT_TRUE(put(store, "key", "the content").ok());
  EXPECT_EQ(*read_file(store.path_of("key"), 1 << 20), good) << "equal entries are equal bytes";
  EXPECT_EQ(store.verify()->front().problem, "");
}

TEST(Store, FilesOfAnotherLengthAreNotTaken) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "the content").ok());
  const std::string good = *read_file(store.path_of("key"), 1 << 20);
  for (size_t size = 0; size < good.size(); ++size) {
    overwrite(store.path_of("key"), good.substr(0, size));
    std::string problem;
    ASSERT_EQ(got(store, "key", &problem), "nothing") << size;
    ASSERT_NE(problem, "") << size;
  }
  ASSERT_TRUE(write_file_atomic(store.path_of("key"), good + "x").ok());
  EXPECT_EQ(got(store, "key"), "nothing");
}

// As if two keys had one hash.
TEST(Store, ACollisionIsNeitherTakenNorKept) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "one", "of one").ok());
  fs::rename(store.path_of("one"), store.path_of("two"));
  std::string problem;
  EXPECT_EQ(got(store, "two", &problem), "nothing");
  EXPECT_EQ(problem, "the entry was made from something else");
  EXPECT_EQ(store.verify()->front().problem, problem);
  ASSERT_TRUE(put(store, "two", "of two").ok());
  EXPECT_EQ(got(store, "two"), "[of two]");
}

TEST(Store, ContentStaysWhenItsEntryIsReplacedOrRemoved) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "old").ok());
  const auto old = store.get("key");
  ASSERT_TRUE(put(store, "key", "new").ok());
  ASSERT_EQ(*store.clear(), 1);
  EXPECT_EQ(*old, kept_bytes("old"));
  EXPECT_EQ(got(store, "key"), "nothing");
}

TEST(Store, ProcessesMayWriteOneKeyAtOnce) {
  const TempFolder folder;
  const Store store(folder.path());
  // Long enough that a write takes several calls of the system.
  const auto content = [](char c) { return std::string(3 << 20, c); };
  constexpr int kWriters = 3;
  std::vector<pid_t> writers;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t child = fork();
    if (child == 0) {
      bool ok = true;
      for (int i = 0; i < 5; ++i) ok = ok && put(store, "key", content(char('a' + w))).ok();
      _exit(ok ? 0 : 1);
    }
    writers.push_back(child);
  }
  // Reads until all have ended, and once more.
  size_t ended = 0;
  bool last = false;
  while (!last) {
    last = ended == writers.size();
    std::string problem;
    const std::string found = got(store, "key", &problem);
    EXPECT_EQ(problem, "") << "half an entry was seen";
    EXPECT_TRUE(found != "nothing" || !last);
    if (found != "nothing") {
      EXPECT_EQ(found, "[" + content(found[1]) + "]");
    }
    int status = 0;
    if (!last && waitpid(writers[ended], &status, WNOHANG) == writers[ended]) {
      EXPECT_EQ(status, 0);
      ++ended;
    }
  }
  EXPECT_EQ(folder.entries(), 1) << "nothing is left behind";
  EXPECT_EQ(store.verify()->front().problem, "");
}

TEST(Store, AFolderThatCannotBeWrittenIsRead) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "content").ok());
  fs::permissions(folder.path(), fs::perms{0555});
  constexpr int kCannotTell = 77;
  const int outcome = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return kCannotTell;
    if (access(store.path_of("key").c_str(), R_OK) != 0) return kCannotTell;
    if (got(store, "key") != "[content]") return 1;
    if (put(store, "key", "other").code() != Code::kIoError) return 2;
    if (put(store, "another", "other").code() != Code::kIoError) return 3;
    return got(store, "key") == "[content]" ? 0 : 4;
  });
  fs::permissions(folder.path(), fs::perms{0755});
  if (outcome == kCannotTell) GTEST_SKIP() << "no user here that may not write";
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Store, AFullDiskLeavesWhatWasThere) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "old").ok());
  const int outcome = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    constexpr rlim_t kRoom = 4096;
    const rlimit limit{kRoom, kRoom};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (put(store, "key", std::string(8192, 'x')).code() != Code::kIoError) return 2;
    if (put(store, "more", std::string(8192, 'x')).code() != Code::kIoError) return 3;
    return put(store, "small", "fits").ok() ? 0 : 4;
  });
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(got(store, "key"), "[old]");
  EXPECT_EQ(got(store, "more"), "nothing");
  EXPECT_EQ(got(store, "small"), "[fits]");
  EXPECT_EQ(folder.entries(), 2) << "nothing is left behind";
}

TEST(Store, WhatWasNotUsedForLongestGoesFirst) {
  const TempFolder folder;
  const Store all(folder.path());
  ASSERT_TRUE(put(all, "a", "content").ok());
  const int64_t bytes = all.list()->front().bytes;
  const Store two(folder.path(), 2 * bytes + bytes / 2);
  ASSERT_TRUE(put(two, "b", "content").ok());
  // The clock of files is coarse: make sure that "a" was used last.
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  EXPECT_EQ(got(two, "a"), "[content]");
  ASSERT_TRUE(put(two, "c", "content").ok());
  EXPECT_EQ(two.list()->size(), 2U);
  EXPECT_EQ(got(two, "a"), "[content]");
  EXPECT_EQ(got(two, "b"), "nothing");
  EXPECT_EQ(got(two, "c"), "[content]");
}

TEST(Store, ClearTakesEntriesAndNothingElse) {
  const TempFolder folder;
  const Store store(folder.path());
  ASSERT_TRUE(put(store, "key", "content").ok());
  ASSERT_TRUE(write_file_atomic(folder.file("notes.entry"), "mine").ok());
  ASSERT_TRUE(write_file_atomic(folder.file(".pyc-tmp.1.0"), "left behind").ok());
  EXPECT_EQ(*store.clear(), 1);
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_TRUE(fs::exists(folder.file("notes.entry")));
  EXPECT_EQ(*store.clear(), 0);
  const Store none(folder.file("none"));
  EXPECT_EQ(*none.clear(), 0);
  EXPECT_TRUE(none.list()->empty());
}

// A folder that writers are killed in does not grow for ever; what may still be written stays.
TEST(Store, WhatKilledWritersLeftGoesAfterAnHour) {
  const TempFolder folder;
  const Store store(folder.path());
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [name, age] : {std::pair(".pyc-tmp.1.0", 61), std::pair(".pyc-tmp.2.0", 59)}) {
    overwrite(folder.file(name), "half an entry");
    fs::last_write_time(folder.file(name), now - std::chrono::minutes(age));
  }
  ASSERT_TRUE(put(store, "key", "content").ok());
  EXPECT_FALSE(fs::exists(folder.file(".pyc-tmp.1.0")));
  EXPECT_TRUE(fs::exists(folder.file(".pyc-tmp.2.0")));
  EXPECT_EQ(got(store, "key"), "[content]");
}

}  // namespace
}  // namespace pyc

// Writers of one store that are ended by kill -9 at random moments: nothing that was committed is
// lost, nothing else than what was put is ever read, and the others go on. PYC_KILLS asks for more
// kills (scripts/endurance).

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "base/store.h"
#include "support/temp_folder.h"

namespace pyc {
namespace {

constexpr size_t kWriters = 4;
constexpr size_t kKeys = 48;

// What writers tell, in memory that outlives them.
struct Told {
  std::array<std::atomic<bool>, kKeys> committed = {};
  std::array<std::atomic<bool>, kWriters> writing = {};
  std::atomic<int64_t> puts = 0;
  std::atomic<int64_t> gets = 0;
  std::atomic<int64_t> lost = 0;  // committed, and not there
  std::atomic<int64_t> bad = 0;   // other bytes than any that were put, or an entry that is no use
  std::atomic<int64_t> failed = 0;  // puts that were refused
};

std::string key_of(size_t key) { return fmt::format("key {}", key); }

// Four contents a key, of up to 64 KiB, none of which is like a part of another.
std::vector<std::byte> content_of(size_t key, size_t variant) {
  std::vector<std::byte> bytes(64 + ((key * 7919 + variant * 104729) % 65536));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(key * 31 + variant + 1 + i / 64);
  }
  return bytes;
}

void look(const Store& store, size_t key, Told& told) {
  const bool expected = told.committed[key];
  std::string problem;
  const std::optional<SharedBytes> found = store.get(key_of(key), &problem);
  ++told.gets;
  if (!found) {
    if (!problem.empty()) ++told.bad;
    if (expected) ++told.lost;
    return;
  }
  for (size_t variant = 0; variant < 4; ++variant) {
    const std::vector<std::byte> known = content_of(key, variant);
    if (std::ranges::equal(std::span<const std::byte>(*found), known)) return;
  }
  ++told.bad;
}

[[noreturn]] void write_forever(const Store& store, size_t writer, uint64_t seed, Told& told) {
  std::mt19937_64 random(seed);
  for (;;) {
    const size_t key = random() % kKeys;
    if (random() % 4 == 0) {
      look(store, key, told);
      continue;
    }
    const SharedBytes piece = content_of(key, random() % 4);
    told.writing[writer] = true;
    const Status status = store.put(key_of(key), std::span(&piece, 1));
    told.writing[writer] = false;
    ++told.puts;
    if (status.ok()) told.committed[key] = true;
    if (!status.ok()) ++told.failed;
  }
}

// Whether any writer does something within a time that no load of a machine takes.
bool go_on(const Told& told) {
  const int64_t before = told.puts + told.gets;
  for (int i = 0; i < 60'000; ++i) {
    if (told.puts + told.gets > before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int64_t from_environment(const char* name, int64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoll(text);
}

TEST(StoreKills, NothingThatWasCommittedIsLost) {
  const int64_t kills = from_environment("PYC_KILLS", 150);
  const int64_t seed = from_environment("PYC_KILLS_SEED", 1);
  const TempFolder folder;
  const Store store(folder.file("store"));
  void* const shared =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Told& told = *new (shared) Told;
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::array<pid_t, kWriters> writers = {};
  const auto start = [&](size_t writer) {
    const uint64_t own = random();
    writers[writer] = fork();
    if (writers[writer] == 0) write_forever(store, writer, own, told);
  };
  const auto end = [&](size_t writer) {
    kill(writers[writer], SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(writers[writer], &status, 0), writers[writer]);
    EXPECT_TRUE(WIFSIGNALED(status)) << "a writer ended by itself";
  };
  for (size_t writer = 0; writer < kWriters; ++writer) start(writer);
  int64_t within = 0;
  int64_t stuck = 0;
  for (int64_t k = 0; k < kills && stuck == 0; ++k) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    if (k % 64 == 0 && !go_on(told)) ++stuck;
    const size_t writer = random() % kWriters;
    end(writer);
    if (told.writing[writer]) ++within;  // it is over: nobody else says so
    told.writing[writer] = false;
    start(writer);
  }
  for (size_t writer = 0; writer < kWriters; ++writer) end(writer);
  for (size_t key = 0; key < kKeys; ++key) look(store, key, told);
  const auto entries = store.verify();
  ASSERT_TRUE(entries.ok()) << entries.status().to_string();
  for (const Store::Entry& entry : *entries) EXPECT_EQ(entry.problem, "") << entry.file;
  std::cout << fmt::format(
      "kills={} writers={} within_write={} puts={} gets={} entries={} lost={} bad={} failed={} "
      "stuck={} seed={}\n",
      kills, kWriters, within, told.puts.load(), told.gets.load(), entries->size(),
      told.lost.load(), told.bad.load(), told.failed.load(), stuck, seed);
  EXPECT_GT(within, 0) << "no kill was within a write";
  EXPECT_EQ(told.lost, 0);
  EXPECT_EQ(told.bad, 0);
  EXPECT_EQ(told.failed, 0);
  EXPECT_EQ(stuck, 0);
  EXPECT_TRUE(store.clear().ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("store"))) << "what killed writers left";
  munmap(shared, sizeof(Told));
}

}  // namespace
}  // namespace pyc

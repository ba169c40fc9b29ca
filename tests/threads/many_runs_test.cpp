// Many threads run one small model: every result has the same bits, and memory does not grow with
// runs. PYC_RUNS asks for more of them (scripts/endurance).

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sanitizers.h"
#include "driver/compile.h"
#include "session/model.h"
#include "support/small_mlp.h"
#include "tooling/seeded_run.h"

namespace pyc {
namespace {

constexpr int kThreads = 64;
constexpr int kSamples = 10;

// 0 where the system does not say.
int64_t resident_bytes() {
  int64_t all = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(ManyRuns, SixtyFourThreadsHaveTheBitsOfOneAndMemoryStaysFlat) {
  const char* const asked = std::getenv("PYC_RUNS");
  const int64_t runs = asked == nullptr ? 20'000 : std::max<int64_t>(kSamples, std::atoll(asked));
  auto graph = driver::parse_model(test::kSmallMlp);
  ASSERT_TRUE(graph.ok());
  driver::CompileOptions options;
  options.threads = 1;
  auto model = session::compile(std::move(*graph), options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  auto first = tooling::SeededRun::create(**model, 1);
  ASSERT_TRUE(first.ok());
  constexpr int kAlone = 200;
  const int64_t began = now_ns();
  for (int i = 0; i < kAlone; ++i) {
    ASSERT_TRUE((*model)->run(first->inputs(), first->outputs()).ok());
  }
  const double alone_us = static_cast<double>(now_ns() - began) / 1e3 / kAlone;
  const Digest expected = first->digest(0);

  std::atomic<int64_t> started = 0;
  std::atomic<int64_t> different = 0;
  std::atomic<int64_t> refused = 0;
  std::vector<int64_t> resident(kSamples);  // each written by whoever makes that run
  const auto work = [&] {
    auto own = tooling::SeededRun::create(**model, 1);
    if (!own.ok()) {
      ++refused;
      return;
    }
    for (;;) {
      const int64_t number = started++;
      if (number >= runs) return;
      if (number % (runs / kSamples) == 0 && number / (runs / kSamples) < kSamples) {
        resident[static_cast<size_t>(number / (runs / kSamples))] = resident_bytes();
      }
      const std::span<std::byte> out(static_cast<std::byte*>(own->outputs()[0].data),
                                     static_cast<size_t>(own->outputs()[0].bytes));
      std::memset(out.data(), 0xff, out.size());
      if (!(*model)->run(own->inputs(), own->outputs()).ok()) ++refused;
      if (own->digest(0) != expected) ++different;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  // The first sample is taken while threads begin.
  const int64_t grown = resident.back() - resident[1];
  std::cout << fmt::format(
      "runs={} threads={} alone_us={:.1f} different={} refused={} resident_bytes={}..{} grown={}\n",
      runs, kThreads, alone_us, different.load(), refused.load(), resident[1], resident.back(),
      grown);
  EXPECT_EQ(different, 0);
  EXPECT_EQ(refused, 0);
  // A page a thread may be touched late; a leak of a byte a run would be more in a long one.
  constexpr int64_t kTouched = 1 << 20;
  if (!kSanitized) {
    EXPECT_LE(grown, kTouched);
  }
}

}  // namespace
}  // namespace pyc

// Faults in processes of their own: during the first use of the library, and when memory really
// runs out.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <set>

#include "base/sanitizers.h"
#include "faults/sweep.h"

namespace pyc::faults {
namespace {

const Scenario& scenario(std::string_view name) {
  for (const Scenario& s : scenarios()) {
    if (s.name == name) return s;
  }
  std::abort();
}

constexpr const char* kNewProcess = "PYC_FAULTS_NEW_PROCESS";

// What `body` returned in a child process; -signal if one ended it.
int in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// The calls that only the first run of a process makes, found in a child; this process stays
// unused.
std::vector<int64_t> first_use_calls(const Scenario& s, const Files& files) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const int code = in_child([&] {
    begin_recording();
    s.run(files);
    const Recorded cold = end_recording(false);
    begin_recording();
    s.run(files);
    const Recorded warm = end_recording(false);
    const std::set<uint64_t> known(warm.places.begin(), warm.places.end());
    for (size_t i = 0; i < cold.numbers.size(); ++i) {
      if (known.contains(cold.places[i])) continue;
      const int64_t number = cold.numbers[i];
      if (write(ends[1], &number, sizeof number) != sizeof number) return 1;
    }
    return 0;
  });
  EXPECT_EQ(code, 0);
  close(ends[1]);
  std::vector<int64_t> numbers;
  int64_t number = 0;
  while (read(ends[0], &number, sizeof number) == sizeof number) numbers.push_back(number);
  close(ends[0]);
  return numbers;
}

// The test that is running, alone in a new process, which has used nothing of the library yet.
int in_new_process() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter =
      std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  return in_child([&] {
    setenv(kNewProcess, "1", 1);
    execl("/proc/self/exe", "pyc_faults_tests", filter.c_str(), nullptr);
    return 1;
  });
}

// Every `stride`-th call only, where a new process takes long to get ready.
struct First {
  const char* scenario;
  size_t stride;
};
class FirstUse : public testing::TestWithParam<First> {};

TEST_P(FirstUse, MayFailAndTheNextIsRight) {
  if (std::getenv(kNewProcess) == nullptr) {
    EXPECT_EQ(in_new_process(), 0);
    return;
  }
  const Files files;
  const Scenario& s = scenario(GetParam().scenario);
  const std::vector<int64_t> numbers = first_use_calls(s, files);
  EXPECT_GT(numbers.size(), 3 * GetParam().stride);
  for (size_t i = 0; i < numbers.size(); i += GetParam().stride) {
    const int64_t number = numbers[i];
    const int code = in_child([&] {
      arm(number);
      const Answer first = s.run(files);
      const Outcome outcome = disarm();
      const Answer second = s.run(files);
      if (second.status != PYC_STATUS_OK) return 1;
      if (!outcome.refused || same(first, second)) return 0;
      return fits(outcome.kind, first.status) ? 0 : 2;
    });
    EXPECT_EQ(code, 0) << "call " << number;
  }
  std::cout << numbers.size() / GetParam().stride << " calls of the first run refused\n";
}

INSTANTIATE_TEST_SUITE_P(All, FirstUse,
                         testing::Values(First{"builder_life", 1}, First{"two_kernels_on_cpu", 4}),
                         [](const auto& info) { return info.param.scenario; });

rlim_t address_space_bytes() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  const bool read = file != nullptr && std::fscanf(file, "%lu", &pages) == 1;
  if (file != nullptr) std::fclose(file);
  return read ? pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) : 0;
}

// LLVM ends the process when it is refused memory; PyC does not start it when there is little.
TEST(LittleMemory, IsRefusedAndNeverEndsTheProcess) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's shadow memory is beyond any limit";
  const Files files;
  const Scenario& s = scenario("two_kernels_on_cpu");
  int refused = 0;
  int done = 0;
  constexpr rlim_t kStep = rlim_t{16} << 20;
  for (rlim_t more = 0; more <= 40 * kStep; more += kStep) {
    const int code = in_child([&] {
      const rlim_t limit = address_space_bytes() + more;
      const rlimit limits{limit, limit};
      if (setrlimit(RLIMIT_AS, &limits) != 0) return 99;
      return static_cast<int>(s.run(files).status);
    });
    EXPECT_TRUE(code == PYC_STATUS_OK || code == PYC_STATUS_OUT_OF_MEMORY)
        << code << " with " << more << " bytes";
    refused += code == PYC_STATUS_OUT_OF_MEMORY ? 1 : 0;
    done += code == PYC_STATUS_OK ? 1 : 0;
  }
  EXPECT_GT(refused, 3);
  EXPECT_GT(done, 3);
}

}  // namespace
}  // namespace pyc::faults

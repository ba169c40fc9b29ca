#include "session/two_programs.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "base/clock.h"

namespace pyc::session {
namespace {

// What no input can be blamed for.
bool is_failure(const Status& status) {
  return status.code() == Code::kOutOfMemory || status.code() == Code::kInternal ||
         status.code() == Code::kCompileFailed;
}

// The part of the machine's memory that is in use; 0 where nobody tells.
double memory_pressure() {
  std::ifstream in("/proc/meminfo");
  double total = 0;
  double available = 0;
  std::string name;
  double kilobytes = 0;
  while (in >> name >> kilobytes) {
    if (name == "MemTotal:") total = kilobytes;
    if (name == "MemAvailable:") available = kilobytes;
    in.ignore(64, '\n');
  }
  return total > 0 ? 1.0 - available / total : 0.0;
}

}  // namespace

TwoPrograms::TwoPrograms(runtime::Model& known_good, Make make, bool shadow, exec::GrowingLog& log,
                         Readings readings)
    : known_good_(known_good),
      make_(std::move(make)),
      readings_(std::move(readings)),
      log_(log),
      current_(&known_good),
      state_{.shadow = shadow},
      start_ns_(now_ns()) {}

void TwoPrograms::note(const runtime::Model& ran, int64_t wall_ns, const Status& status) {
  const bool failed = is_failure(status);
  bool make = false;
  {
    const std::scoped_lock lock(mutex_);
    if (making_ || &ran != &current()) return;
    if (!failed && !status.ok()) return;
    if (!failed) times_[runs_++] = wall_ns;
    if (!failed && runs_ < kWindowRuns) return;
    make = decide(failed);
    runs_ = 0;
    start_ns_ = now_ns();
  }
  if (make) go_to_other();
}

// Under the lock.
rails::Reading TwoPrograms::measured(bool failed) const {
  std::array<int64_t, kWindowRuns> sorted = times_;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(runs_ / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<ptrdiff_t>(runs_));
  const auto elapsed = static_cast<double>(std::max<int64_t>(1, now_ns() - start_ns_));
  return {.latency_ns = static_cast<double>(*middle),
          .throughput = static_cast<double>(runs_) * 1e9 / elapsed,
          .pressure = memory_pressure(),
          .failed = failed};
}

// Under the lock, at the end of a window. Whether the other program is to be made, without the
// lock.
bool TwoPrograms::decide(bool failed) {
  const rails::Reading found = measured(failed);
  const rails::Reading reading = readings_ ? readings_(found) : found;
  const rails::State before = state_;
  const rails::Verdict verdict = rails::step(limits_, state_, reading);
  if (verdict.action == rails::Action::kHold) return false;
  log_.add(rails::decision_of(limits_, before, reading, verdict));
  if (!verdict.applied) return false;
  if (verdict.action != rails::Action::kSwitch) {
    current_.store(&known_good_, std::memory_order_release);
    return false;
  }
  if (other_ != nullptr) {
    current_.store(other_.get(), std::memory_order_release);
    return false;
  }
  making_ = true;
  return true;
}

// Runs of other threads go on meanwhile, with the known good program.
void TwoPrograms::go_to_other() {
  auto made = make_();
  const std::scoped_lock lock(mutex_);
  making_ = false;
  runs_ = 0;
  start_ns_ = now_ns();
  if (made.ok()) {
    other_ = std::move(*made);
    seen_other_.store(other_.get(), std::memory_order_release);
    current_.store(other_.get(), std::memory_order_release);
    return;
  }
  state_.program = rails::Program::kKnownGood;
  state_.barred = true;
  log_.add({.what = "rails:program",
            .chosen = "known_good",
            .reason = std::string(code_name(made.status().code())),
            .detail = made.status().message(),
            .alternatives = {}});
}

}  // namespace pyc::session

#pragma once

// A model with a second program of the same bits, made for half the threads: less exposed to others
// who use the cores, and with less memory. The runtime controller (rails/controller.h) says which
// one runs, by what it measures of the runs.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "exec/growing_log.h"
#include "rails/controller.h"
#include "runtime/model.h"

namespace pyc::session {

class TwoPrograms {
 public:
  static constexpr size_t kWindowRuns = 16;

  // Makes the other program when it is first needed. Where that fails, the known good one stays and
  // the log says why.
  using Make = std::function<Result<std::unique_ptr<runtime::Model>>()>;
  // What stands for what was measured, for tests; empty: the measured itself.
  using Readings = std::function<rails::Reading(const rails::Reading& measured)>;

  // `known_good` and `log` outlive it.
  TwoPrograms(runtime::Model& known_good, Make make, bool shadow, exec::GrowingLog& log,
              Readings readings = {});

  // The program that a run takes now. Any number of threads may call it, and note.
  runtime::Model& current() const { return *current_.load(std::memory_order_acquire); }
  // What became of a run of current().
  void note(const runtime::Model& ran, int64_t wall_ns, const Status& status);

  // Null until it was needed.
  const runtime::Model* other() const { return seen_other_.load(std::memory_order_acquire); }

 private:
  rails::Reading measured(bool failed) const;
  bool decide(bool failed);
  void go_to_other();

  runtime::Model& known_good_;
  const Make make_;
  const Readings readings_;
  exec::GrowingLog& log_;
  const rails::Limits limits_ = {};
  std::atomic<runtime::Model*> current_;
  std::atomic<const runtime::Model*> seen_other_ = nullptr;
  std::mutex mutex_;  // guards everything below
  rails::State state_;
  std::unique_ptr<runtime::Model> other_;
  bool making_ = false;
  std::array<int64_t, kWindowRuns> times_{};
  size_t runs_ = 0;  // of the window
  int64_t start_ns_ = 0;
};

}  // namespace pyc::session

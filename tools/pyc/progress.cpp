#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "command.h"
#include "say.h"

namespace pyc::tool {
namespace {

using std::chrono::seconds;
constexpr seconds kOnTerminal{1};
constexpr seconds kInLog{5};
constexpr int kBarCells = 20;

}  // namespace

struct Progress::Impl {
  std::string what;
  std::string how_far;
  std::mutex mutex;
  std::condition_variable changed;
  bool waits = false;
  bool over = false;
  std::atomic<double> done = 0.0;
  std::atomic<double> all = 0.0;
  std::thread thread;
  // Of the thread alone.
  int begun = -1;  // the second in which the parts began
  double last_share = 0.0;

  // " [####      ] 40 %, 3 s left", or "" while no parts are known. Parts that begin again, such as
  // a measurement behind a compile, are timed from there.
  std::string bar(int elapsed, int before) {
    const double whole = all.load(std::memory_order_relaxed);
    if (whole <= 0.0) return "";
    const double share = std::clamp(done.load(std::memory_order_relaxed) / whole, 0.0, 1.0);
    if (begun < 0 || share < last_share) begun = before;
    last_share = share;
    const auto cells = static_cast<size_t>(share * kBarCells);
    std::string text =
        fmt::format(" [{:<{}}] {:.0f} %", std::string(cells, '#'), kBarCells, 100.0 * share);
    if (share > 0.0 && share < 1.0) {
      text += fmt::format(", {:.0f} s left", (1.0 - share) / share * (elapsed - begun));
    }
    return text;
  }

  void show(bool terminal) {
    std::unique_lock lock(mutex);
    waits = true;
    changed.notify_one();
    const seconds step = terminal ? kOnTerminal : kInLog;
    int elapsed = 0;
    while (!changed.wait_for(lock, step, [this] { return over; })) {
      const int before = elapsed;
      elapsed += static_cast<int>(step.count());
      const std::string how = bar(elapsed, before) + how_far;
      if (terminal) {
        say(stderr, "\r\033[K{} … {} s{}", what, elapsed, how);
      } else {
        say(stderr, "{} … {} s{}\n", what, elapsed, how);
      }
      std::fflush(stderr);
    }
    if (terminal && elapsed > 0) say(stderr, "\r\033[K");
  }
};

Progress::Progress(const Command& command, std::string what) {
  if (command.json || command.quiet) return;
  impl_ = std::make_shared<Impl>();
  impl_->what = std::move(what);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  impl_->thread = std::thread([impl = impl_.get(), terminal] { impl->show(terminal); });
  // Commands fork: a child would keep for ever what a thread that is just starting has locked.
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [this] { return impl_->waits; });
}

void Progress::part(double done, double all) {
  if (impl_ == nullptr) return;
  impl_->done.store(done, std::memory_order_relaxed);
  impl_->all.store(all, std::memory_order_relaxed);
}

void Progress::watch(CompileOptions& compile) {
  if (impl_ == nullptr) return;
  // The options and what was compiled with them may live longer than this.
  compile.progress([impl = impl_](int64_t done, int64_t all) {
    impl->done.store(static_cast<double>(done), std::memory_order_relaxed);
    impl->all.store(static_cast<double>(all), std::memory_order_relaxed);
  });
}

void Progress::note(std::string how_far) {
  if (impl_ == nullptr) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->how_far = ", " + std::move(how_far);
}

void Progress::end() {
  if (impl_ == nullptr) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->over = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
  impl_.reset();
}

}  // namespace pyc::tool

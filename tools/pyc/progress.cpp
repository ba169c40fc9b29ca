#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "command.h"
#include "say.h"

namespace pyc::tool {

struct Progress::Impl {
  std::string what;
  std::string how_far;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread;

  void show() {
    using std::chrono::seconds;
    std::unique_lock lock(mutex);
    int elapsed = 0;
    while (!changed.wait_for(lock, seconds(1), [this] { return done; })) {
      say(stderr, "\r\033[K{} … {} s{}", what, ++elapsed, how_far);
      std::fflush(stderr);
    }
    if (elapsed > 0) say(stderr, "\r\033[K");
  }
};

Progress::Progress(std::string what) {
  if (isatty(STDERR_FILENO) == 0) return;
  impl_ = std::make_unique<Impl>();
  impl_->what = std::move(what);
  impl_->thread = std::thread([this] { impl_->show(); });
}

void Progress::note(std::string how_far) {
  if (impl_ == nullptr) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->how_far = ", " + std::move(how_far);
}

Progress::~Progress() {
  if (impl_ == nullptr) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->done = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
}

}  // namespace pyc::tool

#include "base/cores.h"

#include <algorithm>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace pyc {

int core_count() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

#if defined(__linux__)

int current_core() { return sched_getcpu(); }

StartOnCore::StartOnCore(std::thread::native_handle_type thread, int wanted, CoreSet& taken)
    : thread_(thread) {
  if (pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) return;
  int core = wanted < 0 ? 0 : wanted;
  const auto fits = [&] {
    const auto i = static_cast<size_t>(core);
    return CPU_ISSET(i, &allowed_) && (core == wanted || !taken[i]);
  };
  while (core < CPU_SETSIZE && !fits()) ++core;
  if (core == CPU_SETSIZE) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(core), &one);
  if (pthread_setaffinity_np(thread, sizeof one, &one) != 0) return;
  take_core(taken, core);
  core_ = core;
}

StartOnCore::~StartOnCore() {
  if (core_ >= 0) pthread_setaffinity_np(thread_, sizeof allowed_, &allowed_);
}

#else

int current_core() { return -1; }
StartOnCore::StartOnCore(std::thread::native_handle_type thread, int, CoreSet&) : thread_(thread) {}
StartOnCore::~StartOnCore() = default;

#endif

}  // namespace pyc

#pragma once

// Which core a thread is on, and on which it starts when it is woken. Where the system has no such
// calls nothing is known and nothing done.

#include <bitset>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

namespace pyc {

using CoreSet = std::bitset<1024>;

// Of this machine, at least 1; asked of the system once.
int core_count();

// The calling thread's; -1 where that is not known.
int current_core();

inline void take_core(CoreSet& taken, int core) {
  if (core >= 0 && core < static_cast<int>(taken.size())) taken.set(static_cast<size_t>(core));
}

// While it lives, a thread may run on one core only: on `wanted`, or where that is -1 on one that
// is not taken; afterwards on all it could before. A thread woken meanwhile starts there.
class StartOnCore {
 public:
  StartOnCore(std::thread::native_handle_type thread, int wanted, CoreSet& taken);
  ~StartOnCore();
  StartOnCore(const StartOnCore&) = delete;
  StartOnCore& operator=(const StartOnCore&) = delete;

  int core() const { return core_; }  // -1 where none was left

 private:
  const std::thread::native_handle_type thread_;
  int core_ = -1;
#if defined(__linux__)
  cpu_set_t allowed_;
#endif
};

}  // namespace pyc

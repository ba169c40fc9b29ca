#pragma once

// The fake driver and what can be asked of it.

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "backends/cuda/device.h"

namespace pyc::test {

inline constexpr const char* kFakeDriver = PYC_FAKE_CUDA;
inline constexpr const char* kFakeNvrtc = PYC_FAKE_NVRTC;

class FakeDriver {
 public:
  FakeDriver() : library_(dlopen(kFakeDriver, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
  }
  // The call with this number, counted from now, fails; -1: none.
  void fail(int64_t number, int result) {
    symbol<void (*)(int64_t, int)>("pyc_fake_fail")(number, result);
  }
  int64_t calls() const { return symbol<int64_t (*)()>("pyc_fake_calls")(); }
  int64_t alive() const { return symbol<int64_t (*)()>("pyc_fake_alive")(); }
  int64_t launches() const { return symbol<int64_t (*)()>("pyc_fake_launches")(); }
  // Of them, those that came before the one in front of them was over.
  int64_t early_launches() const { return symbol<int64_t (*)()>("pyc_fake_early_launches")(); }
  int64_t allocated() const { return symbol<int64_t (*)()>("pyc_fake_allocated")(); }
  int64_t allocations() const { return symbol<int64_t (*)()>("pyc_fake_allocations")(); }
  int64_t sent() const { return symbol<int64_t (*)()>("pyc_fake_sent")(); }
  int64_t fetched() const { return symbol<int64_t (*)()>("pyc_fake_fetched")(); }
  int64_t waits() const { return symbol<int64_t (*)()>("pyc_fake_waits")(); }
  std::string failed() const { return symbol<const char* (*)()>("pyc_fake_failed")(); }

 private:
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void* library_;
};

}  // namespace pyc::test

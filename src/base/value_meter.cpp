#include "base/value_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace pyc {
namespace {

std::shared_ptr<ValueMeter>& current() {
  thread_local std::shared_ptr<ValueMeter> meter;
  return meter;
}

int64_t usable_memory() {
  constexpr int64_t kUnknown = int64_t{8} << 30;  // where the system does not tell
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t bytes = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : kUnknown;
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    int64_t limit = 0;
    if (in >> limit && limit > 0) bytes = std::min(bytes, limit);  // "max" is no number
  }
  return bytes;
}

}  // namespace

void ValueMeter::add(int64_t bytes) {
  const int64_t now = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t most = peak();
  while (now > most && !peak_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

Status ValueMeter::check_room(int64_t bytes) const {
  const int64_t held = live();
  if (held <= limit_ && bytes <= limit_ - held) return {};
  if (bytes == 0) {
    return {Code::kBudgetExceeded,
            fmt::format("the run holds {} bytes of values, {} is {}", held, name_, limit_)};
  }
  return {Code::kBudgetExceeded,
          fmt::format("asks for {} bytes, the run holds {} bytes of values, {} is {}", bytes, held,
                      name_, limit_)};
}

MeterScope::MeterScope(std::shared_ptr<ValueMeter> meter)
    : before_(std::exchange(current(), std::move(meter))) {}

MeterScope::~MeterScope() { current() = std::move(before_); }

Status check_room(int64_t bytes) {
  return current() == nullptr ? Status() : current()->check_room(bytes);
}

Charge::Charge(int64_t bytes) : meter_(current()), bytes_(bytes) {
  if (meter_ != nullptr) meter_->add(bytes_);
}

Charge::~Charge() {
  if (meter_ != nullptr) meter_->live_.fetch_sub(bytes_, std::memory_order_relaxed);
}

int64_t default_value_limit() {
  static const int64_t limit = usable_memory() / 2;
  return limit;
}

}  // namespace pyc

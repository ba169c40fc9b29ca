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

void raise(std::atomic<int64_t>& most, int64_t value) {
  int64_t before = most.load(std::memory_order_relaxed);
  while (value > before && !most.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
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

void ValueMeter::share(std::shared_ptr<const std::atomic<int64_t>> others, int64_t beside,
                       int64_t budget) {
  others_ = std::move(others);
  beside_ = beside;
  budget_ = budget;
}

int64_t ValueMeter::beside() const {
  return beside_ + (others_ == nullptr ? 0 : others_->load(std::memory_order_relaxed));
}

void ValueMeter::add(int64_t bytes, int64_t handed_out) {
  raise(peak_, live_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  const int64_t now = handed_out_.fetch_add(handed_out, std::memory_order_relaxed) + handed_out;
  raise(total_peak_, now + beside());
}

Status ValueMeter::check_room(int64_t bytes, int64_t handed_out) const {
  const int64_t held = live();
  const auto asks = [&] { return bytes == 0 ? "" : fmt::format("asks for {} bytes, ", bytes); };
  if (held > limit_ || bytes > limit_ - held) {
    return {Code::kBudgetExceeded, fmt::format("{}the run holds {} bytes of values, {} is {}",
                                               asks(), held, name_, limit_)};
  }
  const int64_t values = live_handed_out();
  const int64_t all = values + beside();
  if (all <= budget_ && handed_out <= budget_ - all) return {};
  return {
      Code::kBudgetExceeded,
      fmt::format("{}the run holds {} bytes of values and {} of inputs and programs, the memory "
                  "budget is {}",
                  asks(), values, all - values, budget_)};
}

MeterScope::MeterScope(std::shared_ptr<ValueMeter> meter)
    : before_(std::exchange(current(), std::move(meter))) {}

MeterScope::~MeterScope() { current() = std::move(before_); }

Status check_room(int64_t bytes, int64_t handed_out) {
  return current() == nullptr ? Status() : current()->check_room(bytes, handed_out);
}

Charge::Charge(int64_t bytes, int64_t handed_out)
    : meter_(current()), bytes_(bytes), handed_out_(handed_out) {
  if (meter_ != nullptr) meter_->add(bytes_, handed_out_);
}

Charge::~Charge() {
  if (meter_ == nullptr) return;
  meter_->live_.fetch_sub(bytes_, std::memory_order_relaxed);
  meter_->handed_out_.fetch_sub(handed_out_, std::memory_order_relaxed);
}

int64_t default_value_limit() {
  static const int64_t limit = usable_memory() / 2;
  return limit;
}

}  // namespace pyc

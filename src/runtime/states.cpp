#include "runtime/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/allocation_meter.h"
#include "base/convert.h"
#include "runtime/guards.h"

namespace pyc::runtime {
namespace {

// The elements as a run would have left them.
void make_canonical(std::byte* data, const IoSpec& spec) {
  const int64_t size = dtype_size(spec.dtype);
  const Word nan = is_float(spec.dtype)
                       ? word_from_double(std::numeric_limits<double>::quiet_NaN(), spec.dtype)
                       : 0;
  for (int64_t at = 0; at < spec.bytes; at += size) {
    Word word = load_word(data + at, spec.dtype);
    if (is_float(spec.dtype) && std::isnan(word_to_double(word, spec.dtype))) word = nan;
    store_word(data + at, spec.dtype, word);
  }
}

Status in_use() {
  return {Code::kInvalidArgument,
          "the model's state is in use: its runs go one at a time, wait for the other to end"};
}

}  // namespace

Status States::allocate() {
  const int64_t before = allocated_by_thread();
  for (const StateSpec& spec : specs_) {
    PYC_ASSIGN(AlignedBuffer buffer, AlignedBuffer::create(static_cast<size_t>(spec.input.bytes)));
    std::ranges::fill(buffer.bytes(), std::byte{0});
    pointers_.push_back(buffer.data());
    buffers_.push_back(std::move(buffer));
  }
  memory_bytes_ = allocated_by_thread() - before;
  void_.assign(specs_.size(), false);
  return {};
}

Status States::check(size_t index) const {
  if (index >= specs_.size()) {
    return {Code::kInvalidArgument,
            fmt::format("state {} does not exist: the model has {}", index, specs_.size())};
  }
  return lent_ ? in_use() : Status();
}

Status States::set(size_t index, const TensorView& from) {
  const std::lock_guard lock(mutex_);
  PYC_TRY(check(index));
  const IoSpec& spec = specs_[index].input;
  PYC_TRY(check_view_of(spec, from, false));
  gather(from, pointers_[index]);
  make_canonical(pointers_[index], spec);
  void_[index] = false;
  return {};
}

Status States::get(size_t index, const TensorView& to) const {
  const std::lock_guard lock(mutex_);
  PYC_TRY(check(index));
  const IoSpec& spec = specs_[index].input;
  if (void_[index]) {
    return Status(Code::kInvalidArgument,
                  fmt::format("state '{}' is void since a run failed: set or clear it", spec.name))
        .with_node(spec.name);
  }
  PYC_TRY(check_view_of(spec, to, true));
  scatter(pointers_[index], to);
  return {};
}

Status States::clear(size_t index) {
  const std::lock_guard lock(mutex_);
  PYC_TRY(check(index));
  std::ranges::fill(buffers_[index].bytes(), std::byte{0});
  void_[index] = false;
  return {};
}

Status States::lend() {
  const std::lock_guard lock(mutex_);
  if (lent_) return in_use();
  const auto lost = std::find(void_.begin(), void_.end(), true);
  if (lost != void_.end()) {
    const std::string& name = specs_[static_cast<size_t>(lost - void_.begin())].input.name;
    return Status(Code::kInvalidArgument,
                  fmt::format("state '{}' is void since a run failed: set or clear it before the "
                              "next run",
                              name))
        .with_node(name);
  }
  lent_ = true;
  return {};
}

void States::take_back(bool whole, int64_t failed_at) {
  const std::lock_guard lock(mutex_);
  lent_ = false;
  if (whole) return;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].first_write <= failed_at) void_[i] = true;
  }
}

}  // namespace pyc::runtime

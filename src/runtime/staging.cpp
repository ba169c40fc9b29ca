#include "runtime/staging.h"

namespace pyc::runtime {
namespace {

int64_t room_for(const TensorView& view) {
  constexpr auto kUnit = static_cast<int64_t>(AlignedBuffer::kAlignment);
  return (element_bytes(view) + kUnit - 1) / kUnit * kUnit;
}

// The views where kernels find them: in place, or one after the other from `room` on.
void place(std::span<const TensorView> views, std::byte*& room, std::vector<TensorView>& at) {
  at.clear();
  for (const TensorView& view : views) {
    if (is_plain(view)) {
      at.push_back(view);
      continue;
    }
    at.push_back({room, view.dtype, view.shape, element_bytes(view)});
    room += room_for(view);
  }
}

}  // namespace

Staging::Need Staging::need_of(std::span<const TensorView> inputs,
                               std::span<const TensorView> outputs) {
  Need need;
  for (const std::span<const TensorView> views : {inputs, outputs}) {
    for (const TensorView& view : views) {
      if (is_plain(view)) continue;
      ++need.views;
      need.copied_bytes += element_bytes(view);
      need.memory_bytes += room_for(view);
    }
  }
  return need;
}

Status Staging::fill(const Need& need, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, int64_t& grown) {
  const auto held = static_cast<int64_t>(memory_.size());
  grown = 0;
  if (held < need.memory_bytes) {
    memory_ = AlignedBuffer();  // first, so that never more than needed is held
    grown = -held;
    PYC_ASSIGN(memory_, AlignedBuffer::create(static_cast<size_t>(need.memory_bytes)));
    grown += need.memory_bytes;
  }
  std::byte* room = memory_.data();
  place(inputs, room, inputs_);
  place(outputs, room, outputs_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_plain(inputs[i])) gather(inputs[i], inputs_[i].origin());
  }
  return {};
}

void Staging::copy_back(std::span<const TensorView> outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_plain(outputs[i])) scatter(outputs_[i].origin(), outputs[i]);
  }
}

}  // namespace pyc::runtime

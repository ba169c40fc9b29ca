#include "backends/cuda/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/host_engine.h"

namespace pyc::cuda {
namespace {

using runtime::BufferRef;
using runtime::TensorView;
using runtime::Where;

// Neighbouring bytes of the passage that one copy moves.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
};

// Grows by what follows; a hole ends it.
template <class Flush>
Status extend(Stretch& stretch, size_t begin, size_t end, bool hole, const Flush& flush) {
  if (hole) {
    PYC_TRY(flush(stretch));
    stretch = {end, end};
    return {};
  }
  if (stretch.begin == stretch.end) stretch.begin = begin;
  stretch.end = end;
  return {};
}

}  // namespace

CudaLane::~CudaLane() {
  // Work that a failed run left behind still uses the memory.
  if (arena_.device() != nullptr || passage_.device() != nullptr) (void)stream_.synchronize();
}

bool CudaLane::is_there(const TensorView& view) const { return view.device == engine_.device(); }

uint64_t CudaLane::address_of(const TensorView& view, size_t tensor) const {
  const auto address = reinterpret_cast<uint64_t>(view.origin());
  const bool taken = is_there(view) && address % kBufferAlignment == 0;
  return taken ? address : passage_of(tensor);
}

Status CudaLane::prepare() {
  const Device& device = *engine_.gpu().device;
  const runtime::Program& program = engine_.program();
  PYC_ASSIGN(stream_, Stream::create(engine_.gpu().device));
  if (program.arena_bytes > 0) {
    PYC_ASSIGN(arena_, device.allocate(static_cast<size_t>(program.arena_bytes)));
    arena_bytes_ = program.arena_bytes;
    ++blocks_;
  }
  PYC_ASSIGN(passage_, device.allocate(engine_.layout.bytes));
  PYC_ASSIGN(pinned_, device.allocate_pinned(engine_.layout.pinned_bytes));
  if (const int64_t bytes = runtime::shelf_bytes(program); bytes > 0) {
    PYC_ASSIGN(shelf_, device.allocate_pinned(static_cast<size_t>(bytes)));
    ++blocks_;
  }
  constexpr int64_t kPassageAndTables = 3;
  blocks_ += kPassageAndTables;
  PYC_TRY(fill_parameters());
  return build_graph();
}

Status CudaLane::encode_maps(const BoundLaunch& step) {
  size_t to = step.first + step.count;
  for (const TensorMap& map : step.maps) {
    PYC_ASSIGN(const EncodedMap made,
               engine_.gpu().device->encode_map(map, parameters_[step.first + map.buffer]));
    std::ranges::copy(made.words, parameters_.begin() + static_cast<ptrdiff_t>(to));
    to += kMapWords;
  }
  return {};
}

Status CudaLane::fill_parameters() {
  const runtime::Program& program = engine_.program();
  parameters_.assign(engine_.parameter_count, 0);
  moved_.assign(engine_.steps.size(), false);
  for (size_t s = 0; s < engine_.steps.size(); ++s) {
    const BoundLaunch& step = engine_.steps[s];
    if (step.function == nullptr) continue;
    const std::vector<BufferRef>& refs = program.steps[s].kernel().buffers;
    for (size_t b = 0; b < refs.size(); ++b) {  // the workspace is one of them
      uint64_t& parameter = parameters_[step.first + b];
      const auto offset = static_cast<uint64_t>(refs[b].offset);
      if (refs[b].where == Where::kArena) parameter = arena_.get() + offset;
      if (refs[b].where == Where::kParameter && engine_.parameters[refs[b].index] != nullptr) {
        parameter = engine_.parameters[refs[b].index]->get() + offset;
      }
    }
    parameters_[step.first + step.count - 2] =
        reinterpret_cast<uint64_t>(pinned(engine_.layout.fault));
    parameters_[step.first + step.count - 1] = s;
  }
  for (const TensorSlot& slot : engine_.slots) {
    parameters_[slot.position] = passage_of(slot.tensor) + slot.offset;
  }
  for (const BoundLaunch& step : engine_.steps) {
    if (step.function != nullptr) PYC_TRY(encode_maps(step));
  }
  return {};
}

// A kernel alone takes 0.3 µs longer as a graph than launched by itself.
Status CudaLane::build_graph() {
  if (engine_.launches < 2 || shelf_.get() != nullptr) return {};
  PYC_ASSIGN(LaunchGraph graph, LaunchGraph::create(engine_.gpu().device));
  for (const BoundLaunch& step : engine_.steps) {
    if (step.function == nullptr) continue;
    PYC_TRY(graph.add(step.function, step.shape, parameters_of(step)));
  }
  PYC_TRY(graph.instantiate());
  graph_ = std::move(graph);
  moved_.assign(engine_.steps.size(), false);
  return {};
}

Status CudaLane::send_inputs(Views inputs, runtime::RunStats& stats) {
  const PassageLayout& layout = engine_.layout;
  Stretch stretch;
  const auto flush = [&](const Stretch& s) -> Status {
    if (s.begin == s.end) return {};
    stats.sent_bytes += static_cast<int64_t>(s.end - s.begin);
    return stream_.copy_in(passage_.get() + s.begin, {pinned(s.begin), s.end - s.begin});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(engine_.program().inputs[i].bytes);
    const size_t at = layout.tensors[i];
    const bool there = is_there(inputs[i]);
    PYC_TRY(extend(stretch, at, at + bytes, there, flush));
    if (bytes == 0) continue;
    if (!there) {
      std::memcpy(pinned(at), inputs[i].origin(), bytes);
    } else if (address_of(inputs[i], i) == passage_of(i)) {
      PYC_TRY(stream_.copy(passage_of(i), reinterpret_cast<uint64_t>(inputs[i].origin()), bytes));
    }
  }
  return flush(stretch);
}

Status CudaLane::fetch_outputs(Views outputs, runtime::RunStats& stats) {
  const PassageLayout& layout = engine_.layout;
  const size_t first = engine_.program().inputs.size();
  Stretch stretch;
  const auto flush = [&](const Stretch& s) -> Status {
    if (s.begin == s.end) return {};
    stats.fetched_bytes += static_cast<int64_t>(s.end - s.begin);
    return stream_.copy_out({pinned(s.begin), s.end - s.begin}, passage_.get() + s.begin);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(engine_.program().outputs[i].bytes);
    const size_t at = layout.tensors[first + i];
    const bool there = is_there(outputs[i]);
    PYC_TRY(extend(stretch, at, at + bytes, there, flush));
    if (there && bytes > 0 && address_of(outputs[i], first + i) == passage_of(first + i)) {
      PYC_TRY(stream_.copy(reinterpret_cast<uint64_t>(outputs[i].origin()), passage_of(first + i),
                           bytes));
    }
  }
  return flush(stretch);
}

Status CudaLane::place_tensors(Views inputs, Views outputs) {
  for (const TensorSlot& slot : engine_.slots) {
    const TensorView& view =
        slot.tensor < inputs.size() ? inputs[slot.tensor] : outputs[slot.tensor - inputs.size()];
    const uint64_t address = address_of(view, slot.tensor) + slot.offset;
    if (parameters_[slot.position] == address) continue;
    parameters_[slot.position] = address;
    moved_[slot.step] = true;
  }
  for (size_t s = 0; s < moved_.size(); ++s) {
    if (!moved_[s]) continue;
    const BoundLaunch& step = engine_.steps[s];
    PYC_TRY(encode_maps(step));
    if (graph_) {
      PYC_TRY(graph_->update(step.node, step.function, step.shape, parameters_of(step)));
    }
    moved_[s] = false;
  }
  return {};
}

Status CudaLane::copy(const runtime::Copy& copy, runtime::RunStats& stats) {
  const auto& [from, to] = copy.buffers;
  const auto bytes = static_cast<size_t>(copy.bytes);
  const auto shelf = [&](int64_t offset) {
    return std::span(static_cast<std::byte*>(shelf_.get()) + offset, bytes);
  };
  stats.copied_bytes += copy.bytes;
  if (bytes == 0) return {};
  if (to.where == Where::kShelf) {
    return stream_.copy_out(shelf(to.offset), arena_.get() + static_cast<uint64_t>(from.offset));
  }
  return stream_.copy_in(arena_.get() + static_cast<uint64_t>(to.offset), shelf(from.offset));
}

Status CudaLane::launch_steps(bool times, runtime::RunStats& stats) {
  events_.clear();
  const auto note = [&]() -> Status {
    if (!times) return {};
    PYC_ASSIGN(Event event, stream_.record());
    events_.push_back(std::move(event));
    return {};
  };
  PYC_TRY(note());
  for (size_t s = 0; s < engine_.steps.size(); ++s) {
    const BoundLaunch& step = engine_.steps[s];
    if (const runtime::Copy* moved = engine_.program().steps[s].copy()) {
      PYC_TRY(copy(*moved, stats));
    } else if (step.function != nullptr) {
      PYC_TRY(stream_.launch(step.function, step.shape, parameters_of(step)));
    }
    PYC_TRY(note());
  }
  return {};
}

Result<std::vector<int64_t>> CudaLane::step_times() const {
  constexpr double kNsOfMs = 1e6;
  std::vector<int64_t> ns;
  for (size_t s = 0; s + 1 < events_.size(); ++s) {
    PYC_ASSIGN(const float ms, elapsed_ms(events_[s], events_[s + 1]));
    ns.push_back(static_cast<int64_t>(ms * kNsOfMs));
  }
  return ns;
}

Status CudaLane::submit(Views inputs, Views outputs, runtime::RunStats& stats,
                        runtime::StepTimes times) {
  PYC_TRY(place_tensors(inputs, outputs));
  PYC_TRY(send_inputs(inputs, stats));
  if (!times.ns.empty() || !graph_) {
    PYC_TRY(launch_steps(!times.ns.empty(), stats));
  } else {
    PYC_TRY(stream_.launch(*graph_));
  }
  return fetch_outputs(outputs, stats);
}

bool CudaLane::read_checked(size_t step, size_t buffer, const Fault& fault,
                            std::vector<std::byte>& numbers) {
  const std::span<const uint64_t> parameters =
      parameters_of(engine_.steps[step]).first(engine_.steps[step].count);
  const uint64_t from = parameters[buffer];
  // What shares its memory with another may be overwritten.
  if (std::count(parameters.begin(), parameters.end() - kOwnParameters, from) > 1) return false;
  auto bytes = dtype_size(fault.dtype);
  for (const int64_t dim : fault.shape) bytes *= dim;
  const BufferRef& ref = engine_.program().steps[step].kernel().buffers[buffer];
  if (bytes <= 0 || bytes > runtime::bytes_behind(engine_.program(), ref)) return false;
  numbers.resize(static_cast<size_t>(bytes));
  return stream_.copy_out(numbers, from).ok() && stream_.synchronize().ok();
}

Status CudaLane::fault_status(uint32_t word, size_t& step) {
  step = word / kFaultsOfStep;
  const uint32_t code = word % kFaultsOfStep;
  const auto& steps = engine_.program().steps;
  if (step >= steps.size() || steps[step].copy() != nullptr || code < 1 ||
      code > steps[step].kernel().faults.size()) {
    step = 0;
    return {Code::kInternal, fmt::format("unknown fault word {}", word)};
  }
  const runtime::Kernel& kernel = steps[step].kernel();
  const Fault& fault = kernel.faults[code - 1];
  // The numbers that were checked are read back, to say which one it was.
  std::vector<void*> buffers(kernel.buffers.size(), nullptr);
  std::vector<std::byte> numbers;
  const auto b = static_cast<size_t>(fault.buffer);
  if (fault.buffer >= 0 && b < buffers.size() && read_checked(step, b, fault, numbers)) {
    buffers[b] = numbers.data();
  }
  return {Code::kRuntimeFailed,
          fmt::format("step '{}': {}", steps[step].name, describe(fault, buffers))};
}

Status CudaLane::run(Views inputs, Views outputs, runtime::RunStats& stats,
                     runtime::StepTimes times) {
  PYC_TRY(engine_.gpu().device->enter());
  std::memcpy(pinned(engine_.layout.fault), &kNoFault, sizeof(kNoFault));
  Status status = submit(inputs, outputs, stats, times);
  const Status waited = stream_.synchronize();  // even after a refusal: nothing is left in flight
  if (status.ok()) status = waited;
  if (!status.ok()) return std::move(status).with_context("device cuda");

  uint32_t word = kNoFault;
  std::memcpy(&word, pinned(engine_.layout.fault), sizeof(word));
  if (word != kNoFault) {
    size_t step = 0;
    status = fault_status(word, step);
    stats.steps = static_cast<int64_t>(step);
    return status;
  }
  stats.steps = static_cast<int64_t>(engine_.steps.size());
  stats.recomputed_steps = std::ranges::count(engine_.program().steps, true, &runtime::Step::again);
  if (!times.ns.empty()) {
    PYC_ASSIGN(const std::vector<int64_t> ns, step_times());
    std::copy(ns.begin(), ns.end(), times.ns.begin());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(engine_.program().outputs[i].bytes);
    if (bytes == 0 || is_there(outputs[i])) continue;
    std::memcpy(outputs[i].origin(), pinned(engine_.layout.tensors[inputs.size() + i]), bytes);
  }
  return {};
}

}  // namespace pyc::cuda

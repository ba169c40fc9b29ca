#include "backends/cuda/engine.h"

#include "backends/cuda/lane.h"

namespace pyc::cuda {
namespace {

// As cuMemAlloc aligns.
constexpr size_t kPassageAlignment = 256;

PassageLayout layout_of(const runtime::Program& program) {
  PassageLayout out;
  const auto take = [&out](int64_t bytes) {
    const size_t at = out.bytes;
    const size_t end = at + static_cast<size_t>(bytes);
    out.bytes = (end + kPassageAlignment - 1) / kPassageAlignment * kPassageAlignment;
    return at;
  };
  for (const runtime::IoSpec& io : program.inputs) out.tensors.push_back(take(io.bytes));
  for (const runtime::IoSpec& io : program.outputs) out.tensors.push_back(take(io.bytes));
  out.fault = out.bytes;
  out.pinned_bytes = out.bytes + sizeof(uint32_t);
  return out;
}

}  // namespace

CudaEngine::CudaEngine(std::shared_ptr<const runtime::Program> program, std::shared_ptr<Gpu> gpu)
    : Engine(std::move(program)), layout(layout_of(this->program())), gpu_(std::move(gpu)) {}

void CudaEngine::bind(FunctionHandle function, const Launch& launch,
                      const runtime::Kernel& kernel) {
  BoundLaunch step{.function = function,
                   .shape = launch.shape,
                   .first = parameter_count,
                   .count = launch.buffers.size() + kOwnParameters,
                   .node = launches,
                   .maps = launch.maps};
  if (function == nullptr) step.count = 0;
  for (size_t b = 0; b < launch.buffers.size() && function != nullptr; ++b) {
    const runtime::BufferRef& ref = kernel.buffers[b];
    const bool input = ref.where == runtime::Where::kInput;
    if (!input && ref.where != runtime::Where::kOutput) continue;
    slots.push_back({.step = steps.size(),
                     .position = step.first + b,
                     .tensor = ref.index + (input ? 0 : program().inputs.size()),
                     .offset = static_cast<uint64_t>(ref.offset)});
  }
  parameter_count += step.count + (function == nullptr ? 0 : step.maps.size() * kMapWords);
  launches += function == nullptr ? 0 : 1;
  steps.push_back(step);
}

Result<std::unique_ptr<runtime::Lane>> CudaEngine::make_lane(ThreadPool&,
                                                             std::span<std::byte* const>) const {
  auto lane = std::make_unique<CudaLane>(*this);
  PYC_TRY(lane->prepare());
  return std::unique_ptr<runtime::Lane>(std::move(lane));
}

}  // namespace pyc::cuda

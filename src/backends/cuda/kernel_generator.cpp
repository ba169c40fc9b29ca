#include "backends/cuda/kernel_generator.h"

#include "backends/cuda/launch.h"

namespace pyc::cuda {

const KernelGenerator& generator_attention();
const KernelGenerator& generator_attention_halves();
const KernelGenerator& generator_product();
const KernelGenerator& generator_long_softmax();
const KernelGenerator& generator_loop_forms();
const KernelGenerator& generator_scan();
const KernelGenerator& generator_sort();
const KernelGenerator& generator_wgmma();
const KernelGenerator& generator_wide_reduction();

std::span<const KernelGenerator* const> kernel_generators() {
  static const KernelGenerator* const all[] = {
      &generator_attention(), &generator_attention_halves(), &generator_product(),
      &generator_wgmma(),     &generator_wide_reduction(),   &generator_scan(),
      &generator_sort(),      &generator_long_softmax(),     &generator_loop_forms()};
  return all;
}

std::vector<bool> unaligned_buffers(const lower::Group& group) {
  std::vector<bool> out;
  for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
    out.push_back(group.buffer_offset_bytes(b) % kBufferAlignment != 0);
  }
  return out;
}

CudaPlan::Part make_part(KernelText text, const loop::Kernel& kernel, const lower::Group& group) {
  CudaPlan::Part part;
  Launch launch{.shape = {text.blocks, text.threads, text.shared_bytes,
                          static_cast<uint32_t>(text.maps.size())},
                .workspace_bytes = text.workspace_bytes,
                .buffers = {},
                .maps = text.maps};
  for (const uint32_t b : text.buffers) {
    const loop::Buffer& buffer = kernel.buffers[b];
    backends::Operand operand;
    operand.value = group.buffer_values[b];
    operand.offset = group.buffer_offset_bytes(b);
    part.operands.push_back(operand);
    launch.buffers.push_back({.bytes = buffer.elements * dtype_size(buffer.dtype),
                              .written = buffer.access != loop::Access::kRead,
                              .aligned = operand.offset % kBufferAlignment == 0});
  }
  if (text.workspace_bytes > 0) {
    part.operands.emplace_back().kind = backends::Operand::Kind::kWorkspace;
  }
  part.launch = encode(launch);
  part.kernel = std::move(text);
  return part;
}

}  // namespace pyc::cuda

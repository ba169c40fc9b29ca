#include "tooling/seeded_run.h"

#include <algorithm>

namespace pyc::tooling {

std::shared_ptr<const ir::ConstData> seeded_data(const ir::TensorType& type, uint64_t seed) {
  if (is_complex(type.dtype)) {
    const DType part = part_dtype(type.dtype);
    return seeded_data({part, {type.bytes() / dtype_size(part)}}, seed);
  }
  const bool floats = is_float(type.dtype);
  return ir::random_data(type, seed, floats ? -1.0 : 0.0, floats ? 1.0 : 10.0);
}

std::shared_ptr<const ir::ConstData> seeded_input(const runtime::IoSpec& spec, uint64_t seed) {
  return seeded_data({spec.dtype, spec.shape}, seed);
}

Result<SeededRun> SeededRun::create(const runtime::Model& model, uint64_t seed,
                                    AlignedBuffer::Mode mode) {
  SeededRun run;
  const auto add = [&](const runtime::IoSpec& spec) -> Result<runtime::TensorView> {
    PYC_ASSIGN(AlignedBuffer memory, AlignedBuffer::create(static_cast<size_t>(spec.bytes), mode));
    run.memory_.push_back(std::move(memory));
    run.shapes_.push_back(spec.shape);
    return runtime::TensorView{run.memory_.back().data(), spec.dtype, run.shapes_.back(),
                               spec.bytes};
  };
  for (const runtime::IoSpec& spec : model.inputs()) {
    PYC_ASSIGN(runtime::TensorView view, add(spec));
    const auto data = seeded_input(spec, seed + run.inputs_.size());
    std::copy(data->bytes.begin(), data->bytes.end(), static_cast<std::byte*>(view.data));
    run.inputs_.push_back(view);
  }
  for (const runtime::IoSpec& spec : model.outputs()) {
    PYC_ASSIGN(runtime::TensorView view, add(spec));
    run.outputs_.push_back(view);
  }
  return run;
}

Digest SeededRun::digest(size_t i) const {
  const runtime::TensorView& view = outputs_[i];
  return hash128({static_cast<const std::byte*>(view.data), static_cast<size_t>(view.bytes)});
}

bool SeededRun::intact() const {
  return std::all_of(memory_.begin(), memory_.end(),
                     [](const AlignedBuffer& b) { return b.check_canary(); });
}

}  // namespace pyc::tooling

#pragma once

#include <optional>
#include <vector>

#include "backends/cuda/engine.h"

namespace pyc::cuda {

class CudaLane final : public runtime::Lane {
 public:
  explicit CudaLane(const CudaEngine& engine) : engine_(engine) {}
  ~CudaLane() override;

  // Everything a run needs: memory, a stream and the graph of its launches.
  Status prepare();

  Status run(std::span<const runtime::TensorView> inputs,
             std::span<const runtime::TensorView> outputs, runtime::RunStats& stats,
             runtime::StepTimes times) override;
  int64_t memory_bytes() const override { return arena_bytes_; }
  int64_t blocks() const override { return blocks_; }

 private:
  using Views = std::span<const runtime::TensorView>;

  Status fill_parameters();
  // The maps of a step whose buffers' addresses are known.
  Status encode_maps(const BoundLaunch& step);
  Status build_graph();
  // Puts all of a run's work into the stream.
  Status submit(Views inputs, Views outputs, runtime::RunStats& stats, runtime::StepTimes times);
  Status send_inputs(Views inputs, runtime::RunStats& stats);
  Status fetch_outputs(Views outputs, runtime::RunStats& stats);
  // Sets the addresses of the caller's tensors; the graph follows where they moved.
  Status place_tensors(Views inputs, Views outputs);
  // One step after the other, as copies to the shelf and runs with times need it.
  Status launch_steps(bool times, runtime::RunStats& stats);
  Status copy(const runtime::Copy& copy, runtime::RunStats& stats);
  Result<std::vector<int64_t>> step_times() const;
  // The numbers that a run-time check looked at; false when they cannot be had.
  bool read_checked(size_t step, size_t buffer, const Fault& fault,
                    std::vector<std::byte>& numbers);
  // What the fault word says; `step` becomes the one that failed.
  Status fault_status(uint32_t word, size_t& step);

  bool is_there(const runtime::TensorView& view) const;
  // Where kernels find a tensor: in its own memory, or in the passage.
  uint64_t address_of(const runtime::TensorView& view, size_t tensor) const;
  uint64_t passage_of(size_t tensor) const {
    return passage_.get() + engine_.layout.tensors[tensor];
  }
  std::byte* pinned(size_t offset) const { return static_cast<std::byte*>(pinned_.get()) + offset; }
  std::span<const uint64_t> parameters_of(const BoundLaunch& step) const {
    return std::span(parameters_).subspan(step.first, step.count + step.maps.size() * kMapWords);
  }

  const CudaEngine& engine_;
  DeviceMemory arena_;
  DeviceMemory passage_;
  PinnedMemory pinned_;
  PinnedMemory shelf_;  // where values of the arena wait on the host
  Stream stream_;
  std::optional<LaunchGraph> graph_;
  std::vector<uint64_t> parameters_;  // of all steps, one behind the other
  std::vector<bool> moved_;           // by step: the graph has other parameters
  std::vector<Event> events_;         // of a run with times: before the first step, after each
  int64_t arena_bytes_ = 0;
  int64_t blocks_ = 0;
};

}  // namespace pyc::cuda

#pragma once

// Programs on the GPU. An engine has the code and the parameters on the device, a lane an arena, a
// stream, the run's launches as a graph, and a block through which the caller's host tensors pass:
//
//   pinned host memory   [ input 0 | input 1 | … | output 0 | … | fault word ]
//   device memory        [ input 0 | input 1 | … | output 0 | … ]
//
// so that a run of host tensors is one copy to the device, one graph, one copy back and one wait.
// Tensors on the device are taken where they lie, and a run of them is the graph and the wait; the
// launches that name them are changed when they move. Kernels reach the fault word where it is:
// only a check that fails pays for the way. Where values of the arena wait on the host
// (Where::kShelf) the steps are started one by one, copies among them.

#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/gpu.h"
#include "backends/cuda/launch.h"
#include "runtime/engine.h"

namespace pyc::cuda {

// A step as it is launched; its parameters stand in a lane's list from `first` on.
struct BoundLaunch {
  FunctionHandle function = nullptr;  // null: nothing is started
  LaunchShape shape;
  size_t first = 0;
  size_t count = 0;
  size_t node = 0;                   // among the launches of the graph
  std::vector<TensorMap> maps = {};  // kMapWords each, behind those
};

// A parameter that is an address in a tensor of the caller's.
struct TensorSlot {
  size_t step = 0;
  size_t position = 0;  // in a lane's list
  size_t tensor = 0;    // inputs, then outputs
  uint64_t offset = 0;
};

// Where the caller's tensors pass through, in bytes from the begin of the block.
struct PassageLayout {
  std::vector<size_t> tensors;  // inputs, then outputs
  size_t bytes = 0;             // of both blocks
  size_t fault = 0;             // behind them, in pinned memory
  size_t pinned_bytes = 0;
};

class CudaEngine final : public runtime::Engine {
 public:
  CudaEngine(std::shared_ptr<const runtime::Program> program, std::shared_ptr<Gpu> gpu);

  int64_t parallel(size_t step) const override { return steps[step].shape.blocks; }
  std::optional<runtime::DeviceId> device() const override {
    return runtime::DeviceId{runtime::DeviceId::kCuda, gpu_->device->ordinal()};
  }
  Result<std::unique_ptr<runtime::Lane>> make_lane(
      ThreadPool& threads, std::span<std::byte* const> states) const override;

  const Gpu& gpu() const { return *gpu_; }
  // The next of the program's steps.
  void bind(FunctionHandle function, const Launch& launch, const runtime::Kernel& kernel);

  std::vector<BoundLaunch> steps;
  std::vector<TensorSlot> slots;
  size_t parameter_count = 0;  // of all steps
  size_t launches = 0;
  PassageLayout layout;

 private:
  std::shared_ptr<Gpu> gpu_;  // outlives what follows

 public:
  std::vector<std::unique_ptr<const Module>> modules;
  std::vector<SharedMemory> parameters;
};

}  // namespace pyc::cuda

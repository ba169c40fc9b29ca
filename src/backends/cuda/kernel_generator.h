#pragma once

// What computes groups on a GPU. A generator offers candidates, each with the text it would be made
// of; the chosen text is compiled as it is.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/kernel_text.h"

namespace pyc::cuda {

// How one group is computed: kernels that run in order, each a unit of its own, so that equal ones
// of any program are compiled once.
struct CudaPlan final : backends::KernelPlan {
  struct Part {
    KernelText kernel;
    std::vector<backends::Operand> operands;  // of kernel.buffers, in that order
    std::string launch;
  };
  std::vector<Part> parts;
  // Makes the constants that the parts read packed, in the order of the candidate's needs.
  using Packer = std::function<Result<runtime::Parameter>(const ir::Graph&, const lower::Group&)>;
  std::vector<Packer> packers;
};

class KernelGenerator {
 public:
  virtual ~KernelGenerator() = default;
  // Whether it would compute groups in this order with instructions that sm_90a alone has.
  virtual bool is_for_unit(std::string_view) const { return false; }
  // What it has for the group; empty where it is for another kind of group altogether. The plans
  // are CudaPlans.
  virtual std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                                      const lower::Group& group) const = 0;
};

// All of them; the last has something for every group.
std::span<const KernelGenerator* const> kernel_generators();

// The one name of a unit's kernel.
inline constexpr const char* kUnitSymbol = "pyc_kernel";

// By buffer of the group's kernel: whether it begins where no access of 16 bytes may.
std::vector<bool> unaligned_buffers(const lower::Group& group);

// What a text needs to be a part: its operands and its launch, from the kernel it was made of.
CudaPlan::Part make_part(KernelText text, const loop::Kernel& kernel, const lower::Group& group);

// Rough rates of the device, for estimates only.
inline constexpr int64_t kMultiprocessors = 132;
inline constexpr double kLaunchNs = 750.0;
inline constexpr double kDeviceBytesPerNs = 3000.0;
inline constexpr double kGenericFlopsPerNs = 2000.0;
inline constexpr double kTermNs = 80.0;  // of a product in the generic forms

}  // namespace pyc::cuda

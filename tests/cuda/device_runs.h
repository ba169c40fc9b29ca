#pragma once

// Op cases through kernel text on a device, real or fake, compared bit by bit with the interpreter.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/kernel_text.h"
#include "backends/cuda/nvrtc.h"
#include "cuda/case_runs.h"

namespace pyc::test {

// The kernels of many cases, equal ones once, in units.
class KernelSet {
 public:
  // The kernels of a group, which run in order; their symbols begin with the one given.
  using TextsOf =
      std::function<Result<std::vector<cuda::KernelText>>(const lower::Group&, const std::string&)>;
  static Result<KernelSet> make(const std::vector<CaseRun>& runs, const TextsOf& texts_of,
                                size_t of_unit);
  static Result<KernelSet> make(const std::vector<CaseRun>& runs, cuda::KernelForm form,
                                size_t of_unit);
  // Units to images, on so many threads. `slowest_ms` is that of one unit.
  Status compile(const cuda::Nvrtc& nvrtc, const std::string& architecture, int threads);

  const std::vector<cuda::KernelText>& texts(const loop::Kernel& kernel) const;
  size_t size() const { return kernels_.size(); }
  const std::vector<std::string>& images() const { return images_; }
  size_t unit_of(const cuda::KernelText& text) const { return units_.at(text.symbol); }
  std::map<std::string, int> count_by_form() const;
  std::string unit_source(size_t unit) const;
  size_t unit_count() const { return members_.size(); }

 private:
  std::map<std::string, std::vector<cuda::KernelText>> kernels_;  // by Loop IR text
  std::map<std::string, size_t> units_;                           // by symbol
  std::vector<std::vector<const cuda::KernelText*>> members_;
  std::vector<std::string> images_;
};

class CaseRunner {
 public:
  static Result<CaseRunner> make(const cuda::DevicePtr& device, const KernelSet& kernels);
  // "" if all outputs have the interpreter's bits, else the first difference; an error when a call
  // of the driver failed.
  Result<std::string> run(const CaseRun& c);

 private:
  Result<std::map<ir::ValueId, cuda::DeviceMemory>> upload(const CaseRun& c);
  Result<cuda::FunctionHandle> function_of(const cuda::KernelText& text);
  Status launch_group(const CaseRun& c, size_t group, uint64_t fault,
                      const std::map<ir::ValueId, cuda::DeviceMemory>& memory,
                      std::vector<cuda::DeviceMemory>& workspaces);

  cuda::DevicePtr device_;
  const KernelSet* kernels_ = nullptr;
  cuda::Stream stream_;
  std::vector<cuda::Module> modules_;
  std::map<std::string, cuda::FunctionHandle> functions_;
};

}  // namespace pyc::test

#pragma once

// The engine of the host: kernels are functions (base/kernel_abi.h) that a pool's threads call over
// memory of this process. Backends whose code is such functions say how an object becomes one.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_abi.h"
#include "runtime/engine.h"

namespace pyc::runtime {

struct HostFunction {
  pyc_kernel_fn fn = nullptr;
  const void* self = nullptr;  // goes into pyc_kernel_args::self
};

// An object that can be called, as long as this lives.
class HostCode {
 public:
  virtual ~HostCode() = default;
  // The function of that name; its fn is null when there is none.
  virtual HostFunction find(std::string_view symbol) const = 0;
  // That the step's buffers are what the function takes, where the object tells.
  virtual Status check(const Program&, const Step&) const { return {}; }
};

class HostLoader : public Loader {
 public:
  Result<std::shared_ptr<const Engine>> load(std::shared_ptr<const Program> program,
                                             uint32_t place) const final;

 private:
  // Called once per object, however many kernels and programs share it.
  virtual Result<std::unique_ptr<const HostCode>> load_object(const std::string& object) const = 0;
  Result<std::shared_ptr<const HostCode>> load_shared(
      const std::shared_ptr<const std::string>& object) const;

  struct Loaded {
    std::weak_ptr<const std::string> object;
    std::weak_ptr<const HostCode> code;
  };
  mutable std::mutex mutex_;  // guards what is below
  mutable std::map<const std::string*, Loaded> loaded_;
};

// Kernel::launch of a function over so many parallel points, whose code takes these sizes
// (pyc_kernel_args::dims).
std::string host_launch(int64_t points, std::span<const int64_t> dims = {});
// Reads the points; kParseError when it is cut or the number negative.
Result<int64_t> host_points(std::string_view launch);
// The sizes of a launch whose points could be read.
std::vector<int64_t> host_dims(std::string_view launch);

}  // namespace pyc::runtime

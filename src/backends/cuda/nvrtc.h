#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace pyc::cuda {

struct NvrtcApi;

// NVIDIA's run-time compiler. Compiles on several threads at once.
class Nvrtc {
 public:
  // Loads the library at `path`, or looks for one in the places of nvrtc_places(). kUnsupported
  // with all places and the loader's reasons.
  static Result<std::shared_ptr<const Nvrtc>> load(const std::string& path = "");
  ~Nvrtc();

  const std::string& path() const { return path_; }        // as it was asked for
  const std::string& version() const { return version_; }  // "13.0"

  // Text to a cubin for an architecture ("sm_90a"), or to PTX. kCompileFailed with the compiler's
  // log.
  Result<std::string> cubin(const std::string& text, const std::string& architecture) const;
  Result<std::string> ptx(const std::string& text, const std::string& architecture) const;

 private:
  Result<std::string> compile(const std::string& text, const std::string& architecture,
                              bool to_ptx) const;
  std::unique_ptr<NvrtcApi> api_;
  std::string path_;
  std::string version_;
};

// Where NVRTC is looked for, in this order: PYC_NVRTC alone if it is set; beside the library or
// program that PyC is in; where the loader looks; the toolkit's folder (CUDA_HOME, CUDA_PATH,
// /usr/local/cuda); the active virtual environment.
std::vector<std::string> nvrtc_places();

}  // namespace pyc::cuda

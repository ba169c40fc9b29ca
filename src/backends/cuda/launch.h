#pragma once

// Kernel::launch of this backend: how a kernel is started and what it does to its buffers. Written
// by the backend, read back by the loader, which believes none of it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device.h"
#include "base/status.h"
#include "runtime/program.h"

namespace pyc::cuda {

struct Launch {
  struct Use {
    int64_t bytes = 0;  // that it reaches from the buffer's begin
    bool written = false;
    bool aligned = true;  // it takes the buffer to begin at a multiple of kBufferAlignment
  };
  LaunchShape shape;            // no blocks: nothing is started
  int64_t workspace_bytes = 0;  // over 0: the last of the step's buffers, behind those of `buffers`
  std::vector<Use> buffers;
  std::vector<TensorMap> maps = {};  // behind all other parameters, as many as `shape` says
};

inline constexpr int64_t kBufferAlignment = 16;
// Behind the buffers' addresses: workspace, fault word and step (kernel_text.h).
inline constexpr size_t kOwnParameters = 3;
inline constexpr uint32_t kNoFault = UINT32_MAX;
// A fault word is step · kFaultsOfStep + code.
inline constexpr uint32_t kFaultsOfStep = 65536;

std::string encode(const Launch& launch);
// kParseError when it is not what encode writes, or no device could start it.
Result<Launch> decode_launch(std::string_view bytes);
// kParseError unless the step's buffers are where the kernel may use them so.
Status check_launch(const Launch& launch, const runtime::Program& program,
                    const runtime::Kernel& kernel);

}  // namespace pyc::cuda

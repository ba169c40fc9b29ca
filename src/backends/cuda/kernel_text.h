#pragma once

// Loop IR as kernel text. Four forms, tried in this order:
//   flat    one thread for each element of the one vector loop of a point, or for as many elements
//           side by side as 16 bytes have, where they lie so in memory
//   rows    a warp for every 1024 elements of a point's row, each element with one thread in all
//           passes, which keeps it in registers
//   team    one warp or block for each point; its vector loops are spread over the threads, trees
//           with the lanes and blocks that docs/NUMERICS.md fixes; the rest every thread computes
//   serial  one thread for each point
// All of them do exactly what loop.h says, so the choice is one of speed.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/dialect.h"
#include "backends/cuda/tensor_map.h"
#include "base/status.h"
#include "loop/loop.h"

namespace pyc::cuda {

struct KernelText {
  std::string symbol;
  std::string form;
  std::string text;  // tables and the kernel, without header and prelude
  // Kernel parameters, 8 bytes each: the addresses of these buffers, then workspace, fault word and
  // step. A failed check stores min(step · 65536 + code) in the word.
  std::vector<uint32_t> buffers;
  uint32_t blocks = 0;  // 0: the kernel has no point; it has no text either and is not launched
  uint32_t threads = 0;
  int64_t workspace_bytes = 0;
  uint32_t shared_bytes = 0;         // besides what the text declares
  std::vector<TensorMap> maps = {};  // parameters behind the step
  std::vector<std::string_view> map_names = {};
};

// kTeam: the team form wherever it is possible, however short its loops are.
enum class KernelForm : uint8_t { kAny, kTeam, kSerial };

// The kernel under a name. Buffers begin at multiples of 16 bytes but for those that `unaligned`
// marks, which may be shorter than the kernel's. kUnsupported with the reason where no form can
// have it.
Result<KernelText> kernel_text(const loop::Kernel& kernel, const std::string& symbol,
                               const Dialect& dialect, KernelForm form = KernelForm::kAny,
                               const std::vector<bool>& unaligned = {});

// What a compiler takes: header, prelude and kernels whose symbols differ. Each begins by waiting
// for the launches before it.
std::string unit_text(const Dialect& dialect, std::span<const KernelText* const> kernels);

}  // namespace pyc::cuda

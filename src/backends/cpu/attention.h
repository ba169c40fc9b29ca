#pragma once

// Attention on the CPU: a task takes some queries of one head through all blocks of keys, with its
// scores and its result on the stack. Products are register tiles (llvm/tile.h) over keys and
// values packed in panels; each row of scores then goes through the group's own formulas. Bits are
// those of the group's kernel: rows never meet, and tiles, packing, lanes and threads do not enter.

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/packing.h"
#include "lower/types.h"

namespace pyc::cpu {

// Of a row that is worked on in one go.
inline constexpr int64_t kAttentionBlock = 128;
// Columns of the result that a task may keep, and steps of a product that are one segment.
inline constexpr int64_t kMostAttentionColumns = 512;
inline constexpr int64_t kMostAttentionDepth = 256;

struct AttentionPlan {
  std::string name;  // "f32_attention__neon_8x8"
  int lanes = 4;
  int rows = 8;  // queries of a task
  int tile_rows = 8;
  int tile_columns = 8;
  int unroll = 4;
  bool a_by_lanes = false;
  int width = 16;         // elements of a row of scores that are worked on at once
  int weights = 16;       // and of a row of weights
  int64_t row_tasks = 1;  // per head
  Packing keys;           // [depth][key]
  // Values as the tiles read them: packed too, or where they lie.
  bool pack_values = true;
  Packing values;               // [key][column]
  int64_t values_offset = 0;    // bytes into the workspace
  int64_t workspace_bytes = 0;  // the packed keys come first

  int64_t tasks(const lower::Attention& a) const { return a.batch_size() * row_tasks; }
};

// "" when the generator can compute the group, else why not.
std::string attention_rejected(const lower::Group& group, const CodegenTarget& target);
// The group must not be rejected. `pack_values` off: values are read where they lie if they can be.
AttentionPlan plan_attention(const lower::Group& group, const CodegenTarget& target,
                             bool pack_values = true);
double attention_cost_ns(const lower::Group& group, const AttentionPlan& plan,
                         const CodegenTarget& target, int threads);

// The buffers of keys and values that only the steps which pack them read.
std::vector<uint32_t> packed_first(const lower::Group& group, const AttentionPlan& plan);

// The last step's operands are the kernel's buffers in their order (the workspace for those that
// are packed first), then the packed keys and, where they are packed, values.
inline uint32_t packed_keys_slot(const lower::Group& group) {
  return static_cast<uint32_t>(group.kernel.buffers.size());
}

}  // namespace pyc::cpu

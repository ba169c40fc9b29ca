#include "backends/cpu/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/kernel_generator.h"
#include "backends/cpu/reads.h"
#include "backends/cpu/registers.h"

namespace pyc::cpu {
namespace {

// Eight vectors of NEON: what exp waits for between its steps (decision 0082).
constexpr int kWeightsAtOnce = 32;
// Queries of a task; fewer where a head has fewer.
constexpr int kMostRows = 8;
// On AVX-512 keys and values come from the second-level cache for each task, so that tasks of more
// queries read less of them. The last task computes some rows again: with many queries that is
// little. Scores and results stay in the first-level cache.
constexpr int kMoreRows = 16;
constexpr int64_t kForMoreRows = 64;
constexpr int kManyRows = 24;
constexpr int64_t kForManyRows = 1024;
constexpr int64_t kManyRowsColumns = 64;
// What a block of values may span to be read where it lies.
constexpr int64_t kNearBytes = 32 << 10;
// What each of its steps takes at least: one query of a few keys is no faster than the loops.
constexpr double kStepNs = 200.0;
// A row's work per score, as so many operations of a product.
constexpr double kFlopsPerScore = 40.0;

Packing packing_of(const AttentionPlan& p, const lower::Attention& a,
                   const lower::Attention::Operand& x) {
  Packing out;
  out.columns = p.tile_columns;
  out.lanes = p.lanes;
  out.base = x.base;
  out.batch = a.batch;
  out.batch_strides = x.batch_strides;
  return out;
}

int rows_of_task(const lower::Attention& a, const CodegenTarget& target) {
  if (!target.avx512 || target.lanes != 16 || a.queries < kForMoreRows) return kMostRows;
  return a.queries >= kForManyRows && a.columns <= kManyRowsColumns ? kManyRows : kMoreRows;
}

bool is_f32(const std::optional<lower::Attention::Operand>& x) {
  return x && x->dtype == DType::kF32;
}

}  // namespace

std::string attention_rejected(const lower::Group& group, const CodegenTarget& target) {
  const lower::Attention& a = *group.attention;
  if (a.dtype != DType::kF32 || !is_f32(a.q) || !is_f32(a.k) || !is_f32(a.v)) {
    return "operands_not_strided_f32";
  }
  if (a.batch_size() <= 0 || a.queries <= 0 || a.keys <= 0 || a.depth <= 0 || a.columns <= 0) {
    return "empty";
  }
  if (a.q->column_stride != 1 && a.depth > 1) return "query_not_contiguous";
  if (a.depth > kMostAttentionDepth) return "depth_over_a_segment";
  if (a.columns > kMostAttentionColumns) return "too_many_columns";
  if (!group.kernel.checks.empty()) return "has_checks";
  if (target.lanes != 4 && target.lanes != 8 && target.lanes != 16) return "lanes_not_supported";
  return "";
}

AttentionPlan plan_attention(const lower::Group& group, const CodegenTarget& target,
                             bool pack_values) {
  const lower::Attention& a = *group.attention;
  const Registers registers = registers_of(target);
  AttentionPlan p;
  p.lanes = target.lanes;
  p.a_by_lanes = target.is_aarch64();
  p.rows = static_cast<int>(std::min<int64_t>(rows_of_task(a, target), a.queries));
  // Eight rows of two vectors take sixteen registers; where there are no more, four at a time.
  const int unit = std::max(registers.native_lanes, p.lanes);
  p.tile_columns = 2 * unit;
  p.tile_rows = registers.count < 32 && p.rows % 4 == 0 ? 4 : p.rows;
  if (registers.count < 32 && p.tile_rows > 6) p.tile_rows = 1;
  if (p.rows > kMostRows) p.tile_rows = p.rows / 2;
  p.width = std::max(16, unit);
  p.weights = p.a_by_lanes || target.avx512 ? std::max(kWeightsAtOnce, unit) : p.width;
  p.row_tasks = (a.queries + p.rows - 1) / p.rows;
  p.name = fmt::format("f32_attention__{}_{}x{}", registers.isa, p.rows, p.tile_columns);
  if (p.lanes != registers.native_lanes) p.name += fmt::format("_l{}", p.lanes);

  p.keys = packing_of(p, a, *a.k);
  p.keys.n = a.keys;
  p.keys.k = a.depth;
  p.keys.row_stride = a.k->row_stride;
  p.keys.k_stride = a.k->column_stride;
  p.workspace_bytes = (p.keys.bytes() + 63) / 64 * 64;

  p.values = packing_of(p, a, *a.v);
  p.values.n = a.columns;
  p.values.k = a.keys;
  p.values.row_stride = a.v->column_stride;
  p.values.k_stride = a.v->row_stride;
  const bool readable = a.v->column_stride == 1 && a.columns % p.tile_columns == 0;
  const bool near = a.block * a.v->row_stride * 4 <= kNearBytes || a.queries <= p.rows;
  p.pack_values = !readable || (pack_values && !near);
  if (p.pack_values) {
    p.values_offset = p.workspace_bytes;
    p.workspace_bytes += p.values.bytes();
  }
  return p;
}

std::vector<uint32_t> packed_first(const lower::Group& group, const AttentionPlan& plan) {
  const lower::Attention& a = *group.attention;
  const auto is_read = [&](uint32_t buffer) {
    Reads reads(group.kernel.pool, buffer);
    const bool by_outputs = std::ranges::any_of(
        a.outputs, [&](const lower::Attention::Output& o) { return reads.in(o.value); });
    return by_outputs || reads.in(a.score) || reads.in(a.weight) || reads.in(a.factor) ||
           reads.in(a.result) || a.q->buffer == buffer ||
           (!plan.pack_values && a.v->buffer == buffer);
  };
  std::vector<uint32_t> out;
  if (!is_read(a.k->buffer)) out.push_back(a.k->buffer);
  if (plan.pack_values && a.v->buffer != a.k->buffer && !is_read(a.v->buffer)) {
    out.push_back(a.v->buffer);
  }
  return out;
}

double attention_cost_ns(const lower::Group& group, const AttentionPlan& plan,
                         const CodegenTarget& target, int threads) {
  const lower::Attention& a = *group.attention;
  const double scores = static_cast<double>(a.batch_size()) *
                        static_cast<double>(plan.row_tasks * plan.rows) *
                        static_cast<double>(a.keys);
  const double flops = scores * (2.0 * static_cast<double>(a.depth + a.columns) + kFlopsPerScore);
  const double bytes = static_cast<double>(group.bytes + 2 * plan.workspace_bytes);
  const int64_t tasks_of_a_thread = (plan.tasks(a) + threads - 1) / threads;
  const double rounds = static_cast<double>(tasks_of_a_thread) / static_cast<double>(plan.tasks(a));
  return std::max(flops * rounds / tile_flops_per_ns(target), bytes / (kBytesPerNs * threads)) +
         3 * (kStepNs + step_overhead_ns(plan.tasks(a), threads));
}

}  // namespace pyc::cpu

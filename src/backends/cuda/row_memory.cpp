// Rows of clusters beyond registers: what waits in shared memory, and what is read before its turn.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"

namespace pyc::cuda {

using loop::Affine;
using loop::ExprId;

namespace {

// Of the rows that are on the device together, the part after which the one comes that is fetched
// ahead; where a row is made of two, half as far, since the cache would forget the first ones.
constexpr int64_t kShareAhead = 4;
// The multiprocessors are in groups of 16 or 18 of which a cluster has one, and one smaller group.
constexpr int64_t kWholeGroups = 7;

}  // namespace

// Clusters on the device, each block alone on its multiprocessor.
int64_t RowEmitter::clusters_at_once() const {
  if (together_ > kClusterOfGroup / 2) return kWholeGroups;
  return std::max<int64_t>(kMultiprocessors / together_ - 1, 1);
}

// A thread's own pairs of a row in shared memory: the array's name is that of a pointer to pairs.
std::string RowEmitter::share(DType t, const std::string& name) {
  if (shared_bytes_ == 0) head_ += "PYC_SHARED_MORE\n";
  head_ +=
      fmt::format("PYC_NEAR {0} (*const {1})[{2}] = (PYC_NEAR {0} (*)[{2}])(pyc_shared + {3});\n",
                  memory_type(t), name, kPair, shared_bytes_);
  shared_bytes_ += bytes_of_block(t);
  return name;
}

std::string RowEmitter::own_pair(const std::string& array) const {
  const std::string round = blocks_of_warp() > 1 ? fmt::format("(q * {} + k)", rounds_) : "k";
  return fmt::format("{}[{} * {} + {}]", array, round, team_warps() * dialect_.warp, thread());
}

// What the head declares for gates and parts.
int64_t RowEmitter::told_shared(int64_t teams) const {
  int64_t bytes = 0;
  for (const loop::Loop& l : passes_) bytes += 2 * told_bytes(l.reductions) + 64;
  return bytes * teams;
}

// What all rows read alike stays in shared memory, as much of it as all blocks that are to be
// beside each other have room for.
void RowEmitter::hold_weights() {
  const int64_t room = kSharedOfAll / resident() - kSharedOfBlock - told_shared(teams());
  for (const loop::Loop& l : passes_) {
    each_row_load(l, [&](ExprId, const RowLoad& load) {
      const int64_t bytes = bytes_of_block(load.dtype);
      if (!load.base.terms.empty() || passes_with_[load.key()] > 1 || held_.contains(load.key()) ||
          !lies_in_pairs(load.buffer, load.base) || shared_bytes_ + bytes > room) {
        return;
      }
      const std::string name = share(load.dtype, fmt::format("w{}", held_.size()));
      const std::string from = fmt::format("{} + {} + first + k * {}", buffer_name(load.buffer),
                                           load.base.constant, dialect_.warp * kPair);
      const std::string fill = fmt::format(
          "{0}{1}{2}*(PYC_NEAR pyc_v{3}*){4} = *(PYC_GLOBAL const pyc_v{3}*)({5});\n}}\n",
          round_head("0", rounds_), brought_ ? fmt::format("if (k % {} == team) ", teams()) : "",
          in_range(), kPair * dtype_size(load.dtype), own_pair(name), from);
      once_ += blocks_of_warp() > 1 ? each_block(fill) : fill;
      held_[load.key()] = name;
    });
  }
  if (brought_ && !held_.empty()) once_ += "pyc_barrier();\n";
}

// Whether the last pass can read the row of the next point where this one's was.
bool RowEmitter::is_refilled(const RowLoad& load) const {
  return in_turns_ && is_whole_ && is_row_by_row(load.base) &&
         lies_in_pairs(load.buffer, load.base);
}

std::string RowEmitter::of_point(const RowLoad& load, const std::string& point) const {
  return fmt::format("*(PYC_GLOBAL const pyc_v{}*)({} + (i64){} * {} + first + k * {})",
                     kPair * dtype_size(load.dtype), buffer_name(load.buffer), point, extent_,
                     dialect_.warp * kPair);
}

std::string RowEmitter::refills() {
  std::string text;
  for (const auto& [key, load] : refilled_) {
    // Not what it was where there is no next row, so that the compiler need not keep that.
    text += fmt::format(
        "{{\npyc_v{0} row = {{}};\nif (next < {1}) row = {2};\n*(pyc_v{0}*){3}[k] = row;\n}}\n",
        kPair * dtype_size(load.dtype), kernel_.parallel_size(), of_point(load, "next"),
        kept_[key]);
  }
  return text;
}

// Whether the row of the next point begins where this one ends.
bool RowEmitter::is_row_by_row(const Affine& base) const {
  int64_t step = extent_;
  size_t terms = 0;
  for (auto v = kernel_.parallel.rbegin(); v != kernel_.parallel.rend(); ++v) {
    const int64_t count = pool_.var_info(*v).extent;
    if (count > 1 && base.coefficient(pool_.var(*v)) != step) return false;
    terms += count > 1 ? 1 : 0;
    step *= count;
  }
  return base.terms.size() == terms && base.constant == 0;
}

// A cluster's blocks wait for each other and compute at the same time, and while they do, memory
// would rest: so each of them has the cache read its part of a row that is soon begun.
void RowEmitter::fetch_ahead(const loop::Loop& l) {
  if (together_ == 1 || !is_whole_ || brought_) return;
  if (l.var != passes_[in_turns_ && passes_.size() > 1 ? 1 : 0].var) return;
  std::map<Key, RowLoad> rows;
  each_row_load(passes_[0], [&](ExprId, const RowLoad& load) {
    if (extent_ * dtype_size(load.dtype) % 16 == 0 && is_row_by_row(load.base) &&
        lies_in_pairs(load.buffer, load.base)) {
      rows[load.key()] = load;
    }
  });
  if (rows.empty()) return;
  const int64_t points = kernel_.parallel_size();
  const int64_t at_once = kMultiprocessors * resident() / together_;
  const int64_t ahead =
      std::max<int64_t>(at_once / (kShareAhead * static_cast<int64_t>(rows.size())), 1);
  // Where a block has its multiprocessor to itself, this is slower but in turns.
  if (!in_turns_ && (resident() == 1 || ahead >= points)) return;
  for (const auto& [key, load] : rows) {
    const std::string from =
        in_turns_ ? fmt::format("{} + (i64)next * {} + first", buffer_name(load.buffer), extent_)
                  : fmt::format("{} + {}ll", pointer(load.buffer, load.base), ahead * extent_);
    line(fmt::format("if (pyc_thread() == 0 && {} < {}) pyc_fetch_ahead({}, {}u);",
                     in_turns_ ? "next" : "point", in_turns_ ? points : points - ahead, from,
                     block_warps_ * loop::kTreeBlock * dtype_size(load.dtype)));
  }
}

}  // namespace pyc::cuda

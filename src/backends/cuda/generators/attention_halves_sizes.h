#pragma once

// Sizes of an attention of halves on the matrix unit, and what its scores are made of.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/generators/attention_halves_text.h"
#include "backends/cuda/generators/wgmma_text.h"
#include "base/convert.h"
#include "loop/loop.h"
#include "loop/walk.h"

namespace pyc::cuda {

// Why there is no such kernel for a group with an attention; "" if there is.
std::string attention_halves_obstacle(const lower::Group& group);

inline constexpr int64_t kGroupThreads = 128;
inline constexpr int64_t kPart = 64;  // of depth or columns: 128 bytes, as wide as the swizzle
inline constexpr int64_t kPartBytes = 128;  // of a row
inline constexpr int64_t kUnitTerms = 16;   // that one instruction multiplies
inline constexpr int64_t kSharedOfOne = 227 << 10;
inline constexpr int64_t kSharedTaken = 1 << 10;
inline constexpr int64_t kRegistersOfOne = 1 << 16;
inline constexpr int64_t kFewRegisters = 40;    // of a thread, besides scores, weights and sums
inline constexpr int64_t kFewerRegisters = 32;  // of one that copies nothing

inline int64_t up_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Sizes of the kernel; what is beyond the attention's own is zero and changes no bit: a block of
// the unit whose products are all zero leaves its sum as it is.
struct AttentionSizes {
  AttentionSizes(const lower::Attention& a, const AttentionCut& cut)
      : rows(cut.rows()),
        copies_apart(cut.groups > 1 || cut.apart),
        threads((cut.groups + (copies_apart ? 1 : 0)) * kGroupThreads),
        keys(up_to(a.block, kUnitTerms)),
        depth(up_to(a.depth, kPart)),
        columns(up_to(a.columns, kPart)),
        stages(mixes(cut)     ? 5
               : copies_apart ? 3
                              : 2),
        turns(cut.turns),
        mixed(mixes(cut)) {}

  // Three groups in turns take tiles of 64 queries, which may be of two heads.
  static bool mixes(const AttentionCut& cut) { return cut.groups == 3 && cut.turns > 1; }

  int64_t tile_rows() const { return mixed ? kGroupRows : rows; }
  // In turns, the next tile's queries are there before the last product with this one's.
  int64_t query_slots() const { return turns > 1 ? 2 : 1; }
  int64_t query_bytes() const { return query_slots() * rows * depth * 2; }
  int64_t key_bytes() const { return keys * depth * 2; }
  int64_t value_bytes() const { return keys * columns * 2; }
  int64_t keys_at() const { return query_bytes(); }
  int64_t values_at() const { return keys_at() + stages * key_bytes(); }
  // Of values one less, where that makes room for the next tile's queries.
  int64_t value_stages() const {
    return values_at() + stages * value_bytes() + kSharedTaken + 512 <= kSharedOfOne ? stages
                                                                                     : stages - 1;
  }
  // Gates: stages full and stages free, of keys and of values.
  int64_t gates_at() const { return values_at() + value_stages() * value_bytes(); }
  // And each group's queries free.
  int64_t shared_bytes() const {
    return gates_at() + (2 * (stages + value_stages()) + query_slots() * rows / kGroupRows) * 8;
  }
  int64_t registers() const {
    return keys * 3 / 4 + columns / 2 + (copies_apart ? kFewerRegisters : kFewRegisters);
  }
  bool moves_registers() const { return rows > kGroupRows; }
  // What a group that copies leaves to the others, in a block that has the multiprocessor to
  // itself: all are begun with as many.
  int64_t registers_begun() const { return kRegistersOfOne / threads / 8 * 8; }
  int64_t registers_to_copy() const { return rows == 2 * kGroupRows ? 24 : 32; }
  int64_t registers_to_compute() const {
    const int64_t groups = rows / kGroupRows;
    return ((groups + 1) * registers_begun() - registers_to_copy()) / groups / 8 * 8;
  }

  int64_t rows;
  bool copies_apart;  // by a group of their own
  int64_t threads;
  int64_t keys;
  int64_t depth;
  int64_t columns;
  int64_t stages;  // of keys, and of values; one more where groups would else wait for each other
  int64_t turns;
  bool mixed;
};

inline constexpr int64_t kMixedGroups = 3;

// All that the expressions are made of.
inline std::vector<loop::ExprId> reached(const loop::Pool& pool,
                                         const std::vector<loop::ExprId>& from) {
  std::vector<loop::ExprId> all;
  loop::Walk walk(pool);
  for (const loop::ExprId e : from) {
    walk(e, [&](loop::ExprId id, const loop::ExprNode&) { all.push_back(id); });
  }
  return all;
}

// What they read.
inline std::vector<loop::ExprId> loads_of(const loop::Pool& pool,
                                          const std::vector<loop::ExprId>& from) {
  std::vector<loop::ExprId> all = reached(pool, from);
  std::erase_if(all, [&](loop::ExprId e) { return pool.node(e).op != loop::Op::kLoad; });
  return all;
}

// Whether where it is read depends on the variable.
inline bool is_read_by(const loop::Pool& pool, loop::ExprId load, loop::VarId v) {
  return v != loop::kNone && loop::depends_on(pool, pool.node(load).a, v);
}

// The constant a product is multiplied with to become a score; 0 if that is not all.
inline double factor_of(const loop::Pool& pool, loop::ExprId score, loop::VarId product) {
  const auto is_product = [&](loop::ExprId e) {
    return pool.node(e).op == loop::Op::kVar && pool.node(e).imm == product;
  };
  if (is_product(score)) return 1.0;
  const loop::ExprNode& n = pool.node(score);
  if (n.op != loop::Op::kMul || n.dtype != DType::kF32 || !is_product(n.a)) return 0.0;
  const loop::ExprNode& factor = pool.node(n.b);
  return factor.op == loop::Op::kConst ? word_to_double(factor.word, DType::kF32) : 0.0;
}

// A score that is product·scale + something, with a power of two for the scale: rounded once or
// twice it is the same number, if not below 2^−126, where no weight can tell.
struct ScaledSum {
  double scale = 0.0;
  loop::ExprId beside = loop::kNone;  // kNone: it is none
};
inline ScaledSum scaled_sum(const loop::Pool& pool, const lower::Attention& a, loop::ExprId score) {
  const loop::ExprNode& n = pool.node(score);
  // Whoever asks for the largest score gets its bits.
  if (n.op != loop::Op::kAdd || n.dtype != DType::kF32 || a.outputs[1].buffer != loop::kNone) {
    return {};
  }
  for (const auto& [one, other] : {std::pair(n.a, n.b), std::pair(n.b, n.a)}) {
    const double scale = factor_of(pool, one, a.product);
    int exponent = 0;
    if (scale > 0x1p-60 && scale < 1.0 && std::frexp(scale, &exponent) == 0.5) {
      return {scale, other};
    }
  }
  return {};
}

}  // namespace pyc::cuda

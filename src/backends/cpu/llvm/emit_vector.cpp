// Vector loops: bodies of several lanes, then what is left over one element at a time.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "backends/cpu/llvm/kernel_emitter.h"
#include "base/status.h"
#include "loop/function.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;
using loop::kTreeBlock;
using loop::kTreeLanes;
using loop::kTreeSuperBlock;
using loop::ReduceKind;
using loop::Reduction;

namespace {

// What is done by a sequence of bit operations or one element at a time.
constexpr int kSequence = 8;

// Instructions, roughly, that one operation takes per vector.
int cost_of_node(const loop::Pool& pool, const loop::ExprNode& n) {
  switch (n.op) {
    case loop::Op::kCall: {
      int cost = 0;
      loop::each_operation(loop::callee(pool, n), [&](const loop::Pool& p, const auto& operation) {
        cost += cost_of_node(p, operation);
      });
      return cost;
    }
    case loop::Op::kTable:
      return kSequence;
    case loop::Op::kDiv:
    case loop::Op::kRem:
      return is_float(n.dtype) ? 1 : kSequence;
    case loop::Op::kConvert: {
      const DType from = pool.dtype(n.a);
      const bool byte = dtype_size(from) == 1 || dtype_size(n.dtype) == 1;
      const bool wide = dtype_size(from) == 8 || dtype_size(n.dtype) == 8;
      const bool one_float = is_float(from) != is_float(n.dtype);
      const bool narrow = is_narrow_float(from) || is_narrow_float(n.dtype);
      return (one_float && wide) || (narrow && (byte || wide)) ? kSequence : 2;
    }
    default:
      return dtype_size(n.dtype) == 8 ? 2 : 1;
  }
}

// Adds up the cost of the distinct nodes below some expressions that depend on one variable, where
// some comparisons are known.
class NodeCost {
 public:
  NodeCost(const loop::Pool& pool, loop::VarId var, const Zone& zone)
      : pool_(pool),
        var_(var),
        known_(zone.known.begin(), zone.known.end()),
        depends_(pool.size(), kUnknown),
        counted_(pool.size(), false) {}

  void add(ExprId id) {
    if (id == kNone || !depends(id) || counted_[id] || known_.contains(id)) return;
    counted_[id] = true;
    const loop::ExprNode& n = pool_.node(id);
    if (n.op == loop::Op::kLoad && n.b != kNone) {
      if (const std::optional<bool> open = truth(n.b); open == false) return add(n.c);
    }
    if (n.op == loop::Op::kLoad) {
      // The address costs little next to the access.
      cost_ += is_row(n.a) ? 1 : kSequence;
    } else {
      cost_ += cost_of_node(pool_, n);
      add(n.a);
    }
    if (n.op == loop::Op::kLoad && n.b != kNone && truth(n.b)) return;
    add(n.b);
    add(n.c);
  }
  int cost() const { return cost_; }

 private:
  enum Answer : uint8_t { kUnknown, kNo, kYes };

  // Of a comparison, or of several joined by and.
  std::optional<bool> truth(ExprId id) const {
    if (const auto it = known_.find(id); it != known_.end()) return it->second;
    const loop::ExprNode& n = pool_.node(id);
    if (n.op != loop::Op::kAnd) return {};
    const std::optional<bool> a = truth(n.a);
    const std::optional<bool> b = truth(n.b);
    if (a == false || b == false) return false;
    return a && b ? std::optional<bool>(true) : std::nullopt;
  }

  bool depends(ExprId id) {
    if (id == kNone) return false;
    if (depends_[id] == kUnknown) {
      const loop::ExprNode& n = pool_.node(id);
      const bool is_var = n.op == loop::Op::kVar && static_cast<loop::VarId>(n.imm) == var_;
      depends_[id] = is_var || depends(n.a) || depends(n.b) || depends(n.c) ? kYes : kNo;
    }
    return depends_[id] == kYes;
  }

  // Whether neighbouring iterations read neighbouring elements.
  bool is_row(ExprId offset) {
    for (const auto& [atom, coefficient] : loop::affine_of(pool_, offset).terms) {
      if (depends(atom) && (pool_.node(atom).op != loop::Op::kVar || std::abs(coefficient) != 1)) {
        return false;
      }
    }
    return true;
  }

  const loop::Pool& pool_;
  loop::VarId var_;
  std::map<ExprId, bool> known_;
  std::vector<Answer> depends_;
  std::vector<bool> counted_;
  int cost_ = 0;
};

}  // namespace

int KernelEmitter::cost_of(const loop::Loop& l, const Zone& zone) const {
  NodeCost nodes(k_.pool, l.var, zone);
  const std::function<void(const loop::Loop&)> visit = [&](const loop::Loop& part) {
    for (const loop::Stmt& s : part.body) {
      switch (s.kind) {
        case loop::StmtKind::kStore:
          nodes.add(k_.stores[s.index].value);
          break;
        case loop::StmtKind::kCheck:
          nodes.add(k_.checks[s.index].ok);
          break;
        case loop::StmtKind::kLoop:
          visit(k_.loops[s.index]);
          break;
      }
    }
    for (const Reduction& r : part.reductions) {
      for (const ExprId id : {r.value, r.value2, r.guard}) nodes.add(id);
    }
    for (const loop::Carry& c : part.carries) nodes.add(c.next);
  };
  visit(l);
  return nodes.cost();
}

// Measured on Neoverse-V1: a chain of 8 operations 0.39 ns per element with one vector at a time,
// 0.32 with four, 0.28 with eight; exp 1.22, 0.95, 0.91 and, since addends are loaded, 0.82 with
// eight; the gates of an LSTM 11.0, 7.6 with two, 7.1 with four; matrix products in lanes gain up
// to eight. Larger bodies run out of registers and take long to compile.
int KernelEmitter::width_of(const loop::Loop& l, const Zone& zone) const {
  if (interior_ != nullptr) return window_width();
  const TargetTraits& t = ops_.traits();
  const bool many = t.vector_registers >= 32;
  size_t chains = 0;  // reductions of the loops inside
  bool has_loops = false;
  for (const loop::Stmt& s : l.body) {
    if (s.kind != loop::StmtKind::kLoop) continue;
    has_loops = true;
    chains = std::max(chains, k_.loops[s.index].reductions.size());
  }
  const int cost = cost_of(l, zone);
  const int most_of_two = t.aarch64 && !has_loops ? 512 : 128;
  int vectors = cost <= (t.aarch64 ? 32 : 16) ? 8 : cost <= 64 ? 4 : cost <= most_of_two ? 2 : 1;
  if (has_loops && chains > 1) vectors = std::min(vectors, chains > 2 ? 1 : 4);
  if (!many) vectors = std::max(vectors / 2, 1);
  return std::min(t.lanes * vectors, kTreeLanes);
}

// All results of a body are summed at once: eight vectors of them hide the latency of fma, and
// leave registers for what several of them read.
int KernelEmitter::window_width() const {
  const int elements = ops_.traits().avx512 ? 128 : 32;
  int width = std::min(elements, kTreeLanes);
  const int least = bytes_ ? kByteBlock : 4;
  while (width > least && width * interior_->results > elements) width /= 2;
  return width;
}

// All values before the first store, which would make the emitter load again what they share.
void KernelEmitter::interior_body(const loop::Loop& l, bool tap_by_tap) {
  for (const ExprId id : interior_->order) {
    if (tap_by_tap) ex_.eval_wide(id);
  }
  std::vector<Value*> values;
  for (const loop::Stmt& s : l.body) values.push_back(ex_.eval_wide(k_.stores[s.index].value));
  for (size_t i = 0; i < values.size(); ++i) {
    const loop::Store& s = k_.stores[l.body[i].index];
    ex_.store(s.buffer, s.offset, values[i]);
  }
}

std::vector<int> KernelEmitter::widths_of(const loop::Loop& l, std::optional<int64_t> count,
                                          const Zone& zone) const {
  const int lanes = ops_.traits().lanes;
  int widest = width_of(l, zone);
  if (!count) {
    return widest > lanes ? std::vector<int>{widest, lanes, 1} : std::vector<int>{lanes, 1};
  }
  while (widest > *count && widest > 1) widest /= 2;
  // Of a known remainder every power of two is worked off at once, unless that is much code.
  constexpr int kLargeBody = 128;
  const bool large = cost_of(l, zone) > kLargeBody;
  std::vector<int> widths;
  for (int w = widest; w >= 1; w /= 2) {
    if (!large || w == widest || w == lanes || w == 1) widths.push_back(w);
  }
  return widths;
}

// Runs bodies of the given width on the elements that are left, as long as there are enough of
// them; advances `left.begin`. There is one accumulator per reduction, then a bool for each that
// flags_nans.
KernelEmitter::State KernelEmitter::vector_stage(const loop::Loop& l, const Zone& zone,
                                                 Bounds& left, int width,
                                                 const State& accumulators) {
  Value* from = left.begin;
  Value* stop = left.end;
  bool nonempty = left.nonempty && width == 1;
  ex_.here();
  if (left.count) {
    const int64_t whole = *left.count / width * width;
    if (whole == 0) return accumulators;
    nonempty = true;
    if (whole < *left.count) stop = b_.CreateAdd(from, index(whole));
    left.count = *left.count - whole;
  } else if (width > 1) {
    Value* count = b_.CreateSub(left.end, from);
    if (!left.nonempty) count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, index(0));
    stop = b_.CreateAdd(from, b_.CreateAnd(count, index(-width)));
    left.nonempty = false;
  }
  left.begin = stop;
  const int64_t alignment = std::gcd(left.alignment, width);
  const bool is_interior = interior_ != nullptr && &l == &k_.loops[interior_->loop];
  return counted(from, stop, width, nonempty, accumulators, [&](Value* i, const State& state) {
    const State sums = is_interior && takes_byte_sums(alignment) ? byte_sums(i, width) : State{};
    ex_.bind_lanes(l.var, i, 0, width, alignment);
    for (size_t k = 0; k < sums.size(); ++k) ex_.give(interior_->byte_sums[k].total, sums[k]);
    for (const auto& [id, value] : zone.known) ex_.assume(id, value);
    if (is_interior) {
      interior_body(l, sums.empty());
    } else {
      statements(l.body);
    }
    fetch_ahead(l, i, 0, width);
    State next;
    State nans;
    size_t flag = l.reductions.size();
    for (size_t r = 0; r < l.reductions.size(); ++r) {
      const Reduction& red = l.reductions[r];
      if (!flags_nans(red)) {
        next.push_back(take(red, state[r]));
        continue;
      }
      Value* value = ex_.eval_wide(red.value);
      ex_.here();
      next.push_back(join(red, state[r], value));
      nans.push_back(b_.CreateOr(state[flag++], ops_.any_nan(value)));
    }
    next.insert(next.end(), nans.begin(), nans.end());
    return next;
  });
}

// Where a maximum takes three operations, two of them for NaNs, a bool of the loop tells whether
// there was any.
bool KernelEmitter::flags_nans(const Reduction& r) const {
  return ops_.traits().avx512 && type_of(r) == DType::kF32 && r.guard == kNone &&
         (r.op == loop::ReduceOp::kMax || r.op == loop::ReduceOp::kMin);
}

llvm::Value* KernelEmitter::join(const Reduction& r, Value* a, Value* b) {
  if (!flags_nans(r)) return combine(r.op, type_of(r), a, b);
  return ops_.min_max_of_numbers(r.op == loop::ReduceOp::kMax, a, b);
}

// Each zone is a body of its own. Few are worth it always; many where they are small, as the parts
// of a long concatenation, of which each reads one operand.
std::vector<Zone> KernelEmitter::worthwhile_zones(const loop::Loop& l) const {
  constexpr size_t kFew = 6;
  constexpr size_t kMany = 128;
  constexpr int kMostOperations = 2048;
  std::vector<Zone> zones = zones_of(k_, l, any_size() ? kFew : kMany);
  if (zones.size() <= kFew) return zones;
  int operations = 0;
  for (const Zone& zone : zones) operations += cost_of(l, zone);
  return operations <= kMostOperations ? zones : zones_of(k_, l, kFew);
}

void KernelEmitter::vector_loop(const loop::Loop& l) {
  const Bounds all = bounds_of(l);
  const std::vector<Zone> zones = worthwhile_zones(l);
  const size_t reductions = l.reductions.size();
  State totals;
  for (const Zone& zone : zones) {
    Bounds left = all;
    if (zones.size() > 1) {
      ex_.here();
      left.begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, all.begin, number(zone.begin));
      left.end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, all.end, number(zone.end));
      left.alignment = std::gcd(all.alignment, any_size() && zone.begin > 0 ? 1 : zone.begin);
      left.nonempty = l.chunk_var == kNone;
      left.count.reset();
      if (l.chunk_var == kNone && !any_size()) left.count = zone.end - zone.begin;
    }
    std::vector<int> widths = widths_of(l, left.count, zone);
    // Lanes whose guards differ are loaded one by one: better only a few of them.
    if (zone.open_guards) std::erase_if(widths, [&](int w) { return w > ops_.traits().lanes; });
    State accumulators;
    for (const Reduction& r : l.reductions) {
      accumulators.push_back(identity(r.op, type_of(r), widths[0]));
    }
    for (const Reduction& r : l.reductions) {
      if (flags_nans(r)) accumulators.push_back(b_.getFalse());
    }
    for (const int width : widths) {
      ex_.here();
      for (size_t r = 0; r < reductions; ++r) {
        const Reduction& red = l.reductions[r];
        Value*& v = accumulators[r];
        for (int w = ValueOps::width_of(v); w > width; w /= 2) {
          v = join(red, ops_.slice(v, 0, w / 2), ops_.slice(v, w / 2, w / 2));
        }
      }
      accumulators = vector_stage(l, zone, left, width, accumulators);
    }
    ex_.here();
    for (size_t k = 0; k < totals.size(); ++k) {
      accumulators[k] = k < reductions ? join(l.reductions[k], totals[k], accumulators[k])
                                       : b_.CreateOr(totals[k], accumulators[k]);
    }
    totals = accumulators;
  }
  size_t flag = reductions;
  for (size_t r = 0; r < reductions; ++r) {
    if (flags_nans(l.reductions[r])) {
      Value* nan = llvm::ConstantFP::getNaN(totals[r]->getType());
      totals[r] = b_.CreateSelect(totals[flag++], nan, totals[r]);
    }
    ex_.bind(l.reductions[r].result, totals[r]);
  }
}

// The state of a tree loop: per tree reduction its total, per exact one an accumulator of
// kTreeLanes elements, of which a body uses as many as it is wide.
void KernelEmitter::tree_loop(const loop::Loop& l) {
  PYC_CHECK(l.chunk_var == kNone, "a chunked loop with a tree reduction");
  const int lanes = ops_.traits().lanes;
  size_t trees = 0;
  bool has_loops = false;
  for (const Reduction& r : l.reductions) trees += r.kind == ReduceKind::kTree ? 1 : 0;
  for (const loop::Stmt& s : l.body) has_loops |= s.kind == loop::StmtKind::kLoop;
  Tree tree{l, any_size() ? width_of(l) : widths_of(l, l.extent)[0], false, {}, nullptr, nullptr};
  // Values hold the lanes if bodies are short and half of the registers suffice.
  tree.in_registers =
      (any_size() || l.extent >= kTreeLanes) && !has_loops && cost_of(l) <= 12 &&
      kTreeLanes / lanes * static_cast<int>(trees) <= ops_.traits().vector_registers / 2;
  ex_.here();
  tree.extent = number(l.extent);
  tree.main_end = b_.CreateAnd(tree.extent, index(-tree.unit()));
  State state;
  for (const Reduction& r : l.reductions) {
    const DType t = type_of(r);
    const bool is_tree = r.kind == ReduceKind::kTree;
    state.push_back(identity(r.op, t, is_tree ? 1 : tree.width));
    tree.lanes.push_back(is_tree ? ex_.stack_slot(ops_.memory_type(t, 1), kTreeLanes) : nullptr);
  }
  if (l.extent <= kTreeBlock) {
    state = tree_block(tree, index(0), state);
  } else if (l.extent <= kTreeSuperBlock) {
    state = tree_blocks(tree, index(0), tree.extent, state);
  } else {
    state = counted(index(0), tree.extent, kTreeSuperBlock, true, state,
                    [&](Value* base, const State& s) { return tree_super_block(tree, base, s); });
  }
  ex_.here();
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    ex_.bind(r.result, fold(r.op, type_of(r), state[k], 1));
  }
}

}  // namespace pyc::cpu

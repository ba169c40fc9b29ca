// Loops that run one iteration after another, each for one element or for all lanes of a vector
// body around them.

#include <numeric>

#include "backends/cpu/llvm/kernel_emitter.h"
#include "base/status.h"

namespace pyc::cpu {

using loop::kNone;
using loop::kTreeBlock;
using loop::kTreeLanes;
using loop::ReduceKind;
using loop::Reduction;

namespace {

// Iterations after which a reduction joins what it gathered; 0: at the end only.
int64_t period_of(const Reduction& r) {
  if (r.kind == ReduceKind::kTree) return kTreeBlock;
  return r.kind == ReduceKind::kChain ? r.segment : 0;
}

// Whether what is joined goes to a total of its own: a chain's segments, and of a long tree the
// super-blocks.
bool has_total(const loop::Loop& l, const Reduction& r) {
  return r.kind == ReduceKind::kChain ||
         (r.kind == ReduceKind::kTree && l.extent > loop::kTreeSuperBlock);
}

}  // namespace

// The state of a serial loop: a reduction has its accumulator and, where it has_total, that. A
// tree's 64 lanes are in memory, its accumulator is the super-block. Carried values come last.
KernelEmitter::State KernelEmitter::start_serial(Serial& serial) {
  State state;
  for (const Reduction& r : serial.loop.reductions) {
    const DType t = type_of(r);
    llvm::Constant* first = identity(r.op, t, ex_.width());
    state.push_back(first);
    Value* lanes = nullptr;
    if (has_total(serial.loop, r)) state.push_back(first);
    if (r.kind == ReduceKind::kTree) {
      lanes = ex_.stack_slot(ops_.memory_type(t, ex_.width()), kTreeLanes);
      fill_lanes(lanes, t, r.op, ex_.width());
    }
    serial.lanes.push_back(lanes);
  }
  for (const loop::Carry& c : serial.loop.carries) state.push_back(ex_.eval_wide(c.init));
  ex_.here();
  return state;
}

KernelEmitter::State KernelEmitter::step_serial(const Serial& serial, Value* i,
                                                const State& state) {
  const loop::Loop& l = serial.loop;
  ex_.bind(l.var, i);
  const size_t first = state.size() - l.carries.size();
  for (size_t k = 0; k < l.carries.size(); ++k) ex_.bind(l.carries[k].var, state[first + k]);
  statements(l.body);
  State next;
  size_t at = 0;
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    if (r.kind != ReduceKind::kTree) {
      next.push_back(skips_all_lanes(l, r) ? take_if(l, r, i, state[at++]) : take(r, state[at++]));
      if (has_total(l, r)) next.push_back(state[at++]);
      continue;
    }
    const DType t = type_of(r);
    llvm::Type* type = ops_.memory_type(t, ex_.width());
    ex_.here();
    Value* lane = b_.CreateGEP(type, serial.lanes[k], b_.CreateAnd(i, index(kTreeLanes - 1)));
    const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
    Value* old = ops_.from_memory(b_.CreateAlignedLoad(type, lane, align), t);
    Value* sum = take(r, old);
    b_.CreateAlignedStore(ops_.to_memory(sum, t), lane, align);
    next.push_back(state[at++]);
    if (has_total(l, r)) next.push_back(state[at++]);
  }
  for (const loop::Carry& c : l.carries) next.push_back(ex_.eval_wide(c.next));
  return next;
}

// Whether all lanes of a vector body skip a term or none does; then a branch is less work than
// loading and adding what is not taken.
bool KernelEmitter::skips_all_lanes(const loop::Loop& l, const Reduction& r) {
  return r.guard != kNone && l.body.empty() && l.carries.empty() && ex_.width() > 1 &&
         !ex_.is_varying(r.guard) && loop::depends_on(k_.pool, r.guard, l.var);
}

llvm::Value* KernelEmitter::take_if(const loop::Loop& l, const Reduction& r, Value* i,
                                    Value* accumulator) {
  Value* guard = ex_.eval(r.guard);
  return when(guard, {accumulator}, [&](const State& old) {
    ex_.bind(l.var, i);  // bound again: what follows from the guard belongs to this scope
    ex_.assume(r.guard, true);
    return State{take(r, old[0])};
  })[0];
}

// Joins the reductions whose segment or block ends at iteration `at`; all of them at `end`.
KernelEmitter::State KernelEmitter::close_strip(const Serial& serial, int64_t strip, Value* at,
                                                Value* end, State state) {
  const loop::Loop& l = serial.loop;
  size_t s = 0;
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    const DType t = type_of(r);
    const size_t acc = s++;
    if (r.kind == ReduceKind::kExact) continue;
    const size_t total = has_total(l, r) ? s++ : acc;
    // Whether a multiple of `period`, or the end, is reached; null: always.
    const auto due_each = [&](int64_t period) -> Value* {
      if (strip == 0 || period == strip) return nullptr;
      Value* due = b_.CreateICmpEQ(at, end);
      if (period == 0) return due;
      Value* rest = b_.CreateURem(at, index(period));
      return b_.CreateOr(due, b_.CreateICmpEQ(rest, index(0)));
    };
    const auto join_total = [&](Value* due) {
      Value* sum = combine(r.op, t, state[total], state[acc]);
      llvm::Constant* first = identity(r.op, t, ex_.width());
      state[total] = due == nullptr ? sum : b_.CreateSelect(due, sum, state[total]);
      state[acc] = due == nullptr ? first : b_.CreateSelect(due, first, state[acc]);
    };
    ex_.here();
    Value* due = due_each(period_of(r));
    if (r.kind == ReduceKind::kChain) {
      join_total(due);
      continue;
    }
    const auto join = [&](const State& old) {
      const int64_t active = any_size() ? kTreeLanes : std::min<int64_t>(l.extent, kTreeLanes);
      Value* block = join_lanes(serial.lanes[k], t, r.op, ex_.width(), active);
      Value* sum = combine(r.op, t, old[0], block);
      if (any_size() || l.extent > kTreeBlock) fill_lanes(serial.lanes[k], t, r.op, ex_.width());
      return State{sum};
    };
    state[acc] = due == nullptr ? join({state[acc]})[0] : when(due, {state[acc]}, join)[0];
    if (total == acc) continue;
    ex_.here();
    join_total(due_each(loop::kTreeSuperBlock));
  }
  return state;
}

void KernelEmitter::serial_loop(const loop::Loop& l) {
  const Bounds r = bounds_of(l);
  Serial serial{l, {}};
  State state = start_serial(serial);
  int64_t strip = 0;
  for (const Reduction& red : l.reductions) strip = std::gcd(strip, period_of(red));
  const bool aligned = strip == 0 || r.alignment % strip == 0;
  const auto step = [&](Value* i, const State& s) { return step_serial(serial, i, s); };
  if (strip == 0 || (aligned && r.count && *r.count <= strip)) {
    state = counted(r.begin, r.end, 1, r.nonempty, state, step);
    state = close_strip(serial, 0, r.end, r.end, state);
  } else {
    ex_.here();
    Value* first =
        aligned ? r.begin : b_.CreateMul(b_.CreateUDiv(r.begin, index(strip)), index(strip));
    state = counted(first, r.end, strip, r.nonempty, state, [&](Value* begin, const State& s) {
      Value* end = b_.CreateAdd(begin, index(strip));
      if (!aligned || !r.count || *r.count % strip != 0) {
        end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, r.end);
      }
      if (!aligned) begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, r.begin);
      State next = counted(begin, end, 1, aligned || r.nonempty, s, step);
      return close_strip(serial, strip, end, r.end, next);
    });
  }
  size_t s = 0;
  for (const Reduction& red : l.reductions) {
    if (has_total(l, red)) ++s;
    ex_.bind(red.result, state[s++]);
  }
  for (const loop::Carry& c : l.carries) ex_.bind(c.result, state[s++]);
}

void KernelEmitter::fill_lanes(Value* lanes, DType t, loop::ReduceOp op, int width) {
  llvm::Type* type = ops_.memory_type(t, width);
  const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
  Value* first = ops_.to_memory(identity(op, t, width), t);
  counted(index(0), index(kTreeLanes), 1, true, {}, [&](Value* i, const State&) {
    b_.CreateAlignedStore(first, b_.CreateGEP(type, lanes, i), align);
    return State{};
  });
}

// Lanes from `active` on still hold the identity, which changes nothing when added.
llvm::Value* KernelEmitter::join_lanes(Value* lanes, DType t, loop::ReduceOp op, int width,
                                       int64_t active) {
  llvm::Type* type = ops_.memory_type(t, width);
  const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
  const auto load = [&](Value* i) {
    return ops_.from_memory(b_.CreateAlignedLoad(type, b_.CreateGEP(type, lanes, i), align), t);
  };
  for (int64_t half = kTreeLanes / 2; half > 0; half /= 2) {
    const int64_t pairs = std::min(half, active - half);
    if (pairs <= 0) continue;
    active = half;
    counted(index(0), index(pairs), 1, true, {}, [&](Value* i, const State&) {
      Value* sum = combine(op, t, load(i), load(b_.CreateAdd(i, index(half))));
      b_.CreateAlignedStore(ops_.to_memory(sum, t), b_.CreateGEP(type, lanes, i), align);
      return State{};
    });
  }
  ex_.here();
  return load(index(0));
}

}  // namespace pyc::cpu

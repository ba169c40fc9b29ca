// Vector loops with tree reductions: blocks of 1024 elements, 64 lanes that take every 64th
// element, joined by halving. Within a block the lanes are values when bodies are short, memory
// otherwise; the elements after the last multiple of the vector width always go through memory.

#include <algorithm>

#include "backends/cpu/kernel_emitter.h"

namespace pyc::cpu {

using loop::ReduceKind;
using loop::Reduction;

namespace {

constexpr int64_t kTreeBlock = 1024;
constexpr int kTreeLanes = 64;

}  // namespace

KernelEmitter::State KernelEmitter::tree_block(const Tree& tree, Value* base, State state) {
  const loop::Loop& l = tree.loop;
  const int lanes = ops_.traits().lanes;
  const int64_t n = l.extent;
  const bool one_block = n <= kTreeBlock;
  // The main part ends at a multiple of 64 or of the width.
  const int64_t unit = tree.in_registers ? kTreeLanes : int64_t{lanes} * tree.copies;
  const int64_t main_end = n / unit * unit;
  const int64_t last_block = (n - 1) / kTreeBlock * kTreeBlock;
  Value* end = index(main_end);
  if (!one_block) {
    end = b_.CreateAdd(base, index(kTreeBlock));
    if (main_end < last_block + kTreeBlock) {
      end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, index(main_end));
    }
  }
  if (!tree.in_registers) {
    for (size_t k = 0; k < l.reductions.size(); ++k) {
      if (tree.lanes[k] == nullptr) continue;
      const Reduction& r = l.reductions[k];
      const DType t = type_of(r);
      Value* first = ops_.to_memory(identity(r.op, t, lanes), t);
      for (int i = 0; i < std::min<int64_t>(n, kTreeLanes); i += lanes) {
        b_.CreateStore(first, b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[k], index(i)));
      }
    }
  }
  // Values of the block: what tree_main and tree_tail carry is the state and, in registers, the
  // lanes of every tree reduction behind it.
  const size_t carried = state.size();
  if (tree.in_registers) {
    for (const Reduction& r : l.reductions) {
      if (r.kind != ReduceKind::kTree) continue;
      state.insert(state.end(), static_cast<size_t>(kTreeLanes / lanes),
                   identity(r.op, type_of(r), lanes));
    }
  }
  if (main_end > 0) {
    const bool nonempty = main_end > last_block;
    state = tree_main(tree, base, end, nonempty, state);
  }
  if (main_end < n) {
    const auto tail = [&](const State& s) { return tree_tail(tree, s); };
    ex_.here();
    state = one_block ? tail(state)
                      : when(b_.CreateICmpEQ(base, index(last_block)), state, tail);
  }
  // Join.
  ex_.here();
  size_t s = 0;
  size_t at = carried;
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    const DType t = type_of(r);
    if (r.kind != ReduceKind::kTree) {
      s += 2;
      continue;
    }
    State v;
    for (int i = 0; i < std::min<int64_t>(n, kTreeLanes); i += lanes) {
      if (tree.in_registers) {
        v.push_back(state[at++]);
      } else {
        Value* p = b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[k], index(i));
        v.push_back(ops_.from_memory(b_.CreateLoad(ops_.memory_type(t, lanes), p), t));
      }
    }
    // Lanes that no element can reach hold the identity, which changes nothing.
    for (size_t half = static_cast<size_t>(kTreeLanes / lanes / 2); half > 0; half /= 2) {
      for (size_t i = 0; i < half && i + half < v.size(); ++i) {
        v[i] = combine(r.op, t, v[i], v[i + half]);
      }
      v.resize(std::min(v.size(), half));
    }
    state[s] = combine(r.op, t, state[s], fold(r.op, t, v[0], 1));
    ++s;
  }
  state.resize(carried);
  return state;
}

KernelEmitter::State KernelEmitter::tree_main(const Tree& tree, Value* begin, Value* end,
                                              bool nonempty, State state) {
  const loop::Loop& l = tree.loop;
  const int lanes = ops_.traits().lanes;
  if (!tree.in_registers) {
    const int64_t step = int64_t{lanes} * tree.copies;
    return counted(begin, end, step, nonempty, state, [&](Value* i, const State& old) {
      State next = old;
      for (int copy = 0; copy < tree.copies; ++copy) {
        tree_step(tree, i, int64_t{copy} * lanes, lanes, next);
      }
      return next;
    });
  }
  const int groups = kTreeLanes / lanes;
  return counted(begin, end, kTreeLanes, nonempty, state, [&](Value* i, const State& old) {
    State next = old;
    for (int g = 0; g < groups; ++g) {
      nested([&] {
        ex_.bind_lanes(l.var, i, int64_t{g} * lanes, lanes, kTreeLanes);
        statements(l.body);
        size_t s = 0;
        size_t at = 0;
        for (const Reduction& r : l.reductions) at += r.kind == ReduceKind::kTree ? 1 : 2;
        for (const Reduction& r : l.reductions) {
          if (r.kind == ReduceKind::kTree) {
            Value*& lane = next[at + static_cast<size_t>(g)];
            lane = take(r, lane);
            at += static_cast<size_t>(groups);
            s += 1;
          } else {
            next[s] = take(r, next[s]);
            s += 2;
          }
        }
      });
    }
    return next;
  });
}

void KernelEmitter::tree_step(const Tree& tree, Value* i, int64_t offset, int width, State& state) {
  const loop::Loop& l = tree.loop;
  nested([&] {
    ex_.bind_lanes(l.var, i, offset, width, width);
    statements(l.body);
    ex_.here();
    Value* at = b_.CreateAnd(b_.CreateAdd(i, index(offset)), index(kTreeLanes - 1));
    size_t s = 0;
    for (size_t k = 0; k < l.reductions.size(); ++k) {
      const Reduction& r = l.reductions[k];
      if (r.kind != ReduceKind::kTree) {
        const size_t mine = width == 1 ? s + 1 : s;
        state[mine] = take(r, state[mine]);
        s += 2;
        continue;
      }
      const DType t = type_of(r);
      ex_.here();
      llvm::Type* type = ops_.memory_type(t, width);
      Value* p = b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[k], at);
      const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
      Value* old = ops_.from_memory(b_.CreateAlignedLoad(type, p, align), t);
      Value* sum = take(r, old);
      b_.CreateAlignedStore(ops_.to_memory(sum, t), p, align);
      ++s;
    }
  });
}

// The last elements, fewer than 64 (or than a main step), with the lanes in memory.
KernelEmitter::State KernelEmitter::tree_tail(const Tree& tree, State state) {
  const loop::Loop& l = tree.loop;
  const int lanes = ops_.traits().lanes;
  const int64_t unit = tree.in_registers ? kTreeLanes : int64_t{lanes} * tree.copies;
  const int64_t begin = l.extent / unit * unit;
  const int64_t vectors_end = l.extent / lanes * lanes;
  size_t carried = 0;
  for (const Reduction& r : l.reductions) carried += r.kind == ReduceKind::kTree ? 1 : 2;
  // Moves the lanes between values and memory.
  const auto move = [&](bool to_memory) {
    size_t at = carried;
    for (size_t k = 0; tree.in_registers && k < l.reductions.size(); ++k) {
      if (tree.lanes[k] == nullptr) continue;
      const DType t = type_of(l.reductions[k]);
      for (int i = 0; i < kTreeLanes; i += lanes, ++at) {
        if (begin + i >= l.extent) continue;
        Value* p = b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[k], index(i));
        if (to_memory) {
          b_.CreateStore(ops_.to_memory(state[at], t), p);
        } else {
          state[at] = ops_.from_memory(b_.CreateLoad(ops_.memory_type(t, lanes), p), t);
        }
      }
    }
  };
  ex_.here();
  move(true);
  const auto run = [&](int64_t from, int64_t to, int width) {
    if (from >= to) return;
    const State exact(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(carried));
    const State end = counted(index(from), index(to), width, true, exact,
                              [&](Value* i, const State& old) {
                                State next = old;
                                tree_step(tree, i, 0, width, next);
                                return next;
                              });
    std::copy(end.begin(), end.end(), state.begin());
  };
  run(begin, vectors_end, lanes);
  run(vectors_end, l.extent, 1);
  ex_.here();
  move(false);
  return state;
}

}  // namespace pyc::cpu

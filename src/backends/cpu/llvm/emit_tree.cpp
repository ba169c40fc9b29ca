// Vector loops with tree reductions: super-blocks of 1024 blocks of 1024 elements, 64 lanes that
// take every 64th element, joined by halving. Within a block the lanes are values when bodies are
// short, memory otherwise; the elements after the last multiple of the body's width always go
// through memory.

#include <algorithm>

#include "backends/cpu/llvm/kernel_emitter.h"

namespace pyc::cpu {

using loop::kTreeBlock;
using loop::kTreeLanes;
using loop::ReduceKind;
using loop::Reduction;

// Blocks join from the identity, and what they give joins the total.
KernelEmitter::State KernelEmitter::tree_super_block(const Tree& tree, Value* base,
                                                     const State& state) {
  const std::vector<Reduction>& reductions = tree.loop.reductions;
  State inner = state;
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Reduction& r = reductions[k];
    if (r.kind == ReduceKind::kTree) inner[k] = identity(r.op, type_of(r), 1);
  }
  Value* end = b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smin, b_.CreateAdd(base, index(loop::kTreeSuperBlock)), tree.extent);
  inner = tree_blocks(tree, base, end, inner);
  ex_.here();
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Reduction& r = reductions[k];
    if (r.kind == ReduceKind::kTree) inner[k] = combine(r.op, type_of(r), state[k], inner[k]);
  }
  return inner;
}

KernelEmitter::State KernelEmitter::tree_blocks(const Tree& tree, Value* begin, Value* end,
                                                const State& state) {
  return counted(begin, end, kTreeBlock, true, state,
                 [&](Value* base, const State& s) { return tree_block(tree, base, s); });
}

// The state is that of tree_loop; within a block whose lanes are values they follow it, 64/width
// per tree reduction.
KernelEmitter::State KernelEmitter::tree_block(const Tree& tree, Value* base, State state) {
  const loop::Loop& l = tree.loop;
  const int64_t n = l.extent;
  const bool one_block = n <= kTreeBlock;
  const int64_t main_end = n / tree.unit() * tree.unit();
  const int64_t last_block = (n - 1) / kTreeBlock * kTreeBlock;
  const int64_t reached = any_size() ? kTreeLanes : std::min<int64_t>(n, kTreeLanes);
  Value* end = tree.main_end;
  if (!one_block) {
    end = b_.CreateAdd(base, index(kTreeBlock));
    if (any_size() || main_end < last_block + kTreeBlock) {
      end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, tree.main_end);
    }
  }
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    if (r.kind != ReduceKind::kTree) continue;
    llvm::Constant* first = identity(r.op, type_of(r), tree.width);
    for (int i = 0; i < reached; i += tree.width) {
      if (tree.in_registers) {
        state.push_back(first);
      } else {
        store_lanes(tree, k, index(i), first);
      }
    }
  }
  if (any_size() || main_end > 0) {
    state = tree_main(tree, base, end, !any_size() && main_end > last_block, state);
  }
  if (any_size() || main_end < n) {
    const auto tail = [&](const State& s) { return tree_tail(tree, s); };
    ex_.here();
    state = one_block ? tail(state) : when(b_.CreateICmpEQ(base, number(last_block)), state, tail);
  }
  ex_.here();
  size_t at = l.reductions.size();
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    if (r.kind != ReduceKind::kTree) continue;
    const DType t = type_of(r);
    State v;
    for (int i = 0; i < reached; i += tree.width) {
      v.push_back(tree.in_registers ? state[at++] : load_lanes(tree, k, index(i), tree.width));
    }
    // Lanes that no element can reach hold the identity, which changes nothing.
    for (size_t half = static_cast<size_t>(kTreeLanes / tree.width / 2); half > 0; half /= 2) {
      for (size_t i = 0; i < half && i + half < v.size(); ++i) {
        v[i] = combine(r.op, t, v[i], v[i + half]);
      }
      v.resize(std::min(v.size(), half));
    }
    state[k] = combine(r.op, t, state[k], fold(r.op, t, v[0], 1));
  }
  state.resize(l.reductions.size());
  return state;
}

KernelEmitter::State KernelEmitter::tree_main(const Tree& tree, Value* begin, Value* end,
                                              bool nonempty, const State& state) {
  const loop::Loop& l = tree.loop;
  if (!tree.in_registers) {
    return counted(begin, end, tree.width, nonempty, state,
                   [&](Value* i, const State& old) { return tree_step(tree, i, tree.width, old); });
  }
  const auto groups = static_cast<size_t>(kTreeLanes / tree.width);
  return counted(begin, end, kTreeLanes, nonempty, state, [&](Value* i, const State& old) {
    State next = old;
    for (size_t g = 0; g < groups; ++g) {
      ex_.push_scope(ex_.block());
      ex_.bind_lanes(l.var, i, static_cast<int64_t>(g) * tree.width, tree.width, kTreeLanes);
      statements(l.body);
      fetch_ahead(l, i, static_cast<int64_t>(g) * tree.width, tree.width);
      size_t lane = l.reductions.size() + g;
      for (size_t k = 0; k < l.reductions.size(); ++k) {
        const bool is_tree = l.reductions[k].kind == ReduceKind::kTree;
        Value*& accumulator = next[is_tree ? lane : k];
        accumulator = take(l.reductions[k], accumulator);
        if (is_tree) lane += groups;
      }
      llvm::BasicBlock* last = ex_.block();
      ex_.pop_scope();
      ex_.set_block(last);
      ex_.here();
    }
    return next;
  });
}

llvm::Value* KernelEmitter::load_lanes(const Tree& tree, size_t reduction, Value* at, int width) {
  const DType t = type_of(tree.loop.reductions[reduction]);
  Value* p = b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[reduction], at);
  const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
  return ops_.from_memory(b_.CreateAlignedLoad(ops_.memory_type(t, width), p, align), t);
}

void KernelEmitter::store_lanes(const Tree& tree, size_t reduction, Value* at, Value* v) {
  const DType t = type_of(tree.loop.reductions[reduction]);
  Value* p = b_.CreateGEP(ops_.memory_type(t, 1), tree.lanes[reduction], at);
  b_.CreateAlignedStore(ops_.to_memory(v, t), p, llvm::Align(static_cast<uint64_t>(dtype_size(t))));
}

KernelEmitter::State KernelEmitter::tree_step(const Tree& tree, Value* i, int width,
                                              const State& state) {
  const loop::Loop& l = tree.loop;
  ex_.bind_lanes(l.var, i, 0, width, width);
  statements(l.body);
  fetch_ahead(l, i, 0, width);
  ex_.here();
  Value* at = b_.CreateAnd(i, index(kTreeLanes - 1));
  State next = state;
  for (size_t k = 0; k < l.reductions.size(); ++k) {
    const Reduction& r = l.reductions[k];
    if (r.kind == ReduceKind::kExact) {
      next[k] = take(r, state[k]);
      continue;
    }
    ex_.here();
    Value* old = load_lanes(tree, k, at, width);
    store_lanes(tree, k, at, take(r, old));
  }
  return next;
}

// The last elements, fewer than tree.unit(), in narrower and narrower bodies with the lanes in
// memory.
KernelEmitter::State KernelEmitter::tree_tail(const Tree& tree, State state) {
  const loop::Loop& l = tree.loop;
  int64_t left = l.extent % tree.unit();
  const int64_t rest = any_size() ? kTreeLanes : left;
  Value* begin = tree.main_end;
  const size_t reductions = l.reductions.size();
  // Moves the lanes that the rest reaches between values and memory.
  const auto each_lane = [&](const std::function<void(size_t, size_t, Value*)>& move) {
    size_t at = reductions;
    for (size_t k = 0; tree.in_registers && k < reductions; ++k) {
      if (tree.lanes[k] == nullptr) continue;
      for (int i = 0; i < kTreeLanes; i += tree.width, ++at) {
        if (i < rest) move(k, at, index(i));
      }
    }
  };
  ex_.here();
  each_lane([&](size_t k, size_t at, Value* i) { store_lanes(tree, k, i, state[at]); });
  State exact(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(reductions));
  for (int width = tree.width; width >= 1; width /= 2) {
    if (left < width && !any_size()) continue;
    left %= width;
    ex_.here();
    Value* end = any_size() ? b_.CreateAnd(tree.extent, index(-width)) : index(l.extent - left);
    State narrow = exact;
    for (size_t k = 0; k < reductions; ++k) {
      if (tree.lanes[k] == nullptr) {
        narrow[k] = identity(l.reductions[k].op, type_of(l.reductions[k]), width);
      }
    }
    narrow = counted(begin, end, width, !any_size(), narrow,
                     [&](Value* i, const State& old) { return tree_step(tree, i, width, old); });
    ex_.here();
    for (size_t k = 0; k < reductions; ++k) {
      if (tree.lanes[k] != nullptr) continue;
      const Reduction& r = l.reductions[k];
      const DType t = type_of(r);
      Value* one = fold(r.op, t, narrow[k], 1);
      if (tree.width > 1) {
        one = b_.CreateInsertElement(identity(r.op, t, tree.width), one, uint64_t{0});
      }
      exact[k] = combine(r.op, t, exact[k], one);
    }
    begin = end;
  }
  std::copy(exact.begin(), exact.end(), state.begin());
  ex_.here();
  each_lane([&](size_t k, size_t at, Value* i) { state[at] = load_lanes(tree, k, i, tree.width); });
  return state;
}

}  // namespace pyc::cpu

// Kernels that go over a row several times: while the costliest of these loops computes, a row to
// come is fetched into the second-level cache and the output row made writable, so that the others
// find both near. Of two output rows in one point the first is made writable by the loop that
// stores it, a point ahead: so memory is busy in that loop too.

#include <algorithm>

#include "backends/cpu/llvm/kernel_emitter.h"
#include "loop/walk.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kRowsAhead = 2;
// How near: llvm.prefetch's locality.
constexpr uint32_t kFirstLevel = 3;
constexpr uint32_t kSecondLevel = 2;
constexpr int64_t kSmallRow = 1024;  // bytes; shorter ones are best left to the machine

}  // namespace

// A row: elements offset + stride·p + 0, 1, … for the parallel variable's value p.
std::optional<KernelEmitter::Fetch> KernelEmitter::row_of(const loop::Loop& l, uint32_t buffer,
                                                          ExprId offset) const {
  const loop::Affine sum = loop::affine_of(k_.pool, offset);
  if (sum.terms.size() != 2) return std::nullopt;
  Fetch row{nullptr, buffer, 0, 0, sum.constant, false};
  for (const auto& [atom, coefficient] : sum.terms) {
    const loop::ExprNode& n = k_.pool.node(atom);
    if (n.op != loop::Op::kVar) return std::nullopt;
    const auto var = static_cast<loop::VarId>(n.imm);
    if (var == k_.parallel[0]) {
      row.stride = coefficient;
    } else if (var != l.var || coefficient != 1) {
      return std::nullopt;
    }
  }
  const int64_t bytes = l.extent * dtype_size(k_.buffers[buffer].dtype);
  const bool scratch = k_.buffers[buffer].access == loop::Access::kScratch;
  if (row.stride < l.extent || bytes < kSmallRow || scratch) return std::nullopt;
  row.ahead = std::max<int64_t>(kRowsAhead * l.extent / row.stride, 1) * row.stride;
  return row;
}

void KernelEmitter::plan_fetches() {
  if (!ops_.traits().avx512 || k_.parallel.size() != 1) return;
  std::vector<const loop::Loop*> loops;
  for (const loop::Stmt& s : k_.body) {
    if (s.kind != loop::StmtKind::kLoop) continue;
    const loop::Loop& l = k_.loops[s.index];
    if (!l.vector || l.chunk_var != kNone) return;
    loops.push_back(&l);
  }
  if (loops.size() < 2) return;
  const auto cost = [this](const loop::Loop* l) { return l->extent * cost_of(*l); };
  fetching_ = *std::max_element(loops.begin(), loops.end(),
                                [&](const auto* a, const auto* b) { return cost(a) < cost(b); });
  const auto known = [this](const Fetch& row) {
    return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& f) {
      return f.buffer == row.buffer && f.offset == row.offset;
    });
  };
  const auto add_read = [&](std::optional<Fetch> row) {
    if (!row || known(*row)) return;
    row->in = fetching_;
    fetches_.push_back(*row);
  };
  const auto add_write = [&](std::optional<Fetch> row, const loop::Loop* in) {
    if (!row || known(*row)) return;
    row->write = true;
    row->in = fetching_;
    row->ahead = 0;
    // A second row of that buffer: the first one goes elsewhere.
    for (Fetch& f : fetches_) {
      if (f.buffer != row->buffer || in == fetching_) continue;
      f.in = in;
      f.ahead = f.stride;
    }
    fetches_.push_back(*row);
  };
  for (const loop::Loop* l : loops) {
    if (l->extent != fetching_->extent) continue;
    loop::Walk walk(k_.pool);
    const auto loads = [&](ExprId id) {
      walk(id, [&](ExprId, const loop::ExprNode& n) {
        if (n.op == loop::Op::kLoad) add_read(row_of(*l, static_cast<uint32_t>(n.imm), n.a));
      });
    };
    for (const loop::Stmt& s : l->body) {
      if (s.kind != loop::StmtKind::kStore) continue;
      const loop::Store& store = k_.stores[s.index];
      loads(store.value);
      add_write(row_of(*l, store.buffer, store.offset), l);
    }
    for (const loop::Reduction& r : l->reductions) {
      for (const ExprId id : {r.value, r.value2}) loads(id);
    }
  }
}

void KernelEmitter::fetch_ahead(const loop::Loop& l, Value* i, int64_t offset, int width) {
  for (const Fetch& f : fetches_) {
    if (f.in != &l) continue;
    ex_.here();
    const DType t = k_.buffers[f.buffer].dtype;
    const int64_t first = f.offset + offset + f.ahead;
    Value* row = b_.CreateMul(ex_.value_of(k_.parallel[0]), number(f.stride));
    Value* at = b_.CreateAdd(b_.CreateAdd(row, i), number(first));
    Value* p = b_.CreateGEP(ops_.memory_type(t, 1), ex_.buffer(f.buffer), at);
    for (int64_t line = 0; line < width * dtype_size(t); line += kLine) {
      Value* here = b_.CreateConstGEP1_64(b_.getInt8Ty(), p, static_cast<uint64_t>(line));
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {here, b_.getInt32(f.write ? 1 : 0),
                          b_.getInt32(f.write ? kFirstLevel : kSecondLevel), b_.getInt32(1)});
    }
  }
}

}  // namespace pyc::cpu

// Vector loops: bodies of several lanes, then what is left over one element at a time.

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernel_emitter.h"
#include "base/status.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;
using loop::ReduceKind;
using loop::Reduction;

namespace {

constexpr int64_t kTreeBlock = 1024;
constexpr int kTreeLanes = 64;
constexpr int kLargeBody = 1000;

// Counts the distinct nodes below some expressions that depend on one variable.
class NodeCount {
 public:
  NodeCount(const loop::Pool& pool, loop::VarId var)
      : pool_(pool), var_(var), depends_(pool.size(), kUnknown), counted_(pool.size(), false) {}

  void add(ExprId id) {
    if (id == kNone || !depends(id) || counted_[id]) return;
    counted_[id] = true;
    ++count_;
    const loop::ExprNode& n = pool_.node(id);
    // Addresses cost little next to the access.
    if (n.op != loop::Op::kLoad) add(n.a);
    add(n.b);
    add(n.c);
  }
  int count() const { return count_; }

 private:
  enum Answer : uint8_t { kUnknown, kNo, kYes };

  bool depends(ExprId id) {
    if (id == kNone) return false;
    if (depends_[id] == kUnknown) {
      const loop::ExprNode& n = pool_.node(id);
      const bool is_var = n.op == loop::Op::kVar && static_cast<loop::VarId>(n.imm) == var_;
      depends_[id] = is_var || depends(n.a) || depends(n.b) || depends(n.c) ? kYes : kNo;
    }
    return depends_[id] == kYes;
  }

  const loop::Pool& pool_;
  loop::VarId var_;
  std::vector<Answer> depends_;
  std::vector<bool> counted_;
  int count_ = 0;
};

}  // namespace

int KernelEmitter::cost_of(const loop::Loop& l) const {
  NodeCount nodes(k_.pool, l.var);
  for (const loop::Stmt& s : l.body) {
    if (s.kind == loop::StmtKind::kLoop) return kLargeBody;
    const ExprId value =
        s.kind == loop::StmtKind::kStore ? k_.stores[s.index].value : k_.checks[s.index].ok;
    nodes.add(value);
  }
  for (const Reduction& r : l.reductions) {
    for (const ExprId id : {r.value, r.value2, r.guard}) nodes.add(id);
  }
  return nodes.count() + static_cast<int>(l.body.size() + l.reductions.size());
}

// Short bodies are repeated, so that the loop's own instructions and the latency of reductions
// do not show; a body with loops inside is made wider, so that each of its inner iterations has
// several independent chains.
KernelEmitter::Shape KernelEmitter::shape_of(const loop::Loop& l) const {
  const int lanes = ops_.traits().lanes;
  const int cost = cost_of(l);
  if (cost >= kLargeBody) return {std::min(lanes * 4, kTreeLanes), 1};
  if (cost <= 12) return {lanes, 4};
  return {lanes, cost <= 40 ? 2 : 1};
}

// Runs bodies of the given shape on the elements that are left, as long as there are enough of
// them; advances `left.begin`. accumulators[r] has one value per copy.
void KernelEmitter::vector_stage(const loop::Loop& l, Bounds& left, Shape shape,
                                 std::vector<State>& accumulators) {
  const int64_t step = int64_t{shape.width} * shape.copies;
  Value* from = left.begin;
  Value* stop = left.end;
  bool nonempty = left.nonempty && step == 1;
  ex_.here();
  if (left.count) {
    const int64_t whole = *left.count / step * step;
    if (whole == 0) return;
    nonempty = true;
    if (whole < *left.count) stop = b_.CreateAdd(from, index(whole));
    left.count = *left.count - whole;
  } else if (step > 1) {
    Value* count = b_.CreateSub(left.end, from);
    if (!left.nonempty) count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, index(0));
    stop = b_.CreateAdd(from, b_.CreateAnd(count, index(-step)));
    left.nonempty = false;
  }
  left.begin = stop;
  const int64_t alignment = std::gcd(left.alignment, step);
  State init;
  for (const State& a : accumulators) init.insert(init.end(), a.begin(), a.end());
  const State end = counted(from, stop, step, nonempty, init, [&](Value* i, const State& state) {
    State next(state.size());
    for (int copy = 0; copy < shape.copies; ++copy) {
      nested([&] {
        ex_.bind_lanes(l.var, i, int64_t{copy} * shape.width, shape.width, alignment);
        statements(l.body);
        for (size_t r = 0; r < l.reductions.size(); ++r) {
          const size_t at = r * static_cast<size_t>(shape.copies) + static_cast<size_t>(copy);
          next[at] = take(l.reductions[r], state[at]);
        }
      });
    }
    return next;
  });
  size_t at = 0;
  for (State& a : accumulators) {
    for (Value*& v : a) v = end[at++];
  }
}

void KernelEmitter::vector_loop(const loop::Loop& l) {
  Bounds left = bounds_of(l);
  const int lanes = ops_.traits().lanes;
  std::vector<Shape> stages{shape_of(l)};
  if (stages[0].width != lanes || stages[0].copies != 1) stages.push_back({lanes, 1});
  stages.push_back({1, 1});
  std::vector<State> accumulators;
  for (const Reduction& r : l.reductions) {
    accumulators.emplace_back(static_cast<size_t>(stages[0].copies),
                              identity(r.op, type_of(r), stages[0].width));
  }
  for (const Shape& shape : stages) {
    ex_.here();
    for (size_t r = 0; r < l.reductions.size(); ++r) {
      const loop::ReduceOp op = l.reductions[r].op;
      const DType t = type_of(l.reductions[r]);
      State& a = accumulators[r];
      for (; a.size() > static_cast<size_t>(shape.copies); a.pop_back()) {
        a[0] = combine(op, t, a[0], a.back());
      }
      for (Value*& v : a) v = fold(op, t, v, shape.width);
    }
    vector_stage(l, left, shape, accumulators);
  }
  for (size_t r = 0; r < l.reductions.size(); ++r) ex_.bind(l.reductions[r].result, accumulators[r][0]);
}

// The state of a tree loop: per tree reduction its total, per exact one an accumulator of vectors
// and one for single elements.
void KernelEmitter::tree_loop(const loop::Loop& l) {
  PYC_CHECK(l.chunk_var == kNone, "a chunked loop with a tree reduction");
  const int lanes = ops_.traits().lanes;
  const int groups = kTreeLanes / lanes;
  const int cost = cost_of(l);
  int trees = 0;
  for (const Reduction& r : l.reductions) trees += r.kind == ReduceKind::kTree ? 1 : 0;
  Tree tree{l, false, 1, {}};
  tree.in_registers = l.extent >= kTreeLanes && cost <= 12 &&
                      groups * trees <= ops_.traits().vector_registers / 2;
  tree.copies = cost <= 40 ? 4 : 1;
  State state;
  for (const Reduction& r : l.reductions) {
    const DType t = type_of(r);
    const bool is_tree = r.kind == ReduceKind::kTree;
    state.push_back(identity(r.op, t, is_tree ? 1 : lanes));
    if (!is_tree) state.push_back(identity(r.op, t, 1));
    tree.lanes.push_back(is_tree ? ex_.stack_slot(ops_.memory_type(t, 1), kTreeLanes) : nullptr);
  }
  if (l.extent <= kTreeBlock) {
    state = tree_block(tree, index(0), state);
  } else {
    state = counted(index(0), index(l.extent), kTreeBlock, true, state,
                    [&](Value* base, const State& s) { return tree_block(tree, base, s); });
  }
  size_t s = 0;
  ex_.here();
  for (const Reduction& r : l.reductions) {
    Value* result = state[s++];
    if (r.kind == ReduceKind::kExact) {
      result = combine(r.op, type_of(r), fold(r.op, type_of(r), result, 1), state[s++]);
    }
    ex_.bind(r.result, result);
  }
}

}  // namespace pyc::cpu

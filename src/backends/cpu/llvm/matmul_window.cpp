#include "backends/cpu/llvm/matmul_window.h"

#include <algorithm>
#include <optional>

#include "loop/renamed.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::ExprId;
using loop::kNone;
using loop::Op;

constexpr int64_t kMostWindowTerms = 1024;
constexpr size_t kMostCopies = 128;
// Elements that a copy has at most, and at least in the mean.
constexpr int kWidest = 64;
constexpr int64_t kFewest = 3;

// The comparisons that a guard joins by and; false where it is made of something else.
bool comparisons_of(const loop::Pool& pool, ExprId guard, std::vector<ExprId>& out) {
  const loop::ExprNode& n = pool.node(guard);
  if (n.op == Op::kAnd) {
    return comparisons_of(pool, n.a, out) && comparisons_of(pool, n.b, out);
  }
  out.push_back(guard);
  return (n.op == Op::kLt || n.op == Op::kLe) && pool.dtype(n.a) == DType::kI64;
}

// By how much the second of two sums is larger than the first, where that is one number.
std::optional<int64_t> distance(const loop::Affine& from, const loop::Affine& to) {
  if (!std::equal(from.terms.begin(), from.terms.end(), to.terms.begin(), to.terms.end())) {
    return std::nullopt;
  }
  return to.constant - from.constant;
}

}  // namespace

WindowRows::WindowRows(const lower::Contraction& c, ExprId operand, int64_t step,
                       loop::Kernel& kernel) {
  loop::Pool& pool = kernel.pool;
  if (operand == kNone || c.k < 2 || c.k > kMostWindowTerms) return;
  if (pool.node(operand).op != Op::kLoad) return;
  const auto at = [&](ExprId id, int64_t k) {
    loop::Renamed renamed(pool);
    renamed.set_var(c.k_var, pool.integer(k));
    return renamed(id);
  };
  const ExprId offset = pool.node(operand).a;
  const ExprId guard = pool.node(operand).b;
  std::vector<ExprId> comparisons;
  if (guard != kNone && !comparisons_of(pool, guard, comparisons)) return;
  // How far the sides of a comparison are apart.
  const auto margin = [&](ExprId comparison, int64_t k) {
    const loop::ExprNode n = pool.node(comparison);
    return loop::affine_of(pool, pool.binary(Op::kSub, at(n.b, k), at(n.a, k)));
  };
  const loop::Affine first = loop::affine_of(pool, at(offset, 0));
  std::vector<int64_t> offsets;
  for (int64_t k = 0; k < c.k; ++k) {
    const auto d = distance(first, loop::affine_of(pool, at(offset, k)));
    if (!d) return;
    offsets.push_back(*d);
  }
  // A window is inside where its first and last elements are: no other is nearer to an edge.
  for (const ExprId comparison : comparisons) {
    const loop::Affine near = margin(comparison, 0);
    const auto last = distance(near, margin(comparison, c.k - 1));
    if (!last) return;
    for (int64_t k = 1; k < c.k; ++k) {
      const auto d = distance(near, margin(comparison, k));
      if (!d || *d < std::min<int64_t>(0, *last)) return;
    }
  }
  cut_into_copies(offsets, step);
  worthwhile_ =
      copies_.size() <= kMostCopies && kFewest * static_cast<int64_t>(copies_.size()) <= c.k;
  if (!worthwhile_) return;
  buffer_ = static_cast<uint32_t>(pool.node(operand).imm);
  first_ = at(operand, 0);
  if (guard != kNone) inside_ = pool.binary(Op::kAnd, at(guard, 0), at(guard, c.k - 1));
}

// A run is cut into powers of two, the last of which goes over some of the one before again.
void WindowRows::cut_into_copies(const std::vector<int64_t>& offsets, int64_t step) {
  const auto terms = static_cast<int64_t>(offsets.size());
  const auto offset_at = [&](int64_t k) { return offsets[static_cast<size_t>(k)]; };
  for (int64_t begin = 0; begin < terms;) {
    int64_t end = begin + 1;
    while (end < terms && offset_at(end) == offset_at(end - 1) + 1 && end % step != 0) {
      ++end;
    }
    const int64_t length = end - begin;
    int width = kWidest;
    while (width > length) width /= 2;
    for (int64_t k = begin; k < end; k += width) {
      const int64_t from = std::min(k, end - width);
      copies_.push_back({from, offset_at(from), width});
    }
    begin = end;
  }
}

void WindowRows::either(FlowBuilder& flow, ExprEmitter& ex, const std::function<void()>& inside,
                        const std::function<void()>& other) const {
  if (inside_ == kNone) return inside();
  Value* known = ex.eval(inside_);
  ex.here();
  flow.when(
      known, [&] { ex.scoped(inside); }, [&] { ex.scoped(other); });
}

void WindowRows::copy(llvm::IRBuilder<>& b, ExprEmitter& ex,
                      const std::function<void(int64_t k, Value* elements)>& put) const {
  Value* first = ex.place_of(first_);
  ex.here();
  llvm::Type* element = ex.ops().memory_type(ex.kernel().buffers[buffer_].dtype, 1);
  for (const Copy& copy : copies_) {
    // From line to line it is a size.
    Value* from = b.CreateGEP(element, first, ex.number(copy.offset));
    put(copy.k, ex.load_at(buffer_, from, copy.count));
  }
}

}  // namespace pyc::cpu

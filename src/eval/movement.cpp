#include "eval/movement.h"

#include <algorithm>
#include <cstring>

#include "base/convert.h"

namespace pyc::eval {

using loop::Affine;
using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::VarId;

namespace {

// More boxes than this are no simple movement.
constexpr size_t kMostCopies = 4096;

bool is_nan(Word word, DType t) {
  if (t == DType::kF32) return (word & 0x7fffffff) > 0x7f800000;
  const double x = word_to_double(word, t);
  return x != x;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

// Cuts the kernel's points into boxes on which every condition of the stored value is known.
class MovementFinder {
 public:
  explicit MovementFinder(const loop::Kernel& kernel) : kernel_(kernel), pool_(kernel.pool) {}

  std::optional<Movement> run() {
    const loop::Store* store = only_store();
    if (store == nullptr) return std::nullopt;
    out_.target_ = store->buffer;
    out_.dtype_ = kernel_.buffers[store->buffer].dtype;
    // Any byte but 0 is one and the same truth, which a copy would not know.
    if (out_.dtype_ == DType::kBool) return std::nullopt;
    const auto to = offset_of(store->offset);
    if (!to) return std::nullopt;
    to_ = *to;
    if (!resolve(behind_canonical_nan(store->value), box_)) return std::nullopt;
    return std::move(out_);
  }

 private:
  struct Range {  // [lo, hi)
    int64_t lo = 0;
    int64_t hi = 0;
  };
  using Box = std::vector<Range>;  // of each variable

  // An offset as a constant and a stride for each variable of the box.
  struct Offset {
    int64_t constant = 0;
    std::vector<int64_t> strides;
  };

  // The one store that the loops lead to; null if there is more than that. Fills the box.
  const loop::Store* only_store() {
    if (!kernel_.checks.empty() || kernel_.stores.size() != 1) return nullptr;
    const std::vector<loop::Stmt>* body = &kernel_.body;
    std::vector<VarId> chunked;
    std::vector<VarId> inner;
    while (body->size() == 1 && body->front().kind == loop::StmtKind::kLoop) {
      const loop::Loop& l = kernel_.loops[body->front().index];
      if (!l.reductions.empty() || !l.carries.empty() || l.ordered) return nullptr;
      // Its chunks together are the whole of it.
      if (l.chunk_var != kNone) chunked.push_back(l.chunk_var);
      inner.push_back(l.var);
      body = &l.body;
    }
    if (body->size() != 1 || body->front().kind != loop::StmtKind::kStore) return nullptr;
    for (const VarId v : kernel_.parallel) {
      const bool counted = std::find(chunked.begin(), chunked.end(), v) == chunked.end();
      if (counted) add_var(v);
    }
    for (const VarId v : inner) add_var(v);
    return &kernel_.stores.front();
  }

  void add_var(VarId v) {
    vars_.push_back(v);
    box_.push_back({0, pool_.var_info(v).extent});
  }

  std::optional<Offset> offset_of(ExprId id) const {
    const Affine sum = loop::affine_of(pool_, id);
    Offset out{sum.constant, std::vector<int64_t>(vars_.size(), 0)};
    for (const auto& [atom, c] : sum.terms) {
      const ExprNode& n = pool_.node(atom);
      const auto it = n.op == Op::kVar
                          ? std::find(vars_.begin(), vars_.end(), static_cast<VarId>(n.imm))
                          : vars_.end();
      if (it == vars_.end()) return std::nullopt;
      out.strides[static_cast<size_t>(it - vars_.begin())] = c;
    }
    return out;
  }

  // x of select(w != w, NaN, x), where w is x or x made wider.
  ExprId behind_canonical_nan(ExprId id) {
    const ExprNode& n = pool_.node(id);
    if (n.op != Op::kSelect || pool_.node(n.b).op != Op::kConst) return id;
    const ExprNode& condition = pool_.node(n.a);
    if (condition.op != Op::kNe || condition.a != condition.b) return id;
    const ExprNode& wide = pool_.node(condition.a);
    if (condition.a != n.c && (wide.op != Op::kConvert || wide.a != n.c)) return id;
    if (!is_float(out_.dtype_) || !is_nan(pool_.node(n.b).word, out_.dtype_)) return id;
    out_.nan_ = pool_.node(n.b).word;
    return n.c;
  }

  // Adds the copies that make up the value on the box; false where it is no movement.
  bool resolve(ExprId id, const Box& box) {
    if (std::any_of(box.begin(), box.end(), [](const Range& r) { return r.lo >= r.hi; })) {
      return true;
    }
    const ExprNode& n = pool_.node(id);
    if (n.op == Op::kConst) return add_copy(kNone, n.word, Offset{0, no_strides()}, box);
    if (n.op == Op::kSelect) return either(n.a, n.b, n.c, box);
    if (n.op != Op::kLoad) return false;
    if (n.b == kNone) return load(n, box);
    return either(n.b, id, n.c, box);
  }

  bool load(const ExprNode& n, const Box& box) {
    const auto from = offset_of(n.a);
    return from && add_copy(static_cast<uint32_t>(n.imm), 0, *from, box);
  }

  // The value is `yes` where the condition holds; a guarded load stands for its own guard.
  bool either(ExprId condition, ExprId yes, ExprId no, const Box& box) {
    const Truth t = truth(condition, box);
    if (t.known == Truth::Known::kNever) return false;
    if (t.known == Truth::Known::kFalse) return resolve(no, box);
    if (t.known == Truth::Known::kTrue) {
      const ExprNode& n = pool_.node(yes);
      return n.op == Op::kLoad && n.b == condition ? load(n, box) : resolve(yes, box);
    }
    Box low = box;
    Box high = box;
    low[t.var].hi = t.at;
    high[t.var].lo = t.at;
    return either(condition, yes, no, low) && either(condition, yes, no, high);
  }

  struct Truth {
    enum class Known : uint8_t { kTrue, kFalse, kFromCut, kNever } known;
    size_t var = 0;  // kFromCut: known once the box is cut before `at`
    int64_t at = 0;
  };
  using Known = Truth::Known;

  Truth truth(ExprId id, const Box& box) const {
    const ExprNode& n = pool_.node(id);
    switch (n.op) {
      case Op::kConst:
        return {n.word != 0 ? Known::kTrue : Known::kFalse};
      case Op::kNot: {
        Truth t = truth(n.a, box);
        if (t.known == Known::kTrue) return {Known::kFalse};
        if (t.known == Known::kFalse) return {Known::kTrue};
        return t;
      }
      case Op::kAnd:
      case Op::kOr: {
        const Known decides = n.op == Op::kAnd ? Known::kFalse : Known::kTrue;
        const Truth a = truth(n.a, box);
        const Truth b = truth(n.b, box);
        if (a.known == decides || b.known == decides) return {decides};
        const bool a_known = a.known == Known::kTrue || a.known == Known::kFalse;
        return a_known ? b : a;
      }
      case Op::kLt:
        return less(n.a, n.b, 0, box);
      case Op::kLe:
        return less(n.a, n.b, 1, box);
      default:
        return {Known::kNever};
    }
  }

  // Whether a < b + slack.
  Truth less(ExprId a, ExprId b, int64_t slack, const Box& box) const {
    if (pool_.dtype(a) != DType::kI64) return {Known::kNever};
    const auto x = offset_of(a);
    const auto y = offset_of(b);
    if (!x || !y) return {Known::kNever};
    // Whether Σ stride · var + constant < 0.
    const int64_t constant = x->constant - y->constant - slack;
    int64_t least = constant;
    int64_t most = constant;
    std::vector<size_t> moving;
    std::vector<int64_t> strides(vars_.size());
    for (size_t i = 0; i < vars_.size(); ++i) {
      const int64_t s = strides[i] = x->strides[i] - y->strides[i];
      least += std::min(s * box[i].lo, s * (box[i].hi - 1));
      most += std::max(s * box[i].lo, s * (box[i].hi - 1));
      if (s != 0 && box[i].hi - box[i].lo > 1) moving.push_back(i);
    }
    if (most < 0) return {Known::kTrue};
    if (least >= 0) return {Known::kFalse};
    if (moving.size() != 1) return {Known::kNever};
    const size_t v = moving[0];
    int64_t rest = constant;
    for (size_t i = 0; i < vars_.size(); ++i) rest += i == v ? 0 : strides[i] * box[i].lo;
    const int64_t s = strides[v];
    // The first value at which the condition changes.
    const int64_t at = s > 0 ? -floor_quotient(rest, s) : floor_quotient(rest, -s) + 1;
    return {Known::kFromCut, v, at};
  }

  std::vector<int64_t> no_strides() const { return std::vector<int64_t>(vars_.size(), 0); }

  bool add_copy(uint32_t source, Word fill, const Offset& from, const Box& box) {
    if (out_.copies_.size() == kMostCopies) return false;
    Movement::Copy c{source, fill, from.constant, to_.constant, {}};
    for (size_t i = 0; i < vars_.size(); ++i) {
      c.from += from.strides[i] * box[i].lo;
      c.to += to_.strides[i] * box[i].lo;
      c.dims.push_back({box[i].hi - box[i].lo, from.strides[i], to_.strides[i]});
    }
    const auto inside = [&](uint32_t buffer, int64_t first, int64_t Movement::Dim::*stride) {
      int64_t least = first;
      int64_t most = first;
      for (const Movement::Dim& d : c.dims) {
        least += std::min<int64_t>(0, d.*stride * (d.extent - 1));
        most += std::max<int64_t>(0, d.*stride * (d.extent - 1));
      }
      return least >= 0 && most < kernel_.buffers[buffer].elements;
    };
    if (!inside(out_.target_, c.to, &Movement::Dim::to)) return false;
    if (source != kNone) {
      if (kernel_.buffers[source].dtype != out_.dtype_) return false;
      if (!inside(source, c.from, &Movement::Dim::from)) return false;
    }
    out_.copies_.push_back(std::move(c));
    return true;
  }

  const loop::Kernel& kernel_;
  const loop::Pool& pool_;
  std::vector<VarId> vars_;
  Box box_;
  Offset to_;
  Movement out_;
};

std::optional<Movement> Movement::of(const loop::Kernel& kernel) {
  return MovementFinder(kernel).run();
}

namespace {

template <class Element>
void copy_strided(int64_t count, const std::byte* from, int64_t from_stride, std::byte* to,
                  int64_t to_stride) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(Element));
  }
}

}  // namespace

void Movement::run(std::span<void* const> buffers) const {
  const auto size = static_cast<int64_t>(dtype_size(dtype_));
  auto* target = static_cast<std::byte*>(buffers[target_]);
  for (const Copy& c : copies_) {
    std::byte fill[sizeof(Word)];
    store_word(fill, dtype_, c.fill);
    const std::byte* from =
        c.source == kNone ? fill : static_cast<const std::byte*>(buffers[c.source]) + c.from * size;
    copy(c, 0, from, target + c.to * size);
  }
}

void Movement::copy(const Copy& c, size_t dim, const std::byte* from, std::byte* to) const {
  const auto size = static_cast<int64_t>(dtype_size(dtype_));
  const Dim d = dim < c.dims.size() ? c.dims[dim] : Dim{};
  if (dim + 1 < c.dims.size()) {
    for (int64_t i = 0; i < d.extent; ++i) {
      copy(c, dim + 1, from + i * d.from * size, to + i * d.to * size);
    }
    return;
  }
  if (d.from == 1 && d.to == 1) {
    std::memcpy(to, from, static_cast<size_t>(d.extent * size));
  } else if (size == 1) {
    copy_strided<uint8_t>(d.extent, from, d.from, to, d.to);
  } else if (size == 2) {
    copy_strided<uint16_t>(d.extent, from, d.from * 2, to, d.to * 2);
  } else if (size == 4) {
    copy_strided<uint32_t>(d.extent, from, d.from * 4, to, d.to * 4);
  } else {
    copy_strided<uint64_t>(d.extent, from, d.from * 8, to, d.to * 8);
  }
  for (int64_t i = 0; nan_ && i < d.extent; ++i) {
    std::byte* at = to + i * d.to * size;
    if (is_nan(load_word(at, dtype_), dtype_)) store_word(at, dtype_, *nan_);
  }
}

}  // namespace pyc::eval

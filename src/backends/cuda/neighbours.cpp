#include "backends/cuda/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;
// Elements of one thread; also of types so narrow that 16 bytes would have more.
constexpr int64_t kMostElements = 8;

}  // namespace

using loop::Affine;
using loop::ExprId;
using loop::kNone;

int64_t NeighbourEmitter::elements() {
  int64_t smallest = kAccessBytes;
  for (const loop::Stmt& s : loop_.body) {
    if (s.kind == loop::StmtKind::kLoop) return 1;
    if (s.kind != loop::StmtKind::kStore) continue;
    const loop::Store& store = kernel_.stores[s.index];
    smallest = std::min(smallest, dtype_size(kernel_.buffers[store.buffer].dtype));
  }
  for (int64_t v = std::min(kMostElements, kAccessBytes / smallest); v > 1; v /= 2) {
    if (loop_.extent % v == 0 && all_stores_fit(v)) return v;
  }
  return 1;
}

// Arrays with what lies side by side are read first; stores wait in arrays.
void NeighbourEmitter::emit_elements(int64_t v, const std::function<void()>& declare_more) {
  mark_used();
  open_scope();
  declare(loop_.var, "j");
  if (declare_more) declare_more();
  std::string after;
  for (ExprId e = 0; e < used_.size(); ++e) {
    if (used_[e]) read_side_by_side(e, v);
  }
  for (const loop::Stmt& s : loop_.body) {
    if (s.kind == loop::StmtKind::kCheck) check(kernel_.checks[s.index]);
    if (s.kind == loop::StmtKind::kStore) after += store_side_by_side(kernel_.stores[s.index], v);
    end_statement();
  }
  const std::string body = close_scope();
  line(reads_);
  line(fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {{\nconst {} j = j0 + e;\n{}}}", v,
                   var_type(loop_.var), body));
  line(after);
}

// The offset without the loop's variable, if elements v·n … v·n + v - 1 lie aligned side by side.
std::optional<Affine> NeighbourEmitter::aligned_base(uint32_t buffer, ExprId offset, int64_t v) {
  if (buffer < unaligned_.size() && unaligned_[buffer]) return std::nullopt;
  Affine sum = affine_of(pool_, offset);
  const ExprId var = pool_.var(loop_.var);
  if (sum.coefficient(var) != 1 || sum.constant % v != 0) return std::nullopt;
  erase_if(sum.terms, [&](const auto& term) { return term.first == var; });
  for (const auto& [atom, c] : sum.terms) {
    if (c % v != 0 || depends_on(pool_, atom, loop_.var)) return std::nullopt;
  }
  return sum;
}

bool NeighbourEmitter::all_stores_fit(int64_t v) {
  return std::all_of(loop_.body.begin(), loop_.body.end(), [&](const loop::Stmt& s) {
    return s.kind != loop::StmtKind::kStore ||
           aligned_base(kernel_.stores[s.index].buffer, kernel_.stores[s.index].offset, v)
               .has_value();
  });
}

// Moves between a buffer and an array in pieces of at most 16 bytes.
std::string NeighbourEmitter::moves(const std::string& array, uint32_t buffer,
                                    const std::string& offset, int64_t v, bool to_buffer) {
  const int64_t size = dtype_size(kernel_.buffers[buffer].dtype);
  const int64_t piece = std::min(kAccessBytes, v * size);
  const char* constant = to_buffer ? "" : "const ";
  std::string text;
  for (int64_t at = 0; at < v; at += piece / size) {
    const std::string there = fmt::format("*(PYC_GLOBAL {}pyc_v{}*)({} + {} + {})", constant, piece,
                                          buffer_name(buffer), offset, at);
    const std::string here = fmt::format("*(pyc_v{}*)({} + {})", piece, array, at);
    text += to_buffer ? there + " = " + here : here + " = " + there;
    text += ";\n";
  }
  return text;
}

std::string NeighbourEmitter::place(const Affine& base) {
  const ExprId outer = from_affine(pool_, base);
  return value(outer) + " + j0";
}

void NeighbourEmitter::read_side_by_side(ExprId e, int64_t v) {
  const loop::ExprNode n = pool_.node(e);
  if (n.op != loop::Op::kLoad || n.b != kNone) return;
  const auto buffer = static_cast<uint32_t>(n.imm);
  const loop::Buffer& b = kernel_.buffers[buffer];
  if (b.access != loop::Access::kRead || dtype_size(n.dtype) * v < 2) return;
  if (is_narrow_int(n.dtype) || n.dtype == DType::kF4E2M1) return;
  const auto base = aligned_base(buffer, n.a, v);
  if (!base) return;
  const std::string array = fmt::format("x{}", e);
  reads_ += fmt::format("PYC_ALIGN16 {} {}[{}];\n", memory_type(n.dtype), array, v) +
            moves(array, buffer, place(*base), v, false);
  loaded_[e] = n.dtype == DType::kBool ? array + "[e] != 0" : array + "[e]";
  if (n.dtype == DType::kBool) loaded_[e] = "(" + loaded_[e] + ")";
}

std::string NeighbourEmitter::store_side_by_side(const loop::Store& s, int64_t v) {
  const loop::Buffer& b = kernel_.buffers[s.buffer];
  const std::string array = fmt::format("y{}", stored_++);
  const std::string x = b.dtype == DType::kI64 ? wide(s.value) : value(s.value);
  line(fmt::format("{}[e] = ({}){};", array, memory_type(b.dtype), x));
  reads_ += fmt::format("PYC_ALIGN16 {} {}[{}];\n", memory_type(b.dtype), array, v);
  return moves(array, s.buffer, place(*aligned_base(s.buffer, s.offset, v)), v, true);
}

// Marks what the loop's statements use.
void NeighbourEmitter::mark_used() {
  used_.assign(pool_.size(), false);
  for (const loop::Stmt& s : loop_.body) {
    if (s.kind == loop::StmtKind::kStore) mark(kernel_.stores[s.index].value);
    if (s.kind == loop::StmtKind::kCheck) mark(kernel_.checks[s.index].ok);
  }
}

void NeighbourEmitter::mark(ExprId e) {
  if (e == kNone || used_[e]) return;
  used_[e] = true;
  const loop::ExprNode n = pool_.node(e);
  for (ExprId o : {n.a, n.b, n.c}) mark(o);
}

}  // namespace pyc::cuda

#include "backends/cuda/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;
// Elements of one thread; also of types so narrow that 16 bytes would have more.
constexpr int64_t kMostElements = 8;
// Loops inside that have no more iterations are unrolled.
constexpr int64_t kMostUnrolled = 32;

}  // namespace

using loop::Affine;
using loop::ExprId;
using loop::kNone;

int64_t NeighbourEmitter::elements() {
  int64_t smallest = kAccessBytes;
  bool in_loops = true;  // which come first
  for (const loop::Stmt& s : loop_.body) {
    const bool is_loop = s.kind == loop::StmtKind::kLoop;
    if (is_loop && (!in_loops || !only_reduces(kernel_.loops[s.index]))) return 1;
    in_loops = is_loop;
    if (s.kind != loop::StmtKind::kStore) continue;
    const loop::Store& store = kernel_.stores[s.index];
    smallest = std::min(smallest, dtype_size(kernel_.buffers[store.buffer].dtype));
  }
  for (int64_t v = std::min(kMostElements, kAccessBytes / smallest); v > 1; v /= 2) {
    if (loop_.extent % v == 0 && all_stores_fit(v)) return v;
  }
  return 1;
}

bool NeighbourEmitter::only_reduces(const loop::Loop& l) const {
  return l.body.empty() && l.carries.empty() && l.chunk_var == kNone && l.extent > 0 &&
         std::all_of(l.reductions.begin(), l.reductions.end(),
                     [](const loop::Reduction& r) { return r.kind != loop::ReduceKind::kTree; });
}

void NeighbourEmitter::emit_elements(int64_t v, const std::function<void()>& declare_more) {
  for (const loop::Stmt& s : loop_.body) {
    if (s.kind == loop::StmtKind::kLoop) {
      reduce_elements(kernel_.loops[s.index], v, declare_more);
    }
  }
  // A variable is always declared in a scope of the same depth.
  if (!reduced_.empty()) open_scope();
  store_elements(v, declare_more);
  if (!reduced_.empty()) line("{\n" + close_scope() + "}");
}

void NeighbourEmitter::for_elements(int64_t v, const std::vector<ExprId>& roots,
                                    const std::function<void()>& declare_more,
                                    const std::function<void()>& inner, bool again) {
  reads_.clear();
  used_.assign(pool_.size(), false);
  for (const ExprId e : roots) mark(e);
  open_scope();
  declare(loop_.var, "j");
  for (const loop::Reduction& r : reduced_) declare(r.result, name_of(r) + "_all[e]");
  if (declare_more) declare_more();
  for (ExprId e = 0; e < used_.size(); ++e) {
    if (used_[e]) read_side_by_side(e, v);
  }
  inner();
  const std::string body = close_scope();
  line(reads_);
  line(each_element(v, body, again));
  loaded_.clear();
  paired_.clear();
}

std::string NeighbourEmitter::each_element(int64_t v, const std::string& body, bool again) {
  std::string text =
      fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {{\nconst {} j = j0 + e;\n{}}}", v,
                  var_type(loop_.var), body);
  constexpr std::string_view kDivision = "pyc_div_f32(";
  if (!again || text.find(kDivision) == std::string::npos) return text;
  std::string near = text;
  for (size_t at = near.find(kDivision); at != std::string::npos; at = near.find(kDivision, at)) {
    near.replace(at, kDivision.size(), "pyc_near_quotient(&far, ");
  }
  return "{\nu32 far = 0u;\n" + near + "\nif (pyc_is_far(far)) {\n" + text + "\n}\n}";
}

// The variables of a reduction are arrays with one of each element.
void NeighbourEmitter::reduce_elements(const loop::Loop& l, int64_t v,
                                       const std::function<void()>& declare_more) {
  std::vector<ExprId> roots;
  std::string names;
  std::string ends;
  for (const loop::Reduction& r : l.reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const auto variable = [&](const std::string& name) {
      line(
          fmt::format("{0} {1}_all[{2}];\nPYC_UNROLL for (i32 e = 0; e < {2}; ++e) {1}_all[e] = "
                      "{3};",
                      value_type(t), name, v, identity_text(r.op, t)));
      names += fmt::format("{0}& {1} = {1}_all[e];\n", value_type(t), name);
    };
    const std::string name = name_of(r);
    variable(name);
    const bool is_chain = r.kind == loop::ReduceKind::kChain;
    if (is_chain) variable(name + "_acc");
    if (is_chain && r.segment == 0) {
      ends += fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {}_all[e] = {};\n", v, name,
                          join_text(r.op, t, name + "_all[e]", name + "_acc_all[e]"));
    }
    roots.insert(roots.end(), {r.value, r.value2, r.guard});
  }
  const auto [first, end] = bounds(l);
  const std::string var = fmt::format("j{}", l.var);
  const std::string type = var_type(l.var);
  open_scope();
  declare(l.var, var);
  for_elements(v, roots, declare_more, [&, end = end] {
    line(names);
    for (const loop::Reduction& r : l.reductions) step_reduction(r, var, end);
    end_statement();
  });
  const std::string body = close_scope();
  line(fmt::format("{0}for ({1} {2} = {3}; {2} < {4}; ++{2}) {{\n{5}}}\n{6}",
                   l.extent <= kMostUnrolled ? "PYC_UNROLL " : "", type, var, first, end, body,
                   ends));
  reduced_.insert(reduced_.end(), l.reductions.begin(), l.reductions.end());
}

// Stores wait in arrays.
void NeighbourEmitter::store_elements(int64_t v, const std::function<void()>& declare_more) {
  std::vector<ExprId> roots;
  for (const loop::Stmt& s : loop_.body) {
    if (s.kind == loop::StmtKind::kStore) roots.push_back(kernel_.stores[s.index].value);
    if (s.kind == loop::StmtKind::kCheck) roots.push_back(kernel_.checks[s.index].ok);
  }
  std::string after;
  for_elements(
      v, roots, declare_more,
      [&] {
        for (const loop::Stmt& s : loop_.body) {
          if (s.kind == loop::StmtKind::kCheck) check(kernel_.checks[s.index]);
          if (s.kind == loop::StmtKind::kStore) {
            after += store_side_by_side(kernel_.stores[s.index], v);
          }
          end_statement();
        }
      },
      together_);
  line(after);
}

bool NeighbourEmitter::varies(ExprId e) const {
  if (e == kNone) return false;
  const loop::ExprNode& n = pool_.node(e);
  if (n.op == loop::Op::kVar) {
    const auto v = static_cast<loop::VarId>(n.imm);
    return v == loop_.var || pool_.var_info(v).extent == loop::kResult;
  }
  return varies(n.a) || varies(n.b) || varies(n.c);
}

bool NeighbourEmitter::reads_memory(ExprId e) const {
  if (e == kNone) return false;
  const loop::ExprNode& n = pool_.node(e);
  return n.op == loop::Op::kLoad || reads_memory(n.a) || reads_memory(n.b) || reads_memory(n.c);
}

// The offset without the loop's variable, if elements v·n … v·n + v - 1 lie aligned side by side.
std::optional<Affine> NeighbourEmitter::aligned_base(uint32_t buffer, ExprId offset, int64_t v) {
  if (buffer < unaligned_.size() && unaligned_[buffer]) return std::nullopt;
  Affine sum = affine_of(pool_, offset);
  const ExprId var = pool_.var(loop_.var);
  if (sum.coefficient(var) != 1 || sum.constant % v != 0) return std::nullopt;
  erase_if(sum.terms, [&](const auto& term) { return term.first == var; });
  for (const auto& [atom, c] : sum.terms) {
    if (c % v != 0 || varies(atom)) return std::nullopt;
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

bool NeighbourEmitter::reads_at_once(ExprId load, int64_t v) {
  const loop::ExprNode n = pool_.node(load);
  if (n.op != loop::Op::kLoad) return false;
  if (n.b != kNone) {
    const bool zero = pool_.node(n.c).op == loop::Op::kConst && pool_.node(n.c).word == 0;
    if (!zero || varies(n.b) || reads_memory(n.b)) return false;
  }
  const auto buffer = static_cast<uint32_t>(n.imm);
  const loop::Buffer& b = kernel_.buffers[buffer];
  if (b.access != loop::Access::kRead || dtype_size(n.dtype) * v < 2) return false;
  if (is_narrow_int(n.dtype) || n.dtype == DType::kF4E2M1) return false;
  return aligned_base(buffer, n.a, v).has_value();
}

// What has a guard is read if that is the same for all, and is zero where it is false.
void NeighbourEmitter::read_side_by_side(ExprId e, int64_t v) {
  if (!reads_at_once(e, v)) return;
  const loop::ExprNode n = pool_.node(e);
  const auto buffer = static_cast<uint32_t>(n.imm);
  const std::string array = fmt::format("x{}", e);
  const auto given = given_.find(e);
  std::string read = given != given_.end()
                         ? fmt::format("*(pyc_v16*)({}) = {};\n", array, given->second)
                         : moves(array, buffer, place(*aligned_base(buffer, n.a, v)), v, false);
  if (n.b != kNone) {
    read = fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {}[e] = 0;\nif ({}) {{\n{}}}\n", v,
                       array, value(n.b), read);
  }
  reads_ += fmt::format("PYC_ALIGN16 {} {}[{}];\n{}", memory_type(n.dtype), array, v, read);
  loaded_[e] = n.dtype == DType::kBool ? array + "[e] != 0" : array + "[e]";
  if (n.dtype == DType::kBool) loaded_[e] = "(" + loaded_[e] + ")";
  if (is_half(n.dtype) && v % 2 == 0) {
    paired_[e] = fmt::format("((pyc_v4*){})[e / 2], e % 2", array);
  }
}

std::string NeighbourEmitter::store_side_by_side(const loop::Store& s, int64_t v) {
  const loop::Buffer& b = kernel_.buffers[s.buffer];
  const std::string array = fmt::format("y{}", stored_++);
  reads_ += fmt::format("PYC_ALIGN16 {} {}[{}];\n", memory_type(b.dtype), array, v);
  std::string move = moves(array, s.buffer, place(*aligned_base(s.buffer, s.offset, v)), v, true);
  if (const auto half = rounded(s.value)) {
    line(fmt::format("{}_f[e] = {};", array, value(half->from)));
    reads_ += fmt::format("float {}_f[{}];\n", array, v);
    return fmt::format(
               "PYC_UNROLL for (i32 e = 0; e < {0}; e += 2) *(pyc_v4*)({1} + e) = {2}({1}_f[e], "
               "{1}_f[e + 1]);\n",
               v, array, half->pair) +
           move;
  }
  const std::string x = b.dtype == DType::kI64 ? wide(s.value) : value(s.value);
  line(fmt::format("{}[e] = ({}){};", array, memory_type(b.dtype), x));
  return move;
}

// Marks what an expression uses.
void NeighbourEmitter::mark(ExprId e) {
  if (e == kNone || used_[e]) return;
  used_[e] = true;
  const loop::ExprNode n = pool_.node(e);
  for (ExprId o : {n.a, n.b, n.c}) mark(o);
}

}  // namespace pyc::cuda

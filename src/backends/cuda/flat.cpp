#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/neighbours.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int64_t kFlatThreads = 256;
constexpr int64_t kManyElements = 8;  // of a point
// A few blocks for each place: more would begin anew for every thread's next elements.
constexpr int64_t kFlatBlocks = 32 * kMultiprocessors;
// A thread that reduces takes neighbours only while so many threads are left.
constexpr int64_t kManyThreads = int64_t{1} << 16;

// The one vector loop that is a flat kernel's body, or null.
const loop::Loop* only_loop(const loop::Kernel& kernel) {
  if (kernel.body.size() != 1 || kernel.body[0].kind != loop::StmtKind::kLoop) return nullptr;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  if (!l.vector || !l.reductions.empty() || l.extent <= 0) return nullptr;
  if (kernel.scratch_bytes() > 0) return nullptr;
  if (l.chunk_var == kNone) return &l;
  // A point's chunk is undone, so nothing else may ask for its number.
  for (ExprId e = 0; e < kernel.pool.size(); ++e) {
    const loop::ExprNode& n = kernel.pool.node(e);
    if (n.op == loop::Op::kVar && static_cast<loop::VarId>(n.imm) == l.chunk_var) return nullptr;
  }
  return &l;
}

bool reduces(const loop::Loop& l) {
  return std::any_of(l.body.begin(), l.body.end(),
                     [](const loop::Stmt& s) { return s.kind == loop::StmtKind::kLoop; });
}

}  // namespace

std::optional<KernelText> flat_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, const std::vector<bool>& unaligned) {
  const loop::Loop* l = only_loop(kernel);
  if (l == nullptr) return std::nullopt;
  NeighbourEmitter emitter(kernel, dialect, symbol, *l, unaligned);
  std::vector<loop::VarId> vars;
  std::vector<int64_t> extents;
  int64_t points = 1;
  for (loop::VarId p : kernel.parallel) {
    if (p == l->chunk_var) continue;
    vars.push_back(p);
    extents.push_back(kernel.pool.var_info(p).extent);
    points *= extents.back();
  }
  int64_t v = emitter.elements();
  while (v > 1 && reduces(*l) && points * l->extent / v < kManyThreads) v /= 2;
  KernelText out{.symbol = symbol,
                 .form = v > 1 ? fmt::format("flat x{}", v) : "flat",
                 .text = "",
                 .buffers = parameters_of(kernel)};
  points *= l->extent / v;
  out.threads = kFlatThreads;
  out.blocks = static_cast<uint32_t>(std::min<int64_t>((points + kFlatThreads - 1) / kFlatThreads,
                                                       reduces(*l) ? kMostBlocks : kFlatBlocks));

  const std::string type = counter_type(points * v);
  const int64_t along = l->extent / v;
  emitter.open_scope();
  emitter.line(fmt::format("const {0} j0 = ({0})({1}point % {2}u) * {3};", emitter.var_type(l->var),
                           type == "i32" ? "(u32)" : "(u64)", along, v));
  emitter.line(fmt::format("const {0} row = ({0})({1}point / {2}u);", type,
                           type == "i32" ? "(u32)" : "(u64)", along));
  declare_digits(emitter, "row", type, vars, extents);
  if (v > 1) {
    emitter.emit_elements(v);
  } else {
    emitter.declare(l->var, "j0");
    emitter.serial_body(l->body);
  }
  const std::string body = emitter.close_scope();
  // Kernels of halves are bound by instructions: two points share constants and what steps on.
  emitter.line(
      fmt::format("{4}for ({0} point = ({0})pyc_block() * {1} + pyc_thread(); point < {2}; point "
                  "+= ({0})pyc_blocks() * {1}) {{\n{3}}}",
                  type, kFlatThreads, points, body, v >= kManyElements ? "PYC_UNROLL2 " : ""));
  out.text = emitter.tables() + emitter.finished(kernel_head(out, kernel, false));
  return out;
}

}  // namespace pyc::cuda

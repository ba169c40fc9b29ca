#include "backends/cuda/generators/wgmma_bring.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "loop/function.h"
#include "loop/walk.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int64_t kRunElements = 8;  // of 16 bytes
constexpr int64_t kRunsOfRow = kStageRowBytes / 16;
constexpr int64_t kRowsAlong = 64;  // that lie together where neighbours are along the rows

class Bringer {
 public:
  explicit Bringer(const WgmmaBringing& all) : b_(all), c_(all.contraction) {}

  std::string function(const WgmmaSide& s, const std::string& name) const {
    Emitter e(b_.kernel, cuda_dialect(), b_.symbol);
    declare_digits(e, "batch", "i32", c_.batch_vars, c_.batch);
    is_plain(s) ? bring_plain(e, s) : bring_rounds(e, s);
    return e.finished(
        fmt::format("PYC_FN void {}_{}({}u32 me, i32 batch, i32 first, i32 k0, u32 to)", b_.symbol,
                    name, b_.parameters));
  }

 private:
  // How far apart the rows of a tile lie, where that is one number: within a tile, quotients of
  // rows by multiples of its rows stay as they are and remainders count.
  std::optional<int64_t> row_step(const WgmmaSide& s) const {
    const loop::Pool& pool = b_.kernel.pool;
    int64_t step = 0;
    for (const auto& [term, factor] : loop::affine_of(pool, pool.node(s.value).a).terms) {
      if (s.var == kNone || !loop::depends_on(pool, term, s.var)) continue;
      const loop::ExprNode& n = pool.node(term);
      const bool quotient = n.op == loop::Op::kFloorDiv;
      if (quotient || n.op == loop::Op::kFloorMod) {
        const loop::ExprNode& by = pool.node(n.b);
        if (pool.node(n.a).op != loop::Op::kVar || by.op != loop::Op::kConst) return std::nullopt;
        if (static_cast<int64_t>(by.word) % s.rows != 0) return std::nullopt;
      } else if (n.op != loop::Op::kVar) {
        return std::nullopt;
      }
      if (!quotient) step += factor;
    }
    return step;
  }

  // Whether all of a stage's side lies constants apart: rows a step from each other, and where
  // rounds go along k too, addresses that are sums of the variables' multiples.
  bool is_plain(const WgmmaSide& s) const {
    const loop::Pool& pool = b_.kernel.pool;
    if (s.elements() || pool.node(s.value).b != kNone) return false;
    if (!s.along_rows()) return row_step(s).has_value();
    const loop::Affine offset = loop::affine_of(pool, pool.node(s.value).a);
    return std::all_of(offset.terms.begin(), offset.terms.end(), [&](const auto& term) {
      return pool.node(term.first).op == loop::Op::kVar;
    });
  }

  // One address in memory and one in the stage, from which all rounds are constants away: a copy
  // holds on to the registers of its addresses, and has to be waited for before they change. What
  // is not there is not read, wherever its address may be.
  void bring_plain(Emitter& e, const WgmmaSide& s) const {
    const int64_t at_once = b_.threads / kRunsOfRow;
    const int64_t in_depth = kStageDepth / at_once;  // rounds, along the rows
    const int64_t count = s.rows * kRunsOfRow;
    e.line(fmt::format(fmt::runtime(s.along_rows() ? "const u32 r = me % {0} * {1}, d = me / {0};"
                                                   : "const u32 r = me / {0}, d = me % {0} * {1};"),
                       kRunsOfRow, kRunElements));
    declare_index(e, s.var, "row", "first + r");
    declare_index(e, c_.k_var, "k", "k0 + d");
    const loop::ExprNode load = b_.kernel.pool.node(s.value);
    e.line(fmt::format("PYC_GLOBAL const u16* from = {} + {};\nconst u32 place = to + ({});",
                       buffer_name(static_cast<uint32_t>(load.imm)), e.value(load.a), place_of(s)));
    const loop::Affine offset = loop::affine_of(b_.kernel.pool, load.a);
    const int64_t along_k = offset.coefficient(b_.kernel.pool, c_.k_var);
    const int64_t along_row = *row_step(s);
    for (int64_t i = 0; i * b_.threads < count; ++i) {
      const int64_t rows = s.along_rows() ? i / in_depth * kRowsAlong : i * at_once;
      const int64_t depth = s.along_rows() ? i % in_depth * at_once : 0;
      const int64_t further =
          s.along_rows() ? i / in_depth * kStageDepth * kStageRowBytes + depth * kStageRowBytes
                         : rows * kStageRowBytes;
      std::string there;
      if (s.extent % s.rows != 0) {
        there = fmt::format("first + r + {} < {}", rows, s.extent);
      }
      if (c_.k % kStageDepth != 0) {
        there += fmt::format("{}k0 + d + {} < {}", there.empty() ? "" : " && ", depth, c_.k);
      }
      const int64_t left = count - i * b_.threads;
      e.line(fmt::format("{}pyc_copy16(place + {}u, from + {}, {});",
                         left < b_.threads ? fmt::format("if (me < {}) ", left) : "", further,
                         rows * along_row + depth * along_k,
                         there.empty() ? "16u" : there + " ? 16u : 0u"));
    }
  }

  void bring_rounds(Emitter& e, const WgmmaSide& s) const {
    const bool elements = s.bring == WgmmaBring::kElements;
    const int64_t count = s.rows * kStageDepth / kRunElements;
    e.open_scope();
    if (count % b_.threads != 0)
      e.line(fmt::format("if (i * {} + me >= {}) break;", b_.threads, count));
    const int64_t at_once = b_.threads / kRunsOfRow;
    if (s.along_rows()) {
      e.line(
          fmt::format("const u32 r = i / {0} * {1} + me % {2} * {3}, d = i % {0} * {4} + me / {2};",
                      kStageDepth / at_once, kRowsAlong, kRunsOfRow, kRunElements, at_once));
    } else if (elements && neighbours_in_rows(s) && s.rows % b_.threads == 0) {
      // What is the same in every round, or for all threads, is computed once.
      e.line(fmt::format("const u32 r = i % {0} * {1} + me, d = i / {0} * {2};",
                         s.rows / b_.threads, b_.threads, kRunElements));
    } else if (elements && neighbours_in_rows(s)) {
      e.line(fmt::format("const u32 at = i * {2} + me, r = at % {0}, d = at / {0} * {1};", s.rows,
                         kRunElements, b_.threads));
    } else {
      e.line(fmt::format("const u32 r = i * {0} + me / {1}, d = me % {1} * {2};", at_once,
                         kRunsOfRow, kRunElements));
    }
    elements ? bring_elements(e, s) : bring_chunk(e, s);
    const std::string body = e.close_scope();
    const int64_t rounds = (count + b_.threads - 1) / b_.threads;
    e.line(fmt::format("{} for (u32 i = 0; i < {}; ++i) {{\n{}}}",
                       elements && !b_.knows_terms ? "PYC_UNROLL2" : "PYC_UNROLL", rounds, body));
  }

  // Whether threads side by side had better read neighbours along the rows: a window's pixels lie
  // so, its channels do not.
  bool neighbours_in_rows(const WgmmaSide& s) const {
    if (s.var == kNone) return false;
    const loop::Pool& pool = b_.kernel.pool;
    bool along_k = false;
    loop::Walk{pool}(s.value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op != loop::Op::kLoad) return;
      along_k = along_k || loop::affine_of(pool, n.a).coefficient(pool, c_.k_var) == 1;
    });
    return !along_k;
  }

  // What is not there is read nowhere, and its address is one of the buffer's. The row and all
  // that follows from it are the same in every stage.
  void bring_chunk(Emitter& e, const WgmmaSide& s) const {
    const loop::ExprNode load = e.pool_.node(s.value);
    std::string there = "true";
    const auto within = [&](const std::string& at, int64_t extent, int64_t step) {
      if (extent % step == 0) return at;
      there += fmt::format(" && {} < {}", at, extent);
      return fmt::format("{0} < {1} ? {0} : 0", at, extent);
    };
    declare_index(e, s.var, "row", within("first + r", s.extent, s.rows));
    declare_index(e, c_.k_var, "k", within("k0 + d", c_.k, kStageDepth));
    std::string at;
    if (load.b == kNone) {
      at = e.value(load.a);
    } else {
      there += " && " + e.value(load.b);
      at = fmt::format("(there ? {} : 0)", window_place(e, load.a));
    }
    e.line(fmt::format("const bool there = {};", there));
    e.line(fmt::format("pyc_copy16(to + (u32)({}), {} + {}, there ? 16u : 0u);", place_of(s),
                       buffer_name(static_cast<uint32_t>(load.imm)), at));
  }

  // A place as the sum of what follows from the row and of what follows from k, so that the first
  // is computed before the first stage. Where it is one, it is not negative.
  std::string window_place(Emitter& e, ExprId offset) const {
    const bool is_short = is_short_index(e.pool_.node(offset));
    const auto depends = [&](const auto& term) {
      return loop::depends_on(e.pool_, term.first, c_.k_var);
    };
    loop::Affine of_row = loop::affine_of(e.pool_, offset);
    loop::Affine of_k = of_row;
    of_k.constant = 0;
    erase_if(of_row.terms, depends);
    erase_if(of_k.terms, [&](const auto& term) { return !depends(term); });
    const std::string row = e.value(loop::from_affine(e.pool_, of_row));
    const std::string k = e.value(loop::from_affine(e.pool_, of_k));
    return fmt::format("{}({} + {})", is_short ? "(u32)" : "", row, k);
  }

  // What follows from the row alone is computed once for all of its elements.
  void bring_elements(Emitter& e, const WgmmaSide& s) const {
    const bool fill = s.extent % s.rows == 0;
    e.line(fmt::format("const bool there = {};",
                       fill ? "true" : fmt::format("first + r < {}", s.extent)));
    declare_index(e, s.var, "row", "there ? first + r : 0");
    e.open_scope();
    e.open_scope();
    declare_index(e, c_.k_var, "k", "k0 + d + e");
    e.line(fmt::format("x[e] = {};", e.value(s.value)));
    e.end_statement();
    const std::string element = e.close_scope();
    e.line("x[e] = 0;");
    e.line(fmt::format("if (there && k0 + d + e < {}) {{\n{}}}", c_.k, element));
    const std::string body = e.close_scope();
    e.line(fmt::format("PYC_ALIGN16 u16 x[{}];", kRunElements));
    e.line(fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {{\n{}}}", kRunElements, body));
    e.line(
        fmt::format("*(PYC_NEAR pyc_v16*)(pyc_shared + to + ({})) = *(pyc_v16*)x;", place_of(s)));
  }

  // Of the 16 bytes at (r, d), swizzled.
  static std::string place_of(const WgmmaSide& s) {
    if (!s.along_rows()) {
      return fmt::format("r * {} + ((d / {} ^ r % 8) << 4)", kStageRowBytes, kRunElements);
    }
    return fmt::format("r / {0} * {1} + d * {2} + ((r % {0} / {3} ^ d % 8) << 4)", kRowsAlong,
                       kStageDepth * kStageRowBytes, kStageRowBytes, kRunElements);
  }

  const WgmmaBringing& b_;
  const lower::Contraction& c_;
};

}  // namespace

std::string wgmma_bring_function(const WgmmaBringing& all, const WgmmaSide& side,
                                 const std::string& name) {
  return Bringer(all).function(side, name);
}

}  // namespace pyc::cuda

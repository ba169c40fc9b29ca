#include "backends/cuda/generators/wgmma_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product_runs.h"
#include "backends/cuda/generators/wgmma_epilogue.h"
#include "backends/cuda/generators/wgmma_maps.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/launch.h"
#include "base/matrix_unit.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::VarId;

constexpr int64_t kDepth = 64;                    // of a stage, along k
constexpr int64_t kRowBytes = 128;                // of a stage's row, and of the swizzle
constexpr int64_t kChunk = 8;                     // elements of 16 bytes
constexpr int64_t kStageChunks = kRowBytes / 16;  // of a row
constexpr int64_t kThreads = 128;  // that compute kRows rows together, or bring operands
constexpr int64_t kRows = 64;
constexpr int64_t kBlock = 16;  // of k in one instruction
constexpr int64_t kGateBytes = 8;
constexpr int64_t kMostShared = 227 << 10;
constexpr int64_t kReservedShared = 1 << 10;  // of each block
constexpr int64_t kFewStages = 4;
constexpr double kMostTiles = 1e9;       // tiles are counted in i32
constexpr int64_t kMostRegisters = 232;  // of a thread
constexpr int64_t kRegisters = 1 << 16;  // of a multiprocessor
constexpr int64_t kOtherRegisters = 40;  // besides sums
constexpr int64_t kLeastRegisters = 72;  // of threads that bring 16 bytes at a time
constexpr int64_t kMostResident = 3;
// Three or four groups of threads begin with as many registers each, and share them out again if
// the sums of all but one need more.
constexpr int64_t kSpareRegisters = 64;
constexpr int64_t kFewestRegisters = 40;

// One side of the tile.
struct Side {
  ExprId value = kNone;  // of the operand, rounded to the factors' type
  VarId var = kNone;     // of its rows; kNone: there is one
  int64_t extent = 1;
  int64_t rows = 0;  // in a tile
  bool of_b = false;
  WgmmaBring bring = WgmmaBring::kElements;
  int64_t bytes() const { return rows * kRowBytes; }
  bool elements() const { return bring == WgmmaBring::kElements; }
  bool along_rows() const { return bring == WgmmaBring::kAlongRows; }
};

const lower::Contraction::Operand& operand_of(const WgmmaProduct& product, bool of_b) {
  return of_b ? product.contraction().b : product.contraction().a;
}
VarId row_var_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n_var : c.m_var; }
int64_t row_count_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n : c.m; }

int64_t stage_bytes(const WgmmaTile& tile) { return (tile.rows + tile.columns) * kRowBytes; }
int64_t groups_of(const WgmmaTile& tile) { return tile.rows / kRows; }
// Where in shared memory what lies, behind the ring.
int64_t sums_at(const WgmmaTile& tile) { return tile.stages * stage_bytes(tile); }
int64_t gates_at(const WgmmaTile& tile) { return sums_at(tile) + wgmma_piece_bytes(tile); }
int64_t shared_bytes(const WgmmaTile& tile) {
  return gates_at(tile) + 2 * tile.stages * kGateBytes;
}
int64_t segment_of(DType factors) { return find_matrix_unit("sm90", factors)->segment; }

constexpr int64_t kMostTogether = 8;  // blocks of a cluster

// What of a product a kernel computes: all of it, with one block after the other or with the
// segments of a tile together in a cluster; or sums of segments, or what joins them.
enum class Part : uint8_t { kWhole, kTogether, kSegments, kJoin };

bool brings_elements(const WgmmaProduct& product) {
  return wgmma_bring(product, false) == WgmmaBring::kElements ||
         wgmma_bring(product, true) == WgmmaBring::kElements;
}

// Threads that bring: twice as many where they compute elements.
int64_t bringing_threads(const WgmmaProduct& product) {
  return brings_elements(product) ? 2 * kThreads : kThreads;
}
int64_t threads_of(const WgmmaProduct& product) {
  return groups_of(product.tile) * kThreads + bringing_threads(product);
}

int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The side of a stage that operand a or b is, whose element is `load`.
MappedSide mapped(const loop::Pool& pool, ExprId load, const WgmmaProduct& product, bool of_b) {
  const lower::Contraction& c = product.contraction();
  const bool in_columns = of_b != product.tile.swapped;
  return {.pool = &pool,
          .load = load,
          .row_var = row_var_of(c, of_b),
          .k_var = c.k_var,
          .extent = row_count_of(c, of_b),
          .k = c.k,
          .rows = in_columns ? product.tile.columns : product.tile.rows,
          .depth = kDepth,
          .along_rows = wgmma_bring(product, of_b) == WgmmaBring::kAlongRows};
}
bool has_map(const WgmmaProduct& product, bool of_b) {
  const loop::Pool& pool = product.contraction().kernel->pool;
  const ExprId load = padded_load(pool, operand_of(product, of_b).value, product.factors);
  return load != kNone && wgmma_bring(product, of_b) != WgmmaBring::kElements &&
         map_of(mapped(pool, load, product, of_b)).has_value();
}
// Of a thread that multiplies, roughly: sums, totals where segments follow one another, addresses.
int64_t registers_of(const WgmmaProduct& product) {
  const int64_t sums = product.tile.columns / 2;
  return kOtherRegisters + (wgmma_segments(product) > 1 && !product.tile.split ? 2 : 1) * sums;
}

// Of threads that multiply and of those that bring, where they share them out unequally.
struct RegisterShares {
  int64_t multiplying = 0;
  int64_t bringing = 0;
};
std::optional<RegisterShares> register_shares(const WgmmaProduct& product) {
  const int64_t wanted = registers_of(product) + kSpareRegisters;
  const int64_t groups = groups_of(product.tile);
  const int64_t equal = kRegisters / threads_of(product) / 8 * 8;
  if (groups == 1 || brings_elements(product) || wanted <= equal) return std::nullopt;
  const int64_t all = (groups + 1) * equal;
  const int64_t most =
      std::min({kMostRegisters, rounded_up(wanted, 8), (all - kFewestRegisters) / groups / 8 * 8});
  return RegisterShares{most, all - groups * most};
}

class WgmmaWriter {
 public:
  WgmmaWriter(const WgmmaProduct& product, Part part, std::string symbol)
      : p_(product),
        c_(product.contraction()),
        part_(part),
        symbol_(std::move(symbol)),
        kernel_(*c_.kernel) {
    product_of(kernel_).value = c_.a.value;
    product_of(kernel_).value2 = c_.b.value;
    kernel_ = loop::without_calls(std::move(kernel_));
    rows_ = side(p_.tile.swapped, p_.tile.rows);
    columns_ = side(!p_.tile.swapped, p_.tile.columns);
    out_.symbol = symbol_;
    out_.form = fmt::format("wgmma {}x{}{}{}", p_.tile.rows, p_.tile.columns,
                            p_.tile.swapped ? " swapped" : "", part_ == Part::kJoin ? " join" : "");
    out_.buffers = parameters_of(kernel_);
    multiplying_ = groups_of(p_.tile) * kThreads;
    bringing_ = bringing_threads(p_);
    out_.threads = static_cast<uint32_t>(multiplying_ + (part_ == Part::kJoin ? 0 : bringing_));
    tiles_ = tiles_of(rows_) * tiles_of(columns_) * c_.batch_size();
    const int64_t segments = wgmma_segments(p_);
    items_ = of_segments() ? tiles_ * segments : tiles_;
    const bool in_turn = part_ == Part::kWhole || part_ == Part::kSegments;
    out_.blocks = static_cast<uint32_t>(
        in_turn ? std::min(items_, kMultiprocessors * wgmma_resident(p_)) : items_);
    out_.shared_bytes = static_cast<uint32_t>(shared_bytes(p_.tile));
    if (by_maps()) add_maps();
    if (part_ == Part::kSegments || part_ == Part::kJoin) {
      out_.workspace_bytes = tiles_ * segments * p_.tile.rows * p_.tile.columns * 4;
    }
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      unaligned_.push_back(p_.group->buffer_offset_bytes(b) % kBufferAlignment != 0);
    }
  }

  KernelText write() {
    const auto shares = register_shares(p_);
    const WgmmaInstruction instruction{.factors = p_.factors,
                                       .columns = p_.tile.columns,
                                       .a_along_rows = rows_.along_rows(),
                                       .b_along_rows = columns_.along_rows(),
                                       .fewer_registers = shares ? shares->bringing : 0,
                                       .more_registers = shares ? shares->multiplying : 0};
    out_.text = wgmma_prelude(instruction) + (by_maps() ? map_prelude() : "") +
                Emitter(kernel_, cuda_dialect(), symbol_).tables();
    std::string body = "const i32 thread = pyc_thread();\n";
    if (part_ == Part::kJoin) {
      body += each_item(joined() + epilogue());
    } else {
      if (!by_maps()) {
        out_.text += bring_function(rows_, "rows") + bring_function(columns_, "columns");
      }
      body += gates() + fmt::format("if (thread >= {}) {{\n{}}} else {{\n{}}}\n", multiplying_,
                                    bringing(), multiplying());
    }
    const int64_t cluster = part_ == Part::kTogether ? wgmma_segments(p_) : 1;
    if (by_maps()) out_.text += fmt::format("PYC_MAPPED({}, {})\n", symbol_, out_.maps.size());
    out_.text +=
        kernel_head(out_, kernel_, true, wgmma_resident(p_), cluster) + " {\n" + body + "}\n";
    return std::move(out_);
  }

 private:
  bool by_maps() const { return p_.tile.maps && part_ != Part::kJoin; }
  void add_maps() {
    for (const Side* s : {&rows_, &columns_}) {
      auto map = map_of(mapped_side(kernel_.pool, *s));
      PYC_CHECK(map.has_value(), "wgmma_fits was asked");
      const auto buffer = static_cast<uint32_t>(kernel_.pool.node(s->value).imm);
      map->buffer = static_cast<uint32_t>(
          std::find(out_.buffers.begin(), out_.buffers.end(), buffer) - out_.buffers.begin());
      out_.maps.push_back(*map);
    }
  }
  MappedSide mapped_side(const loop::Pool& pool, const Side& s) const {
    return mapped(pool, s.value, p_, s.of_b);
  }

  bool of_segments() const { return part_ == Part::kSegments || part_ == Part::kTogether; }
  int64_t sums() const { return p_.tile.columns / 2; }  // of a thread
  int64_t k_stages() const { return (c_.k + kDepth - 1) / kDepth; }
  // Whether all stages are written out, so that for elements that come one by one all that follows
  // from k is a constant: the window of a first convolution has few channels and few terms.
  bool knows_terms() const { return writes() && k_stages() <= kFewStages; }

  loop::Reduction& product_of(loop::Kernel& kernel) const {
    const auto inner =
        std::find_if(kernel.loops.begin(), kernel.loops.end(), [&](const loop::Loop& l) {
          return !l.reductions.empty() && l.reductions[0].result == c_.result;
        });
    PYC_CHECK(inner != kernel.loops.end(), "a contraction has its reduction");
    return inner->reductions[0];
  }

  Side side(bool of_b, int64_t rows) {
    Side s;
    const loop::Reduction& product = product_of(kernel_);
    const ExprId value = of_b ? product.value2 : product.value;
    const loop::ExprNode& n = kernel_.pool.node(value);
    const bool widened = n.op == loop::Op::kConvert && kernel_.pool.dtype(n.a) == p_.factors;
    s.value = widened ? n.a : kernel_.pool.convert(value, p_.factors);
    s.var = row_var_of(c_, of_b);
    s.extent = row_count_of(c_, of_b);
    s.rows = rows;
    s.of_b = of_b;
    s.bring = wgmma_bring(p_, of_b);
    return s;
  }

  static int64_t tiles_of(const Side& s) { return (s.extent + s.rows - 1) / s.rows; }

  void declare_batch(Emitter& e) const {
    declare_digits(e, "batch", "i32", c_.batch_vars, c_.batch);
  }

  // A function that brings rows first … and k0 … of one operand to a place in shared memory, 16
  // bytes a thread and round.
  std::string bring_function(const Side& s, const std::string& name) const {
    Emitter e(kernel_, cuda_dialect(), symbol_);
    declare_batch(e);
    is_plain(s) ? bring_plain(e, s) : bring_rounds(e, s);
    return e.finished(
        fmt::format("PYC_FN void {}_{}({}u32 me, i32 batch, i32 first, i32 k0, u32 to)", symbol_,
                    name, buffer_parameters()));
  }

  // How far apart the rows of a tile lie, where that is one number: within a tile, quotients of
  // rows by multiples of its rows stay as they are and remainders count.
  std::optional<int64_t> row_step(const Side& s) const {
    const loop::Pool& pool = kernel_.pool;
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
  bool is_plain(const Side& s) const {
    const loop::Pool& pool = kernel_.pool;
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
  void bring_plain(Emitter& e, const Side& s) const {
    const int64_t at_once = bringing_ / kStageChunks;
    const int64_t in_depth = kDepth / at_once;  // rounds, along the rows
    const int64_t count = s.rows * kStageChunks;
    e.line(fmt::format(fmt::runtime(s.along_rows() ? "const u32 r = me % {0} * {1}, d = me / {0};"
                                                   : "const u32 r = me / {0}, d = me % {0} * {1};"),
                       kStageChunks, kChunk));
    declare_index(e, s.var, "row", "first + r");
    declare_index(e, c_.k_var, "k", "k0 + d");
    const loop::ExprNode load = kernel_.pool.node(s.value);
    e.line(fmt::format("PYC_GLOBAL const u16* from = {} + {};\nconst u32 place = to + ({});",
                       buffer_name(static_cast<uint32_t>(load.imm)), e.value(load.a), place_of(s)));
    const loop::Affine offset = loop::affine_of(kernel_.pool, load.a);
    const int64_t along_k = offset.coefficient(kernel_.pool, c_.k_var);
    const int64_t along_row = *row_step(s);
    for (int64_t i = 0; i * bringing_ < count; ++i) {
      const int64_t rows = s.along_rows() ? i / in_depth * kRows : i * at_once;
      const int64_t depth = s.along_rows() ? i % in_depth * at_once : 0;
      const int64_t further =
          s.along_rows() ? i / in_depth * kDepth * kRowBytes + depth * kRowBytes : rows * kRowBytes;
      std::string there;
      if (s.extent % s.rows != 0) {
        there = fmt::format("first + r + {} < {}", rows, s.extent);
      }
      if (c_.k % kDepth != 0) {
        there += fmt::format("{}k0 + d + {} < {}", there.empty() ? "" : " && ", depth, c_.k);
      }
      const int64_t left = count - i * bringing_;
      e.line(fmt::format("{}pyc_copy16(place + {}u, from + {}, {});",
                         left < bringing_ ? fmt::format("if (me < {}) ", left) : "", further,
                         rows * along_row + depth * along_k,
                         there.empty() ? "16u" : there + " ? 16u : 0u"));
    }
  }

  void bring_rounds(Emitter& e, const Side& s) const {
    const bool elements = s.bring == WgmmaBring::kElements;
    const int64_t count = s.rows * kDepth / kChunk;
    e.open_scope();
    if (count % bringing_ != 0)
      e.line(fmt::format("if (i * {} + me >= {}) break;", bringing_, count));
    const int64_t at_once = bringing_ / kStageChunks;
    if (s.along_rows()) {
      e.line(
          fmt::format("const u32 r = i / {0} * {1} + me % {2} * {3}, d = i % {0} * {4} + me / {2};",
                      kDepth / at_once, kRows, kStageChunks, kChunk, at_once));
    } else if (elements && neighbours_in_rows(s) && s.rows % bringing_ == 0) {
      // What is the same in every round, or for all threads, is computed once.
      e.line(fmt::format("const u32 r = i % {0} * {1} + me, d = i / {0} * {2};", s.rows / bringing_,
                         bringing_, kChunk));
    } else if (elements && neighbours_in_rows(s)) {
      e.line(fmt::format("const u32 at = i * {2} + me, r = at % {0}, d = at / {0} * {1};", s.rows,
                         kChunk, bringing_));
    } else {
      e.line(fmt::format("const u32 r = i * {0} + me / {1}, d = me % {1} * {2};", at_once,
                         kStageChunks, kChunk));
    }
    elements ? bring_elements(e, s) : bring_chunk(e, s);
    const std::string body = e.close_scope();
    const int64_t rounds = (count + bringing_ - 1) / bringing_;
    e.line(fmt::format("{} for (u32 i = 0; i < {}; ++i) {{\n{}}}",
                       elements && !knows_terms() ? "PYC_UNROLL2" : "PYC_UNROLL", rounds, body));
  }

  // Whether threads side by side had better read neighbours along the rows: a window's pixels lie
  // so, its channels do not.
  bool neighbours_in_rows(const Side& s) const {
    if (s.var == kNone) return false;
    std::vector<ExprId> open = {s.value};
    std::vector<bool> seen(kernel_.pool.size(), false);
    while (!open.empty()) {
      const ExprId e = open.back();
      open.pop_back();
      if (e == kNone || seen[e]) continue;
      seen[e] = true;
      const loop::ExprNode& n = kernel_.pool.node(e);
      if (n.op == loop::Op::kLoad &&
          loop::affine_of(kernel_.pool, n.a).coefficient(kernel_.pool, c_.k_var) == 1) {
        return false;
      }
      open.insert(open.end(), {n.a, n.b, n.c});
    }
    return true;
  }

  // What is not there is read nowhere, and its address is one of the buffer's. The row and all
  // that follows from it are the same in every stage.
  void bring_chunk(Emitter& e, const Side& s) const {
    const loop::ExprNode load = e.pool_.node(s.value);
    std::string there = "true";
    const auto within = [&](const std::string& at, int64_t extent, int64_t step) {
      if (extent % step == 0) return at;
      there += fmt::format(" && {} < {}", at, extent);
      return fmt::format("{0} < {1} ? {0} : 0", at, extent);
    };
    declare_index(e, s.var, "row", within("first + r", s.extent, s.rows));
    declare_index(e, c_.k_var, "k", within("k0 + d", c_.k, kDepth));
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
  void bring_elements(Emitter& e, const Side& s) const {
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
    e.line(fmt::format("PYC_ALIGN16 u16 x[{}];", kChunk));
    e.line(fmt::format("PYC_UNROLL for (i32 e = 0; e < {}; ++e) {{\n{}}}", kChunk, body));
    e.line(
        fmt::format("*(PYC_NEAR pyc_v16*)(pyc_shared + to + ({})) = *(pyc_v16*)x;", place_of(s)));
  }

  // Of the 16 bytes at (r, d), swizzled.
  static std::string place_of(const Side& s) {
    if (!s.along_rows()) {
      return fmt::format("r * {} + ((d / {} ^ r % 8) << 4)", kRowBytes, kChunk);
    }
    return fmt::format("r / {0} * {1} + d * {2} + ((r % {0} / {3} ^ d % 8) << 4)", kRows,
                       kDepth * kRowBytes, kRowBytes, kChunk);
  }

  std::string buffer_parameters() const {
    std::string text;
    for (const uint32_t b : out_.buffers) {
      const loop::Buffer& buffer = kernel_.buffers[b];
      text +=
          fmt::format("PYC_GLOBAL {}{}* {}, ", buffer.access == loop::Access::kRead ? "const " : "",
                      memory_type(buffer.dtype), buffer_name(b));
    }
    return text;
  }
  std::string buffer_arguments() const {
    std::string text;
    for (const uint32_t b : out_.buffers) text += buffer_name(b) + ", ";
    return text;
  }

  // The loop over what this block computes: tiles, or tiles of one segment each.
  std::string each_item(const std::string& body) const {
    return fmt::format("for (i32 item = pyc_block(); item < {}; item += {}) {{\n{}{}}}\n", items_,
                       out_.blocks, place(), body);
  }

  // Segments of a tile are neighbours where they run together.
  std::string number() const {
    return part_ == Part::kTogether ? fmt::format("item / {}", wgmma_segments(p_))
                                    : fmt::format("item % {}", tiles_);
  }
  std::string segment() const {
    return part_ == Part::kTogether ? fmt::format("item % {}", wgmma_segments(p_))
                                    : fmt::format("item / {}", tiles_);
  }

  // Which tile an item is. Blocks that run together read few rows and few columns.
  std::string place() const {
    const int64_t across = tiles_of(columns_);
    const int64_t down = tiles_of(rows_);
    constexpr int64_t kBand = 8;
    std::string text = fmt::format(
        "const i32 number = {1};\nconst i32 batch = number / {0}, tile = number % {0};\n",
        across * down, number());
    if (down <= kBand) {
      return text + fmt::format(
                        "const i32 first_row = tile % {0} * {1}, "
                        "first_column = tile / {0} * {2};\n",
                        down, rows_.rows, columns_.rows);
    }
    return text + fmt::format(
                      "const i32 band = tile / {0} * {1}, in_band = tile % {0};\n"
                      "const i32 height = {2} - band < {1} ? {2} - band : {1};\n"
                      "const i32 first_row = (band + in_band % height) * {3}, "
                      "first_column = in_band / height * {4};\n",
                      kBand * across, kBand, down, rows_.rows, columns_.rows);
  }

  // A stage has two gates: one opens when it is full, one when it is empty again. Both are passed
  // in turns, the first with parity 0. Every thread that brings reports to the first, for what it
  // copies and for what it writes itself; a warp that has multiplied reports to the second.
  std::string full_gate(const char* slot) const {
    return fmt::format("{}u + {} * {}u", gates_at(p_.tile), slot, kGateBytes);
  }
  std::string empty_gate(const char* slot) const {
    return fmt::format("{}u + {} * {}u", gates_at(p_.tile) + p_.tile.stages * kGateBytes, slot,
                       kGateBytes);
  }
  bool copies() const { return !rows_.elements() || !columns_.elements(); }
  bool writes() const { return rows_.elements() || columns_.elements(); }
  std::string gates() const {
    const int64_t reports = by_maps() ? 1 : bringing_ * ((copies() ? 1 : 0) + (writes() ? 1 : 0));
    return fmt::format(
        "if (thread < {}) {{\npyc_gate_init({}, {}u);\npyc_gate_init({}, {}u);\n{}}}\n"
        "pyc_barrier();\n",
        p_.tile.stages, full_gate("(u32)thread"), reports, empty_gate("(u32)thread"),
        multiplying_ / 32, by_maps() ? "pyc_gates_ready();\n" : "");
  }
  std::string next_slot() const {
    return fmt::format("if (++slot == {}u) {{\nslot = 0;\nturn ^= 1u;\n}}\n", p_.tile.stages);
  }

  // The stages of an item.
  std::string first_and_last() const {
    if (!of_segments()) {
      return fmt::format("const i32 first = 0, last = {};\n", k_stages());
    }
    return fmt::format(
        "const i32 first = {0} * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", segment(),
        segment_of(p_.factors) / kDepth, k_stages());
  }

  // What one thread does that has the device bring operands by their maps.
  std::string bringing_by_maps() const {
    std::string stage = fmt::format(
        "pyc_gate_wait({0}, turn);\nconst u32 to = slot * {1}u;\n"
        "pyc_gate_expect_bytes({2}, {1}u);\n",
        empty_gate("slot"), stage_bytes(p_.tile), full_gate("slot"));
    const std::string gate = full_gate("slot");
    stage += map_copies(mapped_side(kernel_.pool, rows_), "rows_map", "first_row", "to", gate);
    stage += map_copies(mapped_side(kernel_.pool, columns_), "columns_map", "first_column",
                        fmt::format("to + {}u", rows_.bytes()), gate);
    return "pyc_fewer_registers();\nu32 slot = 0, turn = 1;\n" +
           each_item(
               first_and_last() +
               fmt::format("if (thread == {}) for (i32 t = first; t < last; ++t) {{\n{}{}}}\n",
                           multiplying_, stage, next_slot()) +
               (part_ == Part::kTogether ? met() : ""));
  }

  // What the threads do that bring operands.
  std::string bringing() const {
    if (by_maps()) return bringing_by_maps();
    std::string stage = fmt::format("pyc_gate_wait({}, turn);\nconst u32 to = slot * {}u;\n",
                                    empty_gate("slot"), stage_bytes(p_.tile));
    const auto bring = [&](const char* side, int64_t further) {
      return fmt::format("{}_{}({}(u32)(thread - {}) % {}u, batch, first_{}, t * {}, to + {}u);\n",
                         symbol_, side, buffer_arguments(), multiplying_, bringing_,
                         further == 0 ? "row" : "column", kDepth, further);
    };
    stage += bring("rows", 0) + bring("columns", rows_.bytes());
    if (copies()) stage += fmt::format("pyc_gate_arrive_copied({});\n", full_gate("slot"));
    if (writes()) {
      stage += fmt::format("pyc_shared_fence();\npyc_gate_arrive({});\n", full_gate("slot"));
    }
    return "pyc_fewer_registers();\nu32 slot = 0, turn = 1;\n" +
           each_item(first_and_last() + (knows_terms() ? "PYC_UNROLL " : "") +
                     "for (i32 t = first; t < last; ++t) {\n" + stage + next_slot() + "}\n" +
                     (part_ == Part::kTogether ? met() : ""));
  }

  // What the threads do that multiply. Groups of them go each at its own pace, so that one
  // multiplies while the other is at its results.
  std::string multiplying() const {
    return "pyc_more_registers();\nu32 slot = 0, turn = 0;\n" +
           each_item(first_and_last() + products() + results());
  }
  std::string results() const {
    if (part_ == Part::kSegments) return kept();
    return part_ == Part::kTogether ? together() : epilogue();
  }

  // Where all threads of the cluster meet: when the ring is no longer needed, when the sums of all
  // segments lie in its place, and when they were read.
  static std::string met(const std::string& leave = "", const std::string& take = "") {
    return "pyc_barrier();\n" + leave + "pyc_cluster_barrier();\n" + take +
           "pyc_cluster_barrier();\n";
  }
  // Every block joins its share of the tile.
  std::string together() const {
    const std::string leave = fmt::format(
        "PYC_UNROLL for (i32 i = 0; i < {}; ++i) pyc_put2((PYC_NEAR float*)(pyc_shared + "
        "(u32)(i * {} + thread) * 8u), total[2 * i], total[2 * i + 1]);\n",
        sums() / 2, multiplying_);
    return met(leave, fmt::format("const i32 rank = {};\n{}", segment(), epilogue()));
  }

  // The unit's view of a side's part at `at`: rows of 8 groups, or groups of 64 rows.
  static std::string view(const Side& s, const std::string& at) {
    return fmt::format("pyc_wgmma_place({}, {}u, {}u)", at,
                       s.along_rows() ? kDepth * kRowBytes : kBlock, 8 * kRowBytes);
  }
  static int64_t block_bytes(const Side& s) {
    return s.along_rows() ? kBlock * kRowBytes : kBlock * 2;
  }

  // `total` of each of the thread's elements, or of those of the item's segment. One segment alone
  // is summed where its total is: +0 and a sum are the sum, which is never −0.
  std::string products() const {
    const std::string each = fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) ", sums());
    std::string text = fmt::format("float total[{}];\n", sums());
    if (k_stages() == 0) return text + each + "total[i] = 0.0f;\n";
    const bool alone = of_segments() || wgmma_segments(p_) == 1;
    if (alone)
      return text + "{\nconst i32 begin = first, end = last;\n" + segment_sums("total") + "}\n";
    text += fmt::format("{}total[i] = 0.0f;\n", each);
    text += fmt::format(
        "for (i32 begin = first; begin < last; begin += {0}) {{\n"
        "const i32 end = begin + {0} < last ? begin + {0} : last;\nfloat sum[{1}];\n",
        segment_of(p_.factors) / kDepth, sums());
    return text + segment_sums("sum") + each + "total[i] = pyc_add_f32(total[i], sum[i]);\n}\n";
  }

  // The sums of stages begin … end - 1.
  std::string segment_sums(const char* sum) const {
    std::string text = fmt::format(
        "u32 before = 0;\nfor (i32 t = begin; t < end; ++t) {{\n"
        "pyc_gate_wait({0}, turn);\n{5}"
        "const u32 a_at = slot * {1}u + (u32)(thread / {2}) * {3}u, b_at = slot * {1}u + {4}u;\n"
        "pyc_wgmma_fence();\n",
        full_gate("slot"), stage_bytes(p_.tile), kThreads, kRows * kRowBytes, rows_.bytes(),
        by_maps() ? "" : "pyc_shared_fence();\n");
    for (int64_t b = 0; b < kDepth / kBlock; ++b) {
      text += fmt::format("pyc_wgmma({}, {}, {}, {});\n", sum,
                          view(rows_, fmt::format("a_at + {}u", b * block_bytes(rows_))),
                          view(columns_, fmt::format("b_at + {}u", b * block_bytes(columns_))),
                          b == 0 ? "t != begin" : "1");
    }
    const std::string empty =
        fmt::format("thread % 32 == 0) pyc_gate_arrive({});\n", empty_gate("before"));
    return text + "pyc_wgmma_commit();\npyc_wgmma_wait_1();\nif (t != begin && " + empty +
           "before = slot;\n" + next_slot() + "}\npyc_wgmma_wait_0();\nif (" + empty;
  }

  // Where segment `segment` of this tile has the thread's sums in the workspace.
  std::string kept_at(const std::string& segment) const {
    return fmt::format("(PYC_GLOBAL float*)workspace + ((i64)({}) * {} + number) * {} + thread",
                       segment, tiles_, p_.tile.rows * p_.tile.columns);
  }
  // A total is +0 plus the segment's sum, so it is what the sum alone is: no sum is −0.
  std::string kept() const {
    return fmt::format(
        "PYC_GLOBAL float* to = {};\nPYC_UNROLL for (i32 i = 0; i < {}; ++i) to[i * {}] = "
        "total[i];\n",
        kept_at(segment()), sums(), multiplying_);
  }
  std::string joined() const {
    return fmt::format(
        "float total[{0}];\nPYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = 0.0f;\n"
        "for (i32 s = 0; s < {1}; ++s) {{\nPYC_GLOBAL const float* from = {2};\n"
        "PYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = pyc_add_f32(total[i], from[i * "
        "{3}]);\n}}\n",
        sums(), wgmma_segments(p_), kept_at("s"), multiplying_);
  }

  std::string epilogue() const {
    const int64_t segments = part_ == Part::kTogether ? wgmma_segments(p_) : 1;
    return wgmma_epilogue({.kernel = kernel_,
                           .contraction = c_,
                           .unaligned = unaligned_,
                           .symbol = symbol_,
                           .tile = p_.tile,
                           .row_extent = rows_.extent,
                           .column_extent = columns_.extent,
                           .at = sums_at(p_.tile),
                           .segments = segments});
  }

  const WgmmaProduct& p_;
  const lower::Contraction& c_;
  Part part_;
  std::string symbol_;
  loop::Kernel kernel_;
  Side rows_;
  Side columns_;
  int64_t tiles_ = 0;
  int64_t items_ = 0;        // that blocks take in turn
  int64_t multiplying_ = 0;  // threads
  int64_t bringing_ = 0;
  std::vector<bool> unaligned_;
  KernelText out_;
};

}  // namespace

int64_t wgmma_segments(const WgmmaProduct& product) {
  const int64_t segment = segment_of(product.factors);
  return (product.contraction().k + segment - 1) / segment;
}

WgmmaBring wgmma_bring(const WgmmaProduct& product, bool of_b) {
  const lower::Contraction& c = product.contraction();
  if (product.packing && product.packing->of_a != of_b) return WgmmaBring::kAlongK;
  const loop::Pool& pool = c.kernel->pool;
  const ExprId load = padded_load(pool, operand_of(product, of_b).value, product.factors);
  if (load == kNone) return WgmmaBring::kElements;
  const auto buffer = static_cast<uint32_t>(pool.node(load).imm);
  if (product.group->buffer_offset_bytes(buffer) % kBufferAlignment != 0) {
    return WgmmaBring::kElements;
  }
  if (lies_in_runs(pool, load, c.k_var, c.k, kChunk)) return WgmmaBring::kAlongK;
  const bool along_rows =
      lies_in_runs(pool, load, row_var_of(c, of_b), row_count_of(c, of_b), kChunk);
  const bool in_columns = of_b != product.tile.swapped;
  const int64_t rows = in_columns ? product.tile.columns : product.tile.rows;
  return along_rows && rows % kRows == 0 ? WgmmaBring::kAlongRows : WgmmaBring::kElements;
}

bool wgmma_has_maps(const WgmmaProduct& product) {
  return product.contraction().batch_size() == 1 && has_map(product, false) &&
         has_map(product, true);
}

bool wgmma_together(const WgmmaProduct& product) {
  return product.tile.split && wgmma_segments(product) <= kMostTogether;
}

bool wgmma_fits(const WgmmaProduct& product) {
  const WgmmaTile& tile = product.tile;
  const int64_t segments = wgmma_segments(product);
  if (tile.split && segments < 2) return false;
  const lower::Contraction& c = product.contraction();
  const double items = static_cast<double>(c.m) * static_cast<double>(c.n) *
                       static_cast<double>(c.batch_size()) * static_cast<double>(segments) /
                       static_cast<double>(tile.rows * tile.columns);
  const auto shares = register_shares(product);
  const int64_t registers =
      shares ? shares->multiplying
             : std::min(kRegisters / threads_of(product) / 8 * 8, kMostRegisters);
  return items <= kMostTiles && shared_bytes(tile) <= kMostShared &&
         registers_of(product) <= registers && (!tile.maps || wgmma_has_maps(product));
}

int64_t wgmma_resident(const WgmmaProduct& product) {
  if (register_shares(product)) return 1;
  const int64_t registers = rounded_up(std::max(registers_of(product), kLeastRegisters), 8);
  return std::clamp(std::min(kMostShared / (shared_bytes(product.tile) + kReservedShared),
                             kRegisters / (threads_of(product) * registers)),
                    int64_t{1}, kMostResident);
}

std::vector<KernelText> wgmma_texts(const WgmmaProduct& product, const std::string& symbol) {
  std::vector<KernelText> out;
  const auto add = [&](Part part) { out.push_back(WgmmaWriter(product, part, symbol).write()); };
  if (!product.tile.split) {
    add(Part::kWhole);
    return out;
  }
  if (wgmma_together(product)) {
    add(Part::kTogether);
    return out;
  }
  add(Part::kSegments);
  add(Part::kJoin);
  return out;
}

}  // namespace pyc::cuda

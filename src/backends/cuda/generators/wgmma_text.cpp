#include "backends/cuda/generators/wgmma_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product_runs.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/neighbours.h"
#include "base/matrix_unit.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::VarId;

// A stage is not filled before the product after the one that read it has begun.
constexpr int64_t kStagesInUse = 2;
constexpr int64_t kDepth = 64;      // of a stage, along k
constexpr int64_t kRowBytes = 128;  // of a stage's row, and of the swizzle
constexpr int64_t kChunk = 8;       // elements of 16 bytes
constexpr int64_t kThreads = 128;   // that compute kRows rows together
constexpr int64_t kRows = 64;
constexpr int64_t kBlock = 16;  // of k in one instruction
constexpr int64_t kFewStages = 4;
// So many floats between rows of sums let eight rows be written without a conflict of banks.
constexpr int64_t kPadding = 8;
constexpr int64_t kMostShared = 227 << 10;
constexpr int64_t kReservedShared = 1 << 10;  // of each block
constexpr double kMostTiles = 1e9;            // blocks are counted in i32
constexpr int64_t kMostRegisters = 256;       // of a thread
constexpr int64_t kRegisters = 1 << 16;       // of a multiprocessor
constexpr int64_t kOtherRegisters = 64;       // besides sums

// One side of the tile.
struct Side {
  ExprId value = kNone;  // of the operand, rounded to the factors' type
  VarId var = kNone;     // of its rows; kNone: there is one
  int64_t extent = 1;
  int64_t rows = 0;  // in a tile
  WgmmaBring bring = WgmmaBring::kElements;
  int64_t bytes() const { return rows * kRowBytes; }
  bool along_rows() const { return bring == WgmmaBring::kAlongRows; }
};

const lower::Contraction::Operand& operand_of(const WgmmaProduct& product, bool of_b) {
  return of_b ? product.contraction().b : product.contraction().a;
}
VarId row_var_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n_var : c.m_var; }
int64_t row_count_of(const lower::Contraction& c, bool of_b) { return of_b ? c.n : c.m; }

int64_t stage_bytes(const WgmmaTile& tile) { return (tile.rows + tile.columns) * kRowBytes; }
int64_t sums_row(const WgmmaTile& tile) { return tile.columns + kPadding; }
int64_t shared_bytes(const WgmmaTile& tile) {
  return std::max(tile.stages * stage_bytes(tile), tile.rows * sums_row(tile) * int64_t{4});
}
int64_t segment_of(DType factors) { return find_matrix_unit("sm90", factors)->segment; }

// What of a product a kernel computes.
enum class Part : uint8_t { kWhole, kSegments, kJoin };

// Of a thread, roughly: sums, totals where segments follow one another, and addresses.
int64_t registers_of(const WgmmaProduct& product) {
  const int64_t sums = product.tile.columns / 2;
  return kOtherRegisters + (wgmma_segments(product) > 1 && !product.tile.split ? 2 : 1) * sums;
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
    out_.threads = static_cast<uint32_t>(p_.tile.rows / kRows * kThreads);
    tiles_ = tiles_of(rows_) * tiles_of(columns_) * c_.batch_size();
    const int64_t segments = wgmma_segments(p_);
    out_.blocks = static_cast<uint32_t>(part_ == Part::kSegments ? tiles_ * segments : tiles_);
    out_.shared_bytes = static_cast<uint32_t>(shared_bytes(p_.tile));
    if (part_ != Part::kWhole) {
      out_.workspace_bytes = tiles_ * segments * p_.tile.rows * p_.tile.columns * 4;
    }
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      unaligned_.push_back(p_.group->buffer_offset_bytes(b) % kBufferAlignment != 0);
    }
  }

  KernelText write() {
    const WgmmaInstruction instruction{.factors = p_.factors,
                                       .columns = p_.tile.columns,
                                       .a_along_rows = rows_.along_rows(),
                                       .b_along_rows = columns_.along_rows(),
                                       .open_copies = ahead() - 1};
    out_.text = wgmma_prelude(instruction) + Emitter(kernel_, cuda_dialect(), symbol_).tables();
    std::string body = place();
    if (part_ == Part::kJoin) {
      body += joined();
    } else {
      out_.text += bring_function(rows_, "rows") + bring_function(columns_, "columns");
      body += products();
    }
    body += part_ == Part::kSegments ? kept() : epilogue();
    out_.text += kernel_head(out_, kernel_, true) + " {\n" + body + "}\n";
    return std::move(out_);
  }

 private:
  int64_t ahead() const { return p_.tile.stages - kStagesInUse; }
  int64_t k_stages() const { return (c_.k + kDepth - 1) / kDepth; }
  // Whether all stages are written out, so that for elements that come one by one all that follows
  // from k is a constant: the window of a first convolution has few channels and few terms.
  bool knows_terms() const {
    const bool one_by_one =
        rows_.bring == WgmmaBring::kElements || columns_.bring == WgmmaBring::kElements;
    return one_by_one && k_stages() <= kFewStages;
  }
  int64_t sums() const { return p_.tile.columns / 2; }  // of a thread

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
    s.bring = wgmma_bring(p_, of_b);
    return s;
  }

  static int64_t tiles_of(const Side& s) { return (s.extent + s.rows - 1) / s.rows; }

  void declare_batch(Emitter& e) const {
    declare_digits(e, "batch", "i32", c_.batch_vars, c_.batch);
  }

  void declare_index(Emitter& e, VarId v, const std::string& name, const std::string& text) const {
    if (v == kNone) return;
    e.line(fmt::format("const {0} {1} = ({0})({2});", e.var_type(v), name, text));
    e.declare(v, name);
  }

  // A function that brings rows first … and k0 … of one operand to a place in shared memory, 16
  // bytes a thread and round.
  std::string bring_function(const Side& s, const std::string& name) const {
    Emitter e(kernel_, cuda_dialect(), symbol_);
    declare_batch(e);
    const bool elements = s.bring == WgmmaBring::kElements;
    const int64_t count = s.rows * kDepth / kChunk;
    e.open_scope();
    e.line(fmt::format("const i32 at = i * {} + pyc_thread();", out_.threads));
    if (count % out_.threads != 0) e.line(fmt::format("if (at >= {}) break;", count));
    e.line(chunk_of_round(s, elements && neighbours_in_rows(s)));
    elements ? bring_elements(e, s) : bring_chunk(e, s);
    const std::string body = e.close_scope();
    const int64_t rounds = (count + out_.threads - 1) / out_.threads;
    e.line(fmt::format("{} for (i32 i = 0; i < {}; ++i) {{\n{}}}",
                       elements && !knows_terms() ? "PYC_UNROLL2" : "PYC_UNROLL", rounds, body));
    return e.finished(fmt::format("PYC_FN void {}_{}({}i32 batch, i32 first, i32 k0, u32 to)",
                                  symbol_, name, buffer_parameters()));
  }

  // Row r and depth d of this thread's chunk in round i. What is the same in every round, or for
  // all threads, is written so: the compiler then computes it once.
  std::string chunk_of_round(const Side& s, bool by_rows) const {
    const int64_t threads = out_.threads;
    if (s.along_rows()) {
      return fmt::format("const i32 r = at % {0} * {1}, d = at / {0};", s.rows / kChunk, kChunk);
    }
    if (!by_rows) {
      return fmt::format(
          "const i32 r = i * {0} + pyc_thread() / {1}, d = (i32)((u32)pyc_thread() % {1}u) * {2};",
          threads / (kDepth / kChunk), kDepth / kChunk, kChunk);
    }
    if (s.rows % threads == 0) {
      return fmt::format("const i32 r = i % {0} * {1} + pyc_thread(), d = i / {0} * {2};",
                         s.rows / threads, threads, kChunk);
    }
    return fmt::format("const i32 r = at % {0}, d = at / {0} * {1};", s.rows, kChunk);
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

  // Which tile this block has. Blocks that run together read few rows and few columns.
  std::string place() const {
    const int64_t across = tiles_of(columns_);
    const int64_t down = tiles_of(rows_);
    constexpr int64_t kBand = 8;
    std::string text = fmt::format(
        "const i32 thread = pyc_thread();\nconst i32 number = pyc_block() % {1};\n"
        "const i32 batch = number / {0}, tile = number % {0};\n",
        across * down, tiles_);
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

  std::string bring(const std::string& stage) const {
    const std::string to =
        fmt::format("(u32)(({}) % {} * {})", stage, p_.tile.stages, stage_bytes(p_.tile));
    return fmt::format(
        "{0}_rows({1}batch, first_row, ({2}) * {3}, {4});\n"
        "{0}_columns({1}batch, first_column, ({2}) * {3}, {4} + {5}u);\n",
        symbol_, buffer_arguments(), stage, kDepth, to, rows_.bytes());
  }

  // The unit's view of a side's part at `at`: rows of 8 groups, or groups of 64 rows.
  static std::string view(const Side& s, const std::string& at) {
    return fmt::format("pyc_wgmma_place({}, {}u, {}u)", at,
                       s.along_rows() ? kDepth * kRowBytes : kBlock, 8 * kRowBytes);
  }
  static int64_t block_bytes(const Side& s) {
    return s.along_rows() ? kBlock * kRowBytes : kBlock * 2;
  }

  // `total` of each of the thread's elements, or of those of the block's segment.
  std::string products() const {
    const int64_t stages = k_stages();
    const std::string_view unroll = knows_terms() ? "PYC_UNROLL " : "";
    const int64_t of_segment = segment_of(p_.factors) / kDepth;
    const std::string each = fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) ", sums());
    std::string text =
        fmt::format("float sum[{0}], total[{0}];\n{1}total[i] = 0.0f;\n", sums(), each);
    if (part_ == Part::kSegments) {
      text += fmt::format(
          "const i32 first = pyc_block() / {0} * {1}, last = first + {1} < {2} ? first + {1} : "
          "{2};\n",
          tiles_, of_segment, stages);
    } else {
      text += fmt::format("const i32 first = 0, last = {};\n", stages);
    }
    text += fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) {{\n", ahead());
    text +=
        fmt::format("if (first + i < last) {{\n{}}}\npyc_copy_commit();\n}}\n", bring("first + i"));
    text += fmt::format(
        "{6}for (i32 begin = first; begin < last; begin += {0}) {{\n"
        "const i32 end = begin + {0} < last ? begin + {0} : last;\n"
        "{6}for (i32 t = begin; t < end; ++t) {{\n"
        "pyc_copy_wait();\npyc_shared_fence();\npyc_barrier();\n"
        "const u32 a_at = (u32)(t % {1} * {2} + thread / {3} * {4}), "
        "b_at = (u32)(t % {1} * {2} + {5});\n"
        "pyc_wgmma_fence();\n",
        of_segment, p_.tile.stages, stage_bytes(p_.tile), kThreads, kRows * kRowBytes,
        rows_.bytes(), unroll);
    for (int64_t b = 0; b < kDepth / kBlock; ++b) {
      text += fmt::format("pyc_wgmma(sum, {}, {}, {});\n",
                          view(rows_, fmt::format("a_at + {}u", b * block_bytes(rows_))),
                          view(columns_, fmt::format("b_at + {}u", b * block_bytes(columns_))),
                          b == 0 ? "t != begin" : "1");
    }
    text += "pyc_wgmma_commit();\n";
    text += fmt::format("if (t + {0} < last) {{\n{1}}}\npyc_copy_commit();\n", ahead(),
                        bring(fmt::format("t + {}", ahead())));
    // All groups have left stage t - 1 when they meet again.
    text += "pyc_wgmma_wait_1();\n}\npyc_wgmma_wait_0();\n";
    return text + each + "total[i] = pyc_add_f32(total[i], sum[i]);\n}\n";
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
        kept_at(fmt::format("pyc_block() / {}", tiles_)), sums(), out_.threads);
  }
  std::string joined() const {
    return fmt::format(
        "float total[{0}];\nPYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = 0.0f;\n"
        "for (i32 s = 0; s < {1}; ++s) {{\nPYC_GLOBAL const float* from = {2};\n"
        "PYC_UNROLL for (i32 i = 0; i < {0}; ++i) total[i] = pyc_add_f32(total[i], from[i * "
        "{3}]);\n}}\n",
        sums(), wgmma_segments(p_), kept_at("s"), out_.threads);
  }

  // Sums go to shared memory as the unit leaves them with its threads, and come back by rows.
  std::string epilogue() const {
    const int64_t row = sums_row(p_.tile);
    const std::string text = fmt::format(
        "pyc_barrier();\nPYC_NEAR float* sums = (PYC_NEAR float*)pyc_shared;\n{{\n"
        "PYC_NEAR float* own = sums + (thread / 32 * 16 + thread % 32 / 4) * {0} + thread % 4 * "
        "2;\n"
        "PYC_UNROLL for (i32 i = 0; i < {1}; ++i) {{\n"
        "own[i * 8] = total[i * 4];\nown[i * 8 + 1] = total[i * 4 + 1];\n"
        "own[i * 8 + {2}] = total[i * 4 + 2];\nown[i * 8 + {2} + 1] = total[i * 4 + 3];\n}}\n}}\n"
        "pyc_barrier();\n",
        row, p_.tile.columns / 8, 8 * row);
    loop::Loop over_n{.var = c_.n_var, .extent = c_.n};
    for (uint32_t s = 0; s < kernel_.stores.size(); ++s) {
      over_n.body.push_back({loop::StmtKind::kStore, s});
    }
    NeighbourEmitter e(kernel_, cuda_dialect(), symbol_, over_n, unaligned_);
    declare_batch(e);
    e.open_scope();
    const int64_t v = e.elements();
    // Threads side by side have neighbours along n, each v of them.
    const std::string_view order = p_.tile.swapped ? "const i32 r = at % {0} * {1}, c = at / {0};"
                                                   : "const i32 r = at / {0}, c = at % {0} * {1};";
    const int64_t along = (p_.tile.swapped ? p_.tile.rows : p_.tile.columns) / v;
    e.line(fmt::format(fmt::runtime(order), along, v));
    e.line(fmt::format("if (first_row + r >= {} || first_column + c >= {}) continue;", rows_.extent,
                       columns_.extent));
    declare_index(e, c_.m_var, "i", p_.tile.swapped ? "first_column + c" : "first_row + r");
    store_elements(e, over_n, v);
    const std::string body = e.close_scope();
    // Several at once hide what one waits for.
    e.line(fmt::format("PYC_UNROLL4 for (i32 at = thread; at < {}; at += {}) {{\n{}}}",
                       p_.tile.rows * p_.tile.columns / v, out_.threads, body));
    return text + e.close_scope();
  }

  void store_elements(NeighbourEmitter& e, const loop::Loop& over_n, int64_t v) const {
    const std::string first = p_.tile.swapped ? "first_row + r" : "first_column + c";
    const int64_t row = sums_row(p_.tile);
    if (v == 1) {
      declare_index(e, over_n.var, "j", first);
      e.line(fmt::format("const float result = sums[r * {} + c];", row));
      e.declare(c_.result, "result");
      e.serial_body(over_n.body);
      return;
    }
    e.line(fmt::format("const {0} j0 = ({0})({1});", e.var_type(over_n.var), first));
    e.line(fmt::format("PYC_ALIGN16 float results[{}];", v));
    if (p_.tile.swapped) {
      e.line(fmt::format(
          "PYC_UNROLL for (i32 e = 0; e < {}; ++e) results[e] = sums[(r + e) * {} + c];", v, row));
    }
    for (int64_t at = 0; at < v && !p_.tile.swapped; at += 2) {
      e.line(fmt::format(
          "*(pyc_v8*)(results + {0}) = *(PYC_NEAR const pyc_v8*)(sums + r * {1} + c + {0});", at,
          row));
    }
    e.emit_elements(v, [&] { e.declare(c_.result, "results[e]"); });
  }

  const WgmmaProduct& p_;
  const lower::Contraction& c_;
  Part part_;
  std::string symbol_;
  loop::Kernel kernel_;
  Side rows_;
  Side columns_;
  int64_t tiles_ = 0;
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

bool wgmma_fits(const WgmmaProduct& product) {
  const WgmmaTile& tile = product.tile;
  const int64_t segments = wgmma_segments(product);
  if (tile.split && segments < 2) return false;
  const lower::Contraction& c = product.contraction();
  const double blocks = static_cast<double>(c.m) * static_cast<double>(c.n) *
                        static_cast<double>(c.batch_size()) * static_cast<double>(segments) /
                        static_cast<double>(tile.rows * tile.columns);
  return blocks <= kMostTiles && shared_bytes(tile) <= kMostShared &&
         registers_of(product) <= kMostRegisters;
}

int64_t wgmma_resident(const WgmmaProduct& product) {
  const int64_t threads = product.tile.rows / kRows * kThreads;
  return std::min(kMostShared / (shared_bytes(product.tile) + kReservedShared),
                  kRegisters / (threads * registers_of(product)));
}

std::vector<KernelText> wgmma_texts(const WgmmaProduct& product, const std::string& symbol) {
  std::vector<KernelText> out;
  const auto add = [&](Part part) { out.push_back(WgmmaWriter(product, part, symbol).write()); };
  if (!product.tile.split) {
    add(Part::kWhole);
    return out;
  }
  add(Part::kSegments);
  add(Part::kJoin);
  return out;
}

}  // namespace pyc::cuda

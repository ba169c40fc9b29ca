#include "backends/cuda/generators/wgmma_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "backends/cuda/launch.h"
#include "base/matrix_unit.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::VarId;

// A stage is filled while the two before it are multiplied and the next one waits.
constexpr int64_t kStages = 4;
constexpr int64_t kAhead = kStages - 2;
static_assert(kAhead == 2, "pyc_copy_wait_1 leaves one group of copies open");
constexpr int64_t kDepth = 64;      // of a stage, along k
constexpr int64_t kRowBytes = 128;  // of a stage's row, and of the swizzle
constexpr int64_t kChunk = 8;       // elements of 16 bytes
constexpr int64_t kThreads = 128;   // that compute kRows rows together
constexpr int64_t kRows = 64;
constexpr int64_t kBlock = 16;  // of k in one instruction
// So many floats between rows of sums let eight rows be written without a conflict of banks.
constexpr int64_t kPadding = 8;
constexpr int64_t kMostShared = 227 << 10;
constexpr int64_t kReservedShared = 1 << 10;  // of each block
constexpr int64_t kMostSums = 192;            // in a thread's registers

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

// Whether elements 8·i … 8·i + 7 along the variable lie side by side in 16 aligned bytes.
bool lies_along(const loop::Pool& pool, const loop::Affine& offset, VarId var, int64_t extent) {
  if (var == kNone || extent % kChunk != 0 || offset.constant % kChunk != 0) return false;
  bool found = false;
  for (const auto& [atom, c] : offset.terms) {
    const loop::ExprNode& n = pool.node(atom);
    if (n.op == loop::Op::kVar && static_cast<VarId>(n.imm) == var) {
      if (c != 1) return false;
      found = true;
    } else if (c % kChunk != 0 || loop::depends_on(pool, atom, var)) {
      return false;
    }
  }
  return found;
}

int64_t stage_bytes(const WgmmaTile& tile) { return (tile.rows + tile.columns) * kRowBytes; }
int64_t sums_row(const WgmmaTile& tile) { return tile.columns + kPadding; }
int64_t shared_bytes(const WgmmaTile& tile) {
  return std::max(kStages * stage_bytes(tile), tile.rows * sums_row(tile) * int64_t{4});
}

class WgmmaWriter {
 public:
  WgmmaWriter(const WgmmaProduct& product, std::string symbol)
      : p_(product), c_(product.contraction()), symbol_(std::move(symbol)), kernel_(*c_.kernel) {
    product_of(kernel_).value = c_.a.value;
    product_of(kernel_).value2 = c_.b.value;
    kernel_ = loop::without_calls(std::move(kernel_));
    rows_ = side(p_.tile.swapped, p_.tile.rows);
    columns_ = side(!p_.tile.swapped, p_.tile.columns);
    out_.symbol = symbol_;
    out_.form = fmt::format("wgmma {}x{}{}", p_.tile.rows, p_.tile.columns,
                            p_.tile.swapped ? " swapped" : "");
    out_.buffers = parameters_of(kernel_);
    out_.threads = static_cast<uint32_t>(p_.tile.rows / kRows * kThreads);
    out_.blocks = static_cast<uint32_t>(tiles_of(rows_) * tiles_of(columns_) * c_.batch_size());
    out_.shared_bytes = static_cast<uint32_t>(shared_bytes(p_.tile));
  }

  KernelText write() {
    const WgmmaInstruction instruction{.factors = p_.factors,
                                       .columns = p_.tile.columns,
                                       .a_along_rows = rows_.along_rows(),
                                       .b_along_rows = columns_.along_rows()};
    out_.text = wgmma_prelude(instruction) + Emitter(kernel_, cuda_dialect(), symbol_).tables() +
                bring_function(rows_, "rows") + bring_function(columns_, "columns") +
                kernel_head(out_, kernel_, true) + " {\n" + place() + products() + epilogue() +
                "}\n";
    return std::move(out_);
  }

 private:
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

  // A function that brings rows first … and k0 … of one operand to a place in shared memory.
  std::string bring_function(const Side& s, const std::string& name) const {
    Emitter e(kernel_, cuda_dialect(), symbol_);
    declare_batch(e);
    const bool elements = s.bring == WgmmaBring::kElements;
    const int64_t of_row = s.along_rows() ? s.rows / kChunk : elements ? kDepth : kDepth / kChunk;
    const int64_t count = s.rows * kDepth / (elements ? 1 : kChunk);
    e.open_scope();
    e.line(fmt::format("const i32 at = i * {} + pyc_thread();", out_.threads));
    if (count % out_.threads != 0) e.line(fmt::format("if (at >= {}) break;", count));
    if (elements && neighbours_in_rows(s)) {
      e.line(fmt::format("const i32 r = at % {0}, d = at / {0};", s.rows));
    } else if (s.along_rows()) {
      e.line(fmt::format("const i32 r = at % {0} * {1}, d = at / {0};", of_row, kChunk));
    } else {
      e.line(fmt::format("const i32 r = at / {0}, d = at % {0}{1};", of_row,
                         elements ? "" : fmt::format(" * {}", kChunk)));
    }
    e.line(fmt::format("const bool there = first + r < {} && k0 + d < {};", s.extent, c_.k));
    elements ? bring_element(e, s) : bring_chunk(e, s);
    const std::string body = e.close_scope();
    const int64_t rounds = (count + out_.threads - 1) / out_.threads;
    e.line(fmt::format("{} for (i32 i = 0; i < {}; ++i) {{\n{}}}",
                       elements ? "PYC_UNROLL4" : "PYC_UNROLL", rounds, body));
    return e.finished(fmt::format("PYC_FN void {}_{}({}i32 batch, i32 first, i32 k0, u32 to)",
                                  symbol_, name, buffer_parameters()));
  }

  // Whether threads side by side had better read neighbours along the rows.
  bool neighbours_in_rows(const Side& s) const {
    const loop::ExprNode& n = kernel_.pool.node(s.value);
    if (n.op != loop::Op::kLoad || s.var == kNone) return false;
    const loop::Affine offset = loop::affine_of(kernel_.pool, n.a);
    return offset.coefficient(kernel_.pool, s.var) == 1 &&
           offset.coefficient(kernel_.pool, c_.k_var) != 1;
  }

  // Rows and k that are not there are read nowhere; an address stays one of the buffer's.
  void bring_chunk(Emitter& e, const Side& s) const {
    declare_index(e, s.var, "row", "there ? first + r : 0");
    declare_index(e, c_.k_var, "k", "there ? k0 + d : 0");
    const loop::ExprNode load = e.pool_.node(s.value);
    const std::string from =
        fmt::format("{} + {}", buffer_name(static_cast<uint32_t>(load.imm)), e.value(load.a));
    const std::string place =
        s.along_rows() ? fmt::format("r / {0} * {1} + d * {2} + ((r % {0} / {3} ^ d % 8) << 4)",
                                     kRows, kDepth * kRowBytes, kRowBytes, kChunk)
                       : fmt::format("r * {} + ((d / {} ^ r % 8) << 4)", kRowBytes, kChunk);
    e.line(fmt::format("pyc_copy16(to + (u32)({}), {}, there ? 16u : 0u);", place, from));
  }

  void bring_element(Emitter& e, const Side& s) const {
    e.line("u16 x = 0;");
    e.open_scope();
    declare_index(e, s.var, "row", "first + r");
    declare_index(e, c_.k_var, "k", "k0 + d");
    e.line(fmt::format("x = {};", e.value(s.value)));
    e.end_statement();
    const std::string body = e.close_scope();
    e.line("if (there) {\n" + body + "}");
    e.line(
        fmt::format("*(PYC_NEAR u16*)(pyc_shared + to + (r * {} + ((d / {} ^ r % 8) << 4) + "
                    "d % {} * 2)) = x;",
                    kRowBytes, kChunk, kChunk));
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
        "const i32 thread = pyc_thread();\nconst i32 batch = pyc_block() / {0};\n"
        "const i32 tile = pyc_block() % {0};\n",
        across * down);
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
        fmt::format("(u32)(({}) % {} * {})", stage, kStages, stage_bytes(p_.tile));
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

  // `total` of each of the thread's elements.
  std::string products() const {
    const int64_t stages = (c_.k + kDepth - 1) / kDepth;
    const int64_t of_segment = find_matrix_unit("sm90", p_.factors)->segment / kDepth;
    const int64_t count = p_.tile.columns / 2;
    const std::string each = fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) ", count);
    std::string text =
        fmt::format("float sum[{0}], total[{0}];\n{1}total[i] = 0.0f;\n", count, each);
    text += fmt::format("PYC_UNROLL for (i32 t = 0; t < {}; ++t) {{\n", kAhead);
    text += fmt::format("if (t < {}) {{\n{}}}\npyc_copy_commit();\n}}\n", stages, bring("t"));
    text += fmt::format(
        "for (i32 begin = 0; begin < {0}; begin += {1}) {{\n"
        "const i32 end = begin + {1} < {0} ? begin + {1} : {0};\n"
        "for (i32 t = begin; t < end; ++t) {{\n"
        "pyc_copy_wait_1();\npyc_shared_fence();\npyc_barrier();\n"
        "const u32 a_at = (u32)(t % {2} * {3} + thread / {4} * {5}), "
        "b_at = (u32)(t % {2} * {3} + {6});\n"
        "pyc_wgmma_fence();\n",
        stages, of_segment, kStages, stage_bytes(p_.tile), kThreads, kRows * kRowBytes,
        rows_.bytes());
    for (int64_t b = 0; b < kDepth / kBlock; ++b) {
      text += fmt::format("pyc_wgmma(sum, {}, {}, {});\n",
                          view(rows_, fmt::format("a_at + {}u", b * block_bytes(rows_))),
                          view(columns_, fmt::format("b_at + {}u", b * block_bytes(columns_))),
                          b == 0 ? "t != begin" : "1");
    }
    text += "pyc_wgmma_commit();\n";
    text += fmt::format("if (t + {0} < {1}) {{\n{2}}}\npyc_copy_commit();\n", kAhead, stages,
                        bring(fmt::format("t + {}", kAhead)));
    // All groups have left stage t - 1 when they meet again.
    text += "pyc_wgmma_wait_1();\n}\npyc_wgmma_wait_0();\n";
    return text + each + "total[i] = pyc_add_f32(total[i], sum[i]);\n}\n";
  }

  // Sums go to shared memory as the unit leaves them with its threads, and come back by rows.
  std::string epilogue() const {
    const int64_t row = sums_row(p_.tile);
    std::string text = fmt::format(
        "pyc_barrier();\nPYC_NEAR float* sums = (PYC_NEAR float*)pyc_shared;\n{{\n"
        "PYC_NEAR float* own = sums + (thread / 32 * 16 + thread % 32 / 4) * {0} + thread % 4 * "
        "2;\n"
        "PYC_UNROLL for (i32 i = 0; i < {1}; ++i) {{\n"
        "own[i * 8] = total[i * 4];\nown[i * 8 + 1] = total[i * 4 + 1];\n"
        "own[i * 8 + {2}] = total[i * 4 + 2];\nown[i * 8 + {2} + 1] = total[i * 4 + 3];\n}}\n}}\n"
        "pyc_barrier();\n",
        row, p_.tile.columns / 8, 8 * row);
    Emitter e(kernel_, cuda_dialect(), symbol_);
    declare_batch(e);
    e.open_scope();
    // Threads side by side have neighbours along n.
    if (p_.tile.swapped) {
      e.line(fmt::format("const i32 r = at % {0}, c = at / {0};", p_.tile.rows));
    } else {
      e.line(fmt::format("const i32 r = at / {0}, c = at % {0};", p_.tile.columns));
    }
    e.line(fmt::format("if (first_row + r >= {} || first_column + c >= {}) continue;", rows_.extent,
                       columns_.extent));
    declare_index(e, rows_.var, "row", "first_row + r");
    declare_index(e, columns_.var, "column", "first_column + c");
    e.line(fmt::format("const float result = sums[r * {} + c];", row));
    e.declare(c_.result, "result");
    for (const loop::Store& s : kernel_.stores) {
      e.store(s);
      e.end_statement();
    }
    const std::string body = e.close_scope();
    e.line(fmt::format("for (i32 at = thread; at < {}; at += {}) {{\n{}}}",
                       p_.tile.rows * p_.tile.columns, out_.threads, body));
    return text + e.close_scope();
  }

  const WgmmaProduct& p_;
  const lower::Contraction& c_;
  std::string symbol_;
  loop::Kernel kernel_;
  Side rows_;
  Side columns_;
  KernelText out_;
};

}  // namespace

WgmmaBring wgmma_bring(const WgmmaProduct& product, bool of_b) {
  const lower::Contraction& c = product.contraction();
  const lower::Contraction::Operand& o = operand_of(product, of_b);
  if (o.form == lower::Contraction::Form::kComputed || o.dtype != product.factors) {
    return WgmmaBring::kElements;
  }
  if (product.group->buffer_offset_bytes(o.buffer) % kBufferAlignment != 0) {
    return WgmmaBring::kElements;
  }
  const loop::Pool& pool = c.kernel->pool;
  const loop::Affine offset = loop::affine_of(pool, pool.node(o.load).a);
  if (lies_along(pool, offset, c.k_var, c.k)) return WgmmaBring::kAlongK;
  const bool along_rows = lies_along(pool, offset, row_var_of(c, of_b), row_count_of(c, of_b));
  const bool in_columns = of_b != product.tile.swapped;
  const int64_t rows = in_columns ? product.tile.columns : product.tile.rows;
  return along_rows && rows % kRows == 0 ? WgmmaBring::kAlongRows : WgmmaBring::kElements;
}

bool wgmma_fits(const WgmmaProduct& product) {
  const int64_t segment = find_matrix_unit("sm90", product.factors)->segment;
  const int64_t sums = product.tile.columns / 2;
  const int64_t registers = product.contraction().k > segment ? 2 * sums : sums;
  return shared_bytes(product.tile) <= kMostShared && registers <= kMostSums;
}

int64_t wgmma_resident(const WgmmaTile& tile) {
  return kMostShared / (shared_bytes(tile) + kReservedShared);
}

KernelText wgmma_text(const WgmmaProduct& product, const std::string& symbol) {
  return WgmmaWriter(product, symbol).write();
}

}  // namespace pyc::cuda

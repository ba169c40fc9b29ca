#include "backends/cuda/generators/wgmma_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/neighbours.h"
#include "loop/walk.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int64_t kLongNeeds = 40;      // registers more than what is stored after few operations
constexpr int64_t kWordsBytes = 16;     // that a thread reads at once
constexpr int64_t kFetchedBytes = 128;  // of memory
constexpr int64_t kRowsOfWarp = 16;     // of a tile
constexpr int64_t kFewSegments = 4;     // that are read at once
constexpr int64_t kNarrowColumns = 32;  // columns of a piece of 16 rows, at most
constexpr int64_t kWideColumns = 64;    // of 8 rows
// So many floats more between rows let four rows be written without a conflict of banks.
constexpr int64_t kRowPadding = 8;

// The piece of a warp's sums that passes through shared memory at a time.
struct SumPiece {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row() const { return columns + kRowPadding; }
  int64_t blocks() const { return columns / 8; }  // of the unit: 8 columns, two for a thread
  bool wide() const { return columns == kWideColumns; }
};
SumPiece piece_of(const WgmmaTile& tile) {
  if (!tile.swapped && tile.columns % kWideColumns == 0) return {kRowsOfWarp / 2, kWideColumns};
  int64_t columns = kNarrowColumns;
  while (tile.columns % columns != 0) columns /= 2;
  return {kRowsOfWarp, columns};
}
// Warps that multiply.
int64_t warps_of_tile(const WgmmaTile& tile) {
  return wgmma_groups(tile) * kGroupRows / kRowsOfWarp;
}
// Of 64 rows.
int64_t pieces_of_block(const WgmmaTile& tile) {
  const SumPiece piece = piece_of(tile);
  return kRowsOfWarp / piece.rows * (tile.columns / piece.columns);
}

// All that stored values are made of, but for places.
std::vector<ExprId> stored_expressions(const loop::Kernel& kernel) {
  std::vector<ExprId> out;
  loop::Walk walk(kernel.pool);
  for (const loop::Store& s : kernel.stores) {
    walk(s.value, [&](ExprId e, const loop::ExprNode& n) {
      out.push_back(e);
      return n.op != loop::Op::kLoad;
    });
  }
  return out;
}

class EpilogueWriter {
 public:
  explicit EpilogueWriter(const WgmmaEpilogue& epilogue)
      : e_(epilogue), c_(epilogue.contraction), tile_(epilogue.tile), piece_(piece_of(tile_)) {
    over_n_.var = c_.n_var;
    over_n_.extent = c_.n;
    for (uint32_t s = 0; s < e_.kernel.stores.size(); ++s) {
      over_n_.body.push_back({loop::StmtKind::kStore, s});
    }
  }

  std::string write() const {
    NeighbourEmitter e(e_.kernel, cuda_dialect(), e_.symbol, over_n_, e_.unaligned);
    e.divide_together();
    declare_digits(e, "batch", "i32", c_.batch_vars, c_.batch);
    e.line(
        fmt::format("PYC_NEAR float* sums = (PYC_NEAR float*)(pyc_shared + {}) + thread / {} * {};",
                    e_.at, kWarpThreads, piece_.rows * piece_.row()));
    e.open_scope();
    const int64_t v = e.elements();
    const int64_t count = piece_.rows * piece_.columns / v;
    const int64_t rounds = (count + kWarpThreads - 1) / kWarpThreads;
    e.line(place());
    const std::string ahead = read_ahead(e, v, rounds);
    read_row_early(e, v);
    e.line("pyc_warp_barrier();\n" + (e_.segments > 1 ? joined_sums() : own_sums()) +
           "pyc_warp_barrier();");
    // Several at once hide what one waits for, if sums leave registers for that.
    const bool rolled = is_long() && tile_.turns == 0 && tile_.columns > 128;
    const auto loop = [&](bool guarded, std::string_view unrolled) {
      return fmt::format("{} for (i32 round = 0; round < {}; ++round) {{\n{}}}\n", unrolled, rounds,
                         one_round(e, v, guarded));
    };
    const std::string inside = loop(false, rolled ? "PYC_ROLLED" : "PYC_UNROLL4");
    if (is_whole()) {
      e.line(inside);
    } else {
      // Only pieces at the border ask for every element whether it is there: what branches has one
      // round after the other wait for its own.
      e.line(fmt::format("if (row + {} <= {} && column + {} <= {}) {{\n{}}} else {{\n{}}}",
                         piece_.rows, e_.row_extent, piece_.columns, e_.column_extent, inside,
                         loop(true, "PYC_ROLLED")));
    }
    const std::string piece = e.close_scope();
    e.line(ahead + each_piece() + " {\n" + piece + "}");
    return e.close_scope();
  }

  std::string prefetches(int64_t first, const std::string& rank) const {
    std::string text;
    for (const ExprId load : loads()) {
      Emitter e(e_.kernel, cuda_dialect(), e_.symbol);
      e.open_scope();
      declare_digits(e, "batch", "i32", c_.batch_vars, c_.batch);
      e.open_scope();
      const loop::ExprNode& n = e_.kernel.pool.node(load);
      const int64_t line = kFetchedBytes / dtype_size(n.dtype);
      const int64_t along = ((tile_.swapped ? tile_.rows : tile_.columns) + line - 1) / line;
      const int64_t lines = along * (tile_.swapped ? tile_.columns : tile_.rows);
      declare_index(e, c_.m_var, "i",
                    fmt::format("first_{} + line / {}", tile_.swapped ? "column" : "row", along));
      declare_index(
          e, c_.n_var, "j",
          fmt::format("first_{} + line % {} * {}", tile_.swapped ? "row" : "column", along, line));
      if (!is_whole()) e.line(fmt::format("if (i >= {} || j >= {}) continue;", c_.m, c_.n));
      e.line(fmt::format("pyc_prefetch({} + {});", buffer_name(static_cast<uint32_t>(n.imm)),
                         e.value(n.a)));
      const std::string body = e.close_scope();
      const std::string share = rank.empty() ? "" : fmt::format(" + ({}) * {}", rank, kWarpThreads);
      e.line(
          fmt::format("if (thread < {0} + {1}) PYC_ROLLED for (i32 line = thread - {0}{2}; line < "
                      "{3}; line += {4}) "
                      "{{\n{5}}}",
                      first, kWarpThreads, share, lines, kWarpThreads * e_.segments, body));
      text += e.close_scope();
    }
    return text.empty() ? "" : "{\n" + text + "}\n";
  }

 private:
  // A warp's stores wait for what they read, and what they read waits for the stores before, which
  // may be to the same place. So matrices are read for several pieces at once. Returns the
  // variables they are read to.
  std::string read_ahead(NeighbourEmitter& e, int64_t v, int64_t rounds) const {
    if (e_.segments > 1 || !is_whole() || !piece_.wide() || rounds != 2) return "";
    std::string variables;
    for (const ExprId load : loads()) {
      const loop::ExprNode& n = e_.kernel.pool.node(load);
      if (dtype_size(n.dtype) * v != kWordsBytes || !e.reads_at_once(load, v)) continue;
      const int64_t pieces = wgmma_pieces(tile_);
      int64_t at_once =
          std::clamp<int64_t>((e_.registers - (is_long() ? kLongNeeds : 0)) / (4 * rounds), 1, 4);
      while (pieces % at_once != 0) --at_once;
      Emitter other(e_.kernel, cuda_dialect(), e_.symbol);
      other.open_scope();
      declare_digits(other, "batch", "i32", c_.batch_vars, c_.batch);
      other.line(fmt::format("const i32 at = q % {} * {} + thread % {};", rounds, kWarpThreads,
                             kWarpThreads));
      other.line(fmt::format("const i32 piece = begin + q / {};\n{}", rounds, place()));
      declare_index(other, c_.m_var, "i", fmt::format("row + at / {}", piece_.columns / v));
      declare_index(other, c_.n_var, "j",
                    fmt::format("column + at % {} * {}", piece_.columns / v, v));
      const std::string name = fmt::format("ahead{}", load);
      other.line(fmt::format("{}[q] = *(PYC_GLOBAL const pyc_v16*)({} + {});", name,
                             buffer_name(static_cast<uint32_t>(n.imm)), other.value(n.a)));
      e.line(
          fmt::format("if (piece % {0} == 0) {{\nconst i32 begin = piece;\nPYC_UNROLL for (i32 q = "
                      "0; q < {1}; ++q) {{\n{2}}}\n}}",
                      at_once, at_once * rounds, other.close_scope()));
      e.line(fmt::format(
          "pyc_v16 now{0}[{1}];\nPYC_UNROLL for (i32 q = 0; q < {2}; ++q) if (piece % {2} "
          "== q) PYC_UNROLL for (i32 k = 0; k < {1}; ++k) now{0}[k] = {3}[q * {1} + k];",
          load, rounds, at_once, name));
      e.give(load, fmt::format("round == 0 ? now{0}[0] : now{0}[1]", load));
      variables += fmt::format("pyc_v16 {}[{}];\n", name, at_once * rounds);
    }
    return variables;
  }

  // What is the same in all rows, as a bias, is on its way before sums go through shared memory:
  // behind that, every round of a thread would wait for it.
  void read_row_early(NeighbourEmitter& e, int64_t v) const {
    constexpr int64_t kNeeds = 16;  // registers
    const bool has_registers = e_.registers >= (is_long() ? kLongNeeds : kNeeds);
    if (e_.segments > 1 || !is_whole() || !piece_.wide() || !has_registers) return;
    // In each round a thread has the same columns.
    if (v == 1 || kWarpThreads % (piece_.columns / v) != 0) return;
    for (const ExprId load : loads(false)) {
      const loop::ExprNode& n = e_.kernel.pool.node(load);
      if (dtype_size(n.dtype) * v != kWordsBytes || !e.reads_at_once(load, v)) continue;
      Emitter other(e_.kernel, cuda_dialect(), e_.symbol);
      other.open_scope();
      declare_digits(other, "batch", "i32", c_.batch_vars, c_.batch);
      declare_index(other, c_.n_var, "j",
                    fmt::format("column + thread % {} * {}", piece_.columns / v, v));
      const std::string name = fmt::format("early{}", load);
      other.line(fmt::format("{} = *(PYC_GLOBAL const pyc_v16*)({} + {});", name,
                             buffer_name(static_cast<uint32_t>(n.imm)), other.value(n.a)));
      e.line(fmt::format("pyc_v16 {};\n{{\n{}}}", name, other.close_scope()));
      e.give(load, name);
    }
  }

  // What stores read of each row and column, neighbours along n, that lies where its indices say;
  // or else what they read of each column alone.
  std::vector<ExprId> loads(bool of_rows = true) const {
    const loop::Pool& pool = e_.kernel.pool;
    std::vector<ExprId> out;
    if (c_.m_var == kNone || c_.n_var == kNone) return out;
    for (const ExprId e : expressions()) {
      const loop::ExprNode& n = pool.node(e);
      if (n.op != loop::Op::kLoad || n.b != kNone) continue;
      if (e_.kernel.buffers[static_cast<size_t>(n.imm)].access != loop::Access::kRead) continue;
      const loop::Affine at = loop::affine_of(pool, n.a);
      const bool is_matrix = std::ranges::all_of(
          at.terms, [&](const auto& term) { return pool.node(term.first).op == loop::Op::kVar; });
      const int64_t step = at.coefficient(pool, c_.m_var);
      if (is_matrix && at.coefficient(pool, c_.n_var) == 1 && (of_rows ? step > 1 : step == 0)) {
        out.push_back(e);
      }
    }
    return out;
  }

  // What a warp stores in a round; where it is guarded, of what lies within the result.
  std::string one_round(NeighbourEmitter& e, int64_t v, bool guarded) const {
    e.open_scope();
    // Threads side by side have neighbours along n, each v of them.
    const std::string_view order = tile_.swapped ? "const i32 r = at % {0} * {1}, c = at / {0};"
                                                 : "const i32 r = at / {0}, c = at % {0} * {1};";
    e.line(fmt::format("const i32 at = round * {0} + thread % {0};", kWarpThreads));
    const int64_t along = (tile_.swapped ? piece_.rows : piece_.columns) / v;
    e.line(fmt::format(fmt::runtime(order), along, v));
    const int64_t count = piece_.rows * piece_.columns / v;
    if (count % kWarpThreads != 0) e.line(fmt::format("if (at >= {}) continue;", count));
    e.line("const i32 in_rows = row + r, in_columns = column + c;");
    if (guarded) {
      e.line(fmt::format("if (in_rows >= {} || in_columns >= {}) continue;", e_.row_extent,
                         e_.column_extent));
    }
    declare_index(e, c_.m_var, "i", tile_.swapped ? "in_columns" : "in_rows");
    store_elements(e, v);
    return e.close_scope();
  }

  // Whether no tile reaches beyond the result.
  bool is_whole() const {
    return e_.row_extent % tile_.rows == 0 && e_.column_extent % tile_.columns == 0;
  }
  // Pieces are counted through the warp's rows first where a piece has half of them.
  std::string each_piece() const {
    const int64_t pieces = wgmma_pieces(tile_);
    if (e_.segments == 1) return fmt::format("for (i32 piece = 0; piece < {}; ++piece)", pieces);
    // Any warp of any block can have any piece of any warp's sums.
    return fmt::format("for (i32 one = thread / {0} * {1} + rank; one < {2}; one += {3})",
                       kWarpThreads, e_.segments, pieces * warps_of_tile(tile_),
                       warps_of_tile(tile_) * e_.segments);
  }
  std::string place() const {
    const int64_t halves = kRowsOfWarp / piece_.rows;
    std::string text;
    if (e_.segments > 1) {
      text = fmt::format("const i32 warp = one % {0}, piece = one / {0};\n", warps_of_tile(tile_));
    } else {
      text = fmt::format("const i32 warp = thread / {}{};\n", kWarpThreads,
                         tile_.turns > 0 ? fmt::format(" % {}", kGroupRows / kRowsOfWarp) : "");
    }
    const bool has_blocks = wgmma_row_blocks(tile_) > 1;
    const std::string of_block =
        has_blocks ? fmt::format("piece % {}", pieces_of_block(tile_)) : "piece";
    const std::string block =
        has_blocks ? fmt::format("piece / {} * {} + ", pieces_of_block(tile_), kGroupRows) : "";
    return text + fmt::format(
                      "const i32 column = first_column + {5} / {0} * {1};\n"
                      "const i32 row = first_row + {6}warp * {2} + piece % {0} * {3};{4}",
                      halves, piece_.columns, kRowsOfWarp, piece_.rows,
                      is_whole() ? ""
                                 : fmt::format("\nif (column >= {}) {};", e_.column_extent,
                                               has_blocks ? "continue" : "break"),
                      of_block, block);
  }

  // Four floats of a row change places with their neighbours, so that those who read 32 bytes each
  // have different banks: in the second half of a wide row, in every other narrow one. Who reads
  // along the rows has no use for that.
  std::string swizzle() const {
    if (tile_.swapped) return "0";
    return piece_.wide() ? "c / 32" : "r % 2";
  }
  std::string sum_at(int64_t further) const {
    return fmt::format("sums + r * {} + (((c / 4 + {}) ^ {}) << 2) + c % 4", piece_.row(),
                       further / 4, swizzle());
  }
  // Where a thread puts its pair of block `i`, in rows 0 … 7.
  std::string own_place(int64_t i) const {
    const bool second = piece_.wide() && i * 8 >= kWideColumns / 2;
    return fmt::format("{} + {}", second ? "own2" : "own", i * 8);
  }
  std::string own_rows() const {
    std::string x = "0";
    if (!tile_.swapped && !piece_.wide()) x = fmt::format("thread % {} / 4 % 2 * 2", kWarpThreads);
    std::string text = fmt::format(
        "PYC_NEAR float* own_row = sums + thread % {} / 4 * {};\n"
        "PYC_NEAR float* own = own_row + (thread % 4 ^ {}) * 2;\n",
        kWarpThreads, piece_.row(), x);
    if (piece_.wide()) text += "PYC_NEAR float* own2 = own_row + (thread % 4 ^ 2) * 2;\n";
    return text;
  }

  // Registers have no number that is known at run time only.
  std::string own_sums() const {
    std::string text = own_rows();
    const int64_t halves = kRowsOfWarp / piece_.rows;
    for (int64_t p = 0; p < wgmma_pieces(tile_); ++p) {
      text += fmt::format("if (piece == {}) {{\n", p);
      for (int64_t i = 0; i < piece_.blocks(); ++i) {
        const int64_t of_block = pieces_of_block(tile_);
        const int64_t first =
            p / of_block * tile_.columns / 2 + (p % of_block / halves * piece_.blocks() + i) * 4;
        for (int64_t h = 0; h < 2; ++h) {
          if (halves == 2 && h != p % 2) continue;
          text +=
              fmt::format("pyc_put2({} + {}, total[{}], total[{}]);\n", own_place(i),
                          halves == 2 ? 0 : h * 8 * piece_.row(), first + 2 * h, first + 2 * h + 1);
        }
      }
      text += "}\n";
    }
    return text;
  }

  // The same from the sums of all segments, in their order.
  std::string joined_sums() const {
    const int64_t halves = kRowsOfWarp / piece_.rows;
    const int64_t pairs = piece_.blocks() * 2 / halves;
    const int64_t step =
        warps_of_tile(tile_) * kWarpThreads * 8;  // bytes from one pair of a thread on
    std::string text = own_rows();
    text += fmt::format(
        "const u32 from = (u32)(piece / {0} * {1} + piece % {0}) * {2}u + (u32)(warp * {3} + "
        "thread % {3}) * 8u;\n",
        halves, piece_.blocks() * 2, step, kWarpThreads);
    text += fmt::format("float joined[{}];\n", 2 * pairs);
    const std::string each = fmt::format("PYC_UNROLL for (u32 i = 0; i < {}; ++i) ", pairs);
    const std::string at = fmt::format("from + i * {}u", halves * step);
    text += fmt::format("{}pyc_far2(0, {}, joined + 2 * i);\n", each, at);
    text += fmt::format(
        "{}for (u32 s = 1; s < {}; ++s) {{\n{}{{\nfloat next[2];\npyc_far2(s, {}, next);\n"
        "joined[2 * i] = pyc_add_f32(joined[2 * i], next[0]);\n"
        "joined[2 * i + 1] = pyc_add_f32(joined[2 * i + 1], next[1]);\n}}\n}}\n",
        e_.segments <= kFewSegments ? "PYC_UNROLL " : "", e_.segments, each, at);
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t block = halves == 2 ? i : i / 2;
      const int64_t rows = halves == 2 ? 0 : i % 2 * 8;
      text += fmt::format("pyc_put2({} + {}, joined[{}], joined[{}]);\n", own_place(block),
                          rows * piece_.row(), 2 * i, 2 * i + 1);
    }
    return text;
  }

  // Whether what is stored takes more than a few operations to compute.
  bool is_long() const {
    constexpr size_t kFew = 40;
    return expressions().size() > kFew;
  }
  std::vector<ExprId> expressions() const { return stored_expressions(e_.kernel); }

  void store_elements(NeighbourEmitter& e, int64_t v) const {
    const std::string first = tile_.swapped ? "in_rows" : "in_columns";
    if (v == 1) {
      declare_index(e, over_n_.var, "j", first);
      e.line(fmt::format("const float result = *({});", sum_at(0)));
      e.declare(c_.result, "result");
      e.serial_body(over_n_.body);
      return;
    }
    e.line(fmt::format("const {0} j0 = ({0})({1});", e.var_type(over_n_.var), first));
    e.line(fmt::format("PYC_ALIGN16 float results[{}];", v));
    if (tile_.swapped) {
      e.line(fmt::format(
          "PYC_UNROLL for (i32 e = 0; e < {}; ++e) results[e] = sums[(r + e) * {} + c];", v,
          piece_.row()));
    }
    const int64_t wide = std::min<int64_t>(v, 4);
    for (int64_t at = 0; at < v && !tile_.swapped; at += wide) {
      e.line(fmt::format("*(pyc_v{1}*)(results + {0}) = *(PYC_NEAR const pyc_v{1}*)({2});", at,
                         wide * 4, sum_at(at)));
    }
    e.emit_elements(v, [&] { e.declare(c_.result, "results[e]"); });
  }

  const WgmmaEpilogue& e_;
  const lower::Contraction& c_;
  const WgmmaTile& tile_;
  SumPiece piece_;
  loop::Loop over_n_;
};

}  // namespace

int64_t wgmma_piece_bytes(const WgmmaTile& tile) {
  const SumPiece piece = piece_of(tile);
  return warps_of_tile(tile) * piece.rows * piece.row() * int64_t{4};
}

int64_t wgmma_pieces(const WgmmaTile& tile) {
  return pieces_of_block(tile) * wgmma_row_blocks(tile);
}

int64_t wgmma_operations(const loop::Kernel& kernel) {
  constexpr int64_t kQuotient = 16;  // pyc_near_quotient
  int64_t count = 0;
  for (const ExprId e : stored_expressions(kernel)) {
    const loop::Op op = kernel.pool.node(e).op;
    if (op == loop::Op::kConst || op == loop::Op::kVar || op == loop::Op::kLoad) continue;
    count += op == loop::Op::kDiv ? kQuotient : 1;
  }
  return count;
}

std::string wgmma_epilogue(const WgmmaEpilogue& epilogue) {
  return EpilogueWriter(epilogue).write();
}

std::string wgmma_prefetches(const WgmmaEpilogue& epilogue, int64_t first,
                             const std::string& rank) {
  return EpilogueWriter(epilogue).prefetches(first, rank);
}

}  // namespace pyc::cuda

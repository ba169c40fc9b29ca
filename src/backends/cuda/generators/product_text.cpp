#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product.h"
#include "backends/cuda/generators/product_epilogue.h"
#include "backends/cuda/generators/product_kernel.h"
#include "backends/cuda/generators/product_side.h"

namespace pyc::cuda {
namespace {

using loop::kNone;

constexpr int kQuad = 4;  // elements side by side that a thread loads and stores at once

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

// Sums of a row in the workspace, in floats.
int64_t split_length(const lower::Contraction& c) { return tiles_of(c.n, kQuad) * kQuad; }

class ProductEmitter {
 public:
  ProductEmitter(const lower::Group& group, const ProductTile& tile, const std::string& symbol,
                 const Dialect& dialect, const std::vector<bool>& unaligned)
      : c_(*group.contraction),
        t_(tile),
        unaligned_(unaligned),
        product_(c_),
        out_{.symbol = symbol,
             .form = "product " + tile.name(),
             .text = "",
             .buffers = parameters_of(product_.kernel)},
        emitter_(product_.kernel, dialect, symbol),
        a_(emitter_, product_.a, unaligned, side("a", c_.m_var, c_.m, t_.rows)),
        b_(emitter_, product_.b, unaligned, side("b", c_.n_var, c_.n, t_.columns)) {}

  KernelText make();

 private:
  // Slabs of one round, in which every team has one segment.
  int64_t slabs() const {
    const int64_t terms = std::min(c_.k, kProductSegment);
    return (terms + t_.depth - 1) / t_.depth;
  }
  int64_t segments() const { return tiles_of(c_.k, kProductSegment); }
  int64_t rounds() const { return t_.split ? 1 : tiles_of(segments(), t_.teams); }
  // Only the last round of one team alone may be shorter than the others.
  int64_t all_slabs() const {
    return t_.teams == 1 && !t_.split ? (c_.k + t_.depth - 1) / t_.depth : rounds() * slabs();
  }
  ProductSide::Shape side(const char* name, loop::VarId row, int64_t rows, int tile) const {
    const bool in_one = t_.teams == 1 && (!t_.split || segments() == 1);
    const int64_t whole = (t_.split ? segments() : rounds() * t_.teams) * kProductSegment;
    const int64_t reach = in_one ? all_slabs() * t_.depth : whole;
    return {.name = name,
            .row = row,
            .k = c_.k_var,
            .rows = rows,
            .terms = c_.k,
            .tile = tile,
            .depth = t_.depth,
            .threads = t_.team_threads(),
            .ragged = reach != c_.k};
  }

  void emit_places();
  void emit_slabs();
  std::string product_of_slab() const;
  std::string shared_out(const std::string& quad) const;
  std::string if_shared_out(const std::string& quad) const;
  std::string join() const;
  std::string keep_quad() const;
  void emit_epilogue();
  std::string row_in_tile(const std::string& i) const;
  std::string column_in_tile(const std::string& j) const;

  const lower::Contraction& c_;
  const ProductTile& t_;
  const std::vector<bool>& unaligned_;
  ProductKernel product_;
  KernelText out_;
  Emitter emitter_;
  ProductSide a_;
  ProductSide b_;
};

// A warp's threads are 4 × 8 places, each of 4 × 4 elements: few different addresses of shared
// memory at a time. Threads 2i and 2i + 1 stand one above the other, so that each half of a warp
// reads half of them.
std::string ProductEmitter::row_in_tile(const std::string& i) const {
  const int across = t_.rows / t_.thread_rows * kQuad;
  return fmt::format("({0} / {1} * {2} + ty * {1} + {0} % {1})", i, kQuad, across);
}

std::string ProductEmitter::column_in_tile(const std::string& j) const {
  const int across = t_.columns / t_.thread_columns * kQuad;
  return fmt::format("({0} / {1} * {2} + tx * {1} + {0} % {1})", j, kQuad, across);
}

void ProductEmitter::emit_places() {
  const int wide = t_.columns / t_.thread_columns;
  const int high = t_.rows / t_.thread_rows;
  const int64_t m_tiles = tiles_of(c_.m, t_.rows);
  const int64_t n_tiles = tiles_of(c_.n, t_.columns);
  out_.threads = static_cast<uint32_t>(t_.threads());
  const int64_t tiles = m_tiles * n_tiles * c_.batch_size();
  out_.blocks = static_cast<uint32_t>(tiles * (t_.split ? segments() : 1));
  const auto shared = [&](const char* name, int64_t floats) {
    emitter_.line(fmt::format("PYC_SHARED PYC_ALIGN16 float {}_shared[{}];", name, floats));
  };
  shared("a", int64_t{2} * t_.teams * t_.depth * a_.row_length());
  shared("b", int64_t{2} * t_.teams * t_.depth * b_.row_length());
  if (t_.teams > 1) shared("sums", int64_t{t_.rows} * t_.columns);
  emitter_.line("const i32 thread = pyc_thread();");
  emitter_.line(fmt::format("const i32 team = thread / {0};\nconst i32 t = thread % {0};",
                            t_.team_threads()));
  if (wide % 8 == 0 && high % 4 == 0) {
    emitter_.line(
        fmt::format("const i32 tx = t / 32 % {0} * 8 + t % 16 / 2;\n"
                    "const i32 ty = t / 32 / {0} * 4 + t % 32 / 16 * 2 + t % 2;",
                    wide / 8));
  } else {
    emitter_.line(fmt::format("const i32 tx = t % {0};\nconst i32 ty = t / {0};", wide));
  }
  emitter_.line(fmt::format("const i32 tile = pyc_block() % {};", tiles));
  if (t_.split) emitter_.line(fmt::format("const i32 segment = pyc_block() / {};", tiles));
  emitter_.line(fmt::format("const i32 m0 = tile % {} * {};", m_tiles, t_.rows));
  emitter_.line(fmt::format("const i32 n0 = tile / {} % {} * {};", m_tiles, n_tiles, t_.columns));
  emitter_.line(fmt::format("const i32 matrix = tile / {};", m_tiles * n_tiles));
  declare_digits(emitter_, "matrix", "i32", c_.batch_vars, c_.batch);
  a_.declare_rows("m0");
  b_.declare_rows("n0");
  const int of_thread = t_.thread_rows * t_.thread_columns;
  const auto sums = [&](const char* name, int count) {
    emitter_.line(
        fmt::format("PYC_ALIGN16 float {0}[{1}];\n"
                    "PYC_UNROLL for (i32 i = 0; i < {1}; ++i) {0}[i] = 0.0f;",
                    name, count));
  };
  sums("acc", of_thread);
  if (!t_.split) sums("total", t_.quads() * kQuad);
}

std::string ProductEmitter::product_of_slab() const {
  const auto fragment = [&](const char* name, char of, const std::string& place, int count,
                            int length) {
    return fmt::format(
        "PYC_ALIGN16 float {0}[{1}];\n"
        "PYC_UNROLL for (i32 i = 0; i < {1}; i += {2}) *(pyc_v16*)({0} + i) = "
        "*(PYC_NEAR const pyc_v16*)({3}_from + d * {4} + {5});\n",
        name, count, kQuad, of, length, place);
  };
  return fmt::format(
      "PYC_UNROLL for (i32 d = 0; d < {0}; ++d) {{\n{1}{2}"
      "PYC_UNROLL for (i32 i = 0; i < {3}; ++i) PYC_UNROLL for (i32 j = 0; j < {4}; ++j) "
      "acc[i * {4} + j] = pyc_fma_f32(x[i], y[j], acc[i * {4} + j]);\n}}\n",
      t_.depth, fragment("x", 'a', row_in_tile("i"), t_.thread_rows, a_.row_length()),
      fragment("y", 'b', column_in_tile("i"), t_.thread_columns, b_.row_length()), t_.thread_rows,
      t_.thread_columns);
}

// The number of a thread's quad among those of the tile, and the test that there is such a one.
std::string ProductEmitter::shared_out(const std::string& quad) const {
  return fmt::format("{} * {} + thread", quad, t_.threads());
}

std::string ProductEmitter::if_shared_out(const std::string& quad) const {
  const int all = t_.rows * t_.columns / kQuad;
  if (t_.teams == 1 || all % t_.threads() == 0) return "";
  return fmt::format("if ({} < {}) ", shared_out(quad), all);
}

// Adds the segments of a round, in their order, to the totals.
std::string ProductEmitter::join() const {
  const int of_thread = t_.thread_rows * t_.thread_columns;
  const std::string clear =
      fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) acc[i] = 0.0f;\n", of_thread);
  if (t_.teams == 1) {
    return fmt::format(
        "PYC_UNROLL for (i32 i = 0; i < {}; ++i) total[i] = pyc_add_f32(total[i], acc[i]);\n{}",
        of_thread, clear);
  }
  const std::string write = fmt::format(
      "PYC_UNROLL for (i32 i = 0; i < {}; ++i) PYC_UNROLL for (i32 j = 0; j < {}; ++j) "
      "sums_shared[{} * {} + {}] = acc[i * {} + j];\n",
      t_.thread_rows, t_.thread_columns, row_in_tile("i"), t_.columns, column_in_tile("j"),
      t_.thread_columns);
  const std::string add = fmt::format(
      "PYC_UNROLL for (i32 i = 0; i < {}; ++i) {}total[i] = pyc_add_f32(total[i], sums_shared[({}) "
      "* "
      "{} + i % {}]);\n",
      t_.quads() * kQuad, if_shared_out("i / 4"), shared_out("i / 4"), kQuad, kQuad);
  return fmt::format(
      "for (i32 s = 0; s < {}; ++s) {{\nif (team == s) "
      "{{\n{}}}\npyc_barrier();\n{}pyc_barrier();\n}}\n"
      "{}",
      t_.teams, write, add, clear);
}

void ProductEmitter::emit_slabs() {
  const int64_t all = all_slabs();
  const int64_t a_slab = int64_t{t_.depth} * a_.row_length();
  const int64_t b_slab = int64_t{t_.depth} * b_.row_length();
  emitter_.open_scope();
  emitter_.line(a_.registers());
  emitter_.line(b_.registers());
  if (t_.split) {
    emitter_.line(
        fmt::format("const i32 k0 = segment * {} + slab * {};", kProductSegment, t_.depth));
  } else if (t_.teams == 1) {
    emitter_.line(fmt::format("const i32 k0 = slab * {};", t_.depth));
  } else {
    emitter_.line(fmt::format("const i32 k0 = (slab / {0} * {1} + team) * {2} + slab % {0} * {3};",
                              slabs(), t_.teams, kProductSegment, t_.depth));
  }
  emitter_.open_scope();
  a_.emit_reads();
  b_.emit_reads();
  const std::string reads = emitter_.close_scope();
  emitter_.line(fmt::format("if (slab < {}) {{\n{}}}", all, reads));
  const auto near = [&](char of, const char* which, int64_t slab_floats, const char* slab) {
    return fmt::format("PYC_NEAR float* {0}_{1} = {0}_shared + (team * 2 + ({2}) % 2) * {3};\n", of,
                       which, slab, slab_floats);
  };
  const bool short_end = t_.teams == 1 && all % slabs() != 0;
  const std::string joins =
      fmt::format("if (slab % {} == 0{}) {{\n{}}}\n", slabs(),
                  short_end ? fmt::format(" || slab == {}", all) : "", join());
  emitter_.line(fmt::format("if (slab > 0) {{\n{}{}{}{}}}", near('a', "from", a_slab, "slab - 1"),
                            near('b', "from", b_slab, "slab - 1"), product_of_slab(),
                            t_.split ? "" : joins));
  emitter_.line(fmt::format("if (slab < {}) {{\n{}{}{}{}}}\npyc_barrier();", all,
                            near('a', "to", a_slab, "slab"), near('b', "to", b_slab, "slab"),
                            a_.writes("a_to"), b_.writes("b_to")));
  const std::string body = emitter_.close_scope();
  emitter_.line(fmt::format("for (i32 slab = 0; slab <= {}; ++slab) {{\n{}}}", all, body));
}

// Puts a quad of a split product to the workspace.
std::string ProductEmitter::keep_quad() const {
  return fmt::format(
      "if (n < {0}) *(PYC_GLOBAL pyc_v16*)((PYC_GLOBAL float*)workspace + (((i64)segment * {1} + "
      "matrix) * {2} + m) * {0} + n) = *(pyc_v16*)(acc + quad * {3});\n",
      split_length(c_), c_.batch_size(), c_.m, kQuad);
}

// Totals lie by quads of a row: where the thread computed them, or shared out evenly.
void ProductEmitter::emit_epilogue() {
  const int across = t_.thread_columns / kQuad;
  const std::string at = fmt::format("(({}) * {})", shared_out("quad"), kQuad);
  std::string row = fmt::format("{} / {}", at, t_.columns);
  std::string column = fmt::format("{} % {}", at, t_.columns);
  if (t_.teams == 1) {
    row = row_in_tile(fmt::format("(quad / {})", across));
    column = column_in_tile(fmt::format("(quad % {} * {})", across, kQuad));
  }
  // What depends on m alone is computed inside of the test that there is such a row.
  emitter_.open_scope();
  if (c_.m_var != kNone) emitter_.declare(c_.m_var, "m");
  const std::string quad = t_.split
                               ? keep_quad()
                               : quad_epilogue(emitter_, c_, product_,
                                               fmt::format("total + quad * {}", kQuad), unaligned_);
  emitter_.line(fmt::format("const {0} n = ({0})(n0 + {1});\n{2}", emitter_.var_type(c_.n_var),
                            column, quad));
  const std::string of_row = emitter_.close_scope();
  emitter_.line(
      fmt::format("PYC_UNROLL for (i32 quad = 0; quad < {}; ++quad) {}{{\nconst i32 m = m0 + {};\n"
                  "if (m < {}) {{\n{}}}\n}}",
                  t_.quads(), if_shared_out("quad"), row, c_.m, of_row));
}

KernelText ProductEmitter::make() {
  if (t_.split) out_.workspace_bytes = split_bytes(c_);
  emit_places();
  emit_slabs();
  emit_epilogue();
  out_.text = emitter_.tables() + emitter_.finished(kernel_head(out_, emitter_.kernel_, true));
  return std::move(out_);
}

}  // namespace

int64_t split_bytes(const lower::Contraction& c) {
  return tiles_of(c.k, kProductSegment) * c.batch_size() * c.m * split_length(c) * 4;
}

// A thread for each quad.
KernelText product_join_text(const lower::Group& group, const std::string& symbol,
                             const Dialect& dialect, const std::vector<bool>& unaligned) {
  constexpr int kJoinThreads = 128;
  const lower::Contraction& c = *group.contraction;
  const ProductKernel product(c);
  KernelText out{.symbol = symbol,
                 .form = "product join",
                 .text = "",
                 .buffers = parameters_of(product.kernel),
                 .workspace_bytes = split_bytes(c)};
  const int64_t of_row = split_length(c) / kQuad;
  const int64_t quads = c.batch_size() * c.m * of_row;
  out.threads = kJoinThreads;
  out.blocks = static_cast<uint32_t>(tiles_of(quads, kJoinThreads));
  Emitter emitter(product.kernel, dialect, symbol);
  emitter.open_scope();
  emitter.line(
      fmt::format("const i32 n = quad % {} * {};\nconst i32 m = quad / {} % {};\n"
                  "const i32 matrix = quad / {};",
                  of_row, kQuad, of_row, c.m, of_row * c.m));
  declare_digits(emitter, "matrix", "i32", c.batch_vars, c.batch);
  if (c.m_var != kNone) emitter.declare(c.m_var, "m");
  emitter.line(fmt::format(
      "PYC_ALIGN16 float total[{0}];\nPYC_UNROLL for (i32 q = 0; q < {0}; ++q) total[q] = 0.0f;\n"
      "PYC_UNROLL4 for (i32 s = 0; s < {1}; ++s) {{\nPYC_ALIGN16 float part[{0}];\n"
      "*(pyc_v16*)part = *(PYC_GLOBAL const pyc_v16*)((PYC_GLOBAL const float*)workspace + "
      "((i64)s * {2} + quad) * {0});\n"
      "PYC_UNROLL for (i32 q = 0; q < {0}; ++q) total[q] = pyc_add_f32(total[q], part[q]);\n}}",
      kQuad, tiles_of(c.k, kProductSegment), quads));
  emitter.line(quad_epilogue(emitter, c, product, "total", unaligned));
  const std::string body = emitter.close_scope();
  emitter.line(
      fmt::format("const i32 quad = pyc_block() * {} + pyc_thread();\nif (quad < {}) {{\n{}}}",
                  kJoinThreads, quads, body));
  out.text = emitter.tables() + emitter.finished(kernel_head(out, emitter.kernel_, false));
  return out;
}

KernelText product_text(const lower::Group& group, const ProductTile& tile,
                        const std::string& symbol, const Dialect& dialect,
                        const std::vector<bool>& unaligned) {
  return ProductEmitter(group, tile, symbol, dialect, unaligned).make();
}

}  // namespace pyc::cuda

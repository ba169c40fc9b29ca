// Products with few rows: one thread for each column, which keeps a sum for every row. Nothing is
// used twice but the rows, so the columns come straight from memory.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/forms.h"
#include "backends/cuda/generators/product.h"
#include "backends/cuda/generators/product_kernel.h"
#include "backends/cuda/kernel_generator.h"
#include "loop/renamed.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int kLanes = 32;  // columns of a block
constexpr int kWide = 4;
constexpr int64_t kStreamRows = 16;
constexpr int kStreamWarps = 8;
// Until a chunk of columns is there.
constexpr double kChunkNs = 900.0;
// Rows that are summed while a chunk comes.
constexpr double kRowsOfChunk = 4.0;
constexpr double kStreamNs = 1500.0;          // a kernel's begin and end
constexpr double kStreamFlopsPerNs = 5000.0;  // of the device

int chunk_of(const lower::Contraction& c) { return c.k % 32 == 0 ? 32 : 16; }

class StreamEmitter {
 public:
  StreamEmitter(const lower::Group& group, const ProductStream& stream, const std::string& symbol,
                const Dialect& dialect, const std::vector<bool>& unaligned)
      : c_(*group.contraction),
        s_(stream),
        product_(c_),
        out_{.symbol = symbol,
             .form = "product " + stream.name(),
             .text = "",
             .buffers = parameters_of(product_.kernel)},
        emitter_(product_.kernel, dialect, symbol),
        wide_a_(is_wide(c_.a, unaligned)),
        wide_b_(is_wide(c_.b, unaligned)),
        ragged_(c_.k % s_.chunk != 0) {}

  KernelText make();

 private:
  bool is_wide(const lower::Contraction::Operand& o, const std::vector<bool>& unaligned) const {
    const bool marked = o.buffer < unaligned.size() && unaligned[o.buffer];
    return !marked && c_.k % s_.chunk == 0 && is_side_by_side(o, c_.k);
  }
  // The operand with k and, if given, its row in other words.
  ExprId renamed(ExprId value, loop::VarId k, loop::VarId row, ExprId other) {
    loop::Renamed renamed(emitter_.pool_);
    renamed.set_var(c_.k_var, emitter_.pool_.var(k));
    if (row != kNone) renamed.set_var(row, other);
    return renamed(value);
  }
  std::string wide_load(uint32_t buffer, ExprId load) {
    return fmt::format("*(PYC_GLOBAL const pyc_v16*)({} + {})", buffer_name(buffer),
                       emitter_.value(emitter_.pool_.node(load).a));
  }
  void declare_k(loop::VarId var, const std::string& name, const std::string& at);
  std::string filled(const std::string& name, const std::string& value) const {
    return ragged_ ? fmt::format("{}_in ? {} : 0.0f", name, value) : value;
  }
  std::string read_columns();
  std::string add_products();
  void emit_round();
  void emit_epilogue();

  const lower::Contraction& c_;
  const ProductStream& s_;
  ProductKernel product_;
  KernelText out_;
  Emitter emitter_;
  const bool wide_a_;
  const bool wide_b_;
  const bool ragged_;
  loop::VarId column_ = kNone;
};

// Terms beyond the last are +0 in both operands, which changes no sum.
void StreamEmitter::declare_k(loop::VarId var, const std::string& name, const std::string& at) {
  const std::string type = emitter_.var_type(var);
  if (ragged_) {
    emitter_.line(fmt::format("const bool {}_in = {} < {};", name, at, c_.k));
    emitter_.line(
        fmt::format("const {0} {1} = ({0})({1}_in ? {2} : {3});", type, name, at, c_.k - 1));
  } else {
    emitter_.line(fmt::format("const {0} {1} = ({0})({2});", type, name, at));
  }
  emitter_.declare(var, name);
}

std::string StreamEmitter::read_columns() {
  const loop::VarId k = emitter_.pool_.new_var("wk", DType::kI64, c_.k);
  const ExprId value = renamed(product_.b, k, c_.n_var, emitter_.pool_.var(column_));
  emitter_.open_scope();
  declare_k(k, "wk", "k0 + j");
  if (wide_b_) {
    emitter_.line(fmt::format("*(pyc_v16*)(next + j) = {};", wide_load(c_.b.buffer, value)));
  } else {
    const std::string read = emitter_.value(value);
    emitter_.line(fmt::format("next[j] = {};", filled("wk", read)));
  }
  emitter_.end_statement();
  const std::string body = emitter_.close_scope();
  return fmt::format("PYC_UNROLL for (i32 j = 0; j < {}; j += {}) {{\n{}}}\n", s_.chunk,
                     wide_b_ ? kWide : 1, body);
}

std::string StreamEmitter::add_products() {
  const loop::VarId k = emitter_.pool_.new_var("xk", DType::kI64, c_.k);
  const int at_once = wide_a_ ? kWide : 1;
  emitter_.open_scope();
  declare_k(k, "xk", fmt::format("k0 - {} + j", s_.chunk));
  emitter_.line(fmt::format("PYC_ALIGN16 float x[{}];", c_.m * at_once));
  for (int64_t i = 0; i < c_.m; ++i) {
    const ExprId value = renamed(product_.a, k, c_.m_var, emitter_.pool_.integer(i));
    if (wide_a_) {
      emitter_.line(
          fmt::format("*(pyc_v16*)(x + {}) = {};", i * kWide, wide_load(c_.a.buffer, value)));
    } else {
      const std::string read = emitter_.value(value);
      emitter_.line(fmt::format("x[{}] = {};", i, filled("xk", read)));
    }
    emitter_.end_statement();
  }
  const std::string body = emitter_.close_scope();
  return fmt::format(
      "PYC_UNROLL for (i32 j = 0; j < {0}; j += {1}) {{\n{2}"
      "PYC_UNROLL for (i32 q = 0; q < {1}; ++q) PYC_UNROLL for (i32 i = 0; i < {3}; ++i) "
      "acc[i] = pyc_fma_f32(x[i * {1} + q], w[j + q], acc[i]);\n}}\n",
      s_.chunk, at_once, body, c_.m);
}

void StreamEmitter::emit_round() {
  const int64_t segments = (c_.k + kProductSegment - 1) / kProductSegment;
  const int64_t rounds = (segments + s_.teams - 1) / s_.teams;
  const int64_t own = (c_.m + s_.teams - 1) / s_.teams;
  emitter_.line(
      fmt::format("float total[{0}];\nPYC_UNROLL for (i32 i = 0; i < {0}; ++i) "
                  "total[i] = 0.0f;",
                  own));
  emitter_.open_scope();
  emitter_.line(
      fmt::format("float acc[{0}];\nPYC_UNROLL for (i32 i = 0; i < {0}; ++i) "
                  "acc[i] = 0.0f;",
                  c_.m));
  emitter_.line(
      fmt::format("const i32 first = (round * {0} + team) * {1};\n"
                  "const i32 end = first + {1} < {2} ? first + {1} : {2};",
                  s_.teams, kProductSegment, c_.k));
  emitter_.line(fmt::format("PYC_ALIGN16 float w[{}];", s_.chunk));
  // While one chunk is summed, the next is on its way.
  emitter_.open_scope();
  emitter_.line(fmt::format("PYC_ALIGN16 float next[{}];", s_.chunk));
  emitter_.line(fmt::format("if (k0 < end) {{\n{}}}", read_columns()));
  emitter_.line(fmt::format("if (k0 > first) {{\n{}}}", add_products()));
  emitter_.line(fmt::format("PYC_UNROLL for (i32 j = 0; j < {}; ++j) w[j] = next[j];", s_.chunk));
  const std::string chunk = emitter_.close_scope();
  emitter_.line(
      fmt::format("for (i32 k0 = first; k0 < end + {0}; k0 += {0}) {{\n{1}}}", s_.chunk, chunk));
  emitter_.line(fmt::format(
      "PYC_UNROLL for (i32 i = 0; i < {0}; ++i) sums_shared[(team * {0} + i) * {1} + lane] = "
      "acc[i];\npyc_barrier();\n"
      "PYC_UNROLL for (i32 i = 0; i < {2}; ++i) {{\nconst i32 r = team + i * {3};\n"
      "if (r < {0}) for (i32 s = 0; s < {3}; ++s) total[i] = pyc_add_f32(total[i], "
      "sums_shared[(s * {0} + r) * {1} + lane]);\n}}\npyc_barrier();",
      c_.m, kLanes, own, s_.teams));
  const std::string round = emitter_.close_scope();
  emitter_.line(fmt::format("for (i32 round = 0; round < {}; ++round) {{\n{}}}", rounds, round));
}

void StreamEmitter::emit_epilogue() {
  const int64_t own = (c_.m + s_.teams - 1) / s_.teams;
  emitter_.open_scope();
  if (c_.m_var != kNone) emitter_.declare(c_.m_var, "m");
  emitter_.declare(c_.n_var, "n");
  emitter_.declare(c_.result, "total[i]");
  for (const loop::Store& s : product_.epilogue) {
    emitter_.store(s);
    emitter_.end_statement();
  }
  const std::string body = emitter_.close_scope();
  emitter_.line(
      fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) {{\n"
                  "const i32 m = team + i * {};\nif (m < {} && n < {}) {{\n{}}}\n}}",
                  own, s_.teams, c_.m, c_.n, body));
}

KernelText StreamEmitter::make() {
  const int64_t n_tiles = (c_.n + kLanes - 1) / kLanes;
  out_.threads = static_cast<uint32_t>(kLanes * s_.teams);
  out_.blocks = static_cast<uint32_t>(n_tiles * c_.batch_size());
  emitter_.line(
      fmt::format("PYC_SHARED PYC_ALIGN16 float sums_shared[{}];", c_.m * s_.teams * kLanes));
  emitter_.line(
      fmt::format("const i32 team = pyc_thread() / {0};\nconst i32 lane = pyc_thread() % "
                  "{0};\nconst i32 tile = pyc_block();",
                  kLanes));
  emitter_.line(fmt::format("const i32 matrix = tile / {};", n_tiles));
  declare_digits(emitter_, "matrix", "i32", c_.batch_vars, c_.batch);
  column_ = emitter_.pool_.new_var("w0", DType::kI64, c_.n);
  emitter_.line(
      fmt::format("const {0} n = ({0})(tile % {1} * {2} + lane);\n"
                  "const {0} column = n < {3} ? n : {3} - 1;",
                  emitter_.var_type(column_), n_tiles, kLanes, c_.n));
  emitter_.declare(column_, "column");
  emit_round();
  emit_epilogue();
  out_.text = emitter_.tables() + emitter_.finished(kernel_head(out_, emitter_.kernel_, true));
  return std::move(out_);
}

}  // namespace

std::string ProductStream::name() const { return fmt::format("rows_c{}_t{}", chunk, teams); }

std::string stream_rejected(const lower::Group& group) {
  if (std::string why = product_rejected(group); !why.empty()) return why;
  return group.contraction->m > kStreamRows ? "too_many_rows" : "";
}

ProductStream choose_stream(const lower::Group& group, double* cost_ns) {
  const lower::Contraction& c = *group.contraction;
  const int64_t segments = (c.k + kProductSegment - 1) / kProductSegment;
  const ProductStream stream{.teams = static_cast<int>(std::min<int64_t>(segments, kStreamWarps)),
                             .chunk = chunk_of(c)};
  const int64_t rounds = (segments + stream.teams - 1) / stream.teams;
  const int64_t chunks = (std::min(c.k, kProductSegment) + stream.chunk - 1) / stream.chunk;
  const double waits = static_cast<double>(rounds * chunks) * kChunkNs *
                       std::max(1.0, static_cast<double>(c.m) / kRowsOfChunk);
  const double bytes = static_cast<double>(group.bytes) / kDeviceBytesPerNs;
  const double flops = 2.0 * static_cast<double>(c.m * c.n * c.batch_size()) *
                       static_cast<double>(c.k) / kStreamFlopsPerNs;
  *cost_ns = kLaunchNs + kStreamNs + std::max({waits, bytes, flops});
  return stream;
}

KernelText stream_text(const lower::Group& group, const ProductStream& stream,
                       const std::string& symbol, const Dialect& dialect,
                       const std::vector<bool>& unaligned) {
  return StreamEmitter(group, stream, symbol, dialect, unaligned).make();
}

}  // namespace pyc::cuda

#include "backends/cuda/generators/product_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cuda/generators/product_runs.h"
#include "base/status.h"
#include "loop/renamed.h"
#include "loop/walk.h"

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int kAccess = 4;  // floats in 16 bytes

}  // namespace

ProductSide::ProductSide(Emitter& emitter, ExprId value, const std::vector<bool>& unaligned,
                         Shape shape)
    : emitter_(emitter), shape_(std::move(shape)) {
  loop::Pool& pool = emitter_.pool_;
  const ExprId load = padded_load(pool, value, DType::kF32);
  const auto buffer = load == kNone ? kNone : static_cast<uint32_t>(pool.node(load).imm);
  const bool may_be_wide = load != kNone && !(buffer < unaligned.size() && unaligned[buffer]);
  const bool wide_k = may_be_wide && lies_in_runs(pool, load, shape_.k, shape_.terms, kAccess);
  const bool wide_rows =
      may_be_wide && !wide_k && lies_in_runs(pool, load, shape_.row, shape_.rows, kAccess);
  along_k_ = wide_k || (!wide_rows && !rows_lie_closer(value));
  width_ = wide_k || wide_rows ? kAccess : 1;
  const int line = (along_k_ ? shape_.depth : shape_.tile) / width_;
  units_ = shape_.tile * shape_.depth / width_ / shape_.threads;
  PYC_CHECK(units_ * width_ * shape_.threads == shape_.tile * shape_.depth,
            "a slab in equal parts");
  slots_ = along_k_ ? units_ : std::max(1, line / shape_.threads);
  k_ = pool.new_var(shape_.name + "k", DType::kI64, shape_.terms);
  for (int s = 0; s < slots_; ++s) {
    loop::Renamed renamed(pool);
    renamed.set_var(shape_.k, pool.var(k_));
    if (shape_.row != kNone) {
      rows_.push_back(pool.new_var(fmt::format("{}{}", shape_.name, s), DType::kI64, shape_.rows));
      renamed.set_var(shape_.row, pool.var(rows_.back()));
    }
    values_.push_back(renamed(value));
  }
}

// Whether elements of neighbouring rows lie closer to each other than those of neighbouring terms.
bool ProductSide::rows_lie_closer(ExprId value) const {
  const loop::Pool& pool = emitter_.pool_;
  int64_t by_row = std::numeric_limits<int64_t>::max();
  int64_t by_k = std::numeric_limits<int64_t>::max();
  loop::Walk{pool}(value, [&](ExprId, const loop::ExprNode& n) {
    if (n.op != loop::Op::kLoad) return;
    for (const auto& [atom, c] : loop::affine_of(pool, n.a).terms) {
      const int64_t stride = std::abs(c);
      if (shape_.row != kNone && loop::depends_on(pool, atom, shape_.row)) {
        by_row = std::min(by_row, stride);
      }
      if (loop::depends_on(pool, atom, shape_.k)) by_k = std::min(by_k, stride);
    }
  });
  return by_row <= by_k;
}

std::string ProductSide::row_text(int s) const {
  const int line = (along_k_ ? shape_.depth : shape_.tile) / width_;
  const int threads = shape_.threads;
  if (along_k_) return fmt::format("(t / {} + {})", line, s * (threads / line));
  if (line >= threads) return fmt::format("((t + {}) * {})", s * threads, width_);
  return fmt::format("(t % {} * {})", line, width_);
}

std::string ProductSide::k_text(const std::string& j) const {
  const int line = (along_k_ ? shape_.depth : shape_.tile) / width_;
  const int threads = shape_.threads;
  if (along_k_) return fmt::format("(t % {} * {})", line, width_);
  if (line >= threads) return j;
  return fmt::format("(t / {} + {} * {})", line, j, threads / line);
}

void ProductSide::declare_rows(const std::string& origin) {
  if (shape_.row == kNone) return;
  for (int s = 0; s < slots_; ++s) {
    const std::string name = fmt::format("{}row{}", shape_.name, s);
    const std::string type = emitter_.var_type(rows_[s]);
    std::string row = fmt::format("{} + {}", origin, row_text(s));
    // Beyond the last row others are read again; nobody uses what comes of them.
    if (shape_.rows % shape_.tile != 0) {
      const int step = along_k_ ? 1 : width_;
      row = fmt::format("{0} < {1} ? {0} : {2}", row, shape_.rows, shape_.rows - step);
    }
    emitter_.line(fmt::format("const {0} {1} = ({0})({2});", type, name, row));
    emitter_.declare(rows_[s], name);
  }
}

std::string ProductSide::registers() const {
  return fmt::format("PYC_ALIGN16 float {}_next[{}];", shape_.name, units_ * width_);
}

// An access whose guard is false is none, and gives zeros.
void ProductSide::emit_read(size_t row) {
  const std::string to = unit(static_cast<int>(row));
  if (width_ == 1) {
    emitter_.line(fmt::format("*({}) = {};", to, emitter_.value(values_[row])));
    return;
  }
  const loop::ExprNode load = emitter_.pool_.node(values_[row]);
  const std::string from =
      fmt::format("*(PYC_GLOBAL const pyc_v16*)({} + {})",
                  buffer_name(static_cast<uint32_t>(load.imm)), emitter_.value(load.a));
  std::string guard;
  if (load.b != kNone) {
    guard = fmt::format("if ({}) ", emitter_.value(load.b));
    emitter_.line(fmt::format("*(pyc_v16*)({}) = pyc_v16{{0u, 0u, 0u, 0u}};", to));
  }
  emitter_.line(fmt::format("{}*(pyc_v16*)({}) = {};", guard, to, from));
}

void ProductSide::emit_reads() {
  const std::string type = emitter_.var_type(k_);
  const std::string k = shape_.name + "k";
  std::string at = fmt::format("k0 + {}", k_text("j"));
  if (shape_.ragged) {
    const int64_t last = shape_.terms - (along_k_ ? width_ : 1);
    at = fmt::format("{0} < {1} ? {0} : {2}", at, shape_.terms, last);
  }
  emitter_.open_scope();
  emitter_.line(fmt::format("const {0} {1} = ({0})({2});", type, k, at));
  emitter_.declare(k_, k);
  for (int s = 0; s < slots_; ++s) {
    emit_read(static_cast<size_t>(s));
    emitter_.end_statement();
  }
  const std::string body = emitter_.close_scope();
  emitter_.line(in_steps(body));
}

// A term beyond the last is +0: with that of the other operand it changes no sum. Asking for it
// here lets the reads take their time.
std::string ProductSide::writes(const std::string& to) const {
  std::string clears;
  std::string text;
  for (int s = 0; s < slots_; ++s) {
    const auto place = [&](const std::string& k) {
      return fmt::format("{} + {} * {} + {}", to, k, row_length(), row_text(s));
    };
    clears +=
        fmt::format("PYC_UNROLL for (i32 q = 0; q < {}; ++q) ({})[q] = 0.0f;\n", width_, unit(s));
    if (width_ == 1) {
      text += fmt::format("*({}) = *({});\n", place(k_text("j")), unit(s));
    } else if (along_k_) {
      text += fmt::format("PYC_UNROLL for (i32 q = 0; q < {}; ++q) *({}) = ({})[q];\n", width_,
                          place(fmt::format("({} + q)", k_text("j"))), unit(s));
    } else {
      text +=
          fmt::format("*(PYC_NEAR pyc_v16*)({}) = *(pyc_v16*)({});\n", place(k_text("j")), unit(s));
    }
  }
  if (!shape_.ragged) return in_steps(text);
  const std::string beyond =
      in_steps(fmt::format("if (k0 + {} >= {}) {{\n{}}}\n", k_text("j"), shape_.terms, clears));
  return fmt::format("if (k0 + {} > {}) {{\n{}}}\n{}", shape_.depth, shape_.terms, beyond,
                     in_steps(text));
}

std::string ProductSide::unit(int s) const {
  return fmt::format("{}_next + (j * {} + {}) * {}", shape_.name, slots_, s, width_);
}

std::string ProductSide::in_steps(const std::string& body) const {
  return fmt::format("PYC_UNROLL for (i32 j = 0; j < {}; ++j) {{\n{}}}\n", units_ / slots_, body);
}

}  // namespace pyc::cuda

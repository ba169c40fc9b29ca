#include "backends/cuda/generators/attention_limits.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::Op;
using lower::Attention;

constexpr int64_t kShort = int64_t{1} << 30;  // what is compared fits i32

class LimitReader {
 public:
  LimitReader(const loop::Pool& pool, const Attention& attention) : pool_(pool), a_(attention) {}

  KeyLimits read(ExprId score) {
    KeyLimits out;
    ExprId inner = score;
    while (pool_.node(inner).op == Op::kSelect && is_nothing(pool_.node(inner).c)) {
      conditions(pool_.node(inner).a, out);
      inner = pool_.node(inner).b;
    }
    out.within = whole_ ? inner : score;
    out.live = inner;
    return out;
  }

 private:
  bool is_nothing(ExprId e) const {
    const loop::ExprNode& n = pool_.node(e);
    if (n.op != Op::kConst || !is_float(n.dtype)) return false;
    const double x = word_to_double(n.word, n.dtype);
    return std::isinf(x) && x < 0;
  }

  void conditions(ExprId e, KeyLimits& out) {
    const loop::ExprNode& n = pool_.node(e);
    if (n.op == Op::kAnd) {
      conditions(n.a, out);
      conditions(n.b, out);
      return;
    }
    const auto limit = limit_of(n);
    if (limit) {
      out.all.push_back(*limit);
    } else {
      whole_ = false;
    }
  }

  // n.a <= n.b or n.a < n.b over the indices of a score.
  std::optional<KeyLimit> limit_of(const loop::ExprNode& n) const {
    if ((n.op != Op::kLe && n.op != Op::kLt) || pool_.dtype(n.a) != DType::kI64) return {};
    KeyLimit out;
    if (n.op == Op::kLt) out.constant = -1;
    for (const auto& [side, sign] : {std::pair(n.a, -1), {n.b, 1}}) {
      const loop::Affine sum = loop::affine_of(pool_, side);
      out.constant += sign * sum.constant;
      for (const auto& [atom, c] : sum.terms) {
        int64_t* const into = coefficient_of(out, atom);
        if (into == nullptr) return {};
        *into += sign * c;
      }
    }
    const auto reach = [](int64_t c, int64_t extent) {
      return std::abs(static_cast<double>(c)) * static_cast<double>(extent);
    };
    const double most = std::abs(static_cast<double>(out.constant)) + reach(out.query, a_.queries) +
                        reach(out.block, a_.keys) + reach(out.key, a_.block);
    if (most >= static_cast<double>(kShort)) return {};
    return out;
  }

  int64_t* coefficient_of(KeyLimit& limit, ExprId atom) const {
    const loop::ExprNode& n = pool_.node(atom);
    if (n.op != Op::kVar) return nullptr;
    const auto v = static_cast<loop::VarId>(n.imm);
    if (v == a_.query_var) return &limit.query;
    if (v == a_.block_var) return &limit.block;
    if (v == a_.key_var) return &limit.key;
    return nullptr;
  }

  const loop::Pool& pool_;
  const Attention& a_;
  bool whole_ = true;
};

// The limit's left side, without the block, where it is largest (sign 1) or smallest (-1).
std::string extreme(const KeyLimit& l, const Attention& a, int sign, const std::string& low,
                    const std::string& high) {
  const bool last_key = (l.key > 0) == (sign > 0);
  const int64_t constant = l.constant + (last_key ? l.key * (a.block - 1) : 0);
  if (l.query == 0) return fmt::format("{}", constant);
  return fmt::format("({} + {} * {})", constant, l.query, (l.query > 0) == (sign > 0) ? high : low);
}

}  // namespace

KeyLimits key_limits(const loop::Pool& pool, const Attention& attention, ExprId score) {
  return LimitReader(pool, attention).read(score);
}

std::string live_blocks(const KeyLimits& limits, const Attention& attention, const std::string& low,
                        const std::string& high) {
  std::string text;
  for (const KeyLimit& l : limits.all) {
    const std::string most = extreme(l, attention, 1, low, high);
    if (l.block < 0) {
      text += fmt::format(
          "{{\nconst i32 past = pyc_floor_div_i32({}, {}) + 1;\nif (past < end) end = past;\n}}\n",
          most, -l.block);
    } else if (l.block > 0) {
      text += fmt::format(
          "{{\nconst i32 first_live = -pyc_floor_div_i32({}, {});\n"
          "if (first_live > begin) begin = first_live;\n}}\n",
          most, l.block);
    } else {
      text += fmt::format("if ({} < 0) end = 0;\n", most);
    }
  }
  return text;
}

std::string holds_in_block(const KeyLimits& limits, const Attention& attention,
                           const std::string& low, const std::string& high, const std::string& j) {
  std::string text;
  for (const KeyLimit& l : limits.all) {
    text += fmt::format("{}{} + {} * {} >= 0", text.empty() ? "" : " && ",
                        extreme(l, attention, -1, low, high), l.block, j);
  }
  return text;
}

}  // namespace pyc::cuda

#include "backends/cuda/generators/product_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::kNone;

constexpr int kSums = 4;

class QuadEpilogue {
 public:
  QuadEpilogue(Emitter& emitter, const lower::Contraction& c, const std::vector<bool>& unaligned)
      : emitter_(emitter),
        pool_(emitter.pool_),
        c_(c),
        unaligned_(unaligned),
        first_(pool_.new_var("n4", DType::kI64, c.n)) {}

  std::string make(const std::vector<loop::Store>& stores, const std::string& sums);

 private:
  // The place of the first of four elements along n that are one aligned access.
  std::optional<ExprId> place(uint32_t buffer, ExprId offset) {
    const bool aligned = buffer >= unaligned_.size() || !unaligned_[buffer];
    if (!aligned || emitter_.kernel_.buffers[buffer].dtype != DType::kF32) return std::nullopt;
    loop::Affine sum = affine_of(pool_, offset);
    const ExprId n = pool_.var(c_.n_var);
    if (sum.coefficient(n) != 1 || sum.constant % kSums != 0) return std::nullopt;
    erase_if(sum.terms, [&](const auto& term) { return term.first == n; });
    for (const auto& [atom, c] : sum.terms) {
      if (c % kSums != 0 || depends_on(pool_, atom, c_.n_var)) return std::nullopt;
    }
    const ExprId rest = from_affine(pool_, sum);
    return pool_.binary(loop::Op::kAdd, rest, pool_.var(first_));
  }

  // Wide stores come after all values, so none of these may be read back.
  bool reads_what_is_stored(ExprId e) {
    if (e == kNone || !walked_.insert(e).second) return false;
    const loop::ExprNode& n = pool_.node(e);
    if (n.op == loop::Op::kLoad &&
        emitter_.kernel_.buffers[static_cast<size_t>(n.imm)].access != loop::Access::kRead) {
      return true;
    }
    return reads_what_is_stored(n.a) || reads_what_is_stored(n.b) || reads_what_is_stored(n.c);
  }

  void read(ExprId e) {
    if (e == kNone || e >= seen_.size() || seen_[e]) return;
    seen_[e] = true;
    const loop::ExprNode n = pool_.node(e);
    for (const ExprId o : {n.a, n.b, n.c}) read(o);
    if (n.op != loop::Op::kLoad || n.b != kNone) return;
    const auto buffer = static_cast<uint32_t>(n.imm);
    if (emitter_.kernel_.buffers[buffer].access != loop::Access::kRead) return;
    const auto at = place(buffer, n.a);
    if (!at) return;
    const std::string array = fmt::format("x{}", e);
    emitter_.line(
        fmt::format("PYC_ALIGN16 float {0}[{1}];\n*(pyc_v16*){0} = "
                    "*(PYC_GLOBAL const pyc_v16*)({2} + {3});",
                    array, kSums, buffer_name(buffer), emitter_.value(*at)));
    emitter_.loaded_[e] = array + "[q]";
  }

  Emitter& emitter_;
  loop::Pool& pool_;
  const lower::Contraction& c_;
  const std::vector<bool>& unaligned_;
  loop::VarId first_;
  std::vector<bool> seen_;
  std::unordered_set<ExprId> walked_;
};

std::string QuadEpilogue::make(const std::vector<loop::Store>& stores, const std::string& sums) {
  std::vector<std::optional<ExprId>> places;
  for (const loop::Store& s : stores) {
    places.push_back(c_.n % kSums == 0 ? place(s.buffer, s.offset) : std::nullopt);
  }
  bool wide = std::ranges::all_of(places, [](const auto& p) { return p.has_value(); });
  for (const loop::Store& s : stores) wide = wide && !reads_what_is_stored(s.value);
  const std::string type = emitter_.var_type(c_.n_var);
  emitter_.open_scope();
  emitter_.declare(first_, "n");
  if (wide) {
    seen_.assign(pool_.size(), false);
    for (const loop::Store& s : stores) read(s.value);
  }
  std::string after;
  emitter_.open_scope();
  emitter_.declare(c_.n_var, "n_q");
  emitter_.declare(c_.result, fmt::format("({})[q]", sums));
  for (size_t i = 0; i < stores.size(); ++i) {
    if (!wide) {
      emitter_.store(stores[i]);
    } else {
      emitter_.line(fmt::format("y{}[q] = {};", i, emitter_.value(stores[i].value)));
    }
    emitter_.end_statement();
  }
  const std::string one = emitter_.close_scope();
  for (size_t i = 0; wide && i < stores.size(); ++i) {
    emitter_.line(fmt::format("PYC_ALIGN16 float y{}[{}];", i, kSums));
    after += fmt::format("*(PYC_GLOBAL pyc_v16*)({} + {}) = *(pyc_v16*)y{};\n",
                         buffer_name(stores[i].buffer), emitter_.value(*places[i]), i);
  }
  emitter_.line(fmt::format(
      "PYC_UNROLL for (i32 q = 0; q < {}; ++q) {{\nconst {} n_q = n + q;\n{}{}{}}}\n{}", kSums,
      type, wide ? "" : fmt::format("if (n_q < {}) {{\n", c_.n), one, wide ? "" : "}\n", after));
  const std::string all = emitter_.close_scope();
  return wide ? fmt::format("if (n < {}) {{\n{}}}\n", c_.n, all) : fmt::format("{{\n{}}}\n", all);
}

}  // namespace

std::string quad_epilogue(Emitter& emitter, const lower::Contraction& c,
                          const ProductKernel& product, const std::string& sums,
                          const std::vector<bool>& unaligned) {
  return QuadEpilogue(emitter, c, unaligned).make(product.epilogue, sums);
}

}  // namespace pyc::cuda

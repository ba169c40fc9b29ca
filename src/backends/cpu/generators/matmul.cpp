// Matrix products in register tiles.

#include "backends/cpu/matmul.h"

#include <utility>

#include "backends/cpu/kernel_generator.h"

namespace pyc::cpu {
namespace {

bool b_is_constant(const GeneratorRequest& r) {
  const ir::ValueId b = r.group.buffer_values[r.group.contraction->b.buffer];
  return r.graph.value(b).kind == ir::ValueKind::kConstant;
}

class PlannedMatmul final : public CpuPlan {
 public:
  explicit PlannedMatmul(MatmulPlan plan) : plan_(std::move(plan)) {}

  std::string key(const lower::Group& group) const override { return matmul_key(group, plan_); }
  Result<std::string> emit(const lower::Group& group, const CodegenTarget& target,
                           const std::string& symbol, Form form) const override {
    PYC_ASSIGN(const Generator* made, generator());
    return made->matmul(group, plan_, target, symbol, form);
  }
  std::vector<backends::CompiledStep> steps(const lower::Group& group,
                                            const std::string& symbol) const override {
    std::vector<backends::CompiledStep> out;
    for (MatmulStep& s : matmul_steps(group, plan_, symbol)) {
      out.push_back({nullptr, s.symbol, nullptr, std::move(s.operands), s.parallel});
    }
    return out;
  }
  std::vector<runtime::Parameter> packed(const ir::Graph& graph,
                                         const lower::Group& group) const override {
    std::vector<runtime::Parameter> out;
    for (const lower::KernelNeeds::Packed& p : matmul_needs(group, plan_).packed) {
      const auto& source = graph.value(p.source).constant;
      out.push_back(pack_b(plan_, *group.contraction, source->bytes.data()));
    }
    return out;
  }

 private:
  MatmulPlan plan_;
};

class Matmul final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    if (!reduces_in_lanes(r.group.kernel) || r.group.attention) return {};
    backends::Candidate c;
    c.name = "f32_matmul";
    c.rejected = matmul_rejected(r.group, r.target);
    if (c.rejected.empty()) {
      MatmulPlan plan = plan_matmul(r.group, b_is_constant(r), r.target, r.threads);
      c.name = plan.name;
      c.cost_ns = matmul_cost_ns(r.group, plan, r.target, r.threads);
      c.needs = matmul_needs(r.group, plan);
      c.plan = std::make_shared<PlannedMatmul>(std::move(plan));
    }
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_matmul() {
  static const Matmul generator;
  return generator;
}

}  // namespace pyc::cpu

// Matrix products in register tiles.

#include "backends/cpu/matmul.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernel_generator.h"
#include "backends/cpu/matmul_bytes.h"
#include "runtime/host_engine.h"

namespace pyc::cpu {
namespace {

MatmulConstants constants_of(const GeneratorRequest& r) {
  const auto constant = [&](const lower::Contraction::Operand& operand) {
    if (operand.buffer == loop::kNone) return false;
    const ir::ValueId v = r.group.buffer_values[operand.buffer];
    return r.graph.value(v).kind == ir::ValueKind::kConstant;
  };
  return {.a = constant(r.group.contraction->a), .b = constant(r.group.contraction->b)};
}

class PlannedMatmul final : public CpuPlan {
 public:
  explicit PlannedMatmul(MatmulPlan plan) : plan_(std::move(plan)) {}

  std::string key(const lower::Group& group, loop::KernelTexts& texts) const override {
    return matmul_key(plan_, texts.of(*group.contraction->kernel));
  }
  Result<std::string> emit(const lower::Group& group, const CodegenTarget& target,
                           const Output& output) const override {
    PYC_ASSIGN(const Generator* made, generator());
    return made->matmul(group, plan_, target, output);
  }
  std::vector<backends::CompiledStep> steps(const lower::Group& group,
                                            const std::string& symbol) const override {
    std::vector<backends::CompiledStep> out;
    for (MatmulStep& s : matmul_steps(group, plan_, symbol)) {
      out.push_back({.symbol = s.symbol,
                     .object = nullptr,
                     .launch = runtime::host_launch(s.parallel),
                     .operands = std::move(s.operands),
                     .prepares = true,
                     .backwards = std::move(s.backwards)});
    }
    out.back().prepares = false;
    return out;
  }
  // First B, then A, of those that are packed ahead.
  runtime::Parameter pack(const ir::Graph& graph, const lower::Group& group,
                          size_t index) const override {
    const lower::Contraction& c = *group.contraction;
    const auto bytes = [&](uint32_t buffer) {
      return graph.value(group.buffer_values[buffer]).constant->bytes.data() +
             group.buffer_offset_bytes(buffer);
    };
    const bool is_b = index == 0 && plan_.weights == MatmulPlan::Weights::kPackedAhead;
    return is_b ? pack_b(plan_, c, bytes(c.b.buffer)) : pack_a(plan_, c, bytes(c.a.buffer));
  }

 private:
  MatmulPlan plan_;
};

class Matmul final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    if (!reduces_in_lanes(r.group.kernel) || r.group.attention) return {};
    backends::Candidate none;
    const bool bytes = r.group.contraction && multiplies_bytes(*r.group.contraction);
    none.name = bytes ? "i8_matmul" : "f32_matmul";
    none.rejected = matmul_rejected(r.group, r.target);
    if (!none.rejected.empty()) return {none};
    const auto made = [&](MatmulPlan plan, double at_least) {
      backends::Candidate c;
      c.name = plan.name;
      c.cost_ns = std::max(matmul_cost_ns(r.group, plan, r.target, r.threads), at_least);
      c.needs = matmul_needs(r.group, plan);
      c.plan = std::make_shared<PlannedMatmul>(std::move(plan));
      return c;
    };
    MatmulPlan unpacked = plan_matmul(r.group, constants_of(r), r.target, r.threads, false);
    const MatmulPlan::Rows rows = unpacked.rows;
    bool differ = false;
    std::vector<backends::Candidate> out;
    for (MatmulPlan& plan : likely_matmuls(r.group, constants_of(r), r.target, r.threads)) {
      const double slowdown = plan.slowdown;
      const bool packs = plan.rows != rows;
      differ = differ || (packs && out.empty());
      // The first is the best that is known without a measurement.
      out.push_back(made(std::move(plan), out.empty() ? 0.0 : out.front().cost_ns));
      if (out.size() > 1) out.back().cost_ns *= slowdown;
      if (packs && r.least_memory) out.back().rejected = "larger_workspace";
    }
    if (differ) {
      out.push_back(made(std::move(unpacked), out.front().cost_ns));
      out.back().name += "_in_place";
    }
    return out;
  }
};

}  // namespace

const KernelGenerator& generator_matmul() {
  static const Matmul generator;
  return generator;
}

}  // namespace pyc::cpu

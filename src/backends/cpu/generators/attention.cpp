// Attention, several queries at a time.

#include "backends/cpu/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/cpu/kernel_generator.h"
#include "runtime/host_engine.h"

namespace pyc::cpu {
namespace {

class PlannedAttention final : public CpuPlan {
 public:
  explicit PlannedAttention(AttentionPlan plan) : plan_(std::move(plan)) {}

  std::string key(const lower::Group& group, loop::KernelTexts& texts) const override {
    return fmt::format("{} {}\n{}", plan_.name, plan_.pack_values, texts.of(group.kernel));
  }

  Result<std::string> emit(const lower::Group& group, const CodegenTarget& target,
                           const Output& output) const override {
    PYC_ASSIGN(const Generator* made, generator());
    return made->attention(group, plan_, target, output);
  }

  std::vector<backends::CompiledStep> steps(const lower::Group& group,
                                            const std::string& symbol) const override {
    using backends::Operand;
    const auto value = [&](uint32_t buffer) {
      return Operand{Operand::Kind::kValue, group.buffer_values[buffer],
                     group.buffer_offset_bytes(buffer), 0};
    };
    const auto workspace = [](int64_t offset) {
      return Operand{Operand::Kind::kWorkspace, ir::kNoId, offset, 0};
    };
    std::vector<backends::CompiledStep> out;
    const auto pack = [&](const char* suffix, const Packing& packing, uint32_t source,
                          int64_t offset) {
      out.push_back({symbol + suffix,
                     nullptr,
                     runtime::host_launch(packing.matrices() * packing.panels()),
                     {value(source), workspace(offset)},
                     true});
    };
    pack("_keys", plan_.keys, group.attention->k->buffer, 0);
    if (plan_.pack_values) {
      pack("_values", plan_.values, group.attention->v->buffer, plan_.values_offset);
    }
    std::vector<Operand> operands = kernel_operands(group);
    for (const uint32_t i : packed_first(group, plan_)) operands[i] = workspace(0);
    operands.push_back(workspace(0));
    if (plan_.pack_values) operands.push_back(workspace(plan_.values_offset));
    out.push_back({symbol, nullptr, runtime::host_launch(plan_.tasks(*group.attention)),
                   std::move(operands)});
    return out;
  }

 private:
  AttentionPlan plan_;
};

class Attention final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    if (!r.group.attention) return {};
    backends::Candidate c;
    c.name = "f32_attention";
    c.rejected = attention_rejected(r.group, r.target);
    if (!c.rejected.empty()) return {c};
    AttentionPlan plan = plan_attention(r.group, r.target);
    AttentionPlan lean = plan_attention(r.group, r.target, false);
    const bool differ = plan.pack_values != lean.pack_values;
    const auto made = [&](AttentionPlan p) {
      backends::Candidate out;
      out.name = p.name;
      out.cost_ns = attention_cost_ns(r.group, p, r.target, r.threads);
      out.needs.workspace_bytes = p.workspace_bytes;
      out.needs.read_first = packed_first(r.group, p);
      out.plan = std::make_shared<PlannedAttention>(std::move(p));
      return out;
    };
    std::vector<backends::Candidate> out = {made(std::move(plan))};
    if (!differ || !r.least_memory) return out;
    out.front().rejected = "larger_workspace";
    out.push_back(made(std::move(lean)));
    out.back().name += "_in_place";
    out.back().cost_ns = std::max(out.back().cost_ns, out.front().cost_ns);
    return out;
  }
};

}  // namespace

const KernelGenerator& generator_attention() {
  static const Attention generator;
  return generator;
}

}  // namespace pyc::cpu

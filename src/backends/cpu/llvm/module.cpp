// The library's public function and the generator behind it.

#include "backends/cpu/generator.h"
#include "backends/cpu/llvm/attention_emit.h"
#include "backends/cpu/llvm/compilation.h"
#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/llvm/matmul_emit.h"
#include "backends/cpu/llvm/step.h"

namespace pyc::cpu {
namespace {

void write_matmul(const MatmulSource& source, llvm::Module& module, const std::string& symbol) {
  const MatmulPlan& plan = source.plan;
  const int kinds = source.has_low_tiles() ? 2 : 1;
  MatmulParts parts;
  for (int i = 0; i < kinds; ++i) {
    parts.tiles[i] = emit_matmul_tile(source, module, plan.tile_rows - i);
    const bool placed = plan.rows == MatmulPlan::Rows::kPackedAtRun && !source.linear_rows();
    if (plan.rows != MatmulPlan::Rows::kComputed && !placed) continue;
    parts.pack_rows[i] = (plan.of_bytes() ? emit_pack_byte_rows : emit_pack_rows)(
        source, module, plan.tile_rows - i);
  }
  using Weights = MatmulPlan::Weights;
  const bool at_run = plan.weights == Weights::kPackedAtRun;
  const bool linear = source.contraction().b.form == lower::Contraction::Form::kLinear;
  if (plan.weights == Weights::kPackedByTask || (at_run && !linear)) {
    parts.pack_panels =
        (plan.of_bytes() ? emit_pack_byte_panels : emit_pack_panels)(source, module);
  }
  emit_matmul_driver(source, module, symbol, parts);
  if (plan.both_ways) emit_matmul_driver(source, module, symbol + "_back", parts, true);
  if (plan.rows == MatmulPlan::Rows::kPackedAtRun) {
    emit_rows_step(source, module, symbol + "_rows", parts);
  }
  if (!at_run) return;
  if (linear) {
    emit_pack(packing_of(plan, source.contraction()), source.traits, module, symbol + "_pack");
  } else {
    emit_pack_step(source, module, symbol + "_pack", parts.pack_panels);
  }
}

void write_attention(const AttentionSource& source, llvm::Module& module,
                     const std::string& symbol) {
  emit_attention(source, module, symbol);
  emit_pack(source.plan.keys, source.traits, module, symbol + "_keys");
  if (source.plan.pack_values)
    emit_pack(source.plan.values, source.traits, module, symbol + "_values");
}

Result<std::string> compile(const CodegenTarget& target, std::string name, const Output& output,
                            const Compilation::Writer& writer) {
  Compilation c(target, std::move(name), output.dims, output.form != Form::kSource);
  PYC_TRY(c.write(writer));
  if (output.form == Form::kSource) return c.source();
  PYC_TRY(c.finish());
  if (output.form == Form::kLlvmText) return c.text();
  return output.form == Form::kAssembly ? c.assembly() : c.object();
}

class LlvmGenerator final : public Generator {
 public:
  Result<std::string> kernel(const loop::Kernel& kernel, const CodegenTarget& target,
                             const Output& output) const override {
    return compile(target, "kernel '" + kernel.name + "'", output,
                   [&](llvm::Module& module, const TargetTraits& traits) {
                     emit_kernel(kernel, traits, module, output.symbol);
                   });
  }

  Result<std::string> matmul(const lower::Group& group, const MatmulPlan& plan,
                             const CodegenTarget& target, const Output& output) const override {
    return compile(target, plan.name + " of group '" + group.name + "'", output,
                   [&](llvm::Module& module, const TargetTraits& traits) {
                     write_matmul({group, plan, traits}, module, output.symbol);
                   });
  }

  Result<std::string> attention(const lower::Group& group, const AttentionPlan& plan,
                                const CodegenTarget& target, const Output& output) const override {
    return compile(target, plan.name + " of group '" + group.name + "'", output,
                   [&](llvm::Module& module, const TargetTraits& traits) {
                     write_attention({group, plan, traits}, module, output.symbol);
                   });
  }

  Result<std::string> fma_probe(const CodegenTarget& target,
                                const std::string& symbol) const override {
    return compile(target, "the fma probe", {.symbol = symbol},
                   [&](llvm::Module& module, const TargetTraits&) {
                     emit_fma_probe(module, target.lanes, fma_probe_chains(target), symbol);
                   });
  }
};

}  // namespace
}  // namespace pyc::cpu

extern "C" const pyc::cpu::Generator* pyc_llvm_generator(const char* version);

extern "C" const pyc::cpu::Generator* pyc_llvm_generator(const char* version) {
  static const pyc::cpu::LlvmGenerator generator;
  return std::string_view(version) == PYC_VERSION ? &generator : nullptr;
}

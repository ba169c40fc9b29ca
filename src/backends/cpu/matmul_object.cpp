// From a planned product to an object, through LLVM.

#include "backends/cpu/compilation.h"
#include "backends/cpu/matmul_emit.h"

namespace pyc::cpu {
namespace {

// Enough to hide the latency, few enough for the registers.
int probe_chains(const CodegenTarget& target) {
  return target.is_aarch64() ? 96 / target.lanes : 12;
}

Compilation of_group(const lower::Group& group, const MatmulPlan& plan,
                     const CodegenTarget& target) {
  return {target, plan.name + " of group '" + group.name + "'"};
}

Compilation::Writer writer(const lower::Group& group, const MatmulPlan& plan, std::string symbol) {
  return [&group, &plan, symbol = std::move(symbol)](llvm::Module& module,
                                                     const TargetTraits& traits) {
    const MatmulSource source{group, plan, traits};
    const bool two = plan.tall_tiles < plan.row_tiles;
    llvm::Function* const tiles[2] = {
        emit_matmul_tile(source, module, plan.tile_rows),
        two ? emit_matmul_tile(source, module, plan.tile_rows - 1) : nullptr};
    emit_matmul_driver(source, module, symbol, tiles);
    if (plan.weights == MatmulPlan::Weights::kPackedAtRun) {
      emit_matmul_pack(source, module, symbol + "_pack");
    }
  };
}

}  // namespace

Result<std::string> emit_matmul_object(const lower::Group& group, const MatmulPlan& plan,
                                       const CodegenTarget& target, const std::string& symbol) {
  Compilation c = of_group(group, plan, target);
  PYC_TRY(c.emit(writer(group, plan, symbol)));
  return c.object();
}

Result<std::string> emit_matmul_llvm_text(const lower::Group& group, const MatmulPlan& plan,
                                          const CodegenTarget& target) {
  Compilation c = of_group(group, plan, target);
  PYC_TRY(c.emit(writer(group, plan, std::string(kDefaultSymbol))));
  return c.text();
}

Result<std::string> emit_matmul_assembly(const lower::Group& group, const MatmulPlan& plan,
                                         const CodegenTarget& target) {
  Compilation c = of_group(group, plan, target);
  PYC_TRY(c.emit(writer(group, plan, std::string(kDefaultSymbol))));
  return c.assembly();
}

Result<std::string> emit_fma_probe_object(const CodegenTarget& target, const std::string& symbol) {
  Compilation c(target, "the fma probe");
  PYC_TRY(c.emit([&](llvm::Module& module, const TargetTraits&) {
    emit_fma_probe(module, target.lanes, probe_chains(target), symbol);
  }));
  return c.object();
}

int64_t fma_probe_flops(const CodegenTarget& target) {
  return int64_t{2} * target.lanes * probe_chains(target) * kFmaProbeDepth;
}

}  // namespace pyc::cpu

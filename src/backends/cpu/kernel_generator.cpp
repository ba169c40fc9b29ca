#include "backends/cpu/kernel_generator.h"

#include <algorithm>

#include "backends/cpu/pair_points.h"

namespace pyc::cpu {
namespace {

constexpr double kGenericFlopsPerNs = 4.0;
// Without a reduction nothing waits: a sigmoid and a product of 32,768 elements, 25 operations
// each, took 45.3 us on one Neoverse-V1.
constexpr double kPointFlopsPerNs = 16.0;
// Between two loops over a row, until a reduction's result is there.
constexpr double kWaitNs = 20.0;
// Independent fma chains that hide the latency of one.
constexpr double kChainsInFlight = 4.0;

}  // namespace

#define PYC_GENERATOR(stem) const KernelGenerator& generator_##stem();
#include "kernel_generators.inc"
#undef PYC_GENERATOR

std::span<const KernelGenerator* const> kernel_generators() {
  static const KernelGenerator* const all[] = {
#define PYC_GENERATOR(stem) &generator_##stem(),
#include "kernel_generators.inc"
#undef PYC_GENERATOR
  };
  return all;
}

std::vector<backends::Operand> kernel_operands(const lower::Group& group) {
  std::vector<backends::Operand> out;
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId v = group.buffer_values[b];
    backends::Operand operand;
    operand.offset = group.buffer_offset_bytes(b);
    operand.kind =
        v == ir::kNoId ? backends::Operand::Kind::kScratch : backends::Operand::Kind::kValue;
    operand.value = v;
    out.push_back(operand);
  }
  return out;
}

bool reduces_in_lanes(const loop::Kernel& kernel) {
  return std::any_of(kernel.loops.begin(), kernel.loops.end(), [](const loop::Loop& l) {
    return l.vector && std::any_of(l.body.begin(), l.body.end(), [](const loop::Stmt& s) {
             return s.kind == loop::StmtKind::kLoop;
           });
  });
}

double step_overhead_ns(int64_t points, int threads) {
  constexpr double kCallNs = 20.0;
  constexpr double kTogetherNs = 400.0;
  return threads > 1 && points > 1 ? kTogetherNs : kCallNs;
}

double point_flops_per_ns(const CodegenTarget& target) {
  return kPointFlopsPerNs * target.lanes / 4.0;
}

double generic_cost_ns(const lower::Group& group, int lanes, const GeneratorRequest& request) {
  const int own = request.target.lanes;
  const bool reduces = std::ranges::any_of(group.kernel.loops, [](const loop::Loop& l) {
    return !l.reductions.empty() || !l.carries.empty();
  });
  double rate = reduces ? kGenericFlopsPerNs * own / 4.0 : point_flops_per_ns(request.target);
  if (reduces_in_lanes(group.kernel)) {
    const double chains = static_cast<double>(lanes) / own;
    rate *= std::min(chains, kChainsInFlight) / kChainsInFlight;
  }
  const int64_t points = group.kernel.parallel_size();
  const auto busy = static_cast<double>(std::clamp<int64_t>(points, 1, request.threads));
  const double compute = group.flops / (rate * busy);
  const double memory = static_cast<double>(group.bytes) / (kBytesPerNs * busy);
  return std::max(compute, memory) + step_overhead_ns(points, request.threads);
}

double waits_ns(const loop::Kernel& kernel, int threads) {
  return kWaitNs * waits_of(kernel) * static_cast<double>(kernel.parallel_size()) / threads;
}

}  // namespace pyc::cpu

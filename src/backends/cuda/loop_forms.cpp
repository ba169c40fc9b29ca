// The group's own kernel in the form that fits it: for every group.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

// A matrix unit's sum in integers, one after the other, against a sum of as many products.
constexpr double kUnitByHand = 100.0;

// "flat x4" is the candidate loop_flat__4, "rows of 32" loop_rows__32, "serial" loop_serial.
std::string candidate_name(const std::string& form) {
  const std::string word = form.substr(0, form.find(' '));
  const size_t digits = form.find_first_of("0123456789");
  if (digits == std::string::npos) return "loop_" + word;
  return fmt::format("loop_{}__{}", word, form.substr(digits));
}

// What a launch of so many blocks moves in a nanosecond: a multiprocessor alone moves little.
double bytes_per_ns(uint32_t blocks) {
  constexpr double kBytesPerNsOfBlock = 40.0;
  return std::min(kDeviceBytesPerNs, kBytesPerNsOfBlock * std::max<uint32_t>(blocks, 1));
}

// One thread sums a whole product, or carries something along a row, and waits for each term.
double chain_ns(const lower::Group& group) {
  int64_t terms = group.contraction ? group.contraction->k : 0;
  for (const loop::Loop& l : group.kernel.loops) {
    if (!l.carries.empty()) terms += l.extent;
  }
  return kTermNs * static_cast<double>(terms);
}

class LoopForms final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    backends::Candidate c;
    c.order = group.order;
    auto text = kernel_text(group.kernel, kUnitSymbol, cuda_dialect(), KernelForm::kAny,
                            unaligned_buffers(group));
    if (!text.ok()) {
      c.name = "loop_serial";
      c.rejected = std::string(code_name(text.status().code()));
      return {c};
    }
    c.name = candidate_name(text->form);
    c.cost_ns =
        kLaunchNs + std::max({group.flops / kGenericFlopsPerNs, chain_ns(group),
                              static_cast<double>(group.bytes) / bytes_per_ns(text->blocks)});
    if (group.order != lower::kCanonicalOrder) c.cost_ns *= kUnitByHand;
    c.needs.workspace_bytes = text->workspace_bytes;
    // Threads compute elements in any order.
    c.needs.in_place = loop::pointwise_pairs(group.kernel);
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(make_part(std::move(*text), group.kernel, group));
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_loop_forms() {
  static const LoopForms generator;
  return generator;
}

}  // namespace pyc::cuda

#include "backends/cuda/generators/product.h"

#include <utility>

#include "backends/cuda/generators/product_packing.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

class Product final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                              const lower::Group& group) const override {
    if (!group.contraction || group.attention) return {};
    return {tiles(graph, group), stream(group)};
  }

 private:
  static backends::Candidate tiles(const ir::Graph& graph, const lower::Group& group) {
    backends::Candidate c;
    c.name = "f32_product";
    c.rejected = product_rejected(group);
    if (!c.rejected.empty()) return c;
    const auto packing = product_packing(graph, group);
    const lower::Group read = packing ? with_packing(group, *packing) : group;
    const ProductChoice choice = choose_product(read);
    c.name = "f32_product__" + choice.tile.name();
    c.cost_ns = choice.cost_ns;
    const std::vector<bool> unaligned = unaligned_buffers(read);
    CudaPlan& plan =
        take(c, read, product_text(read, choice.tile, kUnitSymbol, cuda_dialect(), unaligned));
    if (choice.tile.split) {
      c.needs.workspace_bytes = split_bytes(*group.contraction);
      KernelText join = product_join_text(read, kUnitSymbol, cuda_dialect(), unaligned);
      plan.parts.push_back(make_part(std::move(join), read.kernel, read));
    }
    if (packing) use_packed(c, plan, group, *packing);
    return c;
  }

  static backends::Candidate stream(const lower::Group& group) {
    backends::Candidate c;
    c.name = "f32_product_rows";
    c.rejected = stream_rejected(group);
    if (!c.rejected.empty()) return c;
    const ProductStream chosen = choose_stream(group, &c.cost_ns);
    c.name = "f32_product_" + chosen.name();
    take(c, group,
         stream_text(group, chosen, kUnitSymbol, cuda_dialect(), unaligned_buffers(group)));
    return c;
  }

  static CudaPlan& take(backends::Candidate& c, const lower::Group& group, KernelText text) {
    // Points are computed in an order of their own, but each point's epilogue runs once.
    c.needs.in_place = loop::pointwise_pairs(group.kernel);
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(make_part(std::move(text), group.kernel, group));
    c.plan = plan;
    return *plan;
  }
};

}  // namespace

const KernelGenerator& generator_product() {
  static const Product generator;
  return generator;
}

}  // namespace pyc::cuda

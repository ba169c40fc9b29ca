#include "backends/cuda/generators/product.h"

#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

class Product final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    if (!group.contraction || group.attention) return {};
    backends::Candidate c;
    c.name = "f32_product";
    c.rejected = product_rejected(group);
    if (!c.rejected.empty()) return {c};
    const ProductChoice choice = choose_product(group);
    c.name = "f32_product__" + choice.tile.name();
    c.cost_ns = choice.cost_ns;
    // Tiles take points in an order of their own, but each point's epilogue runs once.
    c.needs.in_place = loop::pointwise_pairs(group.kernel);
    KernelText text =
        product_text(group, choice.tile, kUnitSymbol, cuda_dialect(), unaligned_buffers(group));
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(make_part(std::move(text), group.kernel, group));
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_product() {
  static const Product generator;
  return generator;
}

}  // namespace pyc::cuda

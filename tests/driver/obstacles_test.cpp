// What keeps a kernel from a generator, where the stages before make no such kernel today: groups
// of small graphs, changed by hand. Each gives the reason code it is known by.

#include <gtest/gtest.h>

#include <string>

#include "backends/cpu/matmul.h"
#include "backends/cuda/generators/attention_halves_sizes.h"
#include "backends/cuda/generators/product.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "lower/kernel_builder.h"
#include "lower/lower.h"
#include "support/verified.h"

namespace pyc::driver {
namespace {

lower::Group group_of(const std::string& text, const std::string& unit = "") {
  lower::LowerOptions options;
  options.unit = unit;
  auto lowered = lower::lower_graph(test::verified(parse_model(text).value()), options);
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  return std::move(lowered->groups[0]);
}

lower::Group product() {
  return group_of(R"(graph @g(%a: f32[4,8], %b: f32[8,16]) -> (%y) {
  %y = matmul(%a, %b)
}
)");
}

std::string why_no_contraction(const loop::Kernel& kernel) {
  std::string why;
  const auto found = lower::find_contraction(
      kernel, [](uint32_t) { return true; }, &why);
  EXPECT_FALSE(found.has_value());
  return why;
}

// The loop over columns and, inside, the one over k.
struct Loops {
  loop::Loop& columns;
  loop::Loop& k;
};

Loops loops_of(loop::Kernel& kernel) {
  loop::Loop& columns = kernel.loops[kernel.body[0].index];
  for (const loop::Stmt& s : columns.body) {
    if (s.kind == loop::StmtKind::kLoop) return {columns, kernel.loops[s.index]};
  }
  ADD_FAILURE() << loop::print(kernel);
  return {columns, columns};
}

TEST(Obstacles, OfContractions) {
  const loop::Kernel kernel = product().kernel;
  std::string why;
  EXPECT_TRUE(lower::find_contraction(
      kernel, [](uint32_t) { return true; }, &why))
      << why;
  const auto changed = [&](const auto& change) {
    loop::Kernel other = kernel;
    change(other, loops_of(other));
    return why_no_contraction(other);
  };
  EXPECT_EQ(changed([](loop::Kernel&, Loops l) { l.columns.reductions = l.k.reductions; }),
            "reduces_rows");
  EXPECT_EQ(changed([](loop::Kernel& k, Loops l) {
              k.checks.push_back({});
              l.columns.body.push_back({loop::StmtKind::kCheck, 0});
            }),
            "has_checks");
  EXPECT_EQ(changed([](loop::Kernel&, Loops l) {
              std::erase_if(l.columns.body,
                            [](const loop::Stmt& s) { return s.kind == loop::StmtKind::kLoop; });
            }),
            "no_reduction");
  EXPECT_EQ(changed([](loop::Kernel& k, Loops l) {
              k.checks.push_back({});
              l.k.body.push_back({loop::StmtKind::kCheck, 0});
            }),
            "terms_are_checked");
}

// A convolution with padding skips terms. Its other factor has to be a load, known to be finite.
TEST(Obstacles, OfSkippedTerms) {
  const loop::Kernel kernel = group_of(R"(graph @g(%a: f32[1,3,8,8], %b: f32[4,3,3,3]) -> (%y) {
  %y = conv(%a, %b) {pads=[1,1,1,1]}
}
)")
                                  .kernel;
  loop::Kernel other = kernel;
  for (loop::Loop& l : other.loops) {
    for (loop::Reduction& r : l.reductions) {
      ASSERT_NE(r.guard, loop::kNone);
      r.value = other.pool.unary(loop::Op::kNeg, r.value);
      r.value2 = other.pool.unary(loop::Op::kNeg, r.value2);
    }
  }
  EXPECT_EQ(why_no_contraction(other), "skips_terms_of_a_computed_factor");
}

TEST(Obstacles, OfProductsOnTheCpu) {
  const cpu::CodegenTarget target = cpu::CodegenTarget::host();
  lower::Group group = product();
  EXPECT_EQ(cpu::matmul_rejected(group, target), "");
  cpu::CodegenTarget other = target;
  other.lanes = 2;
  EXPECT_EQ(cpu::matmul_rejected(group, other), "lanes_not_supported");
  group.kernel.checks.push_back({});
  EXPECT_EQ(cpu::matmul_rejected(group, target), "has_checks");
  group.kernel.buffers.push_back(group.kernel.buffers[0]);
  group.kernel.buffers.back().access = loop::Access::kScratch;
  EXPECT_EQ(cpu::matmul_rejected(group, target), "has_scratch");

  const lower::Group bytes = group_of(R"(graph @g(%a: u8[4,8], %b: i8[8,16]) -> (%y) {
  %y = matmul_integer(%a, %b) {with=""}
}
)");
  EXPECT_EQ(cpu::matmul_rejected(bytes, target), "");
  other = target;
  other.bytes = cpu::ByteUnit::kNone;
  EXPECT_EQ(cpu::matmul_rejected(bytes, other), "no_byte_unit");
}

TEST(Obstacles, OfProductsOnTheGpu) {
  const lower::Group group = product();
  EXPECT_EQ(cuda::product_rejected(group), "");
  const auto changed = [&](const auto& change) {
    lower::Group other = group;
    auto kernel = std::make_shared<loop::Kernel>(*other.contraction->kernel);
    change(*kernel);
    other.contraction->kernel = kernel;
    return cuda::product_rejected(other);
  };
  EXPECT_EQ(changed([](loop::Kernel& k) { k.checks.push_back({}); }), "has_checks");
  EXPECT_EQ(changed([](loop::Kernel& k) {
              k.buffers.push_back(k.buffers[0]);
              k.buffers.back().access = loop::Access::kScratch;
            }),
            "has_scratch");
  EXPECT_EQ(changed([](loop::Kernel& k) { k.buffers.resize(5000, k.buffers[0]); }),
            "too_many_buffers");
}

TEST(Obstacles, OfProductsOnTheUnit) {
  lower::LowerOptions unit;
  unit.unit = "sm90";
  const auto lowered =
      lower::lower_graph(
          test::verified(parse_model(R"(graph @g(%a: f16[64,64], %b: f16[64,64]) -> (%y) {
  %y = matmul(%a, %b)
}
)")
                             .value()),
          unit)
          .value();
  const auto changed = [&](const auto& change) {
    lower::Group group = lowered.groups[0];
    change(*group.contraction);
    for (const backends::Candidate& c :
         find_backend("cuda").value()->candidates(*lowered.graph, group, {})) {
      if (c.name.find("wgmma") != std::string::npos) return c.rejected;
    }
    return std::string("no candidate");
  };
  EXPECT_EQ(changed([](lower::Contraction&) {}), "");
  EXPECT_EQ(changed([](lower::Contraction& c) { c.dtype = DType::kF64; }), "sums_not_f32");
  EXPECT_EQ(changed([](lower::Contraction& c) {
              c.m = c.n = int64_t{1} << 24;
              c.batch = {int64_t{1} << 14};
            }),
            "too_many_tiles");
}

TEST(Obstacles, OfAttentionOnTheUnit) {
  const lower::Group group = group_of(
      R"(graph @g(%q: bf16[1,2,4,8], %k: bf16[1,2,8,8], %v: bf16[1,2,8,8]) -> (%o) {
  %o, %m, %l = attend(%q, %k, %v) {scale=0.25}
}
)",
      "sm90");
  ASSERT_TRUE(group.attention);
  EXPECT_EQ(cuda::attention_halves_obstacle(group), "");
  const auto changed = [&](const auto& change) {
    lower::Group other = group;
    change(other);
    return cuda::attention_halves_obstacle(other);
  };
  EXPECT_EQ(changed([](lower::Group& g) { g.attention->factors = DType::kF32; }),
            "factors_not_halves");
  EXPECT_EQ(changed([](lower::Group& g) { g.attention->k.reset(); }), "operands_not_strided");
  EXPECT_EQ(changed([](lower::Group& g) { g.attention->block = 4096; }), "block_of_keys_too_long");
  EXPECT_EQ(changed([](lower::Group& g) { g.kernel.checks.push_back({}); }), "has_checks");
  EXPECT_EQ(changed([](lower::Group& g) {
              g.buffer_offsets.assign(g.kernel.buffers.size(), 0);
              g.buffer_offsets[g.attention->outputs[0].buffer] = 1;
            }),
            "result_not_by_16_bytes");
}

}  // namespace
}  // namespace pyc::driver

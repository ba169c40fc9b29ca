// The matmul generator against the generic kernel of the same group, bit for bit.

#include "backends/cpu_matmul_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "loop/builder.h"
#include "loop/verify.h"
#include "lower/kernel_builder.h"

namespace pyc::cpu {
namespace {

// llvm.prefetch's last arguments, for the second-level cache and for the first.
constexpr std::string_view kFetchFar = "i32 0, i32 1, i32 1)";
constexpr std::string_view kFetchNear = "i32 0, i32 3, i32 1)";

using loop::Expr;
using loop::VarId;

enum class Epilogue { kNone, kBias, kBiasRelu, kCurve, kResidual, kTwoOutputs, kHalf, kReadsB };

struct Case {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  std::vector<int64_t> batch = {};
  bool a_transposed = false;
  bool b_transposed = false;
  bool a_shared = false;  // one A for all batch entries
  bool b_shared = false;
  bool b_constant = true;
  Epilogue epilogue = Epilogue::kNone;
};

std::string describe(const Case& c) {
  std::string text = "m " + std::to_string(c.m) + " n " + std::to_string(c.n) + " k " +
                     std::to_string(c.k) + " batch";
  for (int64_t b : c.batch) text += " " + std::to_string(b);
  return text + " transposed " + std::to_string(c.a_transposed) + std::to_string(c.b_transposed) +
         " constant " + std::to_string(c.b_constant) + " epilogue " +
         std::to_string(static_cast<int>(c.epilogue));
}

// The group as lowering would make it.
class GroupMaker {
 public:
  explicit GroupMaker(const Case& c) : c_(c), p_(group_.kernel.pool) {}

  lower::Group make() {
    loop::Kernel& k = group_.kernel;
    group_.name = k.name = "g";
    Expr a_offset = at(0);
    Expr b_offset = at(0);
    Expr out = at(0);
    for (int64_t extent : c_.batch) {
      const VarId v = variable("b", extent);
      k.parallel.push_back(v);
      if (!c_.a_shared) a_offset = a_offset * at(extent) + var(v);
      if (!c_.b_shared) b_offset = b_offset * at(extent) + var(v);
      out = out * at(extent) + var(v);
      batch_ *= extent;
    }
    const VarId m = c_.m == 1 ? loop::kNone : variable("i", c_.m);
    const VarId n = variable("j", c_.n);
    const VarId depth = variable("k", c_.k);
    const VarId result = p_.new_var("r", DType::kF32, loop::kResult);
    if (m != loop::kNone) k.parallel.push_back(m);
    const auto matrix = [&](Expr base, int64_t rows, int64_t columns, VarId r, VarId c,
                            bool turned) {
      base = base * at(rows * columns);
      return turned ? base + var(c) * at(rows) + var(r) : base + var(r) * at(columns) + var(c);
    };
    const Expr a = load(c_.m * c_.k * (c_.a_shared ? 1 : batch_),
                        matrix(a_offset, c_.m, c_.k, m, depth, c_.a_transposed));
    const Expr b = load(c_.k * c_.n * (c_.b_shared ? 1 : batch_),
                        matrix(b_offset, c_.k, c_.n, depth, n, c_.b_transposed));
    loop::Loop columns{.var = n, .extent = c_.n, .vector = true, .body = {}, .reductions = {}};
    loop::Loop products{.var = depth, .extent = c_.k, .body = {}, .reductions = {}};
    products.reductions.push_back({.kind = loop::ReduceKind::kChain,
                                   .value = a.id,
                                   .value2 = b.id,
                                   .segment = 256,
                                   .result = result});
    columns.body.push_back({loop::StmtKind::kLoop, 1});
    k.loops = {columns, products};
    out = (out * at(c_.m) + var(m)) * at(c_.n) + var(n);
    epilogue(var(result), out, m, n);
    for (uint32_t i = 0; i < k.stores.size(); ++i) {
      k.loops[0].body.push_back({loop::StmtKind::kStore, i});
    }
    k.body = {{loop::StmtKind::kLoop, 0}};
    group_.buffer_values.resize(k.buffers.size());
    std::iota(group_.buffer_values.begin(), group_.buffer_values.end(), 0);
    std::string why_not;
    group_.contraction = lower::find_contraction(
        k, [](uint32_t) { return false; }, &why_not);
    EXPECT_TRUE(group_.contraction.has_value()) << why_not;
    const Status ok = loop::verify_kernel(k);
    EXPECT_TRUE(ok.ok()) << ok.to_string();
    return std::move(group_);
  }

 private:
  Expr at(int64_t v) { return loop::index(p_, v); }
  Expr var(VarId v) { return v == loop::kNone ? at(0) : Expr{&p_, p_.var(v)}; }
  VarId variable(const char* name, int64_t extent) { return p_.new_var(name, DType::kI64, extent); }
  uint32_t buffer(DType t, int64_t elements, loop::Access access) {
    group_.kernel.buffers.push_back({"x", t, elements, access});
    return static_cast<uint32_t>(group_.kernel.buffers.size() - 1);
  }
  Expr load(int64_t elements, Expr offset) {
    return {&p_,
            p_.load(buffer(DType::kF32, elements, loop::Access::kRead), DType::kF32, offset.id)};
  }
  void store(DType t, Expr offset, Expr value) {
    const int64_t elements = batch_ * c_.m * c_.n;
    group_.kernel.stores.push_back(
        {buffer(t, elements, loop::Access::kWrite), offset.id, value.id});
  }

  void epilogue(Expr x, Expr out, VarId m, VarId n) {
    switch (c_.epilogue) {
      case Epilogue::kNone:
        break;
      case Epilogue::kBias:
        x = x + load(c_.n, var(n));
        break;
      case Epilogue::kBiasRelu:
        x = loop::max(x + load(c_.n, var(n)), loop::constant(p_, DType::kF32, 0.0));
        break;
      case Epilogue::kCurve: {
        // As costly as a real activation: a long polynomial, a division and a select.
        Expr y = x + load(c_.m, var(m));
        Expr z = loop::constant(p_, DType::kF32, 0.25);
        for (int i = 1; i < 12; ++i) z = z * y + 1.0 / i;
        x = loop::select(loop::lt(loop::abs(y), loop::like(y, 3.0)), z / (z * z + 1.0), y);
        break;
      }
      case Epilogue::kResidual:
        x = x + load(batch_ * c_.m * c_.n, out);
        break;
      case Epilogue::kTwoOutputs:
        store(DType::kF32, out, x * 0.5);
        break;
      case Epilogue::kHalf:
        store(DType::kF16, out, loop::convert(x, DType::kF16));
        return;
      case Epilogue::kReadsB: {
        const Expr first{&p_, p_.load(1, DType::kF32, at(0).id)};
        x = x + first;
        break;
      }
    }
    store(DType::kF32, out, x);
  }

  const Case& c_;
  lower::Group group_;
  loop::Pool& p_;
  int64_t batch_ = 1;
};

void check(const Case& c, std::initializer_list<int> lanes, std::initializer_list<int> threads) {
  SCOPED_TRACE(describe(c));
  const lower::Group group = GroupMaker(c).make();
  ASSERT_TRUE(group.contraction.has_value());
  const Buffers wanted(group.kernel, 1);
  interpret(group.kernel, wanted);
  for (const int l : lanes) {
    CodegenTarget target = CodegenTarget::host();
    target.lanes = l;
    ASSERT_EQ(matmul_rejected(group, target), "");
    for (const int t : threads) {
      const MatmulPlan plan = plan_matmul(group, {.b = c.b_constant}, target, t);
      SCOPED_TRACE(plan.name + " threads " + std::to_string(t));
      const Buffers found(group.kernel, 1);
      run_compiled(group, plan, target, t, found);
      expect_equal(group.kernel, found, wanted);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// What a tuner may choose in place of the first.
TEST(CpuMatmul, EveryLikelyPlan) {
  const Case cases[] = {
      {.m = 49, .n = 96, .k = 300},
      {.m = 49, .n = 96, .k = 300, .b_constant = false},
      {.m = 20, .n = 200, .k = 2100},
      {.m = 3, .n = 100, .k = 33},
  };
  size_t seen = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(describe(c));
    const lower::Group group = GroupMaker(c).make();
    const Buffers wanted(group.kernel, 1);
    interpret(group.kernel, wanted);
    const CodegenTarget target = CodegenTarget::host();
    std::set<std::string> names;
    const auto plans = likely_matmuls(group, {.b = c.b_constant}, target, 2);
    EXPECT_EQ(plans.front().name, plan_matmul(group, {.b = c.b_constant}, target, 2).name);
    for (const MatmulPlan& plan : plans) {
      SCOPED_TRACE(plan.name);
      EXPECT_TRUE(names.insert(plan.name).second);
      const Buffers found(group.kernel, 1);
      run_compiled(group, plan, target, 2, found);
      expect_equal(group.kernel, found, wanted);
      if (testing::Test::HasFatalFailure()) return;
    }
    seen += plans.size();
  }
  EXPECT_GE(seen, 2 * std::size(cases));
}

TEST(CpuMatmul, EveryTileSize) {
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}) {
    for (const int64_t n : {8, 13}) check({.m = m, .n = n, .k = 21}, {4}, {1});
  }
}

TEST(CpuMatmul, EveryColumnRest) {
  for (const int64_t n : {2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 64, 65, 100}) {
    check({.m = 1, .n = n, .k = 9}, {4, 16}, {2});
    check({.m = 9, .n = n, .k = 9, .epilogue = Epilogue::kCurve}, {4, 8}, {1});
  }
}

TEST(CpuMatmul, EveryDepth) {
  for (const int64_t k :
       {1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 258, 260, 263, 511, 512, 513, 1000}) {
    check({.m = 9, .n = 17, .k = k}, {4}, {1});
    check({.m = 2, .n = 11, .k = k}, {8}, {1});
  }
}

TEST(CpuMatmul, LanesGiveTheSameBits) {
  for (const Epilogue e : {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kCurve}) {
    check({.m = 11, .n = 29, .k = 300, .epilogue = e}, {4, 8, 16}, {1, 3});
    check({.m = 1, .n = 77, .k = 300, .epilogue = e}, {4, 8, 16}, {1, 3});
  }
}

TEST(CpuMatmul, TransposedOperands) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      for (const bool constant : {false, true}) {
        for (const int64_t k : {3, 37, 270}) {
          check({.m = 10,
                 .n = 19,
                 .k = k,
                 .a_transposed = a,
                 .b_transposed = b,
                 .b_constant = constant},
                {4, 8}, {2});
        }
      }
    }
  }
}

TEST(CpuMatmul, BatchesAndBroadcasts) {
  for (const bool constant : {false, true}) {
    check({.m = 5, .n = 16, .k = 12, .batch = {3}, .b_constant = constant}, {4}, {1, 2});
    check({.m = 5, .n = 9, .k = 12, .batch = {2, 3}, .b_constant = constant}, {4, 16}, {4});
    check({.m = 7, .n = 9, .k = 260, .batch = {3}, .b_shared = true, .b_constant = constant}, {4},
          {2});
    check({.m = 7,
           .n = 24,
           .k = 30,
           .batch = {2, 2},
           .b_transposed = true,
           .a_shared = true,
           .b_constant = constant},
          {4}, {5});
  }
}

TEST(CpuMatmul, Epilogues) {
  for (const Epilogue e :
       {Epilogue::kBias, Epilogue::kBiasRelu, Epilogue::kCurve, Epilogue::kResidual,
        Epilogue::kTwoOutputs, Epilogue::kHalf, Epilogue::kReadsB}) {
    for (const int64_t k : {20, 300}) {
      check({.m = 13, .n = 21, .k = k, .epilogue = e}, {4, 8}, {2});
      check({.m = 8, .n = 32, .k = k, .b_constant = false, .epilogue = e}, {4}, {2});
    }
  }
}

TEST(CpuMatmul, ThreadCountsGiveTheSameBits) {
  check({.m = 50, .n = 70, .k = 40, .epilogue = Epilogue::kBias}, {4}, {1, 2, 3, 4, 7, 16});
  check({.m = 1, .n = 200, .k = 64}, {4}, {1, 2, 5, 16});
}

// The widest tile of one row leaves 12 of 16 threads without any.
TEST(CpuMatmul, OneRowHasTilesForEveryThread) {
  const auto tasks = [](const Case& c, int threads) {
    const CodegenTarget target = CodegenTarget::x86_avx512();
    return plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, threads).tasks();
  };
  const Case classes{.m = 1, .n = 1000, .k = 2048};
  EXPECT_EQ(tasks(classes, 1), 4);
  EXPECT_EQ(tasks(classes, 4), 4);
  EXPECT_EQ(tasks(classes, 8), 8);
  EXPECT_EQ(tasks(classes, 16), 16);
  EXPECT_EQ(tasks({.m = 1, .n = 200, .k = 64}, 16), tasks({.m = 1, .n = 200, .k = 64}, 1));
  check({.m = 1, .n = 1000, .k = 300, .epilogue = Epilogue::kBias}, {4, 8, 16}, {1, 16});
}

// Tiles of seven rows and two vectors have too few accumulators for NEON: two heights are worth
// their code where most tiles get to have eight, and three vectors where none can.
TEST(CpuMatmul, HeightsThatFillTheUnit) {
  const auto planned = [](int64_t m, int64_t k = 1024) {
    const Case c{.m = m, .n = 512, .k = k};
    return plan_matmul(GroupMaker(c).make(), {.b = true}, CodegenTarget::aarch64_neon(), 1);
  };
  EXPECT_EQ(planned(196).tile_rows, 8);
  EXPECT_EQ(planned(196).row_tiles, 25);
  EXPECT_EQ(planned(196).tall_tiles, 21);
  EXPECT_EQ(planned(196, 32).row_tiles, 28);
  EXPECT_EQ(planned(49).row_tiles, 7);
  EXPECT_EQ(planned(49).tall_tiles, 7);
  EXPECT_EQ(planned(196).tile_columns, 8);
  EXPECT_EQ(planned(49).tile_columns, 12);
  for (const int64_t k : {3, 4, 9, 300, 515}) check({.m = 14, .n = 40, .k = k}, {4, 8}, {1, 2});
  check({.m = 28, .n = 40, .k = 300}, {4}, {1, 2});
}

// One row reads a large B in streams; the last panel has whole streams of padding, and a part of
// one.
TEST(CpuMatmul, OneRowReadsALargeBInStreams) {
  for (const int64_t n : {520, 535, 576}) {
    check({.m = 1, .n = n, .k = 263}, {4, 8}, {1, 2});
    check({.m = 1, .n = n, .k = 600, .epilogue = Epilogue::kBiasRelu}, {4}, {1, 2});
  }
  check({.m = 2, .n = 535, .k = 263}, {4}, {1, 2});
  const auto streams = [](const CodegenTarget& target, const Case& c) {
    return plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, 1).b_streams;
  };
  EXPECT_EQ(streams(CodegenTarget::aarch64_neon(), {.m = 1, .n = 576, .k = 263}), 4);
  EXPECT_EQ(streams(CodegenTarget::aarch64_neon(), {.m = 2, .n = 576, .k = 263}), 1);
  EXPECT_EQ(streams(CodegenTarget::aarch64_neon(), {.m = 1, .n = 64, .k = 263}), 1);
  EXPECT_EQ(streams(CodegenTarget::x86_avx512(), {.m = 1, .n = 576, .k = 263}), 1);
}

// Rows of few panels, on x86 those that many blocks of columns go through, are fetched a tile
// ahead, the last tile's from beyond A; depths that leave every rest, with and without whole steps
// before.
TEST(CpuMatmul, RowsAreFetched) {
  for (const int64_t k : {1, 2, 3, 6, 7, 9, 27, 300}) {
    check({.m = 41, .n = 4, .k = k}, {4}, {1, 2});
    check({.m = 19, .n = 22, .k = k}, {4, 8}, {1});
  }
  const auto fetched = [](const CodegenTarget& target, const Case& c) {
    return plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, 1).fetch_a;
  };
  EXPECT_TRUE(fetched(CodegenTarget::aarch64_neon(), {.m = 41, .n = 4, .k = 300}));
  EXPECT_FALSE(fetched(CodegenTarget::aarch64_neon(), {.m = 41, .n = 40, .k = 300}));
  check({.m = 450, .n = 700, .k = 301}, {8, 16}, {1, 2});
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 41, .n = 4, .k = 300}));
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx512(), {.m = 450, .n = 960, .k = 301}));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 150, .n = 960, .k = 301}));
}

// Tiles that share out the fetching, one after another and in blocks; the last fetches beyond B.
TEST(CpuMatmul, ALargeBIsFetched) {
  for (const int64_t m : {10, 31, 150}) {
    check({.m = m, .n = 610, .k = 263}, {8, 16}, {1, 3});
  }
  check({.m = 31, .n = 610, .k = 263, .b_constant = false}, {8, 16}, {3});
  const auto fetched = [](const CodegenTarget& target, const Case& c) {
    const MatmulPlan plan = plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, 1);
    const Result<std::string> text = emit_matmul_llvm_text(GroupMaker(c).make(), plan, target);
    EXPECT_EQ(text->find(kFetchFar) != std::string::npos, plan.fetch_b);
    return plan.fetch_b;
  };
  const Case large{.m = 31, .n = 610, .k = 263};
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx2(), large));
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx512(), large));
  EXPECT_TRUE(
      fetched(CodegenTarget::x86_avx512(), {.m = 31, .n = 610, .k = 263, .b_constant = false}));
  EXPECT_FALSE(fetched(CodegenTarget::aarch64_neon(), large));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 1, .n = 610, .k = 263}));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 31, .n = 61, .k = 263}));
}

// Columns of a panel that the first-level cache does not keep are fetched into it a few steps
// before they are needed, the last ones' from beyond B; not where tiles have few rows or one
// vector.
TEST(CpuMatmul, ColumnsAreFetchedNear) {
  for (const int64_t k : {87, 88, 89, 300}) {
    check({.m = 23, .n = 97, .k = k}, {8, 16}, {1, 2});
    check({.m = 23, .n = 97, .k = k, .b_constant = false}, {8, 16}, {1});
  }
  const auto fetched = [](const CodegenTarget& target, const Case& c) {
    const MatmulPlan plan = plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, 1);
    const Result<std::string> text = emit_matmul_llvm_text(GroupMaker(c).make(), plan, target);
    return text->find(kFetchNear) != std::string::npos;
  };
  const Case large{.m = 32, .n = 96, .k = 200};
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx2(), {.m = 32, .n = 96, .k = 300}));
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx512(), large));
  EXPECT_TRUE(fetched(CodegenTarget::x86_avx512(), {.m = 32, .n = 96, .k = 2048}));
  EXPECT_FALSE(fetched(CodegenTarget::aarch64_neon(), large));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 32, .n = 96, .k = 60}));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 3, .n = 96, .k = 100}));
  EXPECT_FALSE(fetched(CodegenTarget::x86_avx512(), {.m = 100, .n = 16, .k = 300}));
}

// What a product is added to is fetched while its terms are summed.
TEST(CpuMatmul, WhatAnEpilogueAddsIsFetched) {
  const auto fetched = [](const CodegenTarget& target, Epilogue e) {
    const Case c{.m = 20, .n = 40, .k = 64, .epilogue = e};
    const MatmulPlan plan = plan_matmul(GroupMaker(c).make(), {.b = true}, target, 1);
    const Result<std::string> text = emit_matmul_llvm_text(GroupMaker(c).make(), plan, target);
    return text->find("call void @llvm.prefetch") != std::string::npos;
  };
  for (const CodegenTarget& target :
       {CodegenTarget::aarch64_neon(), CodegenTarget::x86_avx2(), CodegenTarget::x86_avx512()}) {
    EXPECT_TRUE(fetched(target, Epilogue::kResidual));
    EXPECT_FALSE(fetched(target, Epilogue::kBias));
  }
}

// On AVX-512 panels of three and four vectors, where all are full or but one of many, enough rows
// use them and two of them stay in the second-level cache.
TEST(CpuMatmul, FullPanelsAreWide) {
  const auto tile = [](const Case& c) {
    const lower::Group group = GroupMaker(c).make();
    const MatmulPlan p = plan_matmul(group, {.b = c.b_constant}, CodegenTarget::x86_avx512(), 1);
    return std::pair{p.tile_rows, p.tile_columns};
  };
  EXPECT_EQ(tile({.m = 128, .n = 768, .k = 768}), std::pair(8, 48));
  EXPECT_EQ(tile({.m = 60, .n = 128, .k = 300}), std::pair(6, 64));
  EXPECT_EQ(tile({.m = 196, .n = 256, .k = 1024}), std::pair(6, 64));
  EXPECT_EQ(tile({.m = 64, .n = 4801, .k = 130}), std::pair(8, 48));
  EXPECT_LE(tile({.m = 64, .n = 1000, .k = 130}).second, 32);
  EXPECT_EQ(tile({.m = 64, .n = 256, .k = 512}), std::pair(6, 64));
  EXPECT_LE(tile({.m = 32, .n = 768, .k = 768}).second, 32);
  EXPECT_LE(tile({.m = 60, .n = 128, .k = 5000}).second, 32);

  check({.m = 64, .n = 96, .k = 263, .epilogue = Epilogue::kBias}, {16}, {1, 2});
  check({.m = 60, .n = 128, .k = 300, .epilogue = Epilogue::kResidual}, {16}, {1, 3});
  check({.m = 60, .n = 64, .k = 130, .a_transposed = true, .b_constant = false}, {16}, {2});
  check({.m = 61, .n = 960, .k = 600, .epilogue = Epilogue::kCurve}, {16}, {1});
  check({.m = 64, .n = 4801, .k = 131, .epilogue = Epilogue::kTwoOutputs}, {16}, {2});
}

// Long rows are copied to scratch a segment at a time, where B is packed when the model is compiled
// and segments are whole, else packed by a step of their own (aarch64) or read in place (x86). On
// x86 rows that do not fall into the same sets of the cache go by segments where they lie.
// Tiles of two heights, several blocks of rows and columns, groups of panels that are not alike, a
// rest of k, batches that share A and that do not.
TEST(CpuMatmul, LongRowsGoBySegment) {
  for (const int64_t k : {2048, 2051}) {
    check({.m = 9, .n = 260, .k = k, .epilogue = Epilogue::kBias}, {4, 8, 16}, {1, 3});
    check({.m = 4, .n = 256, .k = k, .b_constant = false}, {4}, {2});
  }
  check({.m = 61, .n = 200, .k = 2304, .epilogue = Epilogue::kTwoOutputs}, {4, 8, 16}, {1, 2});
  check({.m = 9, .n = 64, .k = 2304}, {8, 16}, {1, 3});
  check({.m = 13, .n = 325, .k = 2304, .batch = {3}, .b_shared = true}, {16}, {2});
  check({.m = 13, .n = 805, .k = 2048, .epilogue = Epilogue::kBias}, {8, 16}, {1, 3, 7});
  check({.m = 61, .n = 528, .k = 2048, .batch = {2}, .b_shared = true}, {8, 16}, {1, 5});
  check({.m = 5, .n = 130, .k = 2048, .batch = {2, 2}, .a_shared = true}, {4}, {2});
  check({.m = 5, .n = 130, .k = 2050, .batch = {2, 2}, .a_shared = true, .b_constant = false}, {4},
        {2});
  for (const int64_t k : {2048, 2050}) {
    check({.m = 5, .n = 128, .k = k, .batch = {3}, .b_shared = true, .epilogue = Epilogue::kCurve},
          {4}, {2});
  }
  const CodegenTarget neon = CodegenTarget::aarch64_neon();
  using Rows = MatmulPlan::Rows;
  const auto plan = [](const Case& c, const CodegenTarget& target) {
    const lower::Group group = GroupMaker(c).make();
    const MatmulPlan made = plan_matmul(group, {.b = c.b_constant}, target, 2);
    EXPECT_TRUE(!made.by_segment || matmul_needs(group, made).workspace_bytes == 0);
    return made;
  };
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2048}, neon).rows, Rows::kSegmentCopied);
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2049}, neon).rows, Rows::kPackedAtRun);
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2048, .b_constant = false}, neon).rows,
            Rows::kPackedAtRun);
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2047}, neon).rows, Rows::kInPlace);
  EXPECT_EQ(plan({.m = 1, .n = 260, .k = 2048}, neon).rows, Rows::kInPlace);
  EXPECT_EQ(plan({.m = 9, .n = 24, .k = 2048}, neon).rows, Rows::kInPlace);
  const CodegenTarget avx512 = CodegenTarget::x86_avx512();
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2048}, avx512).rows, Rows::kSegmentCopied);
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2049}, avx512).rows, Rows::kInPlace);
  EXPECT_EQ(plan({.m = 9, .n = 224, .k = 2048}, avx512).rows, Rows::kInPlace);
  EXPECT_FALSE(plan({.m = 9, .n = 224, .k = 2048}, avx512).by_segment);
  for (const int64_t n : {64, 260}) {
    EXPECT_EQ(plan({.m = 9, .n = n, .k = 2304}, avx512).rows, Rows::kInPlace);
    EXPECT_TRUE(plan({.m = 9, .n = n, .k = 2304}, avx512).by_segment);
    EXPECT_FALSE(plan({.m = 9, .n = n, .k = 2305}, avx512).by_segment);
  }
  EXPECT_EQ(plan({.m = 9, .n = 260, .k = 2304}, neon).rows, Rows::kSegmentCopied);
  // One thread packs them, unless memory goes first.
  const lower::Group group = GroupMaker({.m = 9, .n = 260, .k = 2048}).make();
  EXPECT_EQ(plan_matmul(group, {.b = true}, neon, 1).rows, Rows::kPackedAtRun);
  EXPECT_EQ(plan_matmul(group, {.b = true}, neon, 1, false).rows, Rows::kSegmentCopied);
  // What a task's totals take has a bound, however many rows and columns there are, and groups of
  // panels do not depend on rows or threads.
  for (const int64_t m : {32, 197, 3000}) {
    const MatmulPlan p = plan({.m = m, .n = 4096, .k = 4096}, neon);
    EXPECT_LE(p.task_tiles() * p.task_panels() * p.tile_elements() * 4, 32 << 10) << m;
    EXPECT_EQ(p.b_groups, 1) << m;
    const lower::Group many = GroupMaker({.m = m, .n = 4096, .k = 4096}).make();
    for (const int threads : {1, 2, 7, 16}) {
      const MatmulPlan wide = plan_matmul(many, {.b = true}, avx512, threads);
      EXPECT_LE(wide.scratch_bytes, 272 << 10) << m << " " << threads;
      EXPECT_EQ(wide.b_groups, (wide.panels * wide.tile_columns + 255) / 256) << m;
      EXPECT_EQ(wide.n_blocks % wide.b_groups, 0) << m << " " << threads;
    }
  }
}

// A B whose rows lie a page apart is packed by several panels at once; parts of threads begin and
// end between them, and matrices of a batch have no multiple of them.
TEST(CpuMatmul, PanelsOfFarRowsArePackedTogether) {
  for (const int64_t k : {3, 4, 21}) {
    check({.m = 20, .n = 1024, .k = k, .b_constant = false}, {4, 8, 16}, {1, 2, 3, 7});
    check({.m = 20, .n = 1088, .k = k, .batch = {3}, .b_constant = false}, {4, 16}, {1, 2, 7});
    check({.m = 20, .n = 1030, .k = k, .b_constant = false}, {4}, {2});
  }
}

// Rows whose k lies apart are packed by a step of their own where several blocks of columns read
// them: each would copy them again.
TEST(CpuMatmul, TransposedRowsArePackedOnce) {
  for (const int64_t k : {1024, 1027}) {
    check({.m = 26, .n = 260, .k = k, .a_transposed = true, .b_constant = false}, {4, 8, 16},
          {1, 3});
    check(
        {.m = 9, .n = 260, .k = k, .batch = {2}, .a_transposed = true, .epilogue = Epilogue::kBias},
        {4}, {2});
  }
  const auto rows = [](const Case& c, const CodegenTarget& target) {
    return plan_matmul(GroupMaker(c).make(), {.b = c.b_constant}, target, 1).rows;
  };
  using Rows = MatmulPlan::Rows;
  for (const CodegenTarget& target : {CodegenTarget::aarch64_neon(), CodegenTarget::x86_avx512()}) {
    EXPECT_EQ(rows({.m = 9, .n = 260, .k = 2048, .a_transposed = true}, target),
              Rows::kPackedAtRun);
    EXPECT_EQ(rows({.m = 9, .n = 260, .k = 64, .a_transposed = true}, target), Rows::kCopied);
    EXPECT_EQ(rows({.m = 1, .n = 260, .k = 2048, .a_transposed = true}, target), Rows::kInPlace);
  }
}

// Where memory goes first each block of columns copies them: the same bits, and no workspace.
TEST(CpuMatmul, TransposedRowsHaveNoWorkspaceWhenAsked) {
  const Case c{.m = 9, .n = 260, .k = 2051, .a_transposed = true, .epilogue = Epilogue::kBias};
  const lower::Group group = GroupMaker(c).make();
  const CodegenTarget target = CodegenTarget::host();
  const MatmulPlan packed = plan_matmul(group, {.b = true}, target, 2);
  const MatmulPlan plan = plan_matmul(group, {.b = true}, target, 2, false);
  EXPECT_EQ(plan.rows, MatmulPlan::Rows::kCopied);
  EXPECT_GT(matmul_needs(group, packed).workspace_bytes, 9 * 2051 * 4);
  EXPECT_EQ(matmul_needs(group, plan).workspace_bytes, 0);
  const Buffers first(group.kernel, 7);
  const Buffers second(group.kernel, 7);
  run_compiled(group, packed, target, 2, first);
  run_compiled(group, plan, target, 2, second);
  for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
    const auto bytes = static_cast<size_t>(group.kernel.buffers[b].elements) * sizeof(float);
    EXPECT_EQ(std::memcmp(first.pointers()[b], second.pointers()[b], bytes), 0) << b;
  }
}

// Every product rounds to -0, and so does every segment's chain.
TEST(CpuMatmul, SumsOfNegativeZerosArePositive) {
  for (const int64_t k : {1, 100, 300}) {
    const Case c{.m = 3, .n = 9, .k = k};
    const lower::Group group = GroupMaker(c).make();
    const CodegenTarget target = CodegenTarget::host();
    const MatmulPlan plan = plan_matmul(group, {.b = true}, target, 1);
    const Buffers buffers(group.kernel, 1);
    const auto floats = [&](size_t i) { return static_cast<float*>(buffers.pointers()[i]); };
    std::fill_n(floats(0), c.m * c.k, -0x1p-100f);
    std::fill_n(floats(1), c.n * c.k, 0x1p-100f);
    run_compiled(group, plan, target, 1, buffers);
    for (int64_t i = 0; i < c.m * c.n; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(floats(2)[i]), 0u) << k << " " << i;
    }
  }
}

// The contract written out, without Loop IR in between.
TEST(CpuMatmul, EqualsTheContract) {
  const Case c{.m = 10, .n = 30, .k = 700};
  const lower::Group group = GroupMaker(c).make();
  const CodegenTarget target = CodegenTarget::host();
  const Buffers buffers(group.kernel, 7);
  run_compiled(group, plan_matmul(group, {.b = true}, target, 2), target, 2, buffers);
  const auto* a = static_cast<const float*>(buffers.pointers()[0]);
  const auto* b = static_cast<const float*>(buffers.pointers()[1]);
  const auto* y = static_cast<const float*>(buffers.pointers()[2]);
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      float total = 0.0f;
      for (int64_t from = 0; from < c.k; from += 256) {
        float acc = 0.0f;
        for (int64_t k = from; k < std::min(c.k, from + 256); ++k) {
          acc = std::fma(a[i * c.k + k], b[k * c.n + j], acc);
        }
        total += acc;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i * c.n + j]), std::bit_cast<uint32_t>(total));
    }
  }
}

TEST(CpuMatmul, Rejections) {
  const CodegenTarget target = CodegenTarget::host();
  lower::Group group = GroupMaker({.m = 3, .n = 4, .k = 5}).make();
  EXPECT_EQ(matmul_rejected(group, target), "");
  group.contraction->k = 0;
  EXPECT_EQ(matmul_rejected(group, target), "k_is_zero");
  group.contraction->k = 5;
  group.contraction->dtype = DType::kF64;
  EXPECT_EQ(matmul_rejected(group, target), "dtype_not_f32");
  group.contraction->dtype = DType::kF32;
  group.contraction->segment = 128;
  EXPECT_EQ(matmul_rejected(group, target), "segment_not_256");
  group.contraction.reset();
  EXPECT_EQ(matmul_rejected(group, target), "no_contraction");
}

TEST(CpuMatmul, ForeignObjectsAndText) {
  const lower::Group group = GroupMaker({.m = 20, .n = 50, .k = 300, .b_constant = false}).make();
  for (CodegenTarget target :
       {CodegenTarget::aarch64_neon(), CodegenTarget::x86_avx2(), CodegenTarget::x86_avx512()}) {
    for (const int lanes : {4, 8, 16}) {
      target.lanes = lanes;
      const MatmulPlan plan = plan_matmul(group, {.b = false}, target, 4);
      const Result<std::string> object = emit_matmul_object(group, plan, target);
      ASSERT_TRUE(object.ok()) << plan.name << ": " << object.status().to_string();
      const Result<std::string> again = emit_matmul_object(group, plan, target);
      EXPECT_EQ(*object, *again);
    }
  }
  const CodegenTarget host = CodegenTarget::host();
  const MatmulPlan plan = plan_matmul(group, {.b = false}, host, 4);
  EXPECT_NE(emit_matmul_llvm_text(group, plan, host)->find("llvm.fma"), std::string::npos);
  EXPECT_NE(emit_matmul_assembly(group, plan, host)->find("pyc_kernel_pack"), std::string::npos);
}

TEST(CpuMatmul, KeysTellPlansApart) {
  const lower::Group one = GroupMaker({.m = 20, .n = 50, .k = 300}).make();
  const lower::Group two = GroupMaker({.m = 20, .n = 50, .k = 300, .a_transposed = true}).make();
  const CodegenTarget host = CodegenTarget::host();
  const auto key = [&](const lower::Group& g, bool constant, int threads) {
    return matmul_key(plan_matmul(g, {.b = constant}, host, threads),
                      loop::print(*g.contraction->kernel));
  };
  EXPECT_EQ(key(one, true, 1), key(one, true, 1));
  EXPECT_NE(key(one, true, 1), key(one, false, 1));
  EXPECT_NE(key(one, true, 1), key(two, true, 1));
}

}  // namespace
}  // namespace pyc::cpu

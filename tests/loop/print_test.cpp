#include <gtest/gtest.h>

#include <functional>

#include "loop/builder.h"
#include "loop/loop.h"
#include "loop/texts.h"

namespace pyc::loop {
namespace {

Loop make_loop(VarId var, int64_t extent, std::vector<Stmt> body, std::vector<Reduction> r = {}) {
  Loop l;
  l.var = var;
  l.extent = extent;
  l.body = std::move(body);
  l.reductions = std::move(r);
  return l;
}

// Rows of softmax-like normalisation, with everything a kernel can have. `reversed` makes the same
// kernel with other names and other ids.
Kernel whole_kernel(bool reversed) {
  Kernel k;
  k.name = reversed ? "other" : "rows";
  Pool& p = k.pool;
  const auto name = [&](const char* n) { return reversed ? std::string("x") + n : std::string(n); };
  k.buffers = {{name("x"), DType::kF32, 4096, Access::kRead},
               {name("row"), DType::kF32, 64, Access::kScratch},
               {name("y"), DType::kF32, 4096, Access::kWrite}};
  VarId row = kNone;
  VarId i = kNone;
  VarId j = kNone;
  if (reversed) {
    p.new_var("unused", DType::kI64, 3);
    p.table(DType::kI32, {5});
    j = p.new_var("a", DType::kI64, 64);
    i = p.new_var("b", DType::kI64, 64);
    row = p.new_var("c", DType::kI64, 64);
    p.var(j);
    p.var(i);
    p.integer(77);
  } else {
    row = p.new_var("row", DType::kI64, 64);
    i = p.new_var("i", DType::kI64, 64);
    j = p.new_var("j", DType::kI64, 64);
  }
  const uint32_t table = p.table(DType::kF32, {0x3F800000, 0x7FC00000, 0x80000000});
  const VarId total = p.new_var("total", DType::kF32, kResult);
  const VarId most = p.new_var("most", DType::kF32, kResult);
  const Expr n64 = index(p, 64);
  const Expr r{&p, p.var(row)};
  const Expr vi{&p, p.var(i)};
  const Expr vj{&p, p.var(j)};
  const Expr x{&p, p.load(0, DType::kF32, (r * n64 + vi).id)};
  const Expr left{&p, p.load(0, DType::kF32, (r * n64 + vi - index(p, 1)).id,
                             le(index(p, 1), vi).id, constant(p, DType::kF32, -0.0).id)};
  const Expr held{&p, p.load(1, DType::kF32, vj.id)};
  const Expr step = table_load(p, table, floor_mod(r, index(p, 3)));
  const Expr scaled = (x + left) * step;
  k.parallel = {row};
  k.stores = {{1, vi.id, (scaled * scaled).id},
              {2, (r * n64 + vj).id,
               select(lt(held, like(held, 0.5)), held / Expr{&p, p.var(total)},
                      max(held, Expr{&p, p.var(most)}))
                   .id}};
  k.checks = {{ne(Expr{&p, p.var(total)}, constant(p, DType::kF32, 0)).id, 12}};
  k.loops = {make_loop(i, 64, {{StmtKind::kStore, 0}},
                       {{.kind = ReduceKind::kChain,
                         .value = x.id,
                         .value2 = left.id,
                         .guard = lt(vi, index(p, 60)).id,
                         .segment = 16,
                         .result = total},
                        {.kind = ReduceKind::kExact,
                         .op = ReduceOp::kMax,
                         .value = p.load(1, DType::kF32, vi.id),
                         .result = most}}),
             make_loop(j, 64, {{StmtKind::kStore, 1}})};
  k.loops[1].vector = true;
  k.body = {{StmtKind::kLoop, 0}, {StmtKind::kCheck, 0}, {StmtKind::kLoop, 1}};
  return k;
}

TEST(Print, WholeKernel) {
  EXPECT_EQ(print(whole_kernel(false)), R"(kernel {
buffer b0: f32[4096] read
buffer b1: f32[64] scratch
buffer b2: f32[4096] write
table c0: f32 = [1, bits(0x7fc00000), -0]
parallel v0 < 64
loop v1 < 64 {
  let t0: f32 = b0[v0*64 + v1]
  let t1: f32 = b0[v0*64 + v1 - 1] if 1 <= v1 else -0:f32
  let t2: f32 = (t0 + t1) * c0[v0 % 3]
  b1[v1] = t2 * t2
  reduce v2: f32 = chain sum(t0, t1) segment 16 if v1 < 60
  reduce v3: f32 = exact max(b1[v1])
}
check v2 != 0:f32 else 12
loop v4 < 64 vector {
  let t3: f32 = b1[v4]
  b2[v0*64 + v4] = select(t3 < 0.5:f32, t3 / v2, max(t3, v3))
}
}
)");
}

TEST(Print, NamesAndIdsDoNotShow) {
  EXPECT_EQ(print(whole_kernel(true)), print(whole_kernel(false)));
}

// One store of one value.
std::string value_text(DType t, const std::function<Expr(Pool&)>& make) {
  Kernel k;
  k.buffers = {{"y", t, 1, Access::kWrite},
               {"x", DType::kF32, 8, Access::kRead},
               {"i", DType::kI32, 8, Access::kRead}};
  k.stores = {{0, k.pool.integer(0), make(k.pool).id}};
  k.body = {{StmtKind::kStore, 0}};
  const std::string text = print(k);
  const std::string mark = "b0[0] = ";
  const size_t at = text.find(mark) + mark.size();
  return text.substr(at, text.find('\n', at) - at);
}

TEST(Print, ConstantsAreExact) {
  const auto bits = [](DType t, Word w) {
    return value_text(t, [&](Pool& p) { return constant_bits(p, t, w); });
  };
  EXPECT_EQ(bits(DType::kI64, 5), "5");
  EXPECT_EQ(bits(DType::kI64, static_cast<Word>(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(bits(DType::kU64, UINT64_MAX), "18446744073709551615:u64");
  EXPECT_EQ(bits(DType::kI8, static_cast<Word>(-3)), "-3:i8");
  EXPECT_EQ(bits(DType::kI8, 0xFD), "bits(0xfd):i8");
  EXPECT_EQ(bits(DType::kBool, 1), "true");
  EXPECT_EQ(bits(DType::kBool, 2), "bits(0x2):bool");
  EXPECT_EQ(bits(DType::kF32, 0x3DCCCCCD), "0.1:f32");
  EXPECT_EQ(bits(DType::kF32, 0x80000000), "-0:f32");
  EXPECT_EQ(bits(DType::kF32, 0x00000001), "1e-45:f32");
  EXPECT_EQ(bits(DType::kF32, 0x7F800000), "inf:f32");
  EXPECT_EQ(bits(DType::kF32, 0xFF800000), "-inf:f32");
  EXPECT_EQ(bits(DType::kF32, 0x7FC00001), "bits(0x7fc00001):f32");
  EXPECT_EQ(bits(DType::kF32, 0x13F800000), "bits(0x13f800000):f32");
  EXPECT_EQ(bits(DType::kF64, 0x3FB999999999999A), "0.1:f64");
  EXPECT_EQ(bits(DType::kF64, 0x7FF8000000000000), "bits(0x7ff8000000000000):f64");
  EXPECT_EQ(bits(DType::kF16, 0x3C00), "1:f16");
  EXPECT_EQ(bits(DType::kF8E4M3FN, 0x7F), "bits(0x7f):f8e4m3fn");
}

TEST(Print, ParenthesesFollowTheTree) {
  const auto text = [](const std::function<Expr(Expr, Expr, Expr)>& make) {
    return value_text(DType::kF32, [&](Pool& p) {
      const auto x = [&](int64_t i) { return Expr{&p, p.load(1, DType::kF32, p.integer(i))}; };
      return make(x(0), x(1), x(2));
    });
  };
  EXPECT_EQ(text([](Expr a, Expr b, Expr c) { return (a + b) + c; }), "b1[0] + b1[1] + b1[2]");
  EXPECT_EQ(text([](Expr a, Expr b, Expr c) { return a + (b + c); }), "b1[0] + (b1[1] + b1[2])");
  EXPECT_EQ(text([](Expr a, Expr b, Expr c) { return (a - b) * c; }), "(b1[0] - b1[1]) * b1[2]");
  EXPECT_EQ(text([](Expr a, Expr b, Expr c) { return a / (b * c); }), "b1[0] / (b1[1] * b1[2])");
  EXPECT_EQ(text([](Expr a, Expr b, Expr c) {
              return convert(lt(a, b) & le(c, like(c, 2)), DType::kF32);
            }),
            "f32((b1[0] < b1[1]) & (b1[2] <= 2:f32))");
}

TEST(Print, DeepSharingStaysLinear) {
  Kernel k;
  Pool& p = k.pool;
  k.buffers = {{"x", DType::kF32, 1, Access::kRead}, {"y", DType::kF32, 1, Access::kWrite}};
  Expr x{&p, p.load(0, DType::kF32, p.integer(0))};
  for (int i = 0; i < 200; ++i) x = x * x + x;
  k.stores = {{1, p.integer(0), x.id}};
  k.body = {{StmtKind::kStore, 0}};
  EXPECT_LT(print(k).size(), 200 * 60U);
}

// A let must not carry a scratch value over a store that changes it.
TEST(Print, ScratchValuesAreNamedWithinAStatement) {
  Kernel k;
  Pool& p = k.pool;
  k.buffers = {{"s", DType::kF32, 1, Access::kScratch}, {"y", DType::kF32, 2, Access::kWrite}};
  const Expr s{&p, p.load(0, DType::kF32, p.integer(0))};
  const Expr square = s * s;
  k.stores = {
      {1, p.integer(0), square.id}, {0, p.integer(0), square.id}, {1, p.integer(1), square.id}};
  k.body = {{StmtKind::kStore, 0}, {StmtKind::kStore, 1}, {StmtKind::kStore, 2}};
  EXPECT_EQ(print(k), R"(kernel {
buffer b0: f32[1] scratch
buffer b1: f32[2] write
let t0: f32 = b0[0]
let t1: f32 = t0 * t0
b1[0] = t1
let t2: f32 = b0[0]
let t3: f32 = t2 * t2
b0[0] = t3
let t4: f32 = b0[0]
let t5: f32 = t4 * t4
b1[1] = t5
}
)");
}

TEST(Print, WhatDiffersShows) {
  const Kernel base = whole_kernel(false);
  std::vector<Kernel> others(8, base);
  others[0].buffers[0].elements = 4097;
  others[1].buffers[1].dtype = DType::kF64;
  others[2].checks[0].code = 13;
  others[3].loops[1].vector = false;
  others[4].loops[0].reductions[0].segment = 32;
  others[5].loops[0].reductions[1].op = ReduceOp::kMin;
  others[6].loops[1].chunk_var = others[6].parallel[0];
  others[7].loops[0].reductions[0].guard = kNone;
  for (const Kernel& k : others) EXPECT_NE(print(k), print(base));
}

TEST(KernelTexts, CopiesArePrintedOnce) {
  const Kernel one = whole_kernel(false);
  Kernel copy = one;
  copy.name = "copy";
  copy.buffers[0].name = "other";
  KernelTexts texts;
  EXPECT_EQ(texts.of(one), print(one));
  EXPECT_EQ(&texts.of(copy), &texts.of(one));
  EXPECT_EQ(texts.printed(), 1U);
  // The same text of other nodes.
  const Kernel other = whole_kernel(true);
  EXPECT_EQ(texts.of(other), print(one));
  EXPECT_EQ(texts.printed(), 2U);
}

TEST(KernelTexts, WhatAnotherKeptIsNotPrintedAgain) {
  std::shared_ptr<const KernelTexts> kept;
  {
    const Kernel gone = whole_kernel(false);
    KernelTexts first;
    first.of(gone);
    kept = first.kept();
  }
  const Kernel one = whole_kernel(false);
  Kernel longer = one;
  longer.buffers[0].elements = 4097;
  KernelTexts second(kept);
  EXPECT_EQ(second.of(one), print(one));
  EXPECT_EQ(second.printed(), 0U);
  EXPECT_EQ(second.of(longer), print(longer));
  EXPECT_EQ(second.printed(), 1U);
  // A third one has both, whatever became of the others.
  KernelTexts third(second.kept());
  kept.reset();
  EXPECT_EQ(third.of(longer), print(longer));
  EXPECT_EQ(third.of(one), print(one));
  EXPECT_EQ(third.printed(), 0U);
}

TEST(KernelTexts, EveryDifferenceIsOne) {
  const Kernel base = whole_kernel(false);
  const std::function<void(Kernel&)> changes[] = {
      [](Kernel& k) { k.buffers[0].elements = 4097; },
      [](Kernel& k) { k.buffers[1].dtype = DType::kF64; },
      [](Kernel& k) { k.buffers[1].access = Access::kWrite; },
      [](Kernel& k) { k.buffers[2].in_place_of = 0; },
      [](Kernel& k) { k.buffers.pop_back(); },
      [](Kernel& k) { k.parallel.clear(); },
      [](Kernel& k) { std::swap(k.body[0], k.body[2]); },
      [](Kernel& k) { k.checks[0].code = 13; },
      [](Kernel& k) { k.checks[0].ok = 0; },
      [](Kernel& k) { k.stores[0].buffer = 2; },
      [](Kernel& k) { k.stores[0].offset = 0; },
      [](Kernel& k) { k.stores[0].value = 0; },
      [](Kernel& k) { k.loops[0].var = k.loops[1].var; },
      [](Kernel& k) { k.loops[0].extent = 65; },
      [](Kernel& k) { k.loops[0].body.clear(); },
      [](Kernel& k) { k.loops[1].vector = false; },
      [](Kernel& k) { k.loops[1].ordered = true; },
      [](Kernel& k) { k.loops[1].chunk_var = k.parallel[0]; },
      [](Kernel& k) { k.loops[1].chunk = 8; },
      [](Kernel& k) { k.loops[1].carries.emplace_back(); },
      [](Kernel& k) { k.loops[0].reductions[0].kind = ReduceKind::kTree; },
      [](Kernel& k) { k.loops[0].reductions[1].op = ReduceOp::kMin; },
      [](Kernel& k) { k.loops[0].reductions[0].value = 0; },
      [](Kernel& k) { k.loops[0].reductions[0].value2 = kNone; },
      [](Kernel& k) { k.loops[0].reductions[0].guard = kNone; },
      [](Kernel& k) { k.loops[0].reductions[0].segment = 32; },
      [](Kernel& k) { k.loops[0].reductions[0].result = 0; },
      [](Kernel& k) { k.pool.integer(12345); },
      [](Kernel& k) { k.pool.new_var("more", DType::kI64, 3); },
      [](Kernel& k) { k.pool.table(DType::kF32, {7}); },
  };
  EXPECT_TRUE(same_nodes(base, base));
  for (const auto& change : changes) {
    Kernel other = base;
    change(other);
    EXPECT_FALSE(same_nodes(base, other)) << &change - changes;
  }
}

}  // namespace
}  // namespace pyc::loop

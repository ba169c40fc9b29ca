// Loops, reductions, addressing and random kernels: generated code against the interpreter.

#include <gtest/gtest.h>

#include "backends/cpu_emit_support.h"
#include "base/sanitizers.h"
#include "loop/functions.h"

namespace pyc::cpu_test {
namespace {

using loop::Op;
using loop::ReduceOp;

class EmitSizes : public ::testing::TestWithParam<int64_t> {};

// Rows of a matrix: sums, products, extremes, a guarded sum, all in one vector loop with stores.
TEST_P(EmitSizes, ReductionsInVectorLoops) {
  const int64_t n = GetParam();
  const int64_t rows = 3;
  for (const bool with_tree : {true, false}) {
    for (const bool heavy : {false, true}) {
      Builder b;
      const uint32_t x = b.in(DType::kF32, rows * n);
      const uint32_t m = b.in(DType::kI32, rows * n);
      const uint32_t s = b.scratch(DType::kF32, n);
      const VarId p = b.parallel(rows);
      const VarId i = b.loop_var(n);
      const Expr at = b.var(p) * b.idx(n) + b.var(i);
      const Expr v = b.load(x, at);
      Expr w = v * v;
      for (int k = 0; heavy && k < 30; ++k) w = w * 0.9 + static_cast<double>(k % 3);
      const Expr mask = b.load(m, at);
      std::vector<loop::Reduction> reds;
      if (with_tree) {
        reds.push_back(tree(ReduceOp::kSum, w, b.result(DType::kF32)));
        reds.push_back(tree(ReduceOp::kProd, convert(v, DType::kF64), b.result(DType::kF64)));
        reds.push_back(tree(ReduceOp::kSum, v, b.result(DType::kF32)));
        reds.back().guard = lt(mask, constant_int(b.pool, DType::kI32, 10)).id;
      }
      reds.push_back(exact(ReduceOp::kMax, v, b.result(DType::kF32)));
      reds.push_back(exact(ReduceOp::kMin, w, b.result(DType::kF32)));
      reds.push_back(exact(ReduceOp::kSum, mask, b.result(DType::kI32)));
      reds.push_back(exact(ReduceOp::kProd, mask, b.result(DType::kI32)));
      reds.push_back(exact(ReduceOp::kMax, convert(mask, DType::kU8), b.result(DType::kU8)));
      reds.push_back(exact(ReduceOp::kOr, lt(v, like(v, -3.0)), b.result(DType::kBool)));
      reds.push_back(exact(ReduceOp::kAnd, lt(v, like(v, 5.0)), b.result(DType::kBool)));
      reds.push_back(exact(ReduceOp::kMin, mask, b.result(DType::kI32)));
      reds.back().guard = lt(v, like(v, 0.0)).id;
      std::vector<VarId> results;
      for (const auto& r : reds) results.push_back(r.result);
      b.k.body.push_back(b.loop(i, true, {b.store(s, b.var(i), w)}, reds));
      for (const VarId r : results) {
        b.k.body.push_back(b.store(b.out(b.pool.var_info(r).dtype, rows), b.var(p), b.var(r)));
      }
      // The scratch row comes back in a second loop that uses a result.
      const VarId j = b.loop_var(n);
      const Expr scaled = b.load(s, b.var(j)) - convert(b.var(results.back()), DType::kF32);
      b.k.body.push_back(
          b.loop(j, true,
                 {b.store(b.out(DType::kF32, rows * n), b.var(p) * b.idx(n) + b.var(j), scaled)}));
      SCOPED_TRACE(std::string(with_tree ? "tree" : "exact") + (heavy ? " heavy" : ""));
      Harness(b.k, static_cast<uint64_t>(n + 1)).check();
    }
  }
}

// Columns of a matrix: serial loops inside a vector loop, and the same without any vectors.
TEST_P(EmitSizes, ReductionsInLanes) {
  const int64_t n = GetParam();
  const int64_t columns = 37;
  for (const bool vector : {true, false}) {
    Builder b;
    const uint32_t x = b.in(DType::kF32, n * columns);
    const uint32_t y = b.in(DType::kF32, n);
    const uint32_t m = b.in(DType::kI16, n * columns);
    const VarId c = b.loop_var(columns);
    const VarId i = b.loop_var(n);
    const Expr v = b.load(x, b.var(i) * b.idx(columns) + b.var(c));
    const Expr u = b.load(y, b.var(i));
    const Expr k = convert(b.load(m, b.var(i) * b.idx(columns) + b.var(c)), DType::kI32);
    const Expr guard = lt(k, constant_int(b.pool, DType::kI32, 50));
    std::vector<loop::Reduction> reds;
    reds.push_back(chain(v, u, 256, b.result(DType::kF32)));
    reds.push_back(chain(v, u, 0, b.result(DType::kF32)));
    reds.push_back(chain(v, v, 256, b.result(DType::kF32)));
    reds.back().guard = guard.id;
    reds.push_back(chain(k, k, 256, b.result(DType::kI32)));
    reds.push_back({.kind = loop::ReduceKind::kChain,
                    .op = ReduceOp::kSum,
                    .value = v.id,
                    .segment = 96,
                    .result = b.result(DType::kF32)});
    reds.push_back(tree(ReduceOp::kSum, v * u, b.result(DType::kF32)));
    reds.push_back(tree(ReduceOp::kSum, convert(k, DType::kF64), b.result(DType::kF64)));
    reds.back().guard = guard.id;
    reds.push_back(exact(ReduceOp::kMax, v, b.result(DType::kF32)));
    reds.push_back(exact(ReduceOp::kOr, guard, b.result(DType::kBool)));
    for (const size_t count : {reds.size(), size_t{1}, size_t{4}}) {
      Builder one;
      one.k.buffers = b.k.buffers;
      one.k.pool = b.pool;
      std::vector<loop::Reduction> some(reds.begin(), reds.begin() + static_cast<ptrdiff_t>(count));
      if (count == 1) some[0] = reds[5];  // a tree alone
      std::vector<loop::Stmt> outer{one.loop(i, false, {}, some)};
      for (const auto& r : some) {
        outer.push_back(one.store(one.out(one.pool.var_info(r.result).dtype, columns), one.var(c),
                                  one.var(r.result)));
      }
      one.k.body.push_back(one.loop(c, vector, outer));
      SCOPED_TRACE(std::string(vector ? "vector " : "serial ") + std::to_string(count));
      Harness(one.k, static_cast<uint64_t>(n + 3)).check();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EmitSizes,
                         ::testing::Values(0, 1, 3, 63, 64, 65, 100, 1000, 1024, 1025, 1087, 2048,
                                           5000));

// Trees of two super-blocks: lanes in registers, lanes in memory, and serial ones beside a chain
// whose segments end elsewhere.
TEST(EmitLoops, SuperBlocks) {
  const int64_t n = loop::kTreeSuperBlock + 1025;
  for (const bool vector : {true, false}) {
    for (const bool heavy : {false, true}) {
      Builder b;
      const uint32_t x = b.in(DType::kF32, n);
      const VarId i = b.loop_var(n);
      const Expr v = b.load(x, b.var(i));
      Expr w = v;
      for (int k = 0; heavy && k < 30; ++k) w = w * 0.9 + static_cast<double>(k % 3);
      std::vector<loop::Reduction> reds;
      reds.push_back(tree(ReduceOp::kSum, w, b.result(DType::kF32)));
      reds.push_back(tree(ReduceOp::kSum, convert(w, DType::kF64), b.result(DType::kF64)));
      reds.back().guard = lt(v, like(v, 1.0)).id;
      reds.push_back(exact(ReduceOp::kMax, v, b.result(DType::kF32)));
      if (!vector) reds.push_back(chain(v, v, 96, b.result(DType::kF32)));
      b.k.body.push_back(b.loop(i, vector, {}, reds));
      for (const auto& r : reds) {
        b.k.body.push_back(
            b.store(b.out(b.pool.var_info(r.result).dtype, 1), b.idx(0), b.var(r.result)));
      }
      SCOPED_TRACE(std::string(vector ? "vector" : "serial") + (heavy ? " heavy" : ""));
      Harness h(b.k);
      std::mt19937_64 random(5);
      std::normal_distribution<float> normal(0.0F, 2.0F);
      for (float& f : h.data<float>(x)) f = normal(random);
      h.check();
    }
  }
}

TEST(EmitLoops, Chunks) {
  for (const int64_t n : {1, 7, 64, 100, 1000, 4096}) {
    for (const int64_t chunk : {1, 16, 100, 256, 300}) {
      Builder b;
      const int64_t parts = (n + chunk - 1) / chunk + (chunk == 16 ? 1 : 0);
      const VarId p = b.parallel(parts);
      const uint32_t x = b.in(DType::kF32, n);
      const uint32_t y = b.out(DType::kF32, n);
      const VarId i = b.loop_var(n);
      const VarId r = b.result(DType::kF32);
      const loop::Stmt vector = b.loop(i, true, {b.store(y, b.var(i), b.load(x, b.var(i)) * 2.0)},
                                       {exact(ReduceOp::kMax, b.load(x, b.var(i)), r)});
      const VarId j = b.loop_var(n);
      const VarId dot = b.result(DType::kF32);
      const loop::Stmt serial =
          b.loop(j, false, {}, {chain(b.load(x, b.var(j)), b.load(x, b.var(j)), 64, dot)});
      for (loop::Loop& l : b.k.loops) {
        l.chunk_var = p;
        l.chunk = chunk;
      }
      b.k.body = {vector, serial, b.store(b.out(DType::kF32, parts), b.var(p), b.var(r)),
                  b.store(b.out(DType::kF32, parts), b.var(p), b.var(dot))};
      SCOPED_TRACE(std::to_string(n) + " by " + std::to_string(chunk));
      Harness(b.k).check();
    }
  }
}

// Strides, reversal, broadcasts, div and mod, indirect indices and guards of every kind.
TEST(EmitLoops, Addressing) {
  for (const int64_t n : {5, 64, 123}) {
    Builder b;
    const VarId p = b.parallel(3);
    const VarId q = b.parallel(2);
    const uint32_t x = b.in(DType::kF32, 6 * n + 64);
    const uint32_t f = b.in(DType::kBool, 6 * n + 64);
    const uint32_t ids = b.in(DType::kI64, n);
    const VarId i = b.loop_var(n);
    const Expr lane = b.var(i);
    const Expr row = b.var(p) * b.idx(2) + b.var(q);
    std::vector<loop::Stmt> body;
    const auto put = [&](Expr v) {
      body.push_back(b.store(b.out(v.dtype(), 6 * n), row * b.idx(n) + lane, v));
    };
    const Expr zero = loop::constant(b.pool, DType::kF32, -7.0);
    for (const Expr at :
         {lane, lane * b.idx(2), lane * b.idx(5), b.idx(n - 1) - lane, row * b.idx(n) + lane,
          floor_div(lane, b.idx(3)), floor_mod(lane, b.idx(7)), floor_mod(lane, b.idx(64)),
          floor_div(lane, b.idx(32)), floor_mod(row * b.idx(64) + lane + b.idx(16), b.idx(48)),
          floor_mod(lane + row, b.idx(32)), row * b.idx(3)}) {
      put(b.load(x, at));
      put(b.load(f, at));
    }
    const Expr id = b.load(ids, lane);
    const Expr valid = le(b.idx(0), id) & lt(id, b.idx(n));
    put(b.load_if(x, id, valid, zero));
    put(b.load_if(f, id, valid, constant_int(b.pool, DType::kBool, 1)));
    const Expr shifted = lane - b.idx(3);
    put(b.load_if(x, shifted, le(b.idx(0), shifted) & lt(shifted, b.idx(n - 5)), zero));
    put(b.load_if(x, shifted + row * b.idx(n), le(b.idx(0), shifted) & lt(row, b.idx(4)),
                  convert(lane, DType::kF32)));
    put(b.load_if(x, row * b.idx(1000), lt(row, b.idx(1)), convert(lane, DType::kF32)));
    put(b.load_if(x, lane + row * b.idx(5000), lt(row, b.idx(1)), zero));
    put(b.load_if(x, b.var(p), lt(lane, b.idx(4)), zero));
    put(b.load_if(x, lane * b.idx(3) - b.idx(9), le(b.idx(3), lane) & lt(lane, b.idx(40)), zero));
    b.k.body.push_back(b.loop(i, true, body));
    // Scattered and reversed stores, to scratch, read back in order.
    const uint32_t s = b.scratch(DType::kF32, 3 * n);
    const VarId j = b.loop_var(n);
    b.k.body.push_back(
        b.loop(j, true,
               {b.store(s, b.var(j) * b.idx(3), convert(b.var(j), DType::kF32)),
                b.store(s, b.idx(3 * n - 2) - b.var(j) * b.idx(3), b.load(x, b.var(j))),
                b.store(b.out(DType::kF32, 6 * n), row * b.idx(n) + b.idx(n - 1) - b.var(j),
                        b.load(x, b.var(j)))}));
    const VarId l = b.loop_var(n);
    b.k.body.push_back(b.loop(
        l, true,
        {b.store(b.out(DType::kF32, 6 * n), row * b.idx(n) + b.var(l),
                 b.load(s, b.var(l) * b.idx(3)) - b.load(s, b.var(l) * b.idx(3) + b.idx(1)))}));
    SCOPED_TRACE(n);
    Harness h(b.k, 9);
    int64_t at = 0;
    for (int64_t& v : h.data<int64_t>(ids)) v = at++ * 7 % (n + 6) - 3;
    h.check();
  }
}

// Guards and selects that compare the lane variable with bounds: padded windows, concatenations.
TEST(EmitLoops, Zones) {
  for (const int64_t n : {1, 3, 20, 77}) {
    for (const bool chunked : {false, true}) {
      Builder b;
      const VarId p = b.parallel(4);
      const uint32_t x = b.in(DType::kF32, 4 * n);
      const uint32_t y = b.in(DType::kF32, 4 * n);
      const VarId i = b.loop_var(n);
      const VarId tap = b.loop_var(5);
      const VarId most = b.result(DType::kF32);
      const VarId dot = b.result(DType::kF32);
      const VarId seen = b.result(DType::kI32);
      const Expr row = b.var(p) * b.idx(n);
      const Expr at = b.var(i) * b.idx(2) + b.var(tap) - b.idx(2);
      const Expr inside = le(b.idx(0), at) & lt(at, b.idx(n)) & lt(b.var(p) + b.var(tap), b.idx(6));
      const Expr low = loop::constant(b.pool, DType::kF32, -9.0);
      const Expr v = b.load_if(x, row + at, inside, low);
      loop::Reduction guarded = chain(v, v, 256, dot);
      guarded.guard = inside.id;
      const Expr cut = b.idx(n / 3);
      const Expr first = lt(b.var(i), cut);
      const Expr joined = select(first, b.load_if(x, row + b.var(i), first, low),
                                 b.load_if(y, row + b.var(i) - cut, le(cut, b.var(i)), low));
      const Expr mirrored = le(b.idx(n - 2) - b.var(i), b.var(p));
      loop::Reduction count = exact(ReduceOp::kSum, convert(mirrored, DType::kI32), seen);
      const auto out = [&](Expr e) { return b.store(b.out(e.dtype(), 4 * n), row + b.var(i), e); };
      b.k.body = {b.loop(i, true,
                         {b.loop(tap, false, {}, {exact(ReduceOp::kMax, v, most), guarded}),
                          out(b.var(most)), out(b.var(dot)), out(joined), out(mirrored),
                          out(select(le(b.var(i), b.var(p)), low, joined))},
                         {count}),
                  b.store(b.out(DType::kI32, 4), b.var(p), b.var(seen))};
      if (chunked) {
        b.k.loops.back().chunk_var = p;
        b.k.loops.back().chunk = (n + 3) / 4;
      }
      SCOPED_TRACE(std::to_string(n) + (chunked ? " chunked" : ""));
      Harness(b.k).check();
    }
  }
}

// Every part of a long concatenation is a zone with one load, be it copied or summed.
TEST(EmitLoops, LongConcatenations) {
  for (const int64_t parts : {7, 40}) {
    constexpr int64_t kPart = 8;
    constexpr int64_t kRows = 5;
    const int64_t n = parts * kPart;
    Builder b;
    const VarId i = b.loop_var(n);
    const VarId row = b.loop_var(kRows);
    const VarId sum = b.result(DType::kF32);
    Expr joined = loop::constant(b.pool, DType::kF32, 0.0);
    for (int64_t part = parts; part-- > 0;) {
      const uint32_t x = b.in(DType::kF32, kRows * kPart);
      const Expr at = b.var(row) * b.idx(kPart) + b.var(i) - b.idx(part * kPart);
      const Expr inside =
          le(b.idx(part * kPart), b.var(i)) & lt(b.var(i), b.idx((part + 1) * kPart));
      joined = b.load_if(x, at, inside, joined);
    }
    const uint32_t copy = b.out(DType::kF32, kRows * n);
    b.k.body = {
        b.loop(i, true,
               {b.loop(row, false, {b.store(copy, b.var(row) * b.idx(n) + b.var(i), joined)},
                       {exact(ReduceOp::kMax, joined, sum)}),
                b.store(b.out(DType::kF32, n), b.var(i), b.var(sum))})};
    SCOPED_TRACE(parts);
    Harness(b.k).check();
    const Result<std::string> text = cpu::emit_llvm_text(b.k, cpu::CodegenTarget::aarch64_neon());
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    EXPECT_EQ(text->find("extractelement"), std::string::npos) << "lanes are chosen one by one";
  }
}

// A store followed by a load of the same place, in one body and in nested serial loops.
TEST(EmitLoops, ScratchIsReadAfterItIsWritten) {
  Builder b;
  const VarId p = b.parallel(4);
  const int64_t n = 50;
  const uint32_t x = b.in(DType::kF32, 4 * n);
  const uint32_t y = b.out(DType::kF32, 4 * n);
  const uint32_t s = b.scratch(DType::kF32, n);
  const uint32_t carry = b.scratch(DType::kF32, 1);
  const Expr row = b.var(p) * b.idx(n);
  const VarId i = b.loop_var(n);
  const VarId j = b.loop_var(n);
  const VarId t = b.loop_var(5);
  const Expr old = b.load(s, b.var(i));
  const Expr sum = b.load(carry, b.idx(0)) + b.load(s, b.var(j));
  b.k.body = {
      b.loop(i, true,
             {b.store(s, b.var(i), b.load(x, row + b.var(i))), b.store(s, b.var(i), old + old)}),
      b.store(carry, b.idx(0), loop::constant(b.pool, DType::kF32, 0.0)),
      b.loop(t, false,
             {b.loop(j, false,
                     {b.store(carry, b.idx(0), sum),
                      b.store(y, row + b.var(j), b.load(carry, b.idx(0)))})})};
  Harness(b.k).check();
}

TEST(EmitLoops, Checks) {
  for (const bool vector : {true, false}) {
    for (const int64_t limit : {100, 60, 0}) {
      Builder b;
      const uint32_t y = b.out(DType::kI64, 77);
      const VarId i = b.loop_var(77);
      b.k.body.push_back(b.loop(i, vector,
                                {b.check(lt(b.var(i) * b.var(i), b.idx(limit * limit)), 5),
                                 b.store(y, b.var(i), b.var(i))}));
      Harness(b.k).check();
    }
  }
}

// Softmax rows, as lowering writes them.
TEST(EmitLoops, Softmax) {
  for (const int64_t n : {10, 64, 1000}) {
    Builder b;
    const VarId p = b.parallel(5);
    const uint32_t x = b.in(DType::kF32, 5 * n);
    const uint32_t y = b.out(DType::kF32, 5 * n);
    const uint32_t s = b.scratch(DType::kF32, n);
    const Expr row = b.var(p) * b.idx(n);
    const VarId i = b.loop_var(n);
    const VarId j = b.loop_var(n);
    const VarId l = b.loop_var(n);
    const VarId m = b.result(DType::kF32);
    const VarId z = b.result(DType::kF32);
    const Expr e = loop::exp(b.load(x, row + b.var(j)) - b.var(m));
    const Expr r = like(e, 1.0) / b.var(z);
    b.k.body = {b.loop(i, true, {}, {exact(ReduceOp::kMax, b.load(x, row + b.var(i)), m)}),
                b.loop(j, true, {b.store(s, b.var(j), e)}, {tree(ReduceOp::kSum, e, z)}),
                b.loop(l, true, {b.store(y, row + b.var(l), b.load(s, b.var(l)) * r)})};
    Harness(b.k).check();
  }
}

// Random expressions over inputs of all types, several statements, in vector and serial loops.
class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed) {}

  void build(Builder& b) {
    b_ = &b;
    n_ = 1 + static_cast<int64_t>(random_() % 150);
    const VarId p = b.parallel(2);
    row_ = b.var(p) * b.idx(n_);
    for (const DType t : kTypes) inputs_.push_back(b.in(t, 2 * n_ + 8));
    const VarId i = b.loop_var(n_);
    lane_ = b.var(i);
    std::vector<loop::Stmt> body;
    for (int k = 0; k < 4; ++k) {
      const Expr v = expr(kTypes[random_() % kTypes.size()], 4);
      body.push_back(b.store(b.out(v.dtype(), 2 * n_), row_ + lane_, v));
    }
    std::vector<loop::Reduction> reds;
    reds.push_back(tree(ReduceOp::kSum, expr(DType::kF32, 3), b.result(DType::kF32)));
    reds.push_back(exact(ReduceOp::kMax, expr(DType::kI32, 3), b.result(DType::kI32)));
    reds.back().guard = expr(DType::kBool, 2).id;
    if (random_() % 2 == 0) reds.erase(reds.begin());
    const bool vector = random_() % 4 != 0;
    std::vector<loop::Stmt> all{b.loop(i, vector, body, reds)};
    for (const auto& r : reds) {
      all.push_back(b.store(b.out(b.pool.var_info(r.result).dtype, 2), b.var(p), b.var(r.result)));
    }
    b.k.body = all;
  }

 private:
  static inline const std::vector<DType> kTypes = {
      DType::kBool, DType::kI8,  DType::kI32,      DType::kI64,       DType::kU8,  DType::kU16,
      DType::kU64,  DType::kF16, DType::kF8E4M3FN, DType::kBF16,      DType::kF32, DType::kF64,
      DType::kI4,   DType::kU2,  DType::kF4E2M1,   DType::kF8E5M2FNUZ};

  Expr leaf(DType t) {
    const auto type =
        static_cast<size_t>(std::find(kTypes.begin(), kTypes.end(), t) - kTypes.begin());
    const uint32_t buffer = inputs_[type];
    switch (random_() % 8) {
      case 0:
        return constant_bits(*pool(), t, edge_values(t)[random_() % edge_values(t).size()]);
      case 1:
        return b_->load(buffer, row_);
      case 2:
        return b_->load(buffer, lane_ * b_->idx(2));
      case 3:
        return t == DType::kI64 ? lane_ * b_->idx(3) - row_ : b_->load(buffer, lane_);
      case 4: {
        const Expr at = lane_ - b_->idx(static_cast<int64_t>(random_() % 5));
        return b_->load_if(buffer, at, le(b_->idx(0), at), b_->load(buffer, row_ + lane_));
      }
      default:
        return b_->load(buffer, row_ + lane_ + b_->idx(static_cast<int64_t>(random_() % 8)));
    }
  }

  Expr expr(DType t, int depth) {
    if (depth == 0) return leaf(t);
    const auto sub = [&](DType u) { return expr(u, depth - 1); };
    if (random_() % 5 == 0) return convert(sub(kTypes[random_() % kTypes.size()]), t);
    if (random_() % 7 == 0) return select(sub(DType::kBool), sub(t), sub(t));
    if (t == DType::kBool) {
      const DType u = kTypes[random_() % kTypes.size()];
      if (compute_dtype(u) == u) {
        const Op ops[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe};
        return make(ops[random_() % 4], sub(u), sub(u));
      }
      return sub(t) & ~sub(t);
    }
    if (compute_dtype(t) != t) return leaf(t);
    if (is_float(t)) {
      switch (random_() % 8) {
        case 0:
          return fma(sub(t), sub(t), sub(t));
        case 1:
          return sqrt(abs(sub(t)));
        case 2:
          return sub(t) / sub(t);
        case 3:
          return max(sub(t), sub(t));
        case 4:
          return min(sub(t), loop::constant(*pool(), t, 1.5));
        case 5:
          return round_even(sub(t));
        case 6:
          return sub(t) - sub(t);
        default:
          return sub(t) * sub(t);
      }
    }
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kRem, Op::kMin,
                      Op::kMax, Op::kAnd, Op::kXor, Op::kShl, Op::kShr};
    return make(ops[random_() % 11], sub(t), sub(t));
  }

  loop::Pool* pool() { return &b_->pool; }

  std::mt19937_64 random_;
  Builder* b_ = nullptr;
  int64_t n_ = 0;
  Expr row_;
  Expr lane_;
  std::vector<uint32_t> inputs_;
};

TEST(EmitLoops, RandomKernels) {
  for (uint64_t seed = 0; seed < (kSanitized ? 20 : 40); ++seed) {
    Builder b;
    RandomKernel(seed).build(b);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Harness(b.k, seed).check();
    if (HasFailure()) {
      ADD_FAILURE() << loop::print(b.k);
      return;
    }
  }
}

}  // namespace
}  // namespace pyc::cpu_test

// Statements, scopes, memory and faults.

#include "eval/interpreter.h"

#include <bit>
#include <cmath>
#include <thread>
#include <utility>

#include "eval/run_kernel.h"

namespace pyc::eval {
namespace {

using loop::Access;
using loop::Expr;
using loop::ExprId;
using loop::index;
using loop::Kernel;
using loop::kNone;
using loop::kResult;
using loop::ReduceKind;
using loop::ReduceOp;
using loop::Reduction;
using loop::StmtKind;
using loop::VarId;
using Words = std::vector<Word>;

class InterpreterTest : public testing::Test {
 protected:
  uint32_t buffer(DType t, int64_t elements, Access access) {
    k.buffers.push_back({"b", t, elements, access});
    return static_cast<uint32_t>(k.buffers.size() - 1);
  }
  VarId variable(int64_t extent) { return k.pool.new_var("v", DType::kI64, extent); }
  Expr use(VarId v) { return {&k.pool, k.pool.var(v)}; }
  Expr n(int64_t v) { return index(k.pool, v); }
  Expr load(uint32_t b, Expr at) { return {&k.pool, k.pool.load(b, k.buffers[b].dtype, at.id)}; }
  Expr load_if(uint32_t b, Expr at, Expr guard, Expr fallback) {
    return {&k.pool, k.pool.load(b, k.buffers[b].dtype, at.id, guard.id, fallback.id)};
  }
  loop::Stmt store(uint32_t b, Expr at, Expr value) {
    k.stores.push_back({b, at.id, value.id});
    return {StmtKind::kStore, static_cast<uint32_t>(k.stores.size() - 1)};
  }
  loop::Stmt loop(VarId v, std::vector<loop::Stmt> body, std::vector<Reduction> reductions = {}) {
    k.loops.push_back(make_loop(v, k.pool.var_info(v).extent, std::move(body), reductions));
    return {StmtKind::kLoop, static_cast<uint32_t>(k.loops.size() - 1)};
  }
  loop::Stmt check(Expr ok, int32_t code) {
    k.checks.push_back({ok.id, code});
    return {StmtKind::kCheck, static_cast<uint32_t>(k.checks.size() - 1)};
  }
  Reduction sum(Expr value) {
    Reduction r;
    r.kind = ReduceKind::kExact;
    r.value = value.id;
    r.result = k.pool.new_var("sum", value.dtype(), kResult);
    return r;
  }
  static Elements counting(int64_t count) {
    Elements e{DType::kI64, {}};
    for (int64_t i = 0; i < count; ++i) e.words.push_back(static_cast<Word>(i));
    return e;
  }
  Kernel k;
};

TEST_F(InterpreterTest, ParallelBoxIsRowMajor) {
  const VarId i = variable(3);
  const VarId j = variable(4);
  const VarId l = variable(2);
  const uint32_t y = buffer(DType::kI64, 24, Access::kWrite);
  k.parallel = {i, j, l};
  const Expr at = use(i) * n(8) + use(j) * n(2) + use(l);
  k.body = {store(y, at, at + use(i) * n(100) + use(j) * use(l) + n(1))};
  Words expected(24);
  for (Word p = 0; p < 24; ++p) expected[p] = p + p / 8 * 100 + p / 2 % 4 * (p % 2) + 1;
  EXPECT_EQ(run_kernel(k, {}).buffers[0].words, expected);
  // A part of the box touches its own elements only.
  Words part(24);
  for (Word p = 5; p < 13; ++p) part[p] = expected[p];
  EXPECT_EQ(run_kernel(k, {}, 5, 13).buffers[0].words, part);
  EXPECT_EQ(run_kernel(k, {}, 7, 7).buffers[0].words, Words(24));
}

TEST_F(InterpreterTest, NoParallelVariablesIsOnePoint) {
  const uint32_t y = buffer(DType::kI64, 1, Access::kWrite);
  k.body = {store(y, n(0), n(42))};
  EXPECT_EQ(run_kernel(k, {}).buffers[0].words, Words{42});
}

TEST_F(InterpreterTest, ChunkedLoopsRunTheirPart) {
  for (int64_t extent : {1, 7, 8, 9, 24, 30}) {
    k = Kernel();
    const VarId part = variable(4);
    const VarId i = variable(extent);
    const uint32_t y = buffer(DType::kI64, extent, Access::kWrite);
    const uint32_t count = buffer(DType::kI64, 4, Access::kWrite);
    k.parallel = {part};
    const Reduction r = sum(use(i));
    const loop::Stmt stores = store(y, use(i), use(part) * n(1000) + use(i) + n(1));
    const loop::Stmt chunks = loop(i, {stores}, {r});
    k.loops[0].chunk_var = part;
    k.loops[0].chunk = 8;
    k.body = {chunks, store(count, use(part), use(r.result))};
    const Outcome outcome = run_kernel(k, {});
    Words expected(static_cast<size_t>(extent));
    Words sums(4);
    for (Word p = 0; p < expected.size(); ++p) {
      expected[p] = p / 8 * 1000 + p + 1;
      sums[p / 8] += p;
    }
    EXPECT_EQ(outcome.buffers[0].words, expected) << extent;
    EXPECT_EQ(outcome.buffers[1].words, sums) << extent;
  }
}

// Quotients and remainders of a loop's variable, whose strips they end; chunks begin anywhere.
TEST_F(InterpreterTest, DigitsOfALoopVariable) {
  for (const auto& [small, large] : {std::pair<int64_t, int64_t>{3, 9}, {16, 48}, {12, 30}}) {
    for (const int64_t chunk : {7, 40, 500}) {
      k = Kernel();
      constexpr int64_t kExtent = 437;
      const VarId part = variable((kExtent + chunk - 1) / chunk);
      const VarId row = variable(2);
      const VarId i = variable(kExtent);
      const uint32_t y = buffer(DType::kI64, 2 * kExtent, Access::kWrite);
      const uint32_t table = buffer(DType::kI64, kExtent, Access::kRead);
      k.parallel = {row, part};
      const auto digit = [&, small = small, large = large](const auto& v) {
        return v / large * 7 + v / small % 3 * 100 + v % small * 1000;
      };
      const Expr v = use(i);
      const Expr first = loop::floor_div(v, n(large)) * n(7);
      const Expr second = loop::floor_mod(loop::floor_div(v, n(small)), n(3)) * n(100);
      const Expr third = loop::floor_mod(v, n(small));
      const Expr places = load(table, third + loop::floor_div(v, n(small)) * n(2));
      const Expr value = first + second + third * n(1000) + places + use(row);
      const loop::Stmt stores = store(y, use(row) * n(kExtent) + v, value);
      const loop::Stmt loops = loop(i, {stores});
      k.loops[0].chunk_var = part;
      k.loops[0].chunk = chunk;
      k.body = {loops};
      Words expected;
      for (int64_t p = 0; p < 2 * kExtent; ++p) {
        const int64_t at = p % kExtent;
        expected.push_back(
            static_cast<Word>(digit(at) + at % small + at / small * 2 + p / kExtent));
      }
      EXPECT_EQ(run_kernel(k, {counting(kExtent)}).buffers[0].words, expected)
          << small << ' ' << chunk;
    }
  }
}

// A contraction whose factors lie where digits of its index say, as in a convolution.
TEST_F(InterpreterTest, DigitsInAChain) {
  constexpr int64_t kInner = 40;
  constexpr int64_t kExtent = 9 * kInner;
  const VarId i = variable(kExtent);
  const uint32_t x = buffer(DType::kF32, kExtent, Access::kRead);
  const uint32_t y = buffer(DType::kF32, 1, Access::kWrite);
  const Expr outer = loop::floor_div(use(i), n(kInner));
  const Expr inner = loop::floor_mod(use(i), n(kInner));
  const Expr guard = loop::lt(loop::floor_mod(outer, n(3)), n(2));
  Reduction r;
  r.kind = ReduceKind::kChain;
  r.segment = 256;
  r.value = load(x, inner * n(9) + outer).id;
  r.value2 = load(x, use(i)).id;
  r.guard = guard.id;
  r.result = k.pool.new_var("sum", DType::kF32, kResult);
  k.body = {loop(i, {}, {r}), store(y, n(0), use(r.result))};
  Elements numbers{DType::kF32, {}};
  std::vector<float> f;
  for (int64_t j = 0; j < kExtent; ++j) {
    f.push_back(static_cast<float>(j % 17) * 0.3F - 1.7F / static_cast<float>(j + 1));
    numbers.words.push_back(std::bit_cast<uint32_t>(f.back()));
  }
  float total = 0;
  float part = 0;
  for (int64_t j = 0; j < kExtent; ++j) {
    const int64_t q = j / kInner;
    if (q % 3 < 2) {
      const auto from = static_cast<size_t>(j % kInner * 9 + q);
      part = std::fma(f[from], f[static_cast<size_t>(j)], part);
    }
    if ((j + 1) % 256 == 0 || j + 1 == kExtent) {
      total += part;
      part = 0;
    }
  }
  EXPECT_EQ(run_kernel(k, {numbers}).buffers[1].words, Words{std::bit_cast<uint32_t>(total)});
}

TEST_F(InterpreterTest, ScratchCarriesValuesBetweenStatements) {
  const VarId row = variable(3);
  const VarId i = variable(4);
  const VarId j = variable(4);
  const uint32_t x = buffer(DType::kI64, 12, Access::kRead);
  const uint32_t other = buffer(DType::kI8, 3, Access::kScratch);
  const uint32_t s = buffer(DType::kI64, 4, Access::kScratch);
  const uint32_t y = buffer(DType::kI64, 12, Access::kWrite);
  k.parallel = {row};
  const Expr held = load(s, use(i));
  const loop::Stmt fill =
      loop(i, {store(s, use(i), load(x, use(row) * n(4) + use(i))), store(s, use(i), held * held),
               store(s, use(i), held + n(1)), store(other, n(2), loop::convert(held, DType::kI8))});
  const loop::Stmt reverse = loop(j, {store(y, use(row) * n(4) + use(j), load(s, n(3) - use(j)))});
  k.body = {fill, reverse};
  Words expected;
  for (Word r = 0; r < 3; ++r) {
    for (Word c = 4; c-- > 0;) expected.push_back((r * 4 + c) * (r * 4 + c) + 1);
  }
  EXPECT_EQ(run_kernel(k, {counting(12)}).buffers[3].words, expected);
}

// The running value of a scratch element changes between iterations, so its load is not hoisted.
TEST_F(InterpreterTest, ScratchIsReadAnewInEveryIteration) {
  const VarId i = variable(5);
  const uint32_t s = buffer(DType::kI64, 1, Access::kScratch);
  const uint32_t y = buffer(DType::kI64, 5, Access::kWrite);
  const Expr held = load(s, n(0));
  k.body = {store(s, n(0), n(1)),
            loop(i, {store(s, n(0), held * n(2)), store(y, use(i), held + n(0))})};
  EXPECT_EQ(run_kernel(k, {}).buffers[1].words, (Words{2, 4, 8, 16, 32}));
}

TEST_F(InterpreterTest, ReductionsSeeWhatTheBodyStored) {
  const VarId i = variable(4);
  const uint32_t s = buffer(DType::kI64, 4, Access::kScratch);
  const uint32_t y = buffer(DType::kI64, 1, Access::kWrite);
  const Reduction r = sum(load(s, use(i)));
  k.body = {loop(i, {store(s, use(i), use(i) + n(10))}, {r}), store(y, n(0), use(r.result))};
  EXPECT_EQ(run_kernel(k, {}).buffers[1].words, Words{46});
}

TEST_F(InterpreterTest, NestedLoopsUseOuterResults) {
  const VarId row = variable(3);
  const VarId i = variable(4);
  const VarId j = variable(4);
  const uint32_t x = buffer(DType::kI64, 12, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 12, Access::kWrite);
  const Expr at_i = use(row) * n(4) + use(i);
  const Expr at_j = use(row) * n(4) + use(j);
  const Reduction total = sum(load(x, at_i));
  const loop::Stmt add = loop(i, {}, {total});
  const Expr twice = use(total.result) * n(2);
  const loop::Stmt write = loop(j, {store(y, at_j, load(x, at_j) + twice)});
  k.body = {loop(row, {add, write})};
  Words expected;
  for (Word p = 0; p < 12; ++p) expected.push_back(p + 2 * (p / 4 * 16 + 6));
  EXPECT_EQ(run_kernel(k, {counting(12)}).buffers[1].words, expected);
}

TEST_F(InterpreterTest, EmptyLoopsLeaveTheIdentity) {
  const VarId i = variable(0);
  const uint32_t x = buffer(DType::kI64, 0, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 1, Access::kWrite);
  const Reduction r = sum(load(x, use(i)));
  k.body = {loop(i, {store(y, use(i), load(x, use(i)))}, {r}),
            store(y, n(0), use(r.result) + n(7))};
  const Outcome outcome = run_kernel(k, {{DType::kI64, {}}});
  EXPECT_EQ(outcome.fault, 0);
  EXPECT_EQ(outcome.buffers[1].words, Words{7});
}

TEST_F(InterpreterTest, GuardedLoadsTouchNoMemoryElsewhere) {
  const VarId i = variable(6);
  const uint32_t x = buffer(DType::kI64, 3, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 6, Access::kWrite);
  k.parallel = {i};
  const Expr at = use(i) - n(2);
  const Expr inside = le(n(0), at) & lt(at, n(3));
  k.body = {store(y, use(i), load_if(x, at, inside, n(-5)))};
  const Outcome outcome = run_kernel(k, {{DType::kI64, {7, 8, 9}}});
  EXPECT_EQ(outcome.fault, 0);
  const auto minus = static_cast<Word>(-5);
  EXPECT_EQ(outcome.buffers[1].words, (Words{minus, minus, 7, 8, 9, minus}));
}

TEST_F(InterpreterTest, IndirectLoads) {
  const VarId i = variable(4);
  const uint32_t at = buffer(DType::kI32, 4, Access::kRead);
  const uint32_t x = buffer(DType::kF16, 3, Access::kRead);
  const uint32_t y = buffer(DType::kF16, 4, Access::kWrite);
  k.parallel = {i};
  const Expr where = loop::convert(load(at, use(i)), DType::kI64);
  k.body = {store(y, use(i), load(x, where))};
  const Elements indices{DType::kI32, {2, 0, 1, 2}};
  const Elements values{DType::kF16, {0x3C00, 0xFE01, 0x8000}};
  EXPECT_EQ(run_kernel(k, {indices, values}).buffers[2].words,
            (Words{0x8000, 0x3C00, 0xFE01, 0x8000}));
  const Elements wild{DType::kI32, {2, 3, 1, 2}};
  EXPECT_EQ(run_kernel(k, {wild, values}).fault, kFaultOutOfBounds);
}

TEST_F(InterpreterTest, Tables) {
  const VarId i = variable(3);
  const uint32_t y = buffer(DType::kF32, 3, Access::kWrite);
  const uint32_t table = k.pool.table(DType::kF32, {0x3F800000, 0x40000000, 0x40400000});
  k.parallel = {i};
  k.body = {store(y, use(i), loop::table_load(k.pool, table, n(2) - use(i)))};
  EXPECT_EQ(run_kernel(k, {}).buffers[0].words, (Words{0x40400000, 0x40000000, 0x3F800000}));
  k.stores[0].value = loop::table_load(k.pool, table, use(i) + n(1)).id;
  EXPECT_EQ(run_kernel(k, {}).fault, kFaultOutOfBounds);
}

TEST_F(InterpreterTest, ChecksStopTheRun) {
  const VarId i = variable(4);
  const uint32_t x = buffer(DType::kI64, 4, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 4, Access::kWrite);
  k.parallel = {i};
  k.body = {check(lt(load(x, use(i)), n(2)), 17), store(y, use(i), n(1))};
  EXPECT_EQ(run_kernel(k, {{DType::kI64, {1, 1, 1, 0}}}).fault, 0);
  const Outcome outcome = run_kernel(k, {{DType::kI64, {1, 0, 2, 0}}});
  EXPECT_EQ(outcome.fault, 17);
  EXPECT_EQ(outcome.buffers[1].words, (Words{1, 1, 0, 0}));
}

TEST_F(InterpreterTest, OutOfBoundsStopsTheRun) {
  const VarId i = variable(4);
  const uint32_t x = buffer(DType::kI64, 3, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 4, Access::kWrite);
  k.parallel = {i};
  k.body = {store(y, use(i), load(x, use(i)) + n(1))};
  const Outcome outcome = run_kernel(k, {counting(3)});
  EXPECT_EQ(outcome.fault, kFaultOutOfBounds);
  EXPECT_EQ(outcome.buffers[1].words, (Words{1, 2, 3, 0}));
  k.stores[0] = {y, (use(i) - n(1)).id, n(1).id};
  EXPECT_EQ(run_kernel(k, {counting(3)}).fault, kFaultOutOfBounds);
}

// A load that may fail happens where it stands, behind the check that forbids it and inside the
// loop that does not run.
TEST_F(InterpreterTest, FaultsHappenInOrder) {
  const VarId part = variable(3);
  const VarId i = variable(8);
  const uint32_t x = buffer(DType::kI64, 1, Access::kRead);
  const uint32_t y = buffer(DType::kI64, 8, Access::kWrite);
  k.parallel = {part};
  const Expr wild = load(x, use(part) - n(2));  // in bounds for the last, empty part only
  const loop::Stmt chunks = loop(i, {check(loop::lt(use(part), n(0)), 3), store(y, use(i), wild)});
  k.loops[0].chunk_var = part;
  k.loops[0].chunk = 4;
  k.body = {chunks};
  EXPECT_EQ(run_kernel(k, {counting(1)}, 0, 1).fault, 3);
  EXPECT_EQ(run_kernel(k, {counting(1)}, 2, 3).fault, 0);
}

TEST_F(InterpreterTest, RefusesVariablesOutOfScope) {
  const VarId i = variable(4);
  const uint32_t y = buffer(DType::kI64, 4, Access::kWrite);
  k.body = {loop(i, {store(y, use(i), use(i))}), store(y, n(0), use(i))};
  EXPECT_FALSE(Interpreter::create(k).ok());
}

TEST_F(InterpreterTest, RunsOnManyThreadsAtOnce) {
  constexpr int64_t kSize = 4096;
  const VarId i = variable(kSize);
  const VarId j = variable(16);
  const uint32_t s = buffer(DType::kI64, 16, Access::kScratch);
  const uint32_t y = buffer(DType::kI64, kSize, Access::kWrite);
  k.parallel = {i};
  const Reduction r = sum(load(s, use(j)));
  k.body = {loop(j, {store(s, use(j), use(i) * use(j))}, {r}), store(y, use(i), use(r.result))};
  auto made = Interpreter::create(k);
  ASSERT_TRUE(made.ok());
  std::vector<int64_t> result(kSize);
  int32_t fault = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<int64_t> scratch(16);
      void* buffers[] = {nullptr, result.data()};
      pyc_kernel_args args{};
      args.buffers = buffers;
      args.scratch = scratch.data();
      args.fault = &fault;
      (*made)->run(args, t * kSize / 4, (t + 1) * kSize / 4);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(fault, 0);
  for (int64_t p = 0; p < kSize; ++p) ASSERT_EQ(result[static_cast<size_t>(p)], p * 120);
}

}  // namespace
}  // namespace pyc::eval

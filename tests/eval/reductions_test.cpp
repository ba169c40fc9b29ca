// Reductions against plain transcriptions of docs/NUMERICS.md.

#include <bit>
#include <cmath>
#include <random>

#include "eval/run_kernel.h"

namespace pyc::eval {
namespace {

using loop::Access;
using loop::ExprId;
using loop::Kernel;
using loop::kNone;
using loop::kResult;
using loop::ReduceKind;
using loop::ReduceOp;
using loop::Reduction;
using loop::StmtKind;

constexpr int64_t kSizes[] = {0, 1, 63, 64, 65, 1023, 1024, 1025, 5000};

template <class T>
Word word_of(T v) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(v);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(v);
  if constexpr (std::is_integral_v<T>) return static_cast<Word>(static_cast<int64_t>(v));
}

template <class T>
constexpr DType kType = std::is_same_v<T, float>     ? DType::kF32
                        : std::is_same_v<T, double>  ? DType::kF64
                        : std::is_same_v<T, int32_t> ? DType::kI32
                        : std::is_same_v<T, int8_t>  ? DType::kI8
                                                     : DType::kU64;

// Values of very different size, so that another order gives other bits.
template <class T>
std::vector<T> values(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) {
    if constexpr (std::is_floating_point_v<T>) {
      const auto mantissa = static_cast<double>(random()) / 4294967296.0 - 0.5;
      x = static_cast<T>(std::ldexp(mantissa, static_cast<int>(random() % 24) - 12));
    } else {
      x = static_cast<T>((static_cast<uint64_t>(random()) << 32) | random());
    }
  }
  return v;
}

template <class T>
Elements elements_of(const std::vector<T>& v) {
  Elements e{kType<T>, {}};
  for (T x : v) e.words.push_back(word_of(x));
  return e;
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class T>
T times(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

using Kept = std::vector<bool>;

template <class T, class F>
T tree(const std::vector<T>& v, const Kept& kept, T identity, F join) {
  T total = identity;
  T super_block = identity;
  for (size_t block = 0; block < v.size(); block += 1024) {
    if (block != 0 && block % (1024 * 1024) == 0) {
      total = join(total, super_block);
      super_block = identity;
    }
    std::vector<T> lanes(64, identity);
    for (size_t i = block; i < std::min(v.size(), block + 1024); ++i) {
      if (kept[i]) lanes[i % 64] = join(lanes[i % 64], v[i]);
    }
    for (size_t h = 32; h > 0; h /= 2) {
      for (size_t l = 0; l < h; ++l) lanes[l] = join(lanes[l], lanes[l + h]);
    }
    super_block = join(super_block, lanes[0]);
  }
  return join(total, super_block);
}

template <class T>
T chain(const std::vector<T>& x, const std::vector<T>* y, const Kept& kept, size_t segment) {
  T total = 0;
  if (segment == 0) segment = std::max<size_t>(x.size(), 1);
  for (size_t start = 0; start < x.size(); start += segment) {
    T acc = 0;
    for (size_t i = start; i < std::min(x.size(), start + segment); ++i) {
      if (!kept[i]) continue;
      if (y == nullptr) {
        acc = plus(acc, x[i]);
      } else if constexpr (std::is_floating_point_v<T>) {
        acc = std::fma(x[i], (*y)[i], acc);
      } else {
        acc = plus(acc, times(x[i], (*y)[i]));
      }
    }
    total = plus(total, acc);
  }
  return total;
}

// One reduction over two vectors and a bool per element, for rows * n elements, one row a point.
struct Case {
  DType dtype = DType::kF32;
  ReduceKind kind = ReduceKind::kTree;
  ReduceOp op = ReduceOp::kSum;
  bool pairs = false;
  bool guarded = false;
  int64_t segment = 0;
  bool vector = false;
};

Kernel make_kernel(const Case& c, int64_t rows, int64_t n) {
  Kernel k;
  loop::Pool& p = k.pool;
  k.buffers = {{"x", c.dtype, rows * n, Access::kRead},
               {"y", c.dtype, rows * n, Access::kRead},
               {"kept", DType::kBool, rows * n, Access::kRead},
               {"z", c.dtype, rows, Access::kWrite}};
  const loop::VarId row = p.new_var("row", DType::kI64, rows);
  const loop::VarId i = p.new_var("i", DType::kI64, n);
  const loop::VarId result = p.new_var("sum", c.dtype, kResult);
  const ExprId at =
      p.binary(loop::Op::kAdd, p.var(i), p.binary(loop::Op::kMul, p.var(row), p.integer(n)));
  Reduction r;
  r.kind = c.kind;
  r.op = c.op;
  r.value = p.load(0, c.dtype, at);
  r.value2 = c.pairs ? p.load(1, c.dtype, at) : kNone;
  r.guard = c.guarded ? p.load(2, DType::kBool, at) : kNone;
  r.segment = c.segment;
  r.result = result;
  k.parallel = {row};
  k.loops = {make_loop(i, n, {}, {r})};
  k.loops[0].vector = c.vector;
  k.stores = {{3, p.var(row), p.var(result)}};
  k.body = {{StmtKind::kLoop, 0}, {StmtKind::kStore, 0}};
  return k;
}

template <class T>
struct Data {
  explicit Data(int64_t n) : x(values<T>(n, 1)), y(values<T>(n, 2)), kept(x.size()) {
    std::mt19937 random(3);
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = random() % 3 != 0;
  }
  std::vector<Elements> inputs() const {
    Elements bools{DType::kBool, {}};
    for (bool b : kept) bools.words.push_back(b ? 1 : 0);
    return {elements_of(x), elements_of(y), bools};
  }
  std::vector<T> x;
  std::vector<T> y;
  Kept kept;
};

template <class T>
Word reduced(const Case& c, const Data<T>& data) {
  const Kernel k = make_kernel(c, 1, static_cast<int64_t>(data.x.size()));
  const Outcome outcome = run_kernel(k, data.inputs());
  EXPECT_EQ(outcome.fault, 0);
  return outcome.buffers[3].words[0];
}

template <class T>
class Reductions : public testing::Test {};
using Types = testing::Types<float, double, int32_t, int8_t, uint64_t>;
TYPED_TEST_SUITE(Reductions, Types);

TYPED_TEST(Reductions, Tree) {
  using T = TypeParam;
  for (int64_t n : kSizes) {
    const Data<T> data(n);
    for (bool guarded : {false, true}) {
      const Kept kept = guarded ? data.kept : Kept(data.x.size(), true);
      Case c{.dtype = kType<T>, .guarded = guarded, .vector = true};
      EXPECT_EQ(reduced(c, data), word_of(tree<T>(data.x, kept, T(0), plus<T>))) << n;
      c.op = ReduceOp::kProd;
      EXPECT_EQ(reduced(c, data), word_of(tree<T>(data.x, kept, T(1), times<T>))) << n;
    }
  }
}

TYPED_TEST(Reductions, TreeOfSeveralSuperBlocks) {
  using T = TypeParam;
  const Data<T> data(1024 * 1024 + 1025);
  for (bool guarded : {false, true}) {
    const Kept kept = guarded ? data.kept : Kept(data.x.size(), true);
    const Case c{.dtype = kType<T>, .guarded = guarded, .vector = true};
    EXPECT_EQ(reduced(c, data), word_of(tree<T>(data.x, kept, T(0), plus<T>)));
  }
}

TYPED_TEST(Reductions, Chain) {
  using T = TypeParam;
  for (int64_t n : kSizes) {
    const Data<T> data(n);
    for (int64_t segment : {0, 1, 7, 256, 1024, 9999}) {
      for (bool guarded : {false, true}) {
        const Kept kept = guarded ? data.kept : Kept(data.x.size(), true);
        Case c{.dtype = kType<T>, .kind = ReduceKind::kChain, .guarded = guarded};
        c.segment = segment;
        const auto size = static_cast<size_t>(segment);
        EXPECT_EQ(reduced(c, data), word_of(chain<T>(data.x, nullptr, kept, size))) << n;
        c.pairs = true;
        EXPECT_EQ(reduced(c, data), word_of(chain<T>(data.x, &data.y, kept, size))) << n;
      }
    }
  }
}

TYPED_TEST(Reductions, Exact) {
  using T = TypeParam;
  for (int64_t n : kSizes) {
    const Data<T> data(n);
    using L = std::numeric_limits<T>;
    T low = L::has_infinity ? -L::infinity() : L::lowest();
    T high = L::has_infinity ? L::infinity() : L::max();
    for (size_t i = 0; i < data.x.size(); ++i) {
      if (!data.kept[i]) continue;
      low = std::max(low, data.x[i]);
      high = std::min(high, data.x[i]);
    }
    Case c{.dtype = kType<T>, .kind = ReduceKind::kExact, .op = ReduceOp::kMax, .guarded = true};
    EXPECT_EQ(reduced(c, data), word_of(low)) << n;
    c.op = ReduceOp::kMin;
    EXPECT_EQ(reduced(c, data), word_of(high)) << n;
  }
}

template <class T>
class IntegerReductions : public testing::Test {};
using IntegerTypes = testing::Types<int32_t, int8_t, uint64_t>;
TYPED_TEST_SUITE(IntegerReductions, IntegerTypes);

TYPED_TEST(IntegerReductions, Exact) {
  using T = TypeParam;
  for (int64_t n : kSizes) {
    const Data<T> data(n);
    T sum = 0;
    T product = 1;
    T conjunction = static_cast<T>(~T(0));
    T disjunction = 0;
    for (T v : data.x) {
      sum = plus(sum, v);
      product = times(product, v);
      conjunction = static_cast<T>(conjunction & v);
      disjunction = static_cast<T>(disjunction | v);
    }
    Case c{.dtype = kType<T>, .kind = ReduceKind::kExact};
    EXPECT_EQ(reduced(c, data), word_of(sum));
    c.op = ReduceOp::kProd;
    EXPECT_EQ(reduced(c, data), word_of(product));
    c.op = ReduceOp::kAnd;
    EXPECT_EQ(reduced(c, data), word_of(conjunction));
    c.op = ReduceOp::kOr;
    EXPECT_EQ(reduced(c, data), word_of(disjunction));
  }
}

TEST(Reductions, MaximumOfFloatsSeesNanAndZeros) {
  Data<float> data(3);
  const Case c{.kind = ReduceKind::kExact, .op = ReduceOp::kMax};
  data.x = {-0.0F, 0.0F, -0.0F};
  EXPECT_EQ(reduced(c, data), word_of(0.0F));
  data.x = {1.0F, NAN, 2.0F};
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(static_cast<uint32_t>(reduced(c, data)))));
}

TEST(Reductions, BoolAndOr) {
  for (const auto& [op, expected] : {std::pair{ReduceOp::kAnd, 0}, {ReduceOp::kOr, 1}}) {
    Kernel k;
    const loop::VarId i = k.pool.new_var("i", DType::kI64, 3);
    Reduction r;
    r.kind = ReduceKind::kExact;
    r.op = op;
    r.value = k.pool.load(0, DType::kBool, k.pool.var(i));
    r.result = k.pool.new_var("all", DType::kBool, kResult);
    k.buffers = {{"x", DType::kBool, 3, Access::kRead}, {"y", DType::kBool, 1, Access::kWrite}};
    k.loops = {make_loop(i, 3, {}, {r})};
    k.stores = {{1, k.pool.integer(0), k.pool.var(r.result)}};
    k.body = {{StmtKind::kLoop, 0}, {StmtKind::kStore, 0}};
    const Outcome outcome = run_kernel(k, {{DType::kBool, {1, 0, 1}}});
    EXPECT_EQ(outcome.buffers[1].words[0], static_cast<Word>(expected));
  }
}

// A product that rounds to -0 makes acc -0; total is +0 all the same.
TEST(Reductions, ChainTotalIsNeverNegativeZero) {
  Data<float> data(1);
  data.x = {1e-30F};
  data.y = {-1e-30F};
  for (int64_t segment : {0, 256}) {
    Case c{.kind = ReduceKind::kChain, .pairs = true};
    c.segment = segment;
    EXPECT_EQ(reduced(c, data), word_of(0.0F));
  }
}

TEST(Reductions, SeveralInOneLoop) {
  constexpr int64_t kSize = 3000;
  const Data<float> data(kSize);
  Kernel k = make_kernel({}, 1, kSize);
  loop::Pool& p = k.pool;
  Reduction segments = k.loops[0].reductions[0];
  segments.kind = ReduceKind::kChain;
  segments.value2 = p.load(1, DType::kF32, p.var(k.loops[0].var));
  segments.segment = 96;
  segments.guard = p.load(2, DType::kBool, p.var(k.loops[0].var));
  segments.result = p.new_var("segments", DType::kF32, kResult);
  Reduction whole = segments;
  whole.segment = 0;
  whole.guard = kNone;
  whole.result = p.new_var("whole", DType::kF32, kResult);
  k.loops[0].reductions.push_back(segments);
  k.loops[0].reductions.push_back(whole);
  k.buffers[3].elements = 3;
  k.stores.push_back({3, p.integer(1), p.var(segments.result)});
  k.stores.push_back({3, p.integer(2), p.var(whole.result)});
  k.body.push_back({StmtKind::kStore, 1});
  k.body.push_back({StmtKind::kStore, 2});
  const Outcome outcome = run_kernel(k, data.inputs());
  const Kept all(data.x.size(), true);
  EXPECT_EQ(outcome.buffers[3].words[0], word_of(tree<float>(data.x, all, 0, plus<float>)));
  EXPECT_EQ(outcome.buffers[3].words[1], word_of(chain<float>(data.x, &data.y, data.kept, 96)));
  EXPECT_EQ(outcome.buffers[3].words[2], word_of(chain<float>(data.x, &data.y, all, 0)));
}

TEST(Reductions, StartAnewInEveryRow) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kSize = 1500;
  const Data<double> data(kRows * kSize);
  for (ReduceKind kind : {ReduceKind::kTree, ReduceKind::kChain}) {
    const Kernel k = make_kernel({.dtype = DType::kF64, .kind = kind}, kRows, kSize);
    const Outcome outcome = run_kernel(k, data.inputs());
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<double> part(data.x.begin() + row * kSize,
                                     data.x.begin() + (row + 1) * kSize);
      const Kept all(part.size(), true);
      const double expected = kind == ReduceKind::kTree ? tree<double>(part, all, 0, plus<double>)
                                                        : chain<double>(part, nullptr, all, 0);
      EXPECT_EQ(outcome.buffers[3].words[static_cast<size_t>(row)], word_of(expected));
    }
  }
}

}  // namespace
}  // namespace pyc::eval

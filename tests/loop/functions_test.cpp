#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "loop/functions_check.h"

namespace pyc::loop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Point {
  double x;
  double y;
};

// Values that are exact, the same in f32 and f64.
const std::map<std::string, std::vector<Point>>& special_values() {
  static const std::map<std::string, std::vector<Point>> table = {
      {"exp", {{0, 1}, {-0.0, 1}, {-kInf, 0}, {kInf, kInf}, {1000, kInf}, {-1000, 0}}},
      {"exp_nonpositive", {{0, 1}, {-0.0, 1}, {-kInf, 0}, {kInf, 0}, {1000, 0}, {-1000, 0}}},
      {"exp2",
       {{0, 1},
        {-0.0, 1},
        {3, 8},
        {-1, 0.5},
        {-126, 0x1p-126},
        {-149, 0x1p-149},
        {127, 0x1p127},
        {5000, kInf},
        {-5000, 0},
        {-kInf, 0},
        {kInf, kInf}}},
      {"expm1", {{0, 0}, {-0.0, -0.0}, {-kInf, -1}, {-100, -1}, {kInf, kInf}, {1000, kInf}}},
      {"log",
       {{1, 0},
        {0, -kInf},
        {-0.0, -kInf},
        {-1, kNaN},
        {-0x1p-149, kNaN},
        {-kInf, kNaN},
        {kInf, kInf}}},
      {"log2",
       {{1, 0},
        {8, 3},
        {0.5, -1},
        {0x1p-149, -149},
        {0x1p127, 127},
        {0, -kInf},
        {-0.0, -kInf},
        {-1, kNaN},
        {-kInf, kNaN},
        {kInf, kInf}}},
      {"log1p",
       {{0, 0},
        {-0.0, -0.0},
        {0x1p-149, 0x1p-149},
        {-1, -kInf},
        {-1.5, kNaN},
        {-kInf, kNaN},
        {kInf, kInf}}},
      {"sin", {{0, 0}, {-0.0, -0.0}, {0x1p-149, 0x1p-149}, {kInf, kNaN}, {-kInf, kNaN}}},
      {"cos", {{0, 1}, {-0.0, 1}, {0x1p-149, 1}, {kInf, kNaN}, {-kInf, kNaN}}},
      {"tan", {{0, 0}, {-0.0, -0.0}, {-0x1p-149, -0x1p-149}, {kInf, kNaN}, {-kInf, kNaN}}},
      {"asin", {{0, 0}, {-0.0, -0.0}, {1.5, kNaN}, {-1.5, kNaN}, {kInf, kNaN}}},
      {"acos", {{1, 0}, {1.5, kNaN}, {-1.5, kNaN}, {-kInf, kNaN}}},
      {"atan", {{0, 0}, {-0.0, -0.0}, {-0x1p-149, -0x1p-149}}},
      {"sinh", {{0, 0}, {-0.0, -0.0}, {1000, kInf}, {-1000, -kInf}, {kInf, kInf}, {-kInf, -kInf}}},
      {"cosh", {{0, 1}, {-0.0, 1}, {-1000, kInf}, {kInf, kInf}, {-kInf, kInf}}},
      {"tanh", {{0, 0}, {-0.0, -0.0}, {0x1p-149, 0x1p-149}, {40, 1}, {kInf, 1}, {-kInf, -1}}},
      {"asinh", {{0, 0}, {-0.0, -0.0}, {-0x1p-149, -0x1p-149}, {kInf, kInf}, {-kInf, -kInf}}},
      {"acosh", {{1, 0}, {0.5, kNaN}, {-2, kNaN}, {-kInf, kNaN}, {kInf, kInf}}},
      {"atanh", {{0, 0}, {-0.0, -0.0}, {1, kInf}, {-1, -kInf}, {1.5, kNaN}, {kInf, kNaN}}},
      {"erf", {{0, 0}, {-0.0, -0.0}, {7, 1}, {kInf, 1}, {-kInf, -1}}},
      {"sigmoid",
       {{0, 0.5},
        {-0.0, 0.5},
        {0x1p-149, 0.5},
        {-0x1p-149, 0.5},
        {100, 1},
        {-1000, 0},
        {kInf, 1},
        {-kInf, 0}}},
      {"pow_2", {{0, 0}, {-0.0, 0}, {-3, 9}, {0x1p-70, 0x1p-140}, {kInf, kInf}, {-kInf, kInf}}},
      {"pow_3", {{0, 0}, {-0.0, -0.0}, {-3, -27}, {kInf, kInf}, {-kInf, -kInf}}},
      {"pow_half",
       {{0, 0},
        {-0.0, 0},
        {4, 2},
        {0x1p-148, 0x1p-74},
        {-4, kNaN},
        {-0x1p-149, kNaN},
        {kInf, kInf},
        {-kInf, kInf}}},
      {"pow_minus_1",
       {{0, kInf}, {-0.0, -kInf}, {-4, -0.25}, {0x1p127, 0x1p-127}, {kInf, 0}, {-kInf, -0.0}}},
      {"pow_minus_half",
       {{0, kInf},
        {-0.0, kInf},
        {4, 0.5},
        {0x1p-148, 0x1p74},
        {-4, kNaN},
        {-0x1p-149, kNaN},
        {kInf, 0},
        {-kInf, 0}}},
  };
  return table;
}

template <class T>
void expect_same(T got, T expected, const std::string& what) {
  if (expected != expected) {
    EXPECT_TRUE(got != got) << what << " = " << got;
  } else {
    EXPECT_EQ(got, expected) << what;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << what;
  }
}

class Functions : public testing::TestWithParam<CheckedFunction> {};

template <class T>
void check_special_values(const CheckedFunction& f) {
  Compiled<T> compiled(f.build);
  for (const Point& p : special_values().at(f.name)) {
    expect_same(compiled(static_cast<T>(p.x)), static_cast<T>(p.y),
                f.name + "(" + std::to_string(p.x) + ")");
  }
  expect_same(compiled(static_cast<T>(kNaN)), static_cast<T>(kNaN), f.name + "(NaN)");
}

TEST_P(Functions, HaveExactSpecialValues) {
  check_special_values<float>(GetParam());
  check_special_values<double>(GetParam());
}

// One f32 in 4099: every exponent, and arguments of all magnitudes.
TEST_P(Functions, AreWithinTheirBoundInF32) {
  constexpr uint64_t kStep = 4099;
  Compiled<float> compiled(GetParam().build);
  const auto worst = worst_error(
      compiled, GetParam().oracle, (uint64_t{1} << 32) / kStep / Tape::kBatch,
      [](uint64_t b, float* in) {
        for (size_t i = 0; i < Tape::kBatch; ++i) {
          in[i] = std::bit_cast<float>(static_cast<uint32_t>((b * Tape::kBatch + i) * kStep));
        }
      });
  EXPECT_LE(worst.ulp, GetParam().bound) << "at " << worst.x;
}

// The worst error over the 256 arguments around each border and each border negated.
template <class T, class Oracle>
Worst<T> worst_around(Expr (*build)(Expr), Oracle oracle, const std::vector<T>& borders) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int64_t kReach = Tape::kBatch / 2;
  Compiled<T> compiled(build);
  return worst_error(compiled, oracle, 2 * borders.size(), [&](uint64_t b, T* in) {
    const auto centre = static_cast<int64_t>(std::bit_cast<Bits>(borders[b / 2]));
    for (int64_t i = 0; i < 2 * kReach; ++i) {
      in[i] = std::bit_cast<T>(static_cast<Bits>(std::max<int64_t>(0, centre + i - kReach)));
      if (b % 2 == 1) in[i] = -in[i];
    }
  });
}

// Where a function changes its method, or its result from normal to denormal, zero or infinite.
TEST_P(Functions, AreWithinBoundsAroundBorders) {
  const CheckedFunction& f = GetParam();
  const auto f32 = worst_around<float>(
      f.build, f.oracle,
      {0x1p-149f,   0x1p-126f,  0x1p-27f, 0.3465736f, 0.41421357f, 0.5f,           0.6666667f,
       0.70710677f, 0.7853982f, 0.9f,     1.0f,       1.3333334f,  1.4142135f,     1.5707964f,
       2.4142136f,  4.0f,       9.1f,     16.635532f, 18.0f,       87.33655f,      88.72284f,
       89.415985f,  103.97208f, 126.0f,   128.0f,     149.0f,      0x1.fffffep127f});
  EXPECT_LE(f32.ulp, f.bound) << "at " << f32.x;
  const auto f64 = worst_around<double>(f.build, f.wide_oracle,
                                        {0x1p-1074,
                                         0x1p-1022,
                                         0x1p-54,
                                         0x1p-28,
                                         0x1p-27,
                                         0.34657359027997264,
                                         0.41421356237309503,
                                         0.5,
                                         0.7071067811865476,
                                         0.7853981633974483,
                                         1.0,
                                         1.25,
                                         1.4142135623730951,
                                         1.5707963267948966,
                                         2.414213562373095,
                                         5.75,
                                         6.0,
                                         21.0,
                                         22.0,
                                         36.7368,
                                         708.3964185322641,
                                         709.782712893384,
                                         710.4758600739439,
                                         744.4400719213812,
                                         745.1332191019411,
                                         1022.0,
                                         1024.0,
                                         1074.0,
                                         0x1p30,
                                         0x1p53,
                                         0x1.fffffffffffffp1023});
  EXPECT_LE(f64.ulp, f.wide_bound) << "at " << f64.x;
}

TEST_P(Functions, AreWithinTheirBoundInF64) {
  Compiled<double> compiled(GetParam().build);
  const auto worst = worst_error(compiled, GetParam().wide_oracle, 100, [](uint64_t b, double* in) {
    for (size_t i = 0; i < Tape::kBatch; ++i) in[i] = sample_f64(b * Tape::kBatch + i);
  });
  EXPECT_LE(worst.ulp, GetParam().wide_bound) << "at " << worst.x;
}

INSTANTIATE_TEST_SUITE_P(All, Functions, testing::ValuesIn(unary_functions()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(ShortPowers, Functions, testing::ValuesIn(short_powers()),
                         [](const auto& info) { return info.param.name; });

// Results that are subnormal keep every bit of exp's: 1 + e is 1 there.
TEST(Functions, SigmoidIsExpFarBelowZero) {
  Compiled<float> sigmoid_of([](Expr x) { return sigmoid(x); });
  Compiled<float> exp_of([](Expr x) { return exp(x); });
  for (float x = -104.5f; x < -20.0f; x += 0.0371f) {
    EXPECT_EQ(std::bit_cast<uint32_t>(sigmoid_of(x)), std::bit_cast<uint32_t>(exp_of(x))) << x;
  }
  EXPECT_EQ(sigmoid_of(-103.9f), 0x1p-149f);
  EXPECT_EQ(sigmoid_of(-104.0f), 0.0f);
}

// What exp_nonpositive of each argument is, and what exp is.
template <class T>
class BesideExp {
 public:
  void check(const T* in) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    short_of_.run(in, y_);
    exp_of_.run(in, exact_);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      if (std::isnan(in[i])) {
        EXPECT_TRUE(std::isnan(y_[i])) << in[i];
      } else {
        EXPECT_EQ(std::bit_cast<Bits>(y_[i]), std::bit_cast<Bits>(exact_[i])) << in[i];
      }
    }
  }

 private:
  Compiled<T> short_of_{[](Expr x) { return exp_nonpositive(x); }};
  Compiled<T> exp_of_{[](Expr x) { return exp(x); }};
  T y_[Tape::kBatch];
  T exact_[Tape::kBatch];
};

// One f32 in 257 from -0 to -inf and all negative NaNs; functions_slow_test.cpp has every one.
TEST(Functions, ExpNonpositiveHasTheBitsOfExp) {
  constexpr uint32_t kStep = 257;
  BesideExp<float> f32;
  float in[Tape::kBatch];
  uint64_t bits = uint64_t{1} << 31;
  while (bits < uint64_t{1} << 32) {
    for (float& x : in) {
      x = std::bit_cast<float>(static_cast<uint32_t>(std::min<uint64_t>(bits, UINT32_MAX)));
      bits += kStep;
    }
    f32.check(in);
  }
  std::fill(in, in + Tape::kBatch, 0.0f);
  f32.check(in);
  BesideExp<double> f64;
  for (uint64_t batch = 0; batch < 500; ++batch) {
    double wide[Tape::kBatch];
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      wide[i] = -std::fabs(sample_f64(batch * Tape::kBatch + i));
    }
    f64.check(wide);
  }
}

// One f32 in 61 from -0 to the least one; functions_slow_test.cpp has every one.
TEST(Functions, ExpNormalHasTheBitsOfExpNonpositive) {
  Compiled<float> normal([](Expr x) { return exp_normal(x); });
  Compiled<float> nonpositive([](Expr x) { return exp_nonpositive(x); });
  const auto last = std::bit_cast<uint32_t>(static_cast<float>(kLeastNormalExp));
  float in[Tape::kBatch];
  float y[Tape::kBatch];
  float expected[Tape::kBatch];
  for (uint32_t bits = 1U << 31; bits < last;) {
    for (float& x : in) {
      x = std::bit_cast<float>(std::min(bits, last));
      bits += 61;
    }
    normal.run(in, y);
    nonpositive.run(in, expected);
    ASSERT_EQ(std::memcmp(y, expected, sizeof(y)), 0) << in[0] << " to " << in[Tape::kBatch - 1];
    ASSERT_TRUE(std::all_of(y, y + Tape::kBatch, [](float v) { return std::isnormal(v); }));
  }
}

// The f64 that comes closest to a multiple of π/2, and the greatest.
TEST(Functions, ReduceTheHardestArguments) {
  for (double x : {0x1.6ac5b262ca1ffp849, 0x1.fffffffffffffp1023, 0x1p1000}) {
    for (const CheckedFunction& f : unary_functions()) {
      if (f.name != "sin" && f.name != "cos" && f.name != "tan") continue;
      Compiled<double> compiled(f.build);
      EXPECT_LE(ulp_error(compiled(x), f.wide_oracle(x)), 2.0) << f.name << " of " << x;
    }
  }
}

// These run inside memory-bound kernels: f32 only, no tables, few operations.
TEST(Functions, HotOnesStayInF32) {
  const std::map<std::string, size_t> operations = {{"exp", 19},     {"exp_nonpositive", 15},
                                                    {"tanh", 31},    {"erf", 30},
                                                    {"sigmoid", 20}, {"log", 34}};
  for (const auto& [name, expected] : operations) {
    size_t ops = 0;
    each_operation(*elementary_function(name, DType::kF32), [&](const Pool&, const ExprNode& n) {
      EXPECT_TRUE(n.dtype == DType::kF32 || n.dtype == DType::kI32 || n.dtype == DType::kBool);
      EXPECT_NE(n.op, Op::kTable);
      // A bitcast costs nothing, and a negation goes into the fma that uses it.
      if (n.op != Op::kBitcast && n.op != Op::kNeg) ++ops;
    });
    EXPECT_EQ(ops, expected) << name;
  }
}

template <class T>
class CompiledPow {
 public:
  CompiledPow()
      : x_(pool_.new_var("x", dtype_of<T>(), kResult)),
        y_(pool_.new_var("y", dtype_of<T>(), kResult)),
        tape_(pool_, pow(Expr{&pool_, pool_.var(x_)}, Expr{&pool_, pool_.var(y_)}).id, {x_, y_}) {}

  void run(const T* x, const T* y, T* out) { tape_.run({x, y}, out); }

 private:
  Pool pool_;
  VarId x_;
  VarId y_;
  Tape tape_;
};

// The exponents that have arithmetic of their own.
template <class T>
bool is_short(T y) {
  return y == T(2) || y == T(3) || y == T(0.5) || y == T(-1) || y == T(-0.5);
}

// Expects of every pair at most 1 ulp, 1.5 for short exponents; oracle is the standard library's
// pow in a wider type.
template <class T, class Wide, class Fill>
void check_pow(uint64_t batches, Fill fill) {
  CompiledPow<T> compiled;
  T x[Tape::kBatch];
  T y[Tape::kBatch];
  T out[Tape::kBatch];
  for (uint64_t b = 0; b < batches; ++b) {
    for (size_t i = 0; i < Tape::kBatch; ++i) fill(b * Tape::kBatch + i, x[i], y[i]);
    compiled.run(x, y, out);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      const double error = ulp_error(out[i], std::pow(Wide(x[i]), Wide(y[i])));
      EXPECT_LE(error, is_short(y[i]) ? 1.5 : 1.0)
          << "pow(" << x[i] << ", " << y[i] << ") = " << out[i];
    }
  }
}

// Every pair of values that has a case of its own in IEEE 754.
template <class T, class Wide>
void check_pow_cases() {
  std::vector<T> values;
  for (double v :
       {0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 0.75, 1e30, 16777215.0, 9007199254740993.0, kInf}) {
    values.push_back(static_cast<T>(v));
    values.push_back(static_cast<T>(-v));
  }
  values.push_back(std::numeric_limits<T>::denorm_min());
  values.push_back(-std::numeric_limits<T>::denorm_min());
  values.push_back(std::numeric_limits<T>::max());
  values.push_back(static_cast<T>(kNaN));
  const size_t n = values.size();
  check_pow<T, Wide>(n * n / Tape::kBatch + 1, [&](uint64_t i, T& x, T& y) {
    x = values[i / n % n];
    y = values[i % n];
  });
}

TEST(Pow, FollowsIeeeInEverySpecialCase) {
  check_pow_cases<float, double>();
  check_pow_cases<double, long double>();
}

TEST(Pow, IsWithinOneUlpInF32) {
  check_pow<float, double>(4000, [](uint64_t i, float& x, float& y) {
    const uint64_t word = scrambled(i);
    x = std::bit_cast<float>(static_cast<uint32_t>(word));
    y = std::bit_cast<float>(static_cast<uint32_t>(word >> 32));
    if (i % 4 == 0) return;
    x = std::ldexp(std::fabs(std::remainder(x, 1.0f)) + 0.5f, static_cast<int>(i % 4) - 2);
    y = static_cast<float>(static_cast<int32_t>(word >> 32)) * 0x1p-24f;
    if (x != x) x = 1.25f;
  });
}

TEST(Pow, IsWithinOneUlpInF64) {
  check_pow<double, long double>(300, [](uint64_t i, double& x, double& y) {
    const uint64_t word = scrambled(2 * i);
    const uint64_t other = scrambled(2 * i + 1);
    x = std::bit_cast<double>(word);
    y = std::bit_cast<double>(other);
    if (i % 4 == 0) return;
    const double exponent = static_cast<double>(static_cast<int64_t>(other)) * 0x1p-63;
    x = std::ldexp(0.5 + static_cast<double>(word >> 11) * 0x1p-53, static_cast<int>(i % 4) - 2);
    // Results spread over the whole range, the denormals included.
    y = i % 8 < 4 ? 1080.0 * exponent / std::log2(x) : 50.0 * exponent;
  });
}

template <class T>
T any_number(uint64_t i) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<double>(scrambled(i));
  return static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(scrambled(i))));
}

// What is built for a constant exponent has the bits of what is built for a variable.
template <class T>
void check_constant_exponent(double exponent, bool converted) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Pool pool;
  const VarId var = pool.new_var("x", dtype_of<T>(), kResult);
  const Expr x{&pool, pool.var(var)};
  const DType other = sizeof(T) == 4 ? DType::kF64 : DType::kF32;
  const Expr y =
      converted ? convert(constant(pool, other, exponent), x.dtype()) : like(x, exponent);
  Tape fixed(pool, pow(x, y).id, {var});
  CompiledPow<T> variable;
  const T edges[] = {T(0),     -T(0),     T(1),
                     T(-1),    T(kInf),   T(-kInf),
                     T(kNaN),  T(2),      std::numeric_limits<T>::denorm_min(),
                     T(-2),    T(-0.5),   -std::numeric_limits<T>::denorm_min(),
                     T(1e-30), T(-1e-30), std::numeric_limits<T>::max()};
  T in[Tape::kBatch];
  T exponents[Tape::kBatch];
  T out[Tape::kBatch];
  T expected[Tape::kBatch];
  std::fill_n(exponents, Tape::kBatch, static_cast<T>(exponent));
  for (uint64_t b = 0; b < 40; ++b) {
    for (size_t i = 0; i < Tape::kBatch; ++i) in[i] = any_number<T>(b * Tape::kBatch + i);
    if (b == 0) std::copy(std::begin(edges), std::end(edges), in);
    fixed.run({in}, out);
    variable.run(in, exponents, expected);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      if (expected[i] != expected[i] && out[i] != out[i]) continue;
      EXPECT_EQ(std::bit_cast<Bits>(out[i]), std::bit_cast<Bits>(expected[i]))
          << "pow(" << in[i] << ", " << exponent << ")";
    }
  }
}

TEST(Pow, OfAConstantExponentHasTheSameBits) {
  for (double y :
       {2.0, 3.0, 0.5, -1.0, -0.5, 0.0, 1.0, -2.0, 5.0, 0.75, -3.0, 2.5, kInf, -kInf, kNaN}) {
    for (bool converted : {false, true}) {
      check_constant_exponent<float>(y, converted);
      check_constant_exponent<double>(y, converted);
    }
  }
}

// Only the path that the exponent needs is built.
TEST(Pow, OfAConstantExponentIsShort) {
  const std::vector<std::pair<double, size_t>> most_ops = {
      {2.0, 1}, {3.0, 2}, {0.5, 4}, {-1.0, 1}, {-0.5, 5}};
  for (const auto& [exponent, limit] : most_ops) {
    Pool pool;
    const VarId x = pool.new_var("x", DType::kF32, kResult);
    const Expr base{&pool, pool.var(x)};
    EXPECT_EQ(Tape(pool, pow(base, like(base, exponent)).id, {x}).op_count(), limit) << exponent;
  }
}

// What the op computes (ops/gelu.cpp) and what it is defined as, for both of its functions, over
// all exponents and signs, where x/2 is subnormal too.
template <class T>
void check_gelu(Expr (*function)(Expr)) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Pool pool;
  const VarId var = pool.new_var("x", sizeof(T) == 4 ? DType::kF32 : DType::kF64, kResult);
  const Expr x{&pool, pool.var(var)};
  const Expr phi = function(x * 0.7071067811865476);
  Tape computed(pool, (x * fma(phi, like(phi, 0.5), like(phi, 0.5))).id, {var});
  Tape defined(pool, (x * 0.5 * (phi + 1.0)).id, {var});
  Bits bits = 0;
  for (int batch = 0; batch < 200; ++batch) {
    T in[Tape::kBatch];
    T a[Tape::kBatch];
    T b[Tape::kBatch];
    for (T& value : in) {
      // The first ones are the least there are, the others odd steps through all of them.
      bits = batch < 2 ? bits + 1 : static_cast<Bits>(bits * 6364136223846793005U + 1442695040889U);
      value = std::bit_cast<T>(bits);
    }
    computed.run({in}, a);
    defined.run({in}, b);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      EXPECT_EQ(std::bit_cast<Bits>(a[i]), std::bit_cast<Bits>(b[i])) << "gelu(" << in[i] << ")";
    }
  }
}

TEST(Gelu, AnOperationLessHasTheSameBits) {
  for (auto* function : {erf, tanh}) {
    check_gelu<float>(function);
    check_gelu<double>(function);
  }
}

}  // namespace
}  // namespace pyc::loop

// Every scalar operation on every type it has, over a table of edge values, against definitions
// written here.

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "eval/run_kernel.h"

namespace pyc::eval {
namespace {

using loop::Access;
using loop::Expr;
using loop::ExprId;
using loop::Kernel;
using loop::Op;
using loop::StmtKind;

using Make = std::function<ExprId(loop::Pool&, const std::vector<ExprId>&)>;

// make(x, y, …)[i] for every element i of the operands.
std::vector<Word> evaluate(const std::vector<Elements>& operands, DType result, const Make& make) {
  Kernel k;
  const auto n = static_cast<int64_t>(operands[0].words.size());
  const loop::VarId v = k.pool.new_var("i", DType::kI64, n);
  const ExprId i = k.pool.var(v);
  std::vector<ExprId> loads;
  for (const Elements& e : operands) {
    loads.push_back(k.pool.load(static_cast<uint32_t>(k.buffers.size()), e.dtype, i));
    k.buffers.push_back({"x", e.dtype, n, Access::kRead});
  }
  k.buffers.push_back({"y", result, n, Access::kWrite});
  k.parallel = {v};
  k.stores = {{static_cast<uint32_t>(operands.size()), i, make(k.pool, loads)}};
  k.body = {{StmtKind::kStore, 0}};
  const Outcome outcome = run_kernel(k, operands);
  EXPECT_EQ(outcome.fault, 0);
  return outcome.buffers.back().words;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, int8_t>) return DType::kI8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kI16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kI64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kU8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kU16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kU64;
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
}

template <class T>
Word word(T v) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(v);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(v);
  if constexpr (std::is_integral_v<T>) return static_cast<Word>(static_cast<int64_t>(v));
}

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {T(0.0),          T(-0.0),          T(1),          T(-1),
            T(0.5),          T(1.5),           T(2.5),        T(-2.5),
            L::min(),        -L::min(),        L::max(),      L::lowest(),
            L::denorm_min(), -L::denorm_min(), L::infinity(), -L::infinity(),
            L::quiet_NaN(),  T(3.14159),       T(-7.25),      L::epsilon(),
            T(8388609.5),    T(1e10)};
  } else {
    return {T(0),     T(1),           T(2),  T(3),  T(7),  T(8),  T(15),  T(31),    T(32),
            T(63),    T(64),          T(-1), T(-2), T(-3), T(-7), T(100), L::min(), T(L::min() + 1),
            L::max(), T(L::max() - 1)};
  }
}

template <class T>
Elements elements(const std::vector<T>& values) {
  Elements e{dtype_of<T>(), {}};
  for (T v : values) e.words.push_back(word(v));
  return e;
}

// A NaN is only asked to be one.
void expect_words(const std::vector<Word>& found, const Elements& expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.words.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const bool nan = is_float(expected.dtype) &&
                     std::isnan(word_to_double(expected.words[i], expected.dtype)) &&
                     std::isnan(word_to_double(found[i], expected.dtype));
    EXPECT_TRUE(nan || found[i] == expected.words[i])
        << what << ", case " << i << ": " << found[i] << ", expected " << expected.words[i];
  }
}

void expect_binary(Op op, const Elements& a, const Elements& b, const Elements& expected) {
  const auto make = [op](loop::Pool& p, const std::vector<ExprId>& x) {
    return p.binary(op, x[0], x[1]);
  };
  expect_words(
      evaluate({a, b}, expected.dtype, make), expected,
      "op " + std::to_string(static_cast<int>(op)) + " on " + std::string(dtype_name(a.dtype)));
}

void expect_unary(Op op, const Elements& a, const Elements& expected) {
  const auto make = [op](loop::Pool& p, const std::vector<ExprId>& x) { return p.unary(op, x[0]); };
  expect_words(
      evaluate({a}, expected.dtype, make), expected,
      "op " + std::to_string(static_cast<int>(op)) + " on " + std::string(dtype_name(a.dtype)));
}

// Over all pairs of edge values.
template <class R, class T, class F>
void check_binary(Op op, F expected) {
  Elements a{dtype_of<T>(), {}};
  Elements b{dtype_of<T>(), {}};
  Elements results{dtype_of<R>(), {}};
  for (T x : edges<T>()) {
    for (T y : edges<T>()) {
      a.words.push_back(word(x));
      b.words.push_back(word(y));
      results.words.push_back(word<R>(expected(x, y)));
    }
  }
  expect_binary(op, a, b, results);
}

template <class T, class F>
void check_unary(Op op, F expected) {
  Elements results{dtype_of<T>(), {}};
  for (T x : edges<T>()) results.words.push_back(word<T>(expected(x)));
  expect_unary(op, elements(edges<T>()), results);
}

template <class T>
class IntegerOps : public testing::Test {};
using Integers =
    testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(IntegerOps, Integers);

TYPED_TEST(IntegerOps, Wrap) {
  using T = TypeParam;
  using W = __int128;
  check_binary<T, T>(Op::kAdd, [](T a, T b) { return static_cast<T>(W(a) + W(b)); });
  check_binary<T, T>(Op::kSub, [](T a, T b) { return static_cast<T>(W(a) - W(b)); });
  check_binary<T, T>(Op::kMul, [](T a, T b) {
    return static_cast<T>(static_cast<unsigned __int128>(W(a)) *
                          static_cast<unsigned __int128>(W(b)));
  });
  check_unary<T>(Op::kNeg, [](T a) { return static_cast<T>(-W(a)); });
  check_unary<T>(Op::kAbs, [](T a) { return static_cast<T>(a < 0 ? -W(a) : W(a)); });
}

TYPED_TEST(IntegerOps, DivideTowardsZero) {
  using T = TypeParam;
  using W = __int128;
  check_binary<T, T>(Op::kDiv,
                     [](T a, T b) { return static_cast<T>(b == 0 ? W(0) : W(a) / W(b)); });
  check_binary<T, T>(Op::kRem,
                     [](T a, T b) { return static_cast<T>(b == 0 ? W(0) : W(a) % W(b)); });
}

TYPED_TEST(IntegerOps, ShiftBeyondTheWidth) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  constexpr int kWidth = 8 * sizeof(T);
  check_binary<T, T>(Op::kShl, [](T a, T b) {
    const uint64_t count = static_cast<U>(b);
    return count >= kWidth ? T(0) : static_cast<T>(static_cast<unsigned __int128>(a) << count);
  });
  check_binary<T, T>(Op::kShr, [](T a, T b) {
    const uint64_t count = static_cast<U>(b);
    if (count >= kWidth) return static_cast<T>(a < 0 ? -1 : 0);
    return static_cast<T>(static_cast<__int128>(a) >> count);
  });
}

TYPED_TEST(IntegerOps, Order) {
  using T = TypeParam;
  check_binary<T, T>(Op::kMin, [](T a, T b) { return a < b ? a : b; });
  check_binary<T, T>(Op::kMax, [](T a, T b) { return a < b ? b : a; });
  check_binary<bool, T>(Op::kEq, [](T a, T b) { return a == b; });
  check_binary<bool, T>(Op::kNe, [](T a, T b) { return a != b; });
  check_binary<bool, T>(Op::kLt, [](T a, T b) { return a < b; });
  check_binary<bool, T>(Op::kLe, [](T a, T b) { return a <= b; });
}

TYPED_TEST(IntegerOps, Bits) {
  using T = TypeParam;
  check_binary<T, T>(Op::kAnd, [](T a, T b) { return static_cast<T>(a & b); });
  check_binary<T, T>(Op::kOr, [](T a, T b) { return static_cast<T>(a | b); });
  check_binary<T, T>(Op::kXor, [](T a, T b) { return static_cast<T>(a ^ b); });
  check_unary<T>(Op::kNot, [](T a) { return static_cast<T>(~a); });
}

template <class T>
class FloatOps : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatOps, Floats);

TYPED_TEST(FloatOps, RoundOnce) {
  using T = TypeParam;
  check_binary<T, T>(Op::kAdd, [](T a, T b) { return a + b; });
  check_binary<T, T>(Op::kSub, [](T a, T b) { return a - b; });
  check_binary<T, T>(Op::kMul, [](T a, T b) { return a * b; });
  check_binary<T, T>(Op::kDiv, [](T a, T b) { return a / b; });
  check_unary<T>(Op::kSqrt, [](T a) { return std::sqrt(a); });
  check_unary<T>(Op::kFloor, [](T a) { return std::floor(a); });
  check_unary<T>(Op::kCeil, [](T a) { return std::ceil(a); });
  check_unary<T>(Op::kTrunc, [](T a) { return std::trunc(a); });
  check_unary<T>(Op::kRoundEven, [](T a) {
    const T down = std::floor(a);
    const T rest = a - down;
    if (!(rest == T(0.5))) return std::round(a);
    return std::fmod(down, T(2)) == 0 ? std::copysign(down, a) : std::copysign(down + 1, a);
  });
}

TYPED_TEST(FloatOps, SignBitOnly) {
  using T = TypeParam;
  check_unary<T>(Op::kNeg, [](T a) { return std::copysign(a, std::signbit(a) ? T(1) : T(-1)); });
  check_unary<T>(Op::kAbs, [](T a) { return std::copysign(a, T(1)); });
}

TYPED_TEST(FloatOps, NanWinsAndZerosAreOrdered) {
  using T = TypeParam;
  const auto smaller = [](T a, T b) { return a < b || (a == b && std::signbit(a)); };
  check_binary<T, T>(Op::kMin, [&](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return smaller(a, b) ? a : b;
  });
  check_binary<T, T>(Op::kMax, [&](T a, T b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return smaller(a, b) ? b : a;
  });
  check_binary<bool, T>(Op::kEq, [](T a, T b) { return a == b; });
  check_binary<bool, T>(Op::kNe, [](T a, T b) { return a != b; });
  check_binary<bool, T>(Op::kLt, [](T a, T b) { return a < b; });
  check_binary<bool, T>(Op::kLe, [](T a, T b) { return a <= b; });
}

TYPED_TEST(FloatOps, FmaIsFused) {
  using T = TypeParam;
  std::vector<T> a;
  std::vector<T> b;
  std::vector<T> c;
  for (T x : edges<T>()) {
    for (T y : edges<T>()) {
      for (T z : {T(0), T(-0.0), T(1), -x * y, std::numeric_limits<T>::infinity()}) {
        a.push_back(x);
        b.push_back(y);
        c.push_back(z);
      }
    }
  }
  const auto found =
      evaluate({elements(a), elements(b), elements(c)}, dtype_of<T>(),
               [](loop::Pool& p, const std::vector<ExprId>& x) { return p.fma(x[0], x[1], x[2]); });
  std::vector<T> expected;
  for (size_t i = 0; i < a.size(); ++i) expected.push_back(std::fma(a[i], b[i], c[i]));
  expect_words(found, elements(expected), "fma");
}

TEST(BoolOps, Logic) {
  const Elements x{DType::kBool, {0, 0, 1, 1}};
  const Elements y{DType::kBool, {0, 1, 0, 1}};
  const auto binary = [&](Op op) {
    return evaluate({x, y}, DType::kBool, [op](loop::Pool& p, const std::vector<ExprId>& o) {
      return p.binary(op, o[0], o[1]);
    });
  };
  using Words = std::vector<Word>;
  EXPECT_EQ(binary(Op::kAnd), (Words{0, 0, 0, 1}));
  EXPECT_EQ(binary(Op::kOr), (Words{0, 1, 1, 1}));
  EXPECT_EQ(binary(Op::kXor), (Words{0, 1, 1, 0}));
  EXPECT_EQ(binary(Op::kEq), (Words{1, 0, 0, 1}));
  EXPECT_EQ(binary(Op::kNe), (Words{0, 1, 1, 0}));
  EXPECT_EQ(binary(Op::kLt), (Words{0, 1, 0, 0}));
  EXPECT_EQ(binary(Op::kMax), (Words{0, 1, 1, 1}));
  EXPECT_EQ(
      evaluate({x}, DType::kBool,
               [](loop::Pool& p, const std::vector<ExprId>& o) { return p.unary(Op::kNot, o[0]); }),
      (Words{1, 1, 0, 0}));
}

// Conversions between all pairs of types are those of base/convert.h.
TEST(Convert, AllPairs) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto f = static_cast<DType>(from);
      const auto t = static_cast<DType>(to);
      Elements x{f, {}};
      for (double v : edges<double>()) x.words.push_back(word_from_double(v, f));
      for (int64_t v : edges<int64_t>()) x.words.push_back(word_from_int(v, f));
      const auto found = evaluate(
          {x}, t, [t](loop::Pool& p, const std::vector<ExprId>& o) { return p.convert(o[0], t); });
      Elements expected{t, {}};
      for (Word w : x.words) expected.words.push_back(convert_word(w, f, t));
      expect_words(found, expected,
                   std::string(dtype_name(f)) + " to " + std::string(dtype_name(t)));
    }
  }
}

TEST(Bitcast, KeepsBits) {
  const Elements f{DType::kF32, {0x7FC00001, 0xFF800000, 0x80000000, 0x3F800000}};
  const auto cast = [](const Elements& x, DType to) {
    return evaluate(
        {x}, to, [to](loop::Pool& p, const std::vector<ExprId>& o) { return p.bitcast(o[0], to); });
  };
  EXPECT_EQ(cast(f, DType::kU32), f.words);
  EXPECT_EQ(cast(f, DType::kI32),
            (std::vector<Word>{0x7FC00001, 0xFFFFFFFFFF800000, 0xFFFFFFFF80000000, 0x3F800000}));
  const Elements i{DType::kI16, {word_from_int(-1, DType::kI16), 5}};
  EXPECT_EQ(cast(i, DType::kBF16), (std::vector<Word>{0xFFFF, 5}));
  const Elements d{DType::kF64, {0x7FF8000000000001}};
  EXPECT_EQ(cast(d, DType::kI64), d.words);
}

TEST(Select, KeepsBits) {
  const Elements c{DType::kBool, {1, 0}};
  const Elements a{DType::kF16, {0x7E01, 0x7E01}};
  const Elements b{DType::kF16, {0xFE02, 0xFE02}};
  EXPECT_EQ(evaluate({c, a, b}, DType::kF16,
                     [](loop::Pool& p, const std::vector<ExprId>& o) {
                       return p.select(o[0], o[1], o[2]);
                     }),
            (std::vector<Word>{0x7E01, 0xFE02}));
}

TEST(Index, FloorDivisionOfNegatives) {
  const std::vector<int64_t> values = {-9, -8, -7, -1, 0, 1, 7, 8, 9, INT64_MIN, INT64_MAX};
  const Elements x = elements(values);
  for (int64_t divisor : {int64_t{1}, int64_t{2}, int64_t{8}, INT64_MAX}) {
    const auto apply = [&](Op op) {
      return evaluate({x}, DType::kI64, [&](loop::Pool& p, const std::vector<ExprId>& o) {
        return p.binary(op, o[0], p.integer(divisor));
      });
    };
    const auto quotients = apply(Op::kFloorDiv);
    const auto rests = apply(Op::kFloorMod);
    for (size_t i = 0; i < values.size(); ++i) {
      const __int128 rest = ((__int128{values[i]} % divisor) + divisor) % divisor;
      EXPECT_EQ(static_cast<int64_t>(rests[i]), static_cast<int64_t>(rest));
      EXPECT_EQ(static_cast<int64_t>(quotients[i]),
                static_cast<int64_t>((__int128{values[i]} - rest) / divisor));
    }
  }
}

TEST(Create, RefusesOperationsATypeDoesNotHave) {
  const auto refused = [](DType t, const Make& make) {
    Kernel k;
    k.buffers = {{"x", t, 1, Access::kRead}, {"y", t, 1, Access::kWrite}};
    const ExprId zero = k.pool.integer(0);
    const ExprId x = k.pool.load(0, t, zero);
    k.stores = {{1, zero, make(k.pool, {x})}};
    k.body = {{StmtKind::kStore, 0}};
    const auto made = Interpreter::create(k);
    return !made.ok() && made.status().code() == Code::kVerifyFailed;
  };
  const auto binary = [](Op op) {
    return [op](loop::Pool& p, const std::vector<ExprId>& o) { return p.binary(op, o[0], o[0]); };
  };
  EXPECT_TRUE(refused(DType::kF16, binary(Op::kAdd)));
  EXPECT_TRUE(refused(DType::kBool, binary(Op::kAdd)));
  EXPECT_TRUE(refused(DType::kF32, binary(Op::kRem)));
  EXPECT_TRUE(refused(DType::kF32, binary(Op::kAnd)));
  EXPECT_TRUE(refused(DType::kI32, [](loop::Pool& p, const std::vector<ExprId>& o) {
    return p.unary(Op::kSqrt, o[0]);
  }));
}

}  // namespace
}  // namespace pyc::eval

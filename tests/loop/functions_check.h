#pragma once

// What the tests of the elementary functions share: the functions with their oracles, the error
// measure, and the loop that finds the worst argument.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "loop/functions.h"
#include "loop/functions_tape.h"

namespace pyc::loop {

struct CheckedFunction {
  std::string name;
  Expr (*build)(Expr);
  double (*oracle)(double);                 // for f32
  long double (*wide_oracle)(long double);  // for f64; at least 64 bits on the machines we test on
  double bound = 1.0;                       // ulp, in f32
  double wide_bound = 2.0;                  // and in f64
};

template <class T>
T exact_exp_nonpositive(T x) {
  return std::exp(-std::fabs(x));
}

template <class T>
T exact_sigmoid(T x) {
  const T e = exact_exp_nonpositive(x);
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// x^(halves/2) for the exponents that pow treats as arithmetic.
template <int halves, class T>
T exact_short_power(T x) {
  if (halves == 4) return x * x;
  if (halves == 6) return x * x * x;
  if (halves == -2) return 1 / x;
  const T root = x == -std::numeric_limits<T>::infinity() ? -x : std::sqrt(x) + 0;
  return halves == 1 ? root : 1 / root;
}

template <int halves>
CheckedFunction short_power(std::string name) {
  return {std::move(name),
          [](Expr x) { return pow(x, like(x, halves * 0.5)); },
          exact_short_power<halves, double>,
          exact_short_power<halves, long double>,
          1.5,
          1.5};
}

inline const std::vector<CheckedFunction>& short_powers() {
  static const std::vector<CheckedFunction> list = {
      short_power<4>("pow_2"), short_power<6>("pow_3"), short_power<1>("pow_half"),
      short_power<-2>("pow_minus_1"), short_power<-1>("pow_minus_half")};
  return list;
}

inline const std::vector<CheckedFunction>& unary_functions() {
#define PYC_FUNCTION(name)                                                                   \
  CheckedFunction {                                                                          \
    #name, [](Expr x) { return pyc::loop::name(x); }, [](double x) { return std::name(x); }, \
        [](long double x) { return std::name(x); }                                           \
  }
  static const std::vector<CheckedFunction> list = {
      PYC_FUNCTION(exp), PYC_FUNCTION(exp2), PYC_FUNCTION(expm1), PYC_FUNCTION(log),
      PYC_FUNCTION(log2), PYC_FUNCTION(log1p), PYC_FUNCTION(sin), PYC_FUNCTION(cos),
      PYC_FUNCTION(tan), PYC_FUNCTION(asin), PYC_FUNCTION(acos), PYC_FUNCTION(atan),
      PYC_FUNCTION(sinh), PYC_FUNCTION(cosh), PYC_FUNCTION(tanh), PYC_FUNCTION(asinh),
      PYC_FUNCTION(acosh), PYC_FUNCTION(atanh), PYC_FUNCTION(erf),
      // Of -|x|, so that every argument is one of its domain.
      CheckedFunction{"exp_nonpositive", [](Expr x) { return pyc::loop::exp_nonpositive(-abs(x)); },
                      exact_exp_nonpositive<double>, exact_exp_nonpositive<long double>},
      CheckedFunction{"sigmoid", [](Expr x) { return pyc::loop::sigmoid(x); },
                      exact_sigmoid<double>, exact_sigmoid<long double>, 2.5, 2.5}};
#undef PYC_FUNCTION
  return list;
}

// |got - exact| in units in the last place of `exact` as a T; infinity where NaN, infinity or the
// sign of zero is wrong. A correctly rounded result counts as ½, which saves most of the work.
// Overflow counts as the power of two after the greatest finite value.
template <class T, class Wide>
double ulp_error(T got, Wide exact) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  constexpr int kMaxExponent = std::numeric_limits<T>::max_exponent;
  constexpr int kMinExponent = std::numeric_limits<T>::min_exponent;
  constexpr int kDigits = std::numeric_limits<T>::digits;
  if (exact != exact || got != got) return (exact != exact) == (got != got) ? 0 : kWrong;
  if (got == static_cast<T>(exact)) {
    return std::signbit(got) == std::signbit(exact) ? 0.5 : kWrong;
  }
  if (std::isinf(exact)) return kWrong;
  Wide value = got;
  if (std::isinf(got)) value = std::copysign(std::ldexp(Wide(1), kMaxExponent), value);
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::min(std::max(exponent, kMinExponent), kMaxExponent);
  return static_cast<double>(std::ldexp(std::fabs(value - exact), kDigits - exponent));
}

template <class T>
constexpr DType dtype_of() {
  return std::is_same_v<T, float> ? DType::kF32 : DType::kF64;
}

// One function of one argument, ready to run over batches.
template <class T>
class Compiled {
 public:
  explicit Compiled(Expr (*build)(Expr))
      : x_(pool_.new_var("x", dtype_of<T>(), kResult)),
        tape_(pool_, build({&pool_, pool_.var(x_)}).id, {x_}) {}

  void run(const T* in, T* out) { tape_.run({in}, out); }
  T operator()(T x) {
    T in[Tape::kBatch];
    T out[Tape::kBatch];
    std::fill(in, in + Tape::kBatch, x);
    run(in, out);
    return out[0];
  }
  size_t op_count() const { return tape_.op_count(); }

 private:
  Pool pool_;
  VarId x_;
  Tape tape_;
};

template <class T>
struct Worst {
  double ulp = 0;
  T x = 0;
  uint64_t count = 0;

  void take(double error, T argument) {
    ++count;
    if (error > ulp) {
      ulp = error;
      x = argument;
    }
  }
  void join(const Worst& other) {
    if (other.ulp > ulp) {
      ulp = other.ulp;
      x = other.x;
    }
    count += other.count;
  }
};

// Gives the error of each argument of `batches` batches to `found`; fill(b, in) writes the
// arguments of batch b.
template <class T, class Oracle, class Fill, class Found>
void measure(Compiled<T>& function, Oracle oracle, uint64_t batches, Fill fill, Found& found) {
  T in[Tape::kBatch];
  T out[Tape::kBatch];
  for (uint64_t b = 0; b < batches; ++b) {
    fill(b, in);
    function.run(in, out);
    for (size_t i = 0; i < Tape::kBatch; ++i) found.take(ulp_error(out[i], oracle(in[i])), in[i]);
  }
}

template <class T, class Oracle, class Fill>
Worst<T> worst_error(Compiled<T>& function, Oracle oracle, uint64_t batches, Fill fill) {
  Worst<T> worst;
  measure(function, oracle, batches, fill, worst);
  return worst;
}

// A fixed sequence of 64-bit words.
inline uint64_t scrambled(uint64_t i) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The i-th f64 argument: any bit pattern, moderate magnitudes, or the neighbourhood of a multiple
// of π/2, in turn.
inline double sample_f64(uint64_t i) {
  const uint64_t word = scrambled(i);
  const double unit = static_cast<double>(word >> 11) * 0x1p-53;
  const double sign = (word & 1) != 0 ? -1.0 : 1.0;
  switch (i % 8) {
    case 0:
      return std::bit_cast<double>(word);
    case 1:
      return sign * 750.0 * unit;
    case 2:
      return sign * 1.1 * unit;
    case 3:
      return sign * std::ldexp(1.0 + unit, static_cast<int>(word >> 1 & 63) - 40);
    case 4:
      return 1.0 + sign * std::ldexp(unit, -static_cast<int>(word >> 1 & 31));
    case 5:
      return sign * 8.0 * unit;
    case 6: {
      const auto k = static_cast<long double>(word >> (20 + (word & 31)));
      return static_cast<double>(k * 1.5707963267948966192313216916397514L);
    }
    default:
      return sign * std::ldexp(1.0 + unit, static_cast<int>(word >> 1 & 7) - 4);
  }
}

}  // namespace pyc::loop

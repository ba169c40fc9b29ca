#pragma once

// A second opinion on single arguments, by MPFR with many more bits than any error can hide in.

#include <mpfr.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace pyc::loop {

inline constexpr mpfr_prec_t kMpfrBits = 200;

// One number, freed with its scope.
class BigFloat {
 public:
  BigFloat() { mpfr_init2(value_, kMpfrBits); }
  explicit BigFloat(double x) : BigFloat() { mpfr_set_d(value_, x, MPFR_RNDN); }
  BigFloat(const BigFloat&) = delete;
  BigFloat& operator=(const BigFloat&) = delete;
  ~BigFloat() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

inline int mpfr_exp_nonpositive(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_abs(y, x, rounding);
  mpfr_neg(y, y, rounding);
  return mpfr_exp(y, y, rounding);
}

inline int mpfr_sigmoid(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_neg(y, x, rounding);
  mpfr_exp(y, y, rounding);
  mpfr_add_ui(y, y, 1, rounding);
  return mpfr_ui_div(y, 1, y, rounding);
}

template <int halves>
int mpfr_short_power(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t rounding) {
  BigFloat exponent(halves * 0.5);
  return mpfr_pow(y, x, exponent.get(), rounding);
}

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// The function of that name, or null.
inline MpfrFunction mpfr_function(std::string_view name) {
  struct Named {
    std::string_view name;
    MpfrFunction function;
  };
  static constexpr Named kFunctions[] = {
      {"exp", mpfr_exp},
      {"exp_nonpositive", mpfr_exp_nonpositive},
      {"exp2", mpfr_exp2},
      {"expm1", mpfr_expm1},
      {"log", mpfr_log},
      {"log2", mpfr_log2},
      {"log1p", mpfr_log1p},
      {"sin", mpfr_sin},
      {"cos", mpfr_cos},
      {"tan", mpfr_tan},
      {"asin", mpfr_asin},
      {"acos", mpfr_acos},
      {"atan", mpfr_atan},
      {"sinh", mpfr_sinh},
      {"cosh", mpfr_cosh},
      {"tanh", mpfr_tanh},
      {"asinh", mpfr_asinh},
      {"acosh", mpfr_acosh},
      {"atanh", mpfr_atanh},
      {"erf", mpfr_erf},
      {"sigmoid", mpfr_sigmoid},
      {"pow_2", mpfr_short_power<4>},
      {"pow_3", mpfr_short_power<6>},
      {"pow_half", mpfr_short_power<1>},
      {"pow_minus_1", mpfr_short_power<-2>},
      {"pow_minus_half", mpfr_short_power<-1>},
  };
  for (const Named& f : kFunctions) {
    if (f.name == name) return f.function;
  }
  return nullptr;
}

// |got - f(x)| in units in the last place of f(x) as an f32, for a finite f(x) and got.
inline double mpfr_ulp_error(MpfrFunction f, float x, float got) {
  BigFloat exact(x);
  f(exact.get(), exact.get(), MPFR_RNDN);
  const long least = -125;  // mpfr's exponent of the smallest normal f32
  const long exponent =
      mpfr_zero_p(exact.get()) != 0 ? least : std::max<long>(mpfr_get_exp(exact.get()), least);
  mpfr_sub_d(exact.get(), exact.get(), got, MPFR_RNDN);
  mpfr_mul_2si(exact.get(), exact.get(), 24 - exponent, MPFR_RNDN);
  return std::abs(mpfr_get_d(exact.get(), MPFR_RNDN));
}

}  // namespace pyc::loop

#pragma once

// Calls of the elementary functions, of which each has one definition, the same on every backend.
// The argument's dtype is f32 or f64 and so is the result's. They hold to 1 ulp in f32 and 2 ulp in
// f64 everywhere, but for sigmoid and the short powers of pow (docs/functions.md has what was
// measured, and the methods), with the special values of IEEE 754; all are branch-free. exp,
// exp_nonpositive, log, tanh, erf and sigmoid of f32 are meant for hot loops: f32 arithmetic only,
// no tables.

#include <memory>
#include <string_view>

#include "loop/builder.h"
#include "loop/loop.h"

namespace pyc::loop {

Expr exp(Expr x);  // exp(0) = 1, exp(-inf) = +0 exactly
// The bits of exp(x) for x <= 0 or NaN, in fewer operations; of x > 0 it may be anything.
Expr exp_nonpositive(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);  // log(x < 0) = NaN, log(±0) = -inf, log(1) = +0
Expr log2(Expr x);
Expr log1p(Expr x);
// IEEE 754 pow, with its special cases. These exponents are short, and at most 1.5 ulp: 2: x·x;
// 3: (x·x)·x; -1: 1/x; ½: sqrt(x) + (+0), +inf for -inf; -½: 1/(sqrt(x) + (+0)), +0 for -inf. Where
// y is a constant, possibly converted, only what its value needs is built, with the same bits.
Expr pow(Expr x, Expr y);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr erf(Expr x);
// (x < 0 ? e : 1) / (1 + e) with e = exp(-|x|).
Expr sigmoid(Expr x);

// The function of that name whose first parameter has type `t`; null if there is none.
std::shared_ptr<const Function> elementary_function(std::string_view name, DType t);
// Whether it is one of those: a text may define another function with such a name.
bool is_elementary(const Function& function);

// exp(x) of f32 is value · 2^exponent, the exponent integral and the product rounded once: for
// machines that have this as one operation.
struct ScaledExp {
  Expr value;
  Expr exponent;
};
ScaledExp scaled_exp(Expr x);
ScaledExp scaled_exp_nonpositive(Expr x);  // the same of exp_nonpositive
// The bits of exp_nonpositive of an f32 that is no less than kLeastNormalExp, where they are those
// of a normal number, in fewer operations; of another x it may be anything.
inline constexpr double kLeastNormalExp = -87.0;
Expr exp_normal(Expr x);

}  // namespace pyc::loop

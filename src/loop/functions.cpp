// The table of the elementary functions: name, range, definition.

#include "loop/functions.h"

#include <array>

#include "base/status.h"
#include "loop/function.h"
#include "loop/functions_detail.h"

namespace pyc::loop {
namespace {

using namespace detail;
using FunctionPtr = std::shared_ptr<const Function>;

// Rounded up to f32, so that it bounds both types' results.
constexpr double kHalfPiUp = 0x1.921fb6p0;

struct Entry {
  std::string_view name;
  double lo;
  double hi;
  FunctionPtr (*f32)(const Entry&);
  FunctionPtr (*f64)(const Entry&);
};

Expr apply_definition(Expr (*define)(Expr), Pool& pool, const std::vector<VarId>& params) {
  return define({&pool, pool.var(params[0])});
}
Expr apply_definition(Expr (*define)(Expr, Expr), Pool& pool, const std::vector<VarId>& params) {
  return define({&pool, pool.var(params[0])}, {&pool, pool.var(params[1])});
}
constexpr size_t arity(Expr (*)(Expr)) { return 1; }
constexpr size_t arity(Expr (*)(Expr, Expr)) { return 2; }

template <auto define>
FunctionPtr define_function(const Entry& e, DType t) {
  Definition d;
  d.name = e.name;
  d.lo = e.lo;
  d.hi = e.hi;
  for (size_t i = 0; i < arity(define); ++i) {
    d.params.push_back(d.pool.new_var(i == 0 ? "x" : "y", t, kResult));
  }
  d.value = apply_definition(define, d.pool, d.params).id;
  return make_function(std::move(d));
}

// Made when it is first asked for.
template <auto define, DType t>
FunctionPtr get_function(const Entry& e) {
  static const FunctionPtr made = define_function<define>(e, t);
  return made;
}

template <auto define>
constexpr Entry entry(std::string_view name, double lo, double hi) {
  return {name, lo, hi, get_function<define, DType::kF32>, get_function<define, DType::kF64>};
}

constexpr std::array kEntries = {
    entry<definition::exp>("exp", 0.0, kInf),
    entry<definition::exp_nonpositive>("exp_nonpositive", -kInf, kInf),
    entry<definition::exp2>("exp2", 0.0, kInf),
    entry<definition::expm1>("expm1", -1.0, kInf),
    entry<definition::log>("log", -kInf, kInf),
    entry<definition::log2>("log2", -kInf, kInf),
    entry<definition::log1p>("log1p", -kInf, kInf),
    entry<definition::sin>("sin", -1.0, 1.0),
    entry<definition::cos>("cos", -1.0, 1.0),
    entry<definition::tan>("tan", -kInf, kInf),
    entry<definition::asin>("asin", -kHalfPiUp, kHalfPiUp),
    entry<definition::acos>("acos", 0.0, 2 * kHalfPiUp),
    entry<definition::atan>("atan", -kHalfPiUp, kHalfPiUp),
    entry<definition::sinh>("sinh", -kInf, kInf),
    entry<definition::cosh>("cosh", 1.0, kInf),
    entry<definition::tanh>("tanh", -1.0, 1.0),
    entry<definition::asinh>("asinh", -kInf, kInf),
    entry<definition::acosh>("acosh", 0.0, kInf),
    entry<definition::atanh>("atanh", -kInf, kInf),
    entry<definition::erf>("erf", -1.0, 1.0),
    entry<definition::sigmoid>("sigmoid", 0.0, 1.0),
    entry<definition::pow>("pow", -kInf, kInf),
};

}  // namespace

FunctionPtr elementary_function(std::string_view name, DType t) {
  if (t != DType::kF32 && t != DType::kF64) return nullptr;
  for (const Entry& e : kEntries) {
    if (e.name == name) return t == DType::kF32 ? e.f32(e) : e.f64(e);
  }
  return nullptr;
}

bool is_elementary(const Function& f) {
  const FunctionPtr known = elementary_function(f.name, f.pool.var_info(f.params[0]).dtype);
  return known != nullptr && same_function(*known, f);
}

namespace detail {

Expr call_elementary(std::string_view name, Expr x, Expr y) {
  const FunctionPtr function = elementary_function(name, x.dtype());
  PYC_CHECK(function != nullptr, "an elementary function takes f32 or f64");
  return {x.pool, x.pool->call(x.pool->function(function), x.id, y.id)};
}

}  // namespace detail

Expr exp(Expr x) { return call_elementary("exp", x); }
Expr exp_nonpositive(Expr x) { return call_elementary("exp_nonpositive", x); }
Expr exp2(Expr x) { return call_elementary("exp2", x); }
Expr expm1(Expr x) { return call_elementary("expm1", x); }
Expr log(Expr x) { return call_elementary("log", x); }
Expr log2(Expr x) { return call_elementary("log2", x); }
Expr log1p(Expr x) { return call_elementary("log1p", x); }
Expr sin(Expr x) { return call_elementary("sin", x); }
Expr cos(Expr x) { return call_elementary("cos", x); }
Expr tan(Expr x) { return call_elementary("tan", x); }
Expr asin(Expr x) { return call_elementary("asin", x); }
Expr acos(Expr x) { return call_elementary("acos", x); }
Expr atan(Expr x) { return call_elementary("atan", x); }
Expr sinh(Expr x) { return call_elementary("sinh", x); }
Expr cosh(Expr x) { return call_elementary("cosh", x); }
Expr tanh(Expr x) { return call_elementary("tanh", x); }
Expr asinh(Expr x) { return call_elementary("asinh", x); }
Expr acosh(Expr x) { return call_elementary("acosh", x); }
Expr atanh(Expr x) { return call_elementary("atanh", x); }
Expr erf(Expr x) { return call_elementary("erf", x); }
Expr sigmoid(Expr x) { return call_elementary("sigmoid", x); }

}  // namespace pyc::loop

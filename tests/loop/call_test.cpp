// Calls: their text, what the verifier refuses, and that a call is its definition bit by bit.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "eval/interpreter.h"
#include "loop/function.h"
#include "loop/functions.h"
#include "loop/functions_check.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::loop {
namespace {

const std::string kHead =
    "kernel {\n"
    "buffer b0: f32[8] read\n"
    "buffer b1: f32[8] write\n";

std::string with_body(const std::string& functions, const std::string& value) {
  return kHead + functions + "parallel v0 < 8\nb1[v0] = " + value + "\n}\n";
}

std::string parse_error(const std::string& text) {
  const auto parsed = parse_kernel(text);
  return parsed.ok() ? "" : parsed.status().message();
}

std::string verdict_of(const std::string& text) {
  auto kernel = parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? verify_kernel(*kernel).message() : "not parsed";
}

// What the kernel stores for eight f32.
std::vector<uint32_t> results_of(const Kernel& kernel) {
  std::vector<float> in = {0.0F, -0.5F, 1.0F, 3.75F, -20.0F, 100.0F, 1e-30F, -2.5F};
  std::vector<uint32_t> out(8);
  auto made = eval::Interpreter::create(kernel);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  void* pointers[] = {in.data(), out.data()};
  int32_t fault = 0;
  pyc_kernel_args args{};
  args.buffers = pointers;
  args.fault = &fault;
  if (made.ok()) (*made)->run(args, 0, 8);
  return out;
}

std::vector<uint32_t> results_of(const std::string& text) {
  auto kernel = parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? results_of(*kernel) : std::vector<uint32_t>{};
}

// A kernel that stores f of each element.
template <class F>
Kernel kernel_of(F f, DType t = DType::kF32) {
  Kernel k;
  k.buffers = {{"x", t, 8, Access::kRead}, {"y", t, 8, Access::kWrite}};
  const VarId i = k.pool.new_var("i", DType::kI64, 8);
  k.parallel = {i};
  const Expr x{&k.pool, k.pool.load(0, t, k.pool.var(i))};
  k.stores.push_back({1, k.pool.var(i), f(x).id});
  k.body.push_back({StmtKind::kStore, 0});
  return k;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Call, TextHasEachDefinitionOnce) {
  const std::string text =
      print(kernel_of([](Expr x) { return exp_nonpositive(sigmoid(x)) + exp_nonpositive(-x); }));
  EXPECT_EQ(count(text, "function exp_nonpositive(v0: f32) -> f32 {"), 1u) << text;
  EXPECT_EQ(count(text, "function sigmoid(v0: f32) -> f32 in [0, 1] {"), 1u) << text;
  EXPECT_EQ(count(text, "call exp_nonpositive("), 3u) << text;  // one of them in sigmoid
  EXPECT_LT(text.find("function exp_nonpositive"), text.find("function sigmoid"));
  EXPECT_NE(text.find("b1[v0] = call exp_nonpositive(call sigmoid("), std::string::npos) << text;
}

TEST(Call, TextDoesNotShowTheOrderInWhichAPoolMetThem) {
  const Kernel plain = kernel_of([](Expr x) { return exp(x) + tanh(x); });
  const Kernel other = kernel_of([](Expr x) {
    tanh(x);
    erf(x);
    return exp(x) + tanh(x);
  });
  EXPECT_EQ(print(plain), print(other));
}

TEST(Call, EveryElementaryFunctionReadsBackAndVerifies) {
  for (DType t : {DType::kF32, DType::kF64}) {
    std::vector<Kernel> kernels = {
        kernel_of([](Expr x) { return pow(x, x * 2.0); }, t),
        kernel_of([](Expr x) { return pow(x, like(x, 0.75)) + pow(x, like(x, -1.75)); }, t)};
    for (const CheckedFunction& f : unary_functions()) kernels.push_back(kernel_of(f.build, t));
    for (const Kernel& k : kernels) {
      const std::string text = print(k);
      EXPECT_TRUE(verify_kernel(k).ok()) << verify_kernel(k).to_string();
      auto parsed = parse_kernel(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << "\n" << text;
      EXPECT_EQ(print(*parsed), text);
      EXPECT_TRUE(verify_kernel(*parsed).ok()) << verify_kernel(*parsed).to_string();
      if (t == DType::kF32) {
        EXPECT_EQ(results_of(*parsed), results_of(k));
      }
    }
  }
}

TEST(Call, HasTheValueOfItsDefinition) {
  const std::string functions =
      "function half(v0: f32) -> f32 {\n  return v0 * 0.5:f32\n}\n"
      "function mean(v0: f32, v1: f32) -> f32 {\n"
      "  table c0: f32 = [3, 5]\n"
      "  let t0: f32 = call half(v0) + call half(v1)\n"
      "  return t0 * c0[1] - t0\n}\n";
  const auto called = results_of(with_body(functions, "call mean(b0[v0], call half(b0[7 - v0]))"));
  const std::string sum = "b0[v0] * 0.5:f32 + b0[7 - v0] * 0.5:f32 * 0.5:f32";
  EXPECT_EQ(called, results_of(with_body("", "(" + sum + ") * 5:f32 - (" + sum + ")")));
}

// The range of an integer result is that of the definition's value.
TEST(Call, IntegerResultsHaveTheirRange) {
  const std::string wrap =
      "function wrap(v0: i64) -> i64 {\n  return v0 % 8\n}\n"
      "function pass(v0: i64) -> i64 {\n  return v0\n}\n";
  EXPECT_EQ(verdict_of(with_body(wrap, "b0[call wrap(v0*3)]")), "");
  EXPECT_EQ(verdict_of(with_body(wrap, "b0[call pass(v0)]")),
            "loop kernel '': store 0: offset in [-9223372036854775808, 9223372036854775807] of "
            "buffer b0, which has 8 elements");
  const auto plain = results_of(with_body("", "b0[v0*3 % 8]"));
  EXPECT_EQ(results_of(with_body(wrap, "b0[call wrap(v0*3)]")), plain);
}

TEST(Call, ParserRefuses) {
  const std::string f = "function f(v0: f32) -> f32 {\n  return v0\n}\n";
  EXPECT_EQ(parse_error(with_body("", "call f(b0[v0])")),
            "5:15: no function 'f' of these types so far");
  EXPECT_EQ(parse_error(with_body(f, "call f(b0[v0], b0[v0])")),
            "8:15: no function 'f' of these types so far");
  EXPECT_EQ(parse_error(with_body(f, "call f(f64(b0[v0]))")),
            "8:15: no function 'f' of these types so far");
  EXPECT_EQ(parse_error(with_body(f + f, "b0[v0]")), "7:10: the function is there already");
  // A function is not there before its definition ends.
  EXPECT_EQ(
      parse_error(with_body("function f(v0: f32) -> f32 {\n return call f(v0)\n}\n", "0:f32")),
      "5:14: no function 'f' of these types so far");
  EXPECT_EQ(parse_error(with_body("function f(v0: f32) -> f64 {\n return v0\n}\n", "0:f32")),
            "5:9: a value of another type than its function's");
  EXPECT_EQ(parse_error(with_body("function f(v0: f32) -> f32 {\n return b0[0]\n}\n", "0:f32")),
            "5:9: expected a buffer, found 'b0'");
  EXPECT_EQ(parse_error(with_body("function f(v0: f32) -> f32 {\n return v1\n}\n", "0:f32")),
            "5:9: expected a variable, found 'v1'");
}

// What is walked by recursion has a bound.
TEST(Call, ParserRefusesLongChains) {
  std::string deep = "function f(v0: f32) -> f32 {\n  let t0: f32 = v0\n";
  std::string many;
  for (int i = 1; i <= 5000; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = std::to_string(i - 1);
    deep += "  let t" + n + ": f32 = sqrt(t" + before + ")\n";
    many += "function f" + n + "(v0: f32) -> f32 {\n  return " +
            (i == 1 ? "v0" : "call f" + before + "(v0)") + "\n}\n";
  }
  deep += "  return t5000\n}\n";
  EXPECT_EQ(parse_error(with_body(deep, "call f(b0[v0])")), "4:10: a definition that is too long");
  EXPECT_EQ(parse_error(with_body(many, "call f5000(b0[v0])")), "1540:10: more than 512 functions");
}

TEST(Call, VerifierRefusesWrongArguments) {
  Kernel k = kernel_of([](Expr x) { return exp(x); });
  const auto refused = [&](ExprId a, ExprId b) {
    Kernel bad = k;
    bad.stores[0].value = bad.pool.call(0, a, b);
    return verify_kernel(bad).message();
  };
  const ExprId x = k.pool.node(k.stores[0].value).a;
  EXPECT_EQ(refused(x, kNone), "");
  EXPECT_EQ(refused(x, x),
            "loop kernel '': store 0: a call of exp with another number of arguments");
  EXPECT_EQ(refused(k.pool.integer(1), kNone),
            "loop kernel '': store 0: a call of exp with an argument of type i64");
}

// A range is believed, so nobody but the elementary functions may claim one.
TEST(Call, VerifierRefusesARangeThatNothingProves) {
  const std::string f = "function f(v0: f32) -> f32 in [0, 1] {\n  return v0\n}\n";
  EXPECT_EQ(verdict_of(with_body(f, "call f(b0[v0])")),
            "loop kernel '': function f: a range that nothing proves: only elementary functions "
            "have one");
  const std::string exp = "function exp(v0: f32) -> f32 in [0, inf] {\n  return v0\n}\n";
  EXPECT_NE(verdict_of(with_body(exp, "call exp(b0[v0])")), "");
}

TEST(Call, VerifierRefusesTwoDefinitionsOfOneName) {
  Kernel k = kernel_of([](Expr x) { return exp(x); });
  Definition d;
  d.name = "exp";
  d.params = {d.pool.new_var("x", DType::kF32, kResult)};
  d.value = d.pool.var(d.params[0]);
  const uint32_t other = k.pool.function(make_function(std::move(d)));
  EXPECT_EQ(other, 1u);
  k.stores[0].value = k.pool.call(other, k.stores[0].value);
  EXPECT_EQ(verify_kernel(k).message(),
            "loop kernel '': function exp: two definitions for the same types");
}

// Each function calls the one before twice, so that the last one stands for 2^40 operations.
TEST(Call, VerifierRefusesWhatGrowsWithoutBound) {
  std::string functions = "function f0(v0: f32) -> f32 {\n  return v0 * v0\n}\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string inner = "call f" + std::to_string(i - 1);
    functions += "function f" + std::to_string(i) + "(v0: f32) -> f32 {\n  return " + inner +
                 "(v0) + " + inner + "(v0 + 1:f32)\n}\n";
  }
  const std::string text = with_body(functions, "call f40(b0[v0])");
  EXPECT_EQ(verdict_of(text), "loop kernel '': kernel: calls of more than 4194304 operations");
  auto kernel = parse_kernel(text);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(eval::Interpreter::create(*kernel).ok());
}

TEST(Call, OnlyTheDefinitionMakesAFunctionElementary) {
  auto kernel = parse_kernel(print(kernel_of([](Expr x) { return exp(x); })));
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(is_elementary(*kernel->pool.functions()[0]));
  EXPECT_EQ(kernel->pool.functions()[0], elementary_function("exp", DType::kF32));
  auto other = parse_kernel(
      with_body("function exp(v0: f32) -> f32 {\n  return v0\n}\n", "call exp(b0[v0])"));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(is_elementary(*other->pool.functions()[0]));
}

// Calls around calls, and operations around those.
TEST(Call, AKernelWithoutCallsHasTheSameValuesAndNone) {
  const Kernel kernel = kernel_of([](Expr x) { return tanh(exp(x)) + exp(x) * x; });
  const Kernel written = without_calls(kernel);
  EXPECT_EQ(print(written).find("call"), std::string::npos) << print(written);
  EXPECT_TRUE(verify_kernel(written).ok());
  EXPECT_NE(print(kernel).find("call"), std::string::npos);
}

// Results lie in the range that the definition gives, for arguments of all magnitudes.
template <class T, class Bits>
void check_range(const CheckedFunction& f, Bits step) {
  const auto function = elementary_function(f.name, dtype_of<T>());
  ASSERT_NE(function, nullptr) << f.name;
  Compiled<T> compiled(f.build);
  T in[Tape::kBatch];
  T out[Tape::kBatch];
  Bits bits = 0;
  for (int batch = 0; batch < 2000; ++batch) {
    for (T& x : in) std::memcpy(&x, &(bits += step), sizeof x);
    compiled.run(in, out);
    for (size_t i = 0; i < Tape::kBatch; ++i) {
      const auto y = static_cast<double>(out[i]);
      ASSERT_TRUE(y != y || (function->lo <= y && y <= function->hi))
          << f.name << "(" << in[i] << ") = " << y;
    }
  }
}

TEST(Call, RangesHold) {
  for (const CheckedFunction& f : unary_functions()) {
    check_range<float, uint32_t>(f, 8387);
    check_range<double, uint64_t>(f, 0x9E3779B97F4A7Cull * 257);
  }
}

}  // namespace
}  // namespace pyc::loop

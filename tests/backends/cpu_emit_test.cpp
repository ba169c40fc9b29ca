// Every operation and conversion of Loop IR on every type, generated code against the interpreter.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "backends/cpu_emit_support.h"
#include "loop/functions.h"
#include "loop/parse.h"

namespace pyc::cpu_test {
namespace {

using loop::Op;

std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int i = 0; i < kDTypeCount; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

class EmitTypes : public ::testing::TestWithParam<DType> {};

std::string type_name(const ::testing::TestParamInfo<DType>& info) {
  return std::string(dtype_name(info.param));
}

// All pairs of edge values through all binary and unary operations, in one kernel.
TEST_P(EmitTypes, OperationsOnEdgeValues) {
  const DType t = GetParam();
  if (compute_dtype(t) != t) GTEST_SKIP() << "no arithmetic on " << dtype_name(t);
  const std::vector<Word> edges = edge_values(t);
  const auto n = static_cast<int64_t>(edges.size() * edges.size());
  Builder b;
  const uint32_t x = b.in(t, n);
  const uint32_t y = b.in(t, n);
  const VarId i = b.loop_var(n);
  const Expr ix = b.var(i);
  const Expr vx = b.load(x, ix);
  const Expr vy = b.load(y, ix);
  std::vector<loop::Stmt> body;
  const auto put = [&](Expr v) { body.push_back(b.store(b.out(v.dtype(), n), ix, v)); };
  std::vector<Op> binary = {Op::kMin, Op::kMax, Op::kEq, Op::kNe, Op::kLt, Op::kLe};
  std::vector<Op> unary;
  const bool fp = is_float(t);
  if (t != DType::kBool) {
    binary.insert(binary.end(), {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv});
    unary.insert(unary.end(), {Op::kNeg, Op::kAbs});
  }
  if (fp) {
    unary.insert(unary.end(), {Op::kSqrt, Op::kFloor, Op::kCeil, Op::kTrunc, Op::kRoundEven});
  } else {
    binary.insert(binary.end(), {Op::kAnd, Op::kOr, Op::kXor});
    unary.push_back(Op::kNot);
  }
  if (is_int(t)) binary.insert(binary.end(), {Op::kRem, Op::kShl, Op::kShr});
  for (const Op op : binary) put(make(op, vx, vy));
  for (const Op op : unary) put(make(op, vx));
  if (fp) {
    put(fma(vx, vy, vx));
    put(fma(vx, vy, make(Op::kNeg, vy)));
    for (const double c : {0.0, -0.0, 6.0}) {
      put(max(vx, like(vx, c)));
      put(min(like(vx, c), vy));
    }
  }
  put(select(lt(vx, vy), vy, vx));
  b.k.body.push_back(b.loop(i, true, body));
  Harness h(b.k);
  for (size_t a = 0; a < edges.size(); ++a) {
    for (size_t c = 0; c < edges.size(); ++c) {
      const size_t at = a * edges.size() + c;
      const auto size = static_cast<size_t>(dtype_size(t));
      store_word(h.data<uint8_t>(x).data() + at * size, t, edges[a]);
      store_word(h.data<uint8_t>(y).data() + at * size, t, edges[c]);
    }
  }
  h.check();
}

// rows · n quotients with one divisor per row.
struct Quotients {
  Builder b;
  uint32_t x = 0;
  uint32_t y = 0;

  Quotients(int64_t rows, int64_t n) : x(b.in(DType::kF32, rows * n)), y(b.in(DType::kF32, rows)) {
    const VarId p = b.parallel(rows);
    const VarId i = b.loop_var(n);
    const Expr at = b.var(p) * b.idx(n) + b.var(i);
    const Expr quotient = b.load(x, at) / b.load(y, b.var(p));
    b.k.body.push_back(b.loop(i, true, {b.store(b.out(DType::kF32, rows * n), at, quotient)}));
  }
};

// Rows of quotients with one divisor each: edge values, any bits, and quotients that lie halfway
// between two subnormal numbers.
TEST(EmitDivision, ByTheDivisorOfARow) {
  const std::vector<Word> edges = edge_values(DType::kF32);
  const auto rows = static_cast<int64_t>(edges.size()) + 400;
  const int64_t n = 259;
  Quotients q(rows, n);
  const auto [x, y] = std::pair(q.x, q.y);
  Harness h(q.b.k);
  std::mt19937_64 random(11);
  for (int64_t r = 0; r < rows; ++r) {
    const bool edge = r < static_cast<int64_t>(edges.size());
    const auto divisor = static_cast<uint32_t>(edge ? edges[static_cast<size_t>(r)] : random());
    h.data<uint32_t>(y)[static_cast<size_t>(r)] = divisor;
    const double c = word_to_double(divisor, DType::kF32);
    for (int64_t k = 0; k < n; ++k) {
      Word w = random();
      if (k < static_cast<int64_t>(edges.size())) w = edges[static_cast<size_t>(k)];
      // An odd multiple of half the smallest number, times the divisor.
      const double halfway = static_cast<double>(2 * (random() % 4096) + 1) * 0x1p-150;
      if (k % 4 == 3) w = word_from_double(c * halfway, DType::kF32);
      h.data<uint32_t>(x)[static_cast<size_t>(r * n + k)] = static_cast<uint32_t>(w);
    }
  }
  // Divisors with few bits, so that the product with them is exact.
  for (int64_t r = static_cast<int64_t>(edges.size()); r < rows; r += 2) {
    const double c =
        std::ldexp(static_cast<double>(2 * (random() % 512) + 1), static_cast<int>(random() % 40));
    h.data<float>(y)[static_cast<size_t>(r)] = static_cast<float>(c);
    for (int64_t k = 3; k < n; k += 4) {
      const double halfway = static_cast<double>(2 * (random() % 4096) + 1) * 0x1p-150;
      h.data<float>(x)[static_cast<size_t>(r * n + k)] = static_cast<float>(c * halfway);
    }
  }
  h.check();
}

using UnaryFunction = Expr (*)(Expr);

// A kernel that stores f of each of the n elements of its first buffer.
Kernel function_kernel(UnaryFunction f, int64_t n) {
  Builder b;
  const uint32_t x = b.in(DType::kF32, n);
  const VarId i = b.loop_var(n);
  const Expr y = f(b.load(x, b.var(i)));
  b.k.body.push_back(b.loop(i, true, {b.store(b.out(DType::kF32, n), b.var(i), y)}));
  return std::move(b.k);
}

void check_function(UnaryFunction f, uint32_t step) {
  const int64_t n = (int64_t{1} << 32) / step;
  const Kernel kernel = function_kernel(f, n);
  Harness h(kernel);
  for (int64_t k = 0; k < n; ++k) {
    h.data<uint32_t>(0)[static_cast<size_t>(k)] = static_cast<uint32_t>(k) * step;
  }
  h.check();
}

// Every 1021st f32 through exp, whose scaling is one instruction on some machines.
TEST(EmitFunctions, ExpOfAllMagnitudes) {
  check_function(loop::exp, 1021);
  check_function([](Expr x) { return loop::exp_nonpositive(-abs(x)); }, 1021);
}

// Every 16381st f32 through functions that exp is part of, and through short powers.
TEST(EmitFunctions, FunctionsOfAllMagnitudes) {
  const UnaryFunction functions[] = {
      loop::sigmoid,
      loop::tanh,
      loop::erf,
      loop::log,
      [](Expr x) { return loop::pow(x, like(x, 3.0)); },
      [](Expr x) { return loop::pow(x, like(x, 0.5)); },
      [](Expr x) { return loop::pow(x, like(x, -0.5)); },
  };
  for (const UnaryFunction f : functions) check_function(f, 16381);
}

// A bound that the range of a function never reaches is left out; one that it reaches is not.
TEST(EmitFunctions, BoundsBeyondTheRange) {
  const UnaryFunction functions[] = {
      [](Expr x) { return min(loop::tanh(x), like(x, 1.0)); },
      [](Expr x) { return max(min(loop::sigmoid(x), like(x, 0.999)), like(x, 0.0)); },
      [](Expr x) { return max(-loop::exp(x), like(x, 0.0)); },
      [](Expr x) { return loop::exp(-loop::exp(x)); },
  };
  for (const UnaryFunction f : functions) check_function(f, 16381);
  const auto bounded = [](double bound) {
    Builder b;
    const uint32_t x = b.in(DType::kF32, 64);
    const VarId i = b.loop_var(64);
    const Expr y = loop::cos(b.load(x, b.var(i)));
    b.k.body.push_back(
        b.loop(i, true, {b.store(b.out(DType::kF32, 64), b.var(i), min(y, like(y, bound)))}));
    const auto text = cpu::emit_llvm_text(b.k, cpu::CodegenTarget::x86_avx512());
    return text.ok() ? text->size() : 0;
  };
  EXPECT_EQ(bounded(1.5), bounded(1.0));
  EXPECT_LT(bounded(1.0), bounded(0.5));
}

// Parts of one row each, one behind the other, and nothing behind the last: one load a vector, from
// where it is. Rows that end within a vector, and a part that is zeros.
TEST(EmitLoads, PartsAreChosenByTheirPlace) {
  constexpr std::string_view kText = R"(kernel {
buffer b0: f32[37] read
buffer b1: f32[37] read
buffer b2: f32[111] write
parallel v0 < 3
let t0: bool = v0 < 1
let t1: bool = (1 <= v0) & (v0 < 2)
loop v1 < 37 vector {
  b2[v0*37 + v1] = select(t0, b0[v1] if t0 else 0:f32, select(t1, b1[v1] if t1 else 0:f32, 0:f32))
}
}
)";
  const auto kernel = loop::parse_kernel(kText);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  Harness(*kernel).check();
  const auto text = cpu::emit_llvm_text(*kernel, cpu::CodegenTarget::aarch64_neon());
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  for (size_t at = 0; (at = text->find("= select", at)) != std::string::npos; ++at) {
    const std::string line = text->substr(at, text->find('\n', at) - at);
    EXPECT_EQ(line.find("x float>"), std::string::npos) << line;
  }
}

// Every second element comes with vectors, the last of which ends where the buffer does.
TEST(EmitLoads, EverySecondElement) {
  for (const char* dtype : {"f32", "i8", "f64"}) {
    const std::string text = fmt::format(R"(kernel {{
buffer b0: {0}[255] read
buffer b1: {0}[384] write
parallel v0 < 3
let t0: bool = v0 < 2
loop v1 < 128 vector {{
  b1[v0*128 + v1] = b0[v1*2] if t0 else 1:{0}
}}
}}
)",
                                         dtype);
    const auto kernel = loop::parse_kernel(text);
    ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
    Harness(*kernel).check();
    const auto code = cpu::emit_llvm_text(*kernel, cpu::CodegenTarget::aarch64_neon());
    ASSERT_TRUE(code.ok()) << code.status().to_string();
    EXPECT_EQ(code->find("load " + std::string(dtype == std::string_view("i8") ? "i8" : "float")),
              std::string::npos);
  }
}

// exp is found by its name, alone and as a part of sigmoid, also where a kernel was read from text.
TEST(EmitFunctions, ExpIsRecognised) {
  const auto text_of_kernel = [](const Kernel& kernel) {
    const auto text = cpu::emit_llvm_text(kernel, cpu::CodegenTarget::x86_avx512());
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return text.ok() ? *text : std::string();
  };
  const auto text_of = [&](UnaryFunction f) { return text_of_kernel(function_kernel(f, 64)); };
  constexpr const char* kScaled = "scalef";
  const std::string written = loop::print(function_kernel(loop::exp, 64));
  auto read = loop::parse_kernel(written);
  ASSERT_TRUE(read.ok());
  EXPECT_NE(text_of_kernel(*read).find(kScaled), std::string::npos);
  // A definition of that name that differs in one constant is not that function.
  std::string other = written;
  other.replace(other.find(" in [0, inf]"), 12, "");
  other.replace(other.find("-104"), 4, "-103");
  read = loop::parse_kernel(other);
  ASSERT_TRUE(read.ok()) << other;
  EXPECT_EQ(text_of_kernel(*read).find(kScaled), std::string::npos);
  EXPECT_NE(text_of(loop::exp).find(kScaled), std::string::npos);
  EXPECT_NE(text_of(loop::exp_nonpositive).find(kScaled), std::string::npos);
  EXPECT_NE(text_of(loop::sigmoid).find(kScaled), std::string::npos);
  const auto almost = [](Expr x) { return loop::exp(x) * 1.5; };
  EXPECT_NE(text_of(almost).find(kScaled), std::string::npos);
  EXPECT_EQ(text_of(loop::tanh).find(kScaled), std::string::npos);
}

// Moderate operands alone, which take the short way: random ones, and quotients as near to a point
// halfway between two f32 as any: x = c·m rounded to 24 bits for odd m of 25 bits.
TEST(EmitDivision, OfModerateOperands) {
  const int64_t rows = 600;
  const int64_t n = 320;
  Quotients q(rows, n);
  const auto [x, y] = std::pair(q.x, q.y);
  Harness h(q.b.k);
  std::mt19937_64 random(12);
  for (int64_t r = 0; r < rows; ++r) {
    uint64_t mantissa = (uint64_t{1} << 23) + random() % (uint64_t{1} << 23);
    if (r % 8 == 0) mantissa = (uint64_t{1} << 24) - 1 - static_cast<uint64_t>(r / 8 % 4);
    if (r % 8 == 1) mantissa = (uint64_t{1} << 23) + static_cast<uint64_t>(r / 8 % 4);
    const double c =
        std::ldexp(static_cast<double>(mantissa), static_cast<int>(random() % 50) - 48);
    h.data<float>(y)[static_cast<size_t>(r)] = static_cast<float>(r % 3 == 0 ? -c : c);
    for (int64_t k = 0; k < n; ++k) {
      const double m =
          static_cast<double>((uint64_t{1} << 24) + 2 * (random() % (uint64_t{1} << 23)) + 1);
      const double near = std::ldexp(c * m, static_cast<int>(random() % 40) - 40);
      const double any = std::ldexp(static_cast<double>(random() % (uint64_t{1} << 24) + 1),
                                    static_cast<int>(random() % 60) - 50);
      h.data<float>(x)[static_cast<size_t>(r * n + k)] =
          static_cast<float>(k % 2 == 0 ? near : any);
    }
  }
  h.check();
}

// Every value of the 8- and 16-bit types, edge and random values of the others, into every type.
TEST_P(EmitTypes, Conversions) {
  const DType t = GetParam();
  const std::vector<Word> edges = edge_values(t);
  const int64_t n = 65536 + 5;
  Builder b;
  const uint32_t x = b.in(t, n);
  const VarId i = b.loop_var(n);
  const Expr v = b.load(x, b.var(i));
  std::vector<loop::Stmt> body;
  for (const DType to : all_types()) {
    body.push_back(b.store(b.out(to, n), b.var(i), convert(v, to)));
    if (dtype_bits(to) == dtype_bits(t) && to != DType::kBool && t != DType::kBool) {
      body.push_back(b.store(b.out(to, n), b.var(i), bitcast(v, to)));
    }
  }
  b.k.body.push_back(b.loop(i, true, body));
  Harness h(b.k);
  std::mt19937_64 random(7);
  uint8_t* p = h.data<uint8_t>(x).data();
  for (int64_t at = 0; at < n; ++at) {
    Word w = random();
    if (at < 65536 && dtype_size(t) <= 2) w = static_cast<Word>(at);
    if (at < static_cast<int64_t>(edges.size()) && dtype_size(t) > 2)
      w = edges[static_cast<size_t>(at)];
    if (t == DType::kBool) w &= 1;
    // Half of the wide floats near the ranges of the narrow ones.
    if (is_float(t) && dtype_size(t) > 2 && at >= 100 && at % 2 == 0) {
      const double scale = std::ldexp(1.0, static_cast<int>(random() % 90) - 60);
      w = word_from_double((static_cast<double>(random() % 4096) + 0.5) * scale, t);
    }
    store_word(p + at * dtype_size(t), t, w);
  }
  h.check();
}

INSTANTIATE_TEST_SUITE_P(All, EmitTypes, ::testing::ValuesIn(all_types()), type_name);

// Halves between neighbours of the narrow types, and the doubles around them: rounding twice
// would show.
TEST(Emit, ConversionsRoundOnce) {
  for (const DType t : all_types()) {
    if (!is_narrow_float(t)) continue;
    const int64_t codes = dtype_bits(t) == 4 ? 7 : dtype_bits(t) == 8 ? 126 : 32000;
    const int64_t n = codes * 3;
    Builder b;
    const uint32_t x = b.in(DType::kF64, n);
    const VarId i = b.loop_var(n);
    b.k.body.push_back(
        b.loop(i, true, {b.store(b.out(t, n), b.var(i), convert(b.load(x, b.var(i)), t))}));
    Harness h(b.k);
    const std::span<double> in = h.data<double>(x);
    for (int64_t c = 0; c < codes; ++c) {
      const double mid =
          (word_to_double(static_cast<Word>(c), t) + word_to_double(static_cast<Word>(c + 1), t)) /
          2;
      in[static_cast<size_t>(c * 3)] = mid;
      in[static_cast<size_t>(c * 3 + 1)] = std::nextafter(mid, 1e300);
      in[static_cast<size_t>(c * 3 + 2)] = -std::nextafter(mid, -1e300);
    }
    h.check();
  }
}

TEST(Emit, IndexArithmetic) {
  const int64_t n = 1003;
  Builder b;
  const VarId i = b.loop_var(n);
  const Expr x = b.var(i);
  std::vector<loop::Stmt> body;
  const auto put = [&](Expr v) { body.push_back(b.store(b.out(v.dtype(), n), x, v)); };
  const Expr below = x - b.idx(500);
  for (const int64_t d : {3, 7, 8, 64, 1000}) {
    put(floor_div(x, b.idx(d)));
    put(floor_mod(x, b.idx(d)));
    put(floor_div(below, b.idx(d)));
    put(floor_mod(below, b.idx(d)));
    put(convert(floor_mod(x, b.idx(d)), DType::kF32));
    put(lt(floor_mod(below, b.idx(d)), floor_div(x, b.idx(2))));
  }
  put(convert(x * b.idx(3) - b.idx(7), DType::kF64));
  put(min(x, max(below, b.idx(10))) * b.idx(5000000000));
  b.k.body.push_back(b.loop(i, true, body));
  Harness(b.k).check();
}

TEST(Emit, Tables) {
  const int64_t n = 300;
  Builder b;
  const uint32_t x = b.in(DType::kI32, n);
  const VarId i = b.loop_var(n);
  const uint32_t floats =
      b.pool.table(DType::kF32, {0x3F800000, 0x40000000, 0x40400000, 0x40800000});
  const uint32_t bools = b.pool.table(DType::kBool, {1, 0, 0, 1});
  const Expr at = convert(b.load(x, b.var(i)) & constant_int(b.pool, DType::kI32, 3), DType::kI64);
  b.k.body.push_back(
      b.loop(i, true,
             {b.store(b.out(DType::kF32, n), b.var(i), table_load(b.pool, floats, at)),
              b.store(b.out(DType::kBool, n), b.var(i),
                      table_load(b.pool, bools, floor_mod(b.var(i), b.idx(4))))}));
  Harness(b.k).check();
}

TEST(Emit, ForeignObjects) {
  Builder b;
  const uint32_t x = b.in(DType::kF32, 100);
  const uint32_t y = b.out(DType::kF32, 100);
  const VarId i = b.loop_var(100);
  b.k.body.push_back(b.loop(i, true, {b.store(y, b.var(i), sqrt(b.load(x, b.var(i))))}));
  for (const cpu::CodegenTarget& target :
       {cpu::CodegenTarget::aarch64_neon(), cpu::CodegenTarget::x86_avx2(),
        cpu::CodegenTarget::x86_avx512()}) {
    auto object = cpu::emit_object(b.k, target);
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    auto missing = runtime::undefined_symbols(*object);
    ASSERT_TRUE(missing.ok());
    EXPECT_TRUE(missing->empty());
    auto module = runtime::CodeModule::load(*object);
    const bool native = target.is_aarch64() == cpu::CodegenTarget::host().is_aarch64();
    EXPECT_EQ(module.ok(), native);
    if (!native) {
      EXPECT_EQ(module.status().code(), Code::kInvalidArgument);
    }
    auto again = cpu::emit_object(b.k, target);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*object, *again);
  }
}

TEST(Emit, RefusesTargets) {
  Builder b;
  cpu::CodegenTarget t = cpu::CodegenTarget::x86_avx2();
  t.cpu = "x86-64";
  EXPECT_EQ(cpu::emit_object(b.k, t).status().code(), Code::kUnsupported);
  t = cpu::CodegenTarget::x86_avx2();
  t.cpu = "no-such-cpu";
  EXPECT_EQ(cpu::emit_object(b.k, t).status().code(), Code::kUnsupported);
  t = cpu::CodegenTarget::x86_avx2();
  t.triple = "riscv64-unknown-linux-gnu";
  EXPECT_EQ(cpu::emit_object(b.k, t).status().code(), Code::kUnsupported);
  t = cpu::CodegenTarget::host();
  t.lanes = 5;
  EXPECT_EQ(cpu::emit_object(b.k, t).status().code(), Code::kInvalidArgument);
}

TEST(Emit, DumpsText) {
  Builder b;
  const uint32_t x = b.in(DType::kF32, 64);
  const uint32_t y = b.out(DType::kF32, 64);
  const VarId i = b.loop_var(64);
  b.k.body.push_back(b.loop(i, true, {b.store(y, b.var(i), b.load(x, b.var(i)) + 1.0)}));
  auto text = cpu::emit_llvm_text(b.k, cpu::CodegenTarget::x86_avx512());
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("x float>"), std::string::npos);
  auto assembly = cpu::emit_assembly(b.k, cpu::CodegenTarget::x86_avx512());
  ASSERT_TRUE(assembly.ok());
  EXPECT_NE(assembly->find("zmm"), std::string::npos);
}

}  // namespace
}  // namespace pyc::cpu_test

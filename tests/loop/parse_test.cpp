#include "loop/parse.h"

#include <gtest/gtest.h>

#include <random>

#include "eval/interpreter.h"
#include "loop/builder.h"
#include "loop/functions.h"

namespace pyc::loop {
namespace {

// Well-typed kernels with every kind of statement, reduction and operation. Loads are guarded or
// in bounds by construction of their offsets.
class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {
    for (DType t : {DType::kF32, DType::kI32, DType::kU8, DType::kBool, DType::kF64, DType::kI64}) {
      k.buffers.push_back({"x", t, kElements, Access::kRead});
    }
    k.buffers.push_back({"s", DType::kF32, kElements, Access::kScratch});
    k.buffers.push_back({"y", DType::kF32, kElements, Access::kWrite});
    k.buffers.push_back({"z", DType::kI32, kElements, Access::kWrite});
    tables_ = {k.pool.table(DType::kF32, {0x3F800000, 0x7FC01234, 0, 0xBF000000}),
               k.pool.table(DType::kI32, {1, 2, 3})};
    for (int64_t i = pick(0, 2); i > 0; --i) {
      const VarId v = k.pool.new_var("p", DType::kI64, pick(1, 4));
      k.parallel.push_back(v);
      indices_.push_back(k.pool.var(v));
    }
    k.body = body(0);
  }

  static constexpr int64_t kElements = 50;
  Kernel k;

 private:
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }

  std::vector<Stmt> body(int depth) {
    std::vector<Stmt> stmts;
    for (int64_t i = pick(1, 3); i > 0; --i) {
      const int64_t kind = pick(0, depth < 3 ? 5 : 3);
      if (kind == 0) {
        const Expr ok = value(DType::kBool, 2) | constant_int(k.pool, DType::kBool, 1);
        k.checks.push_back({ok.id, static_cast<int32_t>(pick(1, 9))});
        stmts.push_back({StmtKind::kCheck, static_cast<uint32_t>(k.checks.size() - 1)});
      } else if (kind <= 3) {
        const auto buffer = static_cast<uint32_t>(pick(6, 8));
        const ExprId offset = in_bounds(2).id;
        k.stores.push_back({buffer, offset, value(k.buffers[buffer].dtype, 3).id});
        stmts.push_back({StmtKind::kStore, static_cast<uint32_t>(k.stores.size() - 1)});
      } else {
        stmts.push_back({StmtKind::kLoop, make_loop(depth)});
      }
    }
    return stmts;
  }

  uint32_t make_loop(int depth) {
    const size_t number = k.loops.size();
    k.loops.emplace_back();
    Loop l;
    l.extent = pick(0, 5) == 0 ? 0 : pick(1, 6);
    l.var = k.pool.new_var("i", DType::kI64, l.extent);
    if (!k.parallel.empty() && pick(0, 2) == 0) {
      l.chunk_var = k.parallel[0];
      l.chunk = pick(1, 4);
    }
    l.vector = pick(0, 1) == 0;
    const auto outer_indices = indices_;
    const auto outer_results = results_;
    indices_.push_back(k.pool.var(l.var));
    l.body = body(depth + 1);
    for (int64_t i = pick(0, 2); i > 0; --i) l.reductions.push_back(reduction());
    indices_ = outer_indices;
    results_ = outer_results;
    for (const Reduction& r : l.reductions) results_.push_back(k.pool.var(r.result));
    k.loops[number] = l;
    return static_cast<uint32_t>(number);
  }

  Reduction reduction() {
    Reduction r;
    const DType t = pick(0, 1) == 0 ? DType::kF32 : DType::kI32;
    r.value = value(t, 2).id;
    r.result = k.pool.new_var("r", t, kResult);
    if (pick(0, 2) == 0) r.guard = value(DType::kBool, 1).id;
    switch (pick(0, 2)) {
      case 0:
        r.kind = ReduceKind::kChain;
        r.segment = pick(0, 3);
        if (pick(0, 1) == 0) r.value2 = value(t, 1).id;
        break;
      case 1:
        r.op = pick(0, 1) == 0 ? ReduceOp::kSum : ReduceOp::kProd;
        break;
      default:
        r.kind = ReduceKind::kExact;
        r.op = pick(0, 1) == 0 ? ReduceOp::kMax : ReduceOp::kMin;
        break;
    }
    return r;
  }

  Expr number(int64_t v) { return index(k.pool, v); }

  Expr any_index(int depth) {
    if (depth == 0 || pick(0, 4) == 0) {
      if (indices_.empty() || pick(0, 3) == 0) return number(pick(-9, 9));
      return {&k.pool,
              indices_[static_cast<size_t>(pick(0, static_cast<int64_t>(indices_.size()) - 1))]};
    }
    const Expr a = any_index(depth - 1);
    switch (pick(0, 7)) {
      case 0:
        return floor_div(a, number(pick(1, 5)));
      case 1:
        return floor_mod(a, number(pick(1, 5)));
      case 2:
        return a * number(pick(-3, 6));
      case 3:
        return min(a, any_index(depth - 1));
      case 4:
        return a * any_index(depth - 1);
      case 5:
        return a - any_index(depth - 1);
      case 6:
        return Expr{&k.pool, k.pool.load(5, DType::kI64, in_bounds(1).id)};
      default:
        return a + any_index(depth - 1);
    }
  }

  Expr in_bounds(int depth) { return floor_mod(any_index(depth), number(kElements)); }

  Expr load(DType t) {
    uint32_t buffer = 0;
    while (k.buffers[buffer].dtype != t) ++buffer;
    if (t == DType::kF32 && pick(0, 2) == 0) buffer = 6;
    if (pick(0, 2) == 0) {
      const Expr at = any_index(2);
      const Expr inside = le(number(0), at) & lt(at, number(kElements));
      return {&k.pool, k.pool.load(buffer, t, at.id, inside.id, value(t, 1).id)};
    }
    return {&k.pool, k.pool.load(buffer, t, in_bounds(2).id)};
  }

  Expr leaf(DType t) {
    if (pick(0, 3) == 0) return constant(k.pool, t, static_cast<double>(pick(-9, 9)) / 4);
    for (ExprId r : results_) {
      if (k.pool.dtype(r) == t && pick(0, 1) == 0) return {&k.pool, r};
    }
    if (t == DType::kF32 && pick(0, 4) == 0) {
      return table_load(k.pool, tables_[0], floor_mod(any_index(1), number(4)));
    }
    if (t == DType::kI32 && pick(0, 4) == 0) {
      return table_load(k.pool, tables_[1], floor_mod(any_index(1), number(3)));
    }
    return load(t);
  }

  Expr value(DType t, int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf(t);
    constexpr DType kTypes[] = {DType::kF32, DType::kI32, DType::kU8, DType::kF64};
    const DType other = kTypes[pick(0, 3)];
    const Expr a = value(t, depth - 1);
    if (pick(0, 5) == 0) return select(value(DType::kBool, depth - 1), a, value(t, depth - 1));
    if (t == DType::kBool) {
      const Expr x = value(other, depth - 1);
      const Expr y = value(other, depth - 1);
      constexpr Op kOps[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe};
      if (pick(0, 2) == 0) return make(pick(0, 1) == 0 ? Op::kXor : Op::kAnd, a, lt(x, y));
      return pick(0, 4) == 0 ? ~a : make(kOps[pick(0, 3)], x, y);
    }
    if (pick(0, 4) == 0) return convert(value(other, depth - 1), t);
    const Expr b = value(t, depth - 1);
    if (is_float(t)) {
      constexpr Op kUnary[] = {Op::kNeg,   Op::kAbs,  Op::kSqrt,
                               Op::kFloor, Op::kCeil, Op::kRoundEven};
      constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMin, Op::kMax};
      if (pick(0, 3) == 0) return make(kUnary[pick(0, 5)], a);
      if (pick(0, 3) == 0) return fma(a, b, value(t, depth - 1));
      if (t == DType::kF32 && pick(0, 3) == 0) return bitcast(value(DType::kI32, depth - 1), t);
      constexpr Expr (*kFunctions[])(Expr) = {exp, sigmoid, tanh, erf, log, sin};
      if (pick(0, 3) == 0) return pick(0, 2) == 0 ? pow(a, b) : kFunctions[pick(0, 5)](a);
      return make(kBinary[pick(0, 5)], a, b);
    }
    constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kRem, Op::kShl,
                           Op::kShr, Op::kAnd, Op::kOr,  Op::kXor, Op::kMin};
    return pick(0, 6) == 0 ? ~a : make(kOps[pick(0, 10)], a, b);
  }

  std::mt19937 random_;
  std::vector<uint32_t> tables_;
  std::vector<ExprId> indices_;
  std::vector<ExprId> results_;
};

// All that the kernel writes, from fixed inputs.
std::vector<std::vector<std::byte>> results(const Kernel& k) {
  auto made = eval::Interpreter::create(k);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  for (const Buffer& b : k.buffers) {
    memory.emplace_back(static_cast<size_t>(b.elements * dtype_size(b.dtype)));
    for (size_t i = 0; i < memory.back().size() && b.access == Access::kRead; ++i) {
      memory.back()[i] = static_cast<std::byte>(b.dtype == DType::kBool ? i % 2 : i * 37 % 251);
    }
    pointers.push_back(memory.back().data());
  }
  std::vector<std::byte> scratch(static_cast<size_t>(k.scratch_bytes()));
  int32_t fault = 0;
  pyc_kernel_args args{};
  args.buffers = pointers.data();
  args.scratch = scratch.data();
  args.fault = &fault;
  if (made.ok()) (*made)->run(args, 0, k.parallel_size());
  EXPECT_EQ(fault, 0);
  return memory;
}

TEST(Parse, ReadsWhatPrintWrites) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const RandomKernel random(seed);
    const std::string text = print(random.k);
    auto parsed = parse_kernel(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << "\n" << text;
    ASSERT_EQ(print(*parsed), text) << "seed " << seed;
    ASSERT_EQ(results(*parsed), results(random.k)) << "seed " << seed << "\n" << text;
  }
}

TEST(Parse, KeepsConstantsExact) {
  const std::string text = R"(kernel {
buffer b0: f32[9] write
table c0: f64 = [0.1, -0, inf, -inf, bits(0x7ff8000000000001), 5e-324]
table c1: i8 = [-128, 127]
table c2: bool = [0, 1]
b0[0] = bits(0x7fc00001):f32
b0[1] = -inf:f32
b0[2] = 1e-45:f32
b0[3] = f32(18446744073709551615:u64)
b0[4] = f32(-9223372036854775808:i64)
b0[5] = f32(c0[5])
b0[6] = f32(c1[0])
b0[7] = f32(c2[0])
b0[8] = f32(bits(0x7f):f8e4m3fn)
}
)";
  auto parsed = parse_kernel(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  std::string expected = text;
  // Tables are numbered by use, and an i64 has no type behind it.
  expected.replace(expected.find(":i64"), 4, "");
  EXPECT_EQ(print(*parsed), expected);
}

TEST(Parse, NamesOfTheText) {
  auto parsed =
      parse_kernel("kernel {\nbuffer b0: f32[4] write\nparallel v7 < 4\nb0[v7] = 1:f32\n}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->pool.var_info(parsed->parallel[0]).name, "v7");
  EXPECT_EQ(parsed->buffers[0].name, "b0");
}

std::string error_of(const std::string& text) {
  auto parsed = parse_kernel(text);
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), Code::kParseError);
  return parsed.status().message();
}

TEST(Parse, ErrorsSayWhere) {
  const std::string head = "kernel {\nbuffer b0: f32[4] write\n";
  EXPECT_EQ(error_of(""), "1:1: expected 'kernel', found end of text");
  EXPECT_EQ(error_of("kernel {\nbuffer b1: f32[4] read\n}"), "2:8: expected b0, found 'b1'");
  EXPECT_EQ(error_of("kernel {\nbuffer b0: f31[4] read\n}"),
            "2:12: expected an element type, found 'f31'");
  EXPECT_EQ(error_of("kernel {\nbuffer b0: f32[4] owned\n}"),
            "2:19: expected 'read', found 'owned'");
  EXPECT_EQ(error_of(head + "b0[0] = 1:f32"), "3:14: expected a statement, found end of text");
  EXPECT_EQ(error_of(head + "b0[0] = 1:f32\n} x"), "4:3: expected the end of the text, found 'x'");
  EXPECT_EQ(error_of(head + "b0[0] = t3\n}"), "3:9: expected a value, found 't3'");
  EXPECT_EQ(error_of(head + "b0[v3] = 1:f32\n}"), "3:4: expected a variable, found 'v3'");
  EXPECT_EQ(error_of(head + "b0[0] = cosh(1:f32)\n}"), "3:9: unknown function 'cosh'");
  EXPECT_EQ(error_of(head + "b0[0] = 1:f32 + 1\n}"), "3:15: operands of different types");
  EXPECT_EQ(error_of(head + "b0[0] = f32(1 // 0)\n}"),
            "3:15: expected an i64 and a positive constant");
  EXPECT_EQ(error_of(head + "b0[0] = 300:u8\n}"), "3:9: expected a value of type u8");
  EXPECT_EQ(error_of(head + "b0[0] = b0[1:f32]\n}"), "3:12: expected an i64");
  EXPECT_EQ(error_of(head + "b0[0] = bitcast_f64(1:f32)\n}"),
            "3:9: a bitcast between types of different size");
  EXPECT_EQ(error_of(head + "b0[0] = select(1, 2, 3)\n}"), "3:9: operands of different types");
  EXPECT_EQ(error_of(head + "b0[0] = b0[0] if 1 else 2\n}"),
            "3:15: a guarded load needs a bool and a fallback of its type");
  EXPECT_EQ(error_of(head + "let t0: f32 = 1\n}"), "3:15: a value of another type than its let's");
  EXPECT_EQ(error_of(head + "parallel v0 < x\n}"), "3:15: expected a count, found 'x'");
  EXPECT_EQ(error_of(head + "loop v0 < 4 { loop v0 < 4 { } }\n}"),
            "3:20: expected the name of a new variable");
  EXPECT_EQ(error_of(head + "reduce v0: f32 = tree sum(1:f32)\n}"),
            "3:1: expected a statement, found 'reduce'");
  EXPECT_EQ(error_of(head + "loop v0 < 4 { reduce v1: f32 = tree mean(1:f32) }\n}"),
            "3:37: expected the operation of a reduction, found 'mean'");
  EXPECT_EQ(error_of(head + "b0[0] = bits(12):f32\n}"), "3:14: expected a hexadecimal number");
  const std::string deep(2000, '(');
  EXPECT_NE(error_of(head + "b0[0] = " + deep).find("nested too deeply"), std::string::npos);
}

// Damaged text is refused or read, never worse.
TEST(Parse, SurvivesDamage) {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const std::string text = print(RandomKernel(seed).k);
    for (int round = 0; round < 40; ++round) {
      std::string damaged = text;
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged.erase(at, 1 + random() % 5);
          break;
        case 1:
          damaged[at] = "()[]{}:,*/%<>=-+0 9vbtc"[random() % 23];
          break;
        default:
          damaged.resize(at);
          break;
      }
      auto parsed = parse_kernel(damaged);
      EXPECT_TRUE(!parsed.ok() || !print(*parsed).empty());
    }
  }
}

TEST(Parse, CarriedValuesAndOrderedLoops) {
  const std::string text = R"(kernel {
buffer b0: f32[16] read
buffer b1: f32[16] write
parallel v0 < 4
loop v1 < 4 ordered {
  carry v2: f32 = b0[v0]
  carry v3: i64 < 4 = 0
  b1[v0*4 + v3] = b1[v0*4 + v3] + v2
  next v2 = v2 + b0[v1] then v4
  next v3 = min(v3 + 1, 3) then v5
}
b1[v0*4 + v5] = v4
}
)";
  const auto kernel = parse_kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(print(*kernel), text);
  const auto refused = [](const std::string& body) {
    return parse_kernel("kernel {\nbuffer b0: f32[4] read\n" + body + "\n}\n").status().message();
  };
  EXPECT_EQ(refused("loop v0 < 4 {\n carry v1: i64 = 0\n}"),
            "6:1: expected the next value of every carried variable, found '}'");
  EXPECT_EQ(refused("loop v0 < 4 {\n next v0 = v0 then v1\n}"),
            "4:7: expected a carried variable of this loop");
  EXPECT_EQ(refused("loop v0 < 4 {\n carry v1: i64 = 0\n next v1 = v1\n}"),
            "6:1: expected 'then', found '}'");
}

}  // namespace
}  // namespace pyc::loop

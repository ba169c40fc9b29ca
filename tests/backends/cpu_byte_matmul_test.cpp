// Products of bytes against the generic kernel of the same group, with every unit that this machine
// has, bit for bit.

#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/matmul_bytes.h"
#include "backends/cpu_matmul_support.h"
#include "base/target_info.h"
#include "loop/builder.h"
#include "loop/verify.h"
#include "lower/kernel_builder.h"

namespace pyc::cpu {
namespace {

using loop::Expr;
using loop::VarId;

enum class Zero { kNone, kConstant, kAtRun, kPerLine };

struct ByteCase {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  DType a = DType::kU8;
  DType b = DType::kI8;
  Zero a_zero = Zero::kNone;
  Zero b_zero = Zero::kNone;
  int64_t batch = 1;
  bool b_shared = false;
  bool a_constant = false;
  bool b_constant = true;
  bool turned = false;  // columns of A and rows of B lie together
  bool padded = false;  // the first and the last k of A count as its zero point
  bool rescaled = false;
  // Rows of A are windows of a picture of three colours, every second one, k = 9 · width.
  int64_t window = 0;
};

std::string describe_bytes(const ByteCase& c) {
  return testing::PrintToString(std::vector<int64_t>{c.m, c.n, c.k, c.batch}) +
         std::string(dtype_name(c.a)) + std::string(dtype_name(c.b)) + " zeros " +
         std::to_string(static_cast<int>(c.a_zero)) + std::to_string(static_cast<int>(c.b_zero)) +
         " window " + std::to_string(c.window) + " constant " + std::to_string(c.a_constant) +
         std::to_string(c.b_constant) + " turned " + std::to_string(c.turned) + " padded " +
         std::to_string(c.padded);
}

// The group as lowering would make it.
class ByteGroup {
 public:
  explicit ByteGroup(const ByteCase& c) : c_(c), p_(group_.kernel.pool) {}

  lower::Group make() {
    loop::Kernel& kernel = group_.kernel;
    group_.name = kernel.name = "g";
    const VarId batch = variable("b", c_.batch);
    const VarId m = variable("i", c_.m);
    const VarId n = variable("j", c_.n);
    const VarId k = variable("k", c_.k);
    const VarId result = p_.new_var("r", DType::kI32, loop::kResult);
    if (c_.batch > 1) kernel.parallel.push_back(batch);
    if (c_.m > 1) kernel.parallel.push_back(m);
    Expr a_at = var(batch) * at(c_.m * c_.k) +
                (c_.turned ? var(k) * at(c_.m) + var(m) : var(m) * at(c_.k) + var(k));
    const Expr b_at = (c_.b_shared ? at(0) : var(batch) * at(c_.k * c_.n)) +
                      (c_.turned ? var(n) * at(c_.k) + var(k) : var(k) * at(c_.n) + var(n));
    Expr inside;
    if (c_.padded) inside = loop::lt(at(0), var(k)) & loop::lt(var(k), at(c_.k - 1));
    if (c_.window > 0) {
      // Three lines of a picture as wide as all windows are, but for the last column.
      const int64_t line = 2 * c_.m + c_.window - 4;
      const Expr x =
          var(m) * at(2) + loop::floor_mod(loop::floor_div(var(k), at(3)), at(c_.window)) - at(1);
      const Expr y = loop::floor_div(var(k), at(3 * c_.window));
      a_at = (y * at(line) + x) * at(3) + loop::floor_mod(var(k), at(3));
      inside = loop::le(at(0), x) & loop::lt(x, at(line));
    }
    const Expr a = factor(c_.a, c_.batch * c_.m * c_.k, a_at, c_.a_zero, m, c_.m, inside);
    const Expr b =
        factor(c_.b, (c_.b_shared ? 1 : c_.batch) * c_.k * c_.n, b_at, c_.b_zero, n, c_.n, {});
    kernel.loops.push_back({.var = n, .extent = c_.n, .vector = true});
    kernel.loops.push_back({.var = k, .extent = c_.k});
    kernel.loops[1].reductions.push_back({.kind = loop::ReduceKind::kChain,
                                          .value = a.id,
                                          .value2 = b.id,
                                          .guard = inside.id,
                                          .segment = 256,
                                          .result = result});
    kernel.loops[0].body = {{loop::StmtKind::kLoop, 1}, {loop::StmtKind::kStore, 0}};
    Expr y = var(result);
    if (c_.rescaled) {
      y = loop::convert(y, DType::kF32) * 0x1.8p-9 + load(DType::kF32, c_.n, var(n));
      y = loop::convert(
          loop::min(loop::max(loop::round_even(y), loop::like(y, 0.0)), loop::like(y, 255.0)),
          DType::kU8);
    }
    const uint32_t out = buffer(y.dtype(), c_.batch * c_.m * c_.n, loop::Access::kWrite);
    const Expr place = (var(batch) * at(c_.m) + var(m)) * at(c_.n) + var(n);
    kernel.stores.push_back({out, place.id, y.id});
    kernel.body = {{loop::StmtKind::kLoop, 0}};
    group_.buffer_values.resize(kernel.buffers.size());
    std::iota(group_.buffer_values.begin(), group_.buffer_values.end(), 0);
    std::string why_not;
    group_.contraction = lower::find_contraction(
        kernel, [](uint32_t) { return false; }, &why_not);
    EXPECT_TRUE(group_.contraction.has_value()) << why_not;
    const Status ok = loop::verify_kernel(kernel);
    EXPECT_TRUE(ok.ok()) << ok.to_string();
    return std::move(group_);
  }

 private:
  Expr at(int64_t v) { return loop::index(p_, v); }
  Expr var(VarId v) { return p_.var_info(v).extent == 1 ? at(0) : Expr{&p_, p_.var(v)}; }
  VarId variable(const char* name, int64_t extent) { return p_.new_var(name, DType::kI64, extent); }
  uint32_t buffer(DType t, int64_t elements, loop::Access access) {
    group_.kernel.buffers.push_back({"x", t, elements, access});
    return static_cast<uint32_t>(group_.kernel.buffers.size() - 1);
  }
  Expr load(DType t, int64_t elements, Expr offset) {
    return {&p_, p_.load(buffer(t, elements, loop::Access::kRead), t, offset.id)};
  }
  Expr factor(DType t, int64_t elements, Expr offset, Zero zero, VarId line, int64_t lines,
              Expr inside) {
    const uint32_t bytes = buffer(t, elements, loop::Access::kRead);
    const Expr x = inside.valid()
                       ? Expr{&p_, p_.load(bytes, t, offset.id, inside.id, p_.constant(t, 0))}
                       : Expr{&p_, p_.load(bytes, t, offset.id)};
    const Expr wide = loop::convert(x, DType::kI32);
    switch (zero) {
      case Zero::kNone:
        return wide;
      case Zero::kConstant:
        return wide -
               loop::convert(loop::constant_int(p_, t, t == DType::kU8 ? 200 : -77), DType::kI32);
      case Zero::kAtRun:
        return wide - loop::convert(load(t, 1, at(0)), DType::kI32);
      case Zero::kPerLine:
        return wide - loop::convert(load(t, lines, var(line)), DType::kI32);
    }
    return wide;
  }

  const ByteCase& c_;
  lower::Group group_;
  loop::Pool& p_;
};

std::vector<ByteUnit> units_here() {
  const TargetInfo host = host_target();
  std::vector<ByteUnit> out;
  if (host.has_i8mm) out.push_back(ByteUnit::kMmla);
  if (host.has_dotprod) out.push_back(ByteUnit::kDot);
  if (host.has_amx_int8) out.push_back(ByteUnit::kAmx);
  if (host.has_avx512_vnni) out.push_back(ByteUnit::kVnni);
  if (host.has_avx2) out.push_back(ByteUnit::kWords);
  return out;
}

void check_bytes(const ByteCase& c, std::initializer_list<int> threads = {1}, uint32_t seed = 1) {
  SCOPED_TRACE(describe_bytes(c));
  const lower::Group group = ByteGroup(c).make();
  ASSERT_TRUE(group.contraction.has_value());
  const Buffers wanted(group.kernel, seed);
  interpret(group.kernel, wanted);
  for (const ByteUnit unit : units_here()) {
    CodegenTarget target = CodegenTarget::host();
    target.bytes = unit;
    ASSERT_EQ(matmul_rejected(group, target), "");
    for (const int t : threads) {
      const MatmulPlan plan = plan_matmul(group, {.a = c.a_constant, .b = c.b_constant}, target, t);
      SCOPED_TRACE(plan.name + " threads " + std::to_string(t));
      ASSERT_EQ(plan.unit, unit);
      const Buffers found(group.kernel, seed);
      run_compiled(group, plan, target, t, found);
      expect_equal(group.kernel, found, wanted);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

constexpr DType kBytes[] = {DType::kU8, DType::kI8};
constexpr Zero kZeros[] = {Zero::kNone, Zero::kConstant, Zero::kAtRun, Zero::kPerLine};

TEST(CpuByteMatmul, SignsZeroPointsAndConstants) {
  for (const DType a : kBytes) {
    for (const DType b : kBytes) {
      for (const Zero za : kZeros) {
        for (const Zero zb : kZeros) {
          ByteCase c{.m = 5, .n = 11, .k = 21, .a = a, .b = b, .a_zero = za, .b_zero = zb};
          check_bytes(c);
          c.b_constant = false;
          check_bytes(c);
          c.a_constant = true;
          check_bytes(c);
        }
      }
    }
  }
}

TEST(CpuByteMatmul, EveryTileAndRest) {
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}) {
    for (const int64_t n : {2, 7, 8, 13, 16, 40}) {
      check_bytes({.m = m, .n = n, .k = 19, .a_zero = Zero::kAtRun});
      check_bytes({.m = m, .n = n, .k = 19, .b_zero = Zero::kPerLine, .b_constant = false});
    }
  }
}

TEST(CpuByteMatmul, EveryDepth) {
  for (const int64_t k :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 255, 256, 257, 1000}) {
    check_bytes({.m = 9, .n = 17, .k = k, .a_zero = Zero::kAtRun, .b_zero = Zero::kAtRun});
    check_bytes({.m = 6, .n = 9, .k = k, .a_constant = true, .b_constant = false});
    check_bytes({.m = 6, .n = 9, .k = k, .b_constant = false, .turned = true});
  }
}

TEST(CpuByteMatmul, TasksAndBatches) {
  check_bytes({.m = 50, .n = 70, .k = 40, .a_zero = Zero::kAtRun}, {1, 2, 3, 7});
  check_bytes({.m = 20, .n = 300, .k = 40, .a_constant = true, .b_constant = false}, {1, 3});
  for (const bool shared : {false, true}) {
    for (const bool constant : {false, true}) {
      check_bytes({.m = 5,
                   .n = 24,
                   .k = 30,
                   .a_zero = Zero::kPerLine,
                   .batch = 3,
                   .b_shared = shared,
                   .b_constant = constant},
                  {1, 4});
    }
  }
}

// What is left out has its zero point in its place, which adds nothing.
TEST(CpuByteMatmul, SkippedTerms) {
  for (const Zero za : {Zero::kNone, Zero::kConstant, Zero::kAtRun}) {
    check_bytes({.m = 9, .n = 12, .k = 37, .a_zero = za, .padded = true});
    check_bytes({.m = 9,
                 .n = 12,
                 .k = 37,
                 .a_zero = za,
                 .b_zero = Zero::kPerLine,
                 .b_constant = false,
                 .padded = true});
  }
}

TEST(CpuByteMatmul, Epilogues) {
  check_bytes({.m = 9, .n = 21, .k = 64, .a_zero = Zero::kAtRun, .rescaled = true}, {2});
  check_bytes({.m = 16, .n = 32, .k = 64, .rescaled = true}, {2});
}

// Windows inside of their picture are copied in runs, those at its edges are not.
TEST(CpuByteMatmul, Windows) {
  for (const int64_t window : {2, 3, 7}) {
    for (const int64_t m : {3, 12, 33}) {
      ByteCase c{.m = m, .n = 24, .k = 9 * window, .a_zero = Zero::kAtRun, .window = window};
      check_bytes(c);
      c.b_zero = Zero::kPerLine;
      c.b_constant = false;
      check_bytes(c);
    }
  }
}

// Rows whose runs end within a step go over the stack, unless they are too long for it.
TEST(CpuByteMatmul, LongRows) {
  const auto on_stack = [](int64_t window) {
    const ByteCase c{.m = 2, .n = 2, .k = 9 * window, .b_constant = false, .window = window};
    check_bytes(c);
    const lower::Group group = ByteGroup(c).make();
    const CodegenTarget target = CodegenTarget::x86_vnni();
    const auto text = emit_matmul_llvm_text(group, plan_matmul(group, {}, target, 1), target);
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return text.ok() && text->find(" x i8], align") != std::string::npos;
  };
  EXPECT_TRUE(on_stack(2001));
  EXPECT_FALSE(on_stack(20001));
}

// Rows that are evaluated once, since B is large.
TEST(CpuByteMatmul, RowsBesideALargeB) {
  const ByteCase c{.m = 71, .n = 610, .k = 700, .a_zero = Zero::kAtRun, .b_zero = Zero::kPerLine};
  check_bytes(c, {1, 3});
  check_bytes({.m = 35, .n = 610, .k = 700, .batch = 2, .b_shared = true, .b_constant = false},
              {1, 3});
  const lower::Group group = ByteGroup(c).make();
  for (CodegenTarget target : {CodegenTarget::x86_amx(), CodegenTarget::x86_vnni()}) {
    MatmulPlan plan = plan_matmul(group, {.b = true}, target, 1);
    EXPECT_EQ(plan.rows, MatmulPlan::Rows::kPackedAtRun);
    EXPECT_GT(plan.n_blocks, 4);
    plan = plan_matmul(group, {.b = true}, target, 1, false);
    EXPECT_EQ(plan.rows, MatmulPlan::Rows::kComputed);
    target.bytes = ByteUnit::kWords;
    EXPECT_EQ(plan_matmul(group, {.b = true}, target, 1).rows, MatmulPlan::Rows::kComputed);
  }
}

// -128 · -128 over so many k leaves i32, and wraps as the reference does.
TEST(CpuByteMatmul, SumsWrap) {
  check_bytes({.m = 2, .n = 3, .k = 140000, .a = DType::kI8}, {1}, 0);
  check_bytes({.m = 2, .n = 3, .k = 300000, .b = DType::kU8, .b_constant = false});
}

TEST(CpuByteMatmul, OnlyDifferencesOfBytes) {
  CodegenTarget target = CodegenTarget::aarch64_neon();
  const lower::Group group = ByteGroup({.m = 4, .n = 8, .k = 8}).make();
  EXPECT_EQ(matmul_rejected(group, target), "no_byte_unit");
  target.bytes = ByteUnit::kDot;
  EXPECT_EQ(matmul_rejected(group, target), "");
  lower::Group other = group;
  other.contraction->b.byte = loop::kNone;
  EXPECT_EQ(matmul_rejected(other, target), "dtype_not_f32");
}

}  // namespace
}  // namespace pyc::cpu

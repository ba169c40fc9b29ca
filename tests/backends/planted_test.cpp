// What the tests rely on to see wrong memory accesses really sees them: a kernel that writes past
// its buffer is refused by the verifier, and where it runs all the same, the guard catches it.

#include <gtest/gtest.h>

#include "backends/cpu/codegen.h"
#include "base/aligned_buffer.h"
#include "eval/interpreter.h"
#include "loop/builder.h"
#include "loop/verify.h"
#include "runtime/code_module.h"

namespace pyc {
namespace {

constexpr int64_t kElements = 64;

// Stores 1.0 to elements `first` … first + 63 of a buffer said to have 64.
loop::Kernel planted(int64_t first) {
  loop::Kernel kernel;
  kernel.buffers.push_back({"out", DType::kF32, kElements, loop::Access::kWrite});
  loop::Loop l;
  l.var = kernel.pool.new_var("i", DType::kI64, kElements);
  l.extent = kElements;
  l.vector = true;
  const loop::Expr i{&kernel.pool, kernel.pool.var(l.var)};
  const loop::Expr offset = i + loop::index(kernel.pool, first);
  kernel.stores.push_back({0, offset.id, loop::constant(kernel.pool, DType::kF32, 1.0).id});
  l.body.push_back({loop::StmtKind::kStore, 0});
  kernel.loops.push_back(l);
  kernel.body.push_back({loop::StmtKind::kLoop, 0});
  return kernel;
}

void run_compiled(const loop::Kernel& kernel, AlignedBuffer& memory) {
  auto object = cpu::emit_object(kernel, cpu::CodegenTarget::host());
  ASSERT_TRUE(object.ok()) << object.status().to_string();
  auto module = runtime::CodeModule::load(*object);
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  void* buffers[] = {memory.data()};
  int32_t fault = 0;
  const pyc_kernel_args args{buffers, nullptr, nullptr, nullptr, &fault, 0, 1};
  (*module)->lookup(cpu::kDefaultSymbol)(&args, 0, 1);
}

TEST(PlantedOutOfBounds, VerifierRefusesIt) {
  EXPECT_TRUE(loop::verify_kernel(planted(0)).ok());
  EXPECT_FALSE(loop::verify_kernel(planted(1)).ok());
  EXPECT_FALSE(loop::verify_kernel(planted(-1)).ok());
}

TEST(PlantedOutOfBounds, InterpreterFaults) {
  const loop::Kernel kernel = planted(1);
  auto interpreter = eval::Interpreter::create(kernel);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().to_string();
  auto memory = AlignedBuffer::create(4 * kElements, AlignedBuffer::Mode::kGuarded);
  void* buffers[] = {memory->data()};
  int32_t fault = 0;
  const pyc_kernel_args args{buffers, nullptr, nullptr, interpreter->get(), &fault, 0, 1};
  eval::run_interpreted(&args, 0, 1);
  EXPECT_EQ(fault, eval::kFaultOutOfBounds);
  EXPECT_TRUE(memory->check_canary());
}

TEST(PlantedOutOfBoundsDeathTest, GeneratedCodeHitsTheGuardPage) {
  auto memory = AlignedBuffer::create(4 * kElements, AlignedBuffer::Mode::kGuarded);
  run_compiled(planted(0), *memory);
  EXPECT_TRUE(memory->check_canary());
  EXPECT_DEATH(run_compiled(planted(1), *memory), "");
}

TEST(PlantedOutOfBounds, CanarySeesWritesBeforeTheStart) {
  auto memory = AlignedBuffer::create(4 * kElements, AlignedBuffer::Mode::kGuarded);
  run_compiled(planted(-1), *memory);
  EXPECT_FALSE(memory->check_canary());
}

}  // namespace
}  // namespace pyc

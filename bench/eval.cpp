// Speed of the reference interpreter, in scalar operations a second on one thread. An operation is
// a load, a store, one arithmetic operation of the kernel or one step of a reduction; index
// arithmetic and loop control are not counted.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "eval/interpreter.h"
#include "loop/builder.h"

namespace {

using namespace pyc;
using namespace pyc::loop;

Kernel matmul(int64_t n) {
  Kernel k;
  k.name = "matmul";
  Pool& p = k.pool;
  k.buffers = {{"a", DType::kF32, n * n, Access::kRead},
               {"b", DType::kF32, n * n, Access::kRead},
               {"y", DType::kF32, n * n, Access::kWrite}};
  const VarId row = p.new_var("i", DType::kI64, n);
  const VarId column = p.new_var("j", DType::kI64, n);
  const VarId depth = p.new_var("k", DType::kI64, n);
  const VarId total = p.new_var("total", DType::kF32, kResult);
  const Expr i{&p, p.var(row)};
  const Expr j{&p, p.var(column)};
  const Expr l{&p, p.var(depth)};
  const Expr size = index(p, n);
  k.parallel = {row};
  Loop columns{.var = column, .extent = n, .body = {}, .reductions = {}};
  columns.body = {{StmtKind::kLoop, 1}, {StmtKind::kStore, 0}};
  Loop products{.var = depth, .extent = n, .body = {}, .reductions = {}};
  products.reductions.push_back({.kind = ReduceKind::kChain,
                                 .value = p.load(0, DType::kF32, (i * size + l).id),
                                 .value2 = p.load(1, DType::kF32, (l * size + j).id),
                                 .segment = 256,
                                 .result = total});
  k.loops = {columns, products};
  k.stores.push_back({2, (i * size + j).id, p.var(total)});
  k.body = {{StmtKind::kLoop, 0}};
  return k;
}

constexpr int kChainLength = 16;

Kernel elementwise(int64_t n) {
  Kernel k;
  k.name = "elementwise";
  Pool& p = k.pool;
  k.buffers = {{"x", DType::kF32, n, Access::kRead}, {"y", DType::kF32, n, Access::kWrite}};
  const VarId chunk = p.new_var("chunk", DType::kI64, (n + 1023) / 1024);
  const VarId var = p.new_var("i", DType::kI64, n);
  const ExprId i = p.var(var);
  const Expr x{&p, p.load(0, DType::kF32, i)};
  Expr y = x;
  for (int step = 0; step < kChainLength / 4; ++step) {
    y = max(y * x + 0.25, x) - 0.5;
  }
  k.stores.push_back({1, i, y.id});
  k.parallel = {chunk};
  k.loops.push_back({.var = var,
                     .extent = n,
                     .chunk_var = chunk,
                     .chunk = 1024,
                     .vector = true,
                     .body = {{StmtKind::kStore, 0}},
                     .reductions = {}});
  k.body = {{StmtKind::kLoop, 0}};
  return k;
}

// Time this thread was running, so that a busy machine does not show.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void measure(const Kernel& kernel, std::vector<void*> buffers, double operations) {
  auto made = eval::Interpreter::create(kernel);
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().to_string().c_str());
    return;
  }
  int32_t fault = 0;
  pyc_kernel_args args{};
  args.buffers = buffers.data();
  args.fault = &fault;
  args.threads = 1;
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    const double start = thread_seconds();
    (*made)->run(args, 0, kernel.parallel_size());
    best = std::min(best, thread_seconds() - start);
  }
  std::printf(
      "{\"bench\": \"eval\", \"kernel\": \"%s\", \"operations\": %.0f, \"cpu_seconds\": %.6f, "
      "\"operations_per_second\": %.4g, \"fault\": %d}\n",
      kernel.name.c_str(), operations, best, operations / best, fault);
}

}  // namespace

int main() {
  constexpr int64_t kSize = 128;
  std::vector<float> a(kSize * kSize, 0.5F);
  std::vector<float> b(kSize * kSize, 0.25F);
  std::vector<float> y(kSize * kSize);
  constexpr double kPoints = kSize * kSize;
  measure(matmul(kSize), {a.data(), b.data(), y.data()}, kPoints * (3 * kSize + 1));

  constexpr int64_t kElements = 1 << 18;
  std::vector<float> from(kElements, 0.75F);
  std::vector<float> to(kElements);
  measure(elementwise(kElements), {from.data(), to.data()}, kElements * (kChainLength + 2.0));
  return 0;
}

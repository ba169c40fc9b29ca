// Fused softmax, layer norm and a chain of eight elementwise ops against a plain copy of the same
// bytes, all in one run and interleaved. "of copy" is copy time / kernel time: 1.0 means the
// kernel moves its bytes as fast as a copy does. A kernel can be bound by its arithmetic instead:
// the same kernel on one thread over a few rows that stay in the cache shows how long that takes
// alone (shared by the threads), and "of bound" is the longer of the two times / kernel time. "of
// slots" takes for the arithmetic what its Loop IR operations would take if a vector pipe began one
// in every slot: a division or square root is 12, a conversion 4, anything else on elements 1.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/target_info.h"
#include "base/thread_pool.h"
#include "driver/compile.h"
#include "driver/stages.h"
#include "fma_probe.h"
#include "loop/function.h"
#include "session/cache.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc {
namespace {

constexpr int kRounds = 60;
constexpr int kWarmUp = 5;
constexpr int64_t kRows = 4096;
constexpr int64_t kCachedRows = 8;  // 32 KiB in, 32 KiB out
constexpr int64_t kLargeBytes = int64_t{256} << 20;

struct Workload {
  const char* name;
  const char* body;
};

constexpr Workload kWorkloads[] = {
    {"softmax_4096x1024", R"(
  %y = softmax(%x) {axis=-1}
})"},
    {"layer_norm_4096x1024", R"(
  %g = const f32[1024] random(seed=1, lo=0.5, hi=1.5)
  %b = const f32[1024] random(seed=2, lo=-0.5, hi=0.5)
  %y = layer_norm(%x, %g, %b)
})"},
    {"gelu_4096x1024", R"(
  %y = gelu(%x)
})"},
    {"chain_of_8_4096x1024", R"(
  %c = const f32[1] splat(0.5)
  %d = const f32[1] splat(1.25)
  %a = mul(%x, %d)
  %e = add(%a, %c)
  %f = relu(%e)
  %g = mul(%f, %x)
  %h = sub(%g, %c)
  %i = abs(%h)
  %j = sqrt(%i)
  %y = add(%j, %x)
})"},
};

struct CopyJob {
  const std::byte* from;
  std::byte* to;
};

// Copies in parts of 4 KiB, cut among the threads like a kernel's rows.
constexpr int64_t kPart = 4096;

void copy_parts(void* ctx, int, int64_t begin, int64_t end) {
  const auto* job = static_cast<const CopyJob*>(ctx);
  std::memcpy(job->to + begin * kPart, job->from + begin * kPart,
              static_cast<size_t>((end - begin) * kPart));
}

double timed_ms(const std::function<void()>& f) {
  const int64_t start = now_ns();
  f();
  return static_cast<double>(now_ns() - start) / 1e6;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// A workload over some rows, compiled, with its data.
struct Job {
  std::unique_ptr<runtime::Model> model;
  std::unique_ptr<tooling::SeededRun> data;

  static Result<Job> create(const Workload& w, int64_t rows, int threads) {
    driver::CompileOptions options;
    options.threads = threads;
    PYC_ASSIGN(
        auto graph,
        driver::parse_model(fmt::format("graph @g(%x: f32[{},1024]) -> (%y) {{", rows) + w.body));
    Job job;
    PYC_ASSIGN(job.model, session::compile(std::move(graph), options));
    PYC_ASSIGN(auto data, tooling::SeededRun::create(*job.model, 1));
    job.data = std::make_unique<tooling::SeededRun>(std::move(data));
    return job;
  }

  void run() const {
    const Status status = model->run(data->inputs(), data->outputs());
    if (!status.ok()) fmt::print("{}\n", status.to_string());
  }
};

double slots_of(const loop::ExprNode& n) {
  if (n.op < loop::Op::kAdd || n.dtype == DType::kI64) return 0.0;
  if (n.op == loop::Op::kDiv || n.op == loop::Op::kSqrt) return 12.0;
  return n.op == loop::Op::kConvert ? 4.0 : 1.0;
}

// Of all elements. What does not depend on the loop's variable is computed once a row.
double slots_of(const loop::Kernel& given) {
  const loop::Kernel kernel = loop::without_calls(given);
  double all = 0.0;
  for (const loop::Loop& l : kernel.loops) {
    std::vector<bool> used(kernel.pool.size(), false);
    const auto use = [&](loop::ExprId id) {
      if (id != loop::kNone) used[id] = true;
    };
    double each = 0.0;
    for (const loop::Stmt& s : l.body) {
      if (s.kind == loop::StmtKind::kStore) use(kernel.stores[s.index].value);
    }
    for (const loop::Reduction& r : l.reductions) {
      use(r.value);
      use(r.value2);
      use(r.guard);
      each += 1.0;
    }
    for (auto id = static_cast<loop::ExprId>(kernel.pool.size()); id-- > 0;) {
      if (!used[id] || !loop::depends_on(kernel.pool, id, l.var)) continue;
      const loop::ExprNode& n = kernel.pool.node(id);
      for (const loop::ExprId operand : {n.a, n.b, n.c}) use(operand);
      each += slots_of(n);
    }
    all += each * static_cast<double>(l.chunk_var == loop::kNone ? l.extent : l.chunk);
  }
  return all * static_cast<double>(kernel.parallel_size());
}

Result<double> slots_of(const Workload& w, int threads) {
  driver::CompileOptions options;
  options.threads = threads;
  PYC_ASSIGN(auto graph, driver::parse_model(
                             fmt::format("graph @g(%x: f32[{},1024]) -> (%y) {{", kRows) + w.body));
  PYC_ASSIGN(auto verified, ir::verify_graph(std::move(graph)));
  PYC_ASSIGN(const driver::Stages stages, driver::stages(std::move(verified), options));
  double all = 0.0;
  for (const lower::Group& group : stages.lowered.groups) all += slots_of(group.kernel);
  return all;
}

struct Row {
  double kernel_ms, copy_ms, cached_ms, large_gbs, of_copy, of_large, of_bound, of_slots;
};

Result<Row> measure(const Workload& w, int threads, CopyJob large_job, double slots_per_ms) {
  PYC_ASSIGN(const double slots, slots_of(w, threads));
  const double slots_ms = slots / (slots_per_ms * threads);
  PYC_ASSIGN(const Job job, Job::create(w, kRows, threads));
  PYC_ASSIGN(const Job cached_job, Job::create(w, kCachedRows, 1));
  PYC_ASSIGN(auto pool, session::shared_pool(threads));
  const int64_t bytes = job.data->inputs()[0].bytes;
  PYC_ASSIGN(auto target, AlignedBuffer::create(static_cast<size_t>(bytes)));
  CopyJob copy_job{static_cast<const std::byte*>(job.data->inputs()[0].data), target.data()};
  std::vector<double> kernel, copy, cached, large, of_copy, of_large, of_bound, of_slots;
  for (int i = 0; i < kRounds; ++i) {
    const double copied =
        timed_ms([&] { pool->parallel_for(bytes / kPart, copy_parts, &copy_job); });
    const double ran = timed_ms([&] { job.run(); });
    const double in_cache = timed_ms([&] {
      for (int64_t k = 0; k < kRows / kCachedRows / threads; ++k) cached_job.run();
    });
    if (i < kWarmUp) continue;
    kernel.push_back(ran);
    copy.push_back(copied);
    cached.push_back(in_cache);
    of_copy.push_back(copied / ran);
    of_bound.push_back(std::max(copied, in_cache) / ran);
    of_slots.push_back(std::max(copied, slots_ms) / ran);
    if (i % 6 != 0) continue;
    const double whole =
        timed_ms([&] { pool->parallel_for(kLargeBytes / kPart, copy_parts, &large_job); });
    large.push_back(2.0 * kLargeBytes / whole / 1e6);
    of_large.push_back(whole * static_cast<double>(bytes) / kLargeBytes / ran);
  }
  return Row{median(kernel),  median(copy),     median(cached),   median(large),
             median(of_copy), median(of_large), median(of_bound), median(of_slots)};
}

void print(const Workload& w, int threads, const Row& r) {
  const double copy_gbs = 2.0 * kRows * 4096 / r.copy_ms / 1e6;
  fmt::print("{:22} {:7} {:10.3f} {:10.3f} {:10.3f} {:10.1f} {:8.1f}% {:8.1f}% {:8.1f}% {:8.1f}%\n",
             w.name, threads, r.kernel_ms, r.copy_ms, r.cached_ms, r.large_gbs, 100.0 * r.of_copy,
             100.0 * r.of_large, 100.0 * r.of_bound, 100.0 * r.of_slots);
  fmt::print(
      "{{\"bench\": \"{}\", \"threads\": {}, \"kernel_ms\": {:.4f}, \"copy_gbs\": {:.2f}, "
      "\"in_cache_ms\": {:.4f}, \"large_copy_gbs\": {:.2f}, \"of_copy\": {:.4f}, "
      "\"of_large_copy\": {:.4f}, \"of_bound\": {:.4f}, \"of_slots\": {:.4f}, \"arch\": \"{}\"}}\n",
      w.name, threads, r.kernel_ms, copy_gbs, r.cached_ms, r.large_gbs, r.of_copy, r.of_large,
      r.of_bound, r.of_slots, host_target().arch);
}

Status run() {
  PYC_ASSIGN(auto from, AlignedBuffer::create(kLargeBytes));
  PYC_ASSIGN(auto to, AlignedBuffer::create(kLargeBytes));
  std::memset(from.data(), 1, kLargeBytes);
  std::memset(to.data(), 1, kLargeBytes);
  fmt::print("{:22} {:>7} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9}\n", "workload",
             "threads", "kernel ms", "copy ms", "cached ms", "large GB/s", "of copy", "of large",
             "of bound", "of slots");
  // An fma is two operations in each lane; a slot is one lane here.
  const double slots_per_ms = bench::FmaProbe().rate(200) / 2e3;
  for (const int threads : {1, 2}) {
    for (const Workload& w : kWorkloads) {
      PYC_ASSIGN(const Row row, measure(w, threads, {from.data(), to.data()}, slots_per_ms));
      print(w, threads, row);
    }
  }
  return {};
}

}  // namespace
}  // namespace pyc

int main() {
  const pyc::Status status = pyc::run();
  if (!status.ok()) fmt::print(stderr, "{}\n", status.to_string());
  return status.ok() ? 0 : 1;
}

// Fused softmax, layer norm and a chain of eight elementwise ops against a plain copy of the same
// bytes, all in one run and interleaved. The figure is copy time / kernel time: 1.0 means the
// kernel moves its bytes as fast as a copy does.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/target_info.h"
#include "base/thread_pool.h"
#include "driver/cache.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"

namespace pyc {
namespace {

constexpr int kRounds = 60;
constexpr int64_t kLargeBytes = int64_t{256} << 20;

struct Workload {
  const char* name;
  const char* text;
};

constexpr Workload kWorkloads[] = {
    {"softmax_4096x1024", R"(graph @g(%x: f32[4096,1024]) -> (%y) {
  %y = softmax(%x) {axis=-1}
})"},
    {"layer_norm_4096x1024", R"(graph @g(%x: f32[4096,1024]) -> (%y) {
  %g = const f32[1024] random(seed=1, lo=0.5, hi=1.5)
  %b = const f32[1024] random(seed=2, lo=-0.5, hi=0.5)
  %y = layer_norm(%x, %g, %b)
})"},
    {"chain_of_8_4096x1024", R"(graph @g(%x: f32[4096,1024]) -> (%y) {
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

int64_t timed(const std::function<void()>& f) {
  const int64_t start = now_ns();
  f();
  return now_ns() - start;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

int run() {
  const TargetInfo host = host_target();
  fmt::print("{:24} {:>7} {:>10} {:>12} {:>12} {:>9} {:>9}\n", "workload", "threads", "kernel ms",
             "copy GB/s", "large GB/s", "of copy", "of large");
  auto from = AlignedBuffer::create(kLargeBytes);
  auto to = AlignedBuffer::create(kLargeBytes);
  if (!from.ok() || !to.ok()) return 1;
  std::memset(from->data(), 1, kLargeBytes);
  std::memset(to->data(), 1, kLargeBytes);
  CopyJob large_job{from->data(), to->data()};
  for (int threads : {1, 2}) {
    for (const Workload& w : kWorkloads) {
      driver::CompileOptions options;
      options.threads = threads;
      auto graph = driver::parse_model(w.text);
      auto model = graph.ok() ? driver::compile(std::move(*graph), options) : graph.status();
      if (!model.ok()) {
        fmt::print("{}: {}\n", w.name, model.status().to_string());
        return 1;
      }
      auto data = driver::SeededRun::create(**model, 1);
      auto pool = driver::shared_pool(threads);
      const int64_t bytes = data->inputs()[0].bytes;
      auto target = AlignedBuffer::create(static_cast<size_t>(bytes));
      CopyJob job{static_cast<const std::byte*>(data->inputs()[0].data), target->data()};
      std::vector<double> ratios;
      std::vector<double> kernel_ms;
      std::vector<double> copy_ms;
      std::vector<double> large_ratios;
      std::vector<double> large_gbs;
      for (int i = 0; i < kRounds; ++i) {
        const int64_t copy = timed([&] { (*pool)->parallel_for(bytes / kPart, copy_parts, &job); });
        const int64_t kernel = timed([&] {
          const Status s = (*model)->run(data->inputs(), data->outputs());
          if (!s.ok()) fmt::print("{}\n", s.to_string());
        });
        const int64_t large =
            i % 6 == 5
                ? timed([&] { (*pool)->parallel_for(kLargeBytes / kPart, copy_parts, &large_job); })
                : 0;
        if (i < 5) continue;  // warm-up
        if (large > 0) {
          const double scaled =
              static_cast<double>(large) * static_cast<double>(bytes) / kLargeBytes;
          large_ratios.push_back(scaled / static_cast<double>(kernel));
          large_gbs.push_back(2.0 * kLargeBytes / static_cast<double>(large));
        }
        ratios.push_back(static_cast<double>(copy) / static_cast<double>(kernel));
        kernel_ms.push_back(static_cast<double>(kernel) / 1e6);
        copy_ms.push_back(static_cast<double>(copy) / 1e6);
      }
      const double copy_gbs = 2.0 * static_cast<double>(bytes) / median(copy_ms) / 1e6;
      fmt::print("{:24} {:7} {:10.3f} {:12.1f} {:12.1f} {:8.1f}% {:8.1f}%\n", w.name, threads,
                 median(kernel_ms), copy_gbs, median(large_gbs), 100.0 * median(ratios),
                 100.0 * median(large_ratios));
      fmt::print(
          "{{\"bench\": \"{}\", \"threads\": {}, \"kernel_ms\": {:.4f}, \"copy_gbs\": {:.2f}, "
          "\"large_copy_gbs\": {:.2f}, \"of_copy\": {:.4f}, \"of_large_copy\": {:.4f}, "
          "\"arch\": \"{}\", \"rounds\": {}}}\n",
          w.name, threads, median(kernel_ms), copy_gbs, median(large_gbs), median(ratios),
          median(large_ratios), host.arch, ratios.size());
    }
  }
  return 0;
}

}  // namespace
}  // namespace pyc

int main() { return pyc::run(); }

// What the machine gives right now: multiply-adds in registers, and a copy of memory beyond the
// caches. The rates are compared with others of the same run only.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Vector = float __attribute__((vector_size(16)));

constexpr size_t kAccumulators = 16;  // enough in flight for four pipes of latency four
constexpr int64_t kFmaSteps = 2'000'000;
constexpr size_t kCopyBytes = size_t{64} << 20;

// Runs `work(i)` on so many threads, begun together, and returns the seconds from that beginning to
// the last end.
template <typename Work>
double timed(int threads, const Work& work) {
  std::atomic<int> waiting{threads};
  std::vector<Clock::time_point> begins(static_cast<size_t>(threads));
  std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
  const auto body = [&](int i) {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) {
    }
    begins[static_cast<size_t>(i)] = Clock::now();
    work(i);
    ends[static_cast<size_t>(i)] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& thread : others) thread.join();
  Clock::time_point begin = begins[0];
  Clock::time_point end = ends[0];
  for (const Clock::time_point& t : begins) begin = t < begin ? t : begin;
  for (const Clock::time_point& t : ends) end = t > end ? t : end;
  return std::chrono::duration<double>(end - begin).count();
}

// Keeps the compiler from taking a product out of a loop.
void forget(Vector& value) {
#if defined(__aarch64__)
  asm volatile("" : "+w"(value));
#else
  asm volatile("" : "+x"(value));
#endif
}

// Every index is a constant, so that the sums live in registers.
template <size_t... I>
float multiply_adds(std::index_sequence<I...> /*indices*/) {
  Vector sums[] = {(Vector{} + static_cast<float>(I))...};
  Vector factor = Vector{} + 0.5F;
  const Vector addend = Vector{} + 0x1p-20F;
  for (int64_t step = 0; step < kFmaSteps; ++step) {
    forget(factor);
    ((sums[I] = factor * addend + sums[I]), ...);
  }
  Vector total{};
  ((total += sums[I]), ...);
  return total[0];
}

struct Copy {
  std::vector<char> from = std::vector<char>(kCopyBytes, 1);
  std::vector<char> to = std::vector<char>(kCopyBytes, 2);
};

}  // namespace

extern "C" {

// Multiply-adds per second of all threads together, both operations counted.
__attribute__((visibility("default"))) double pyc_probe_fma(int32_t threads) {
  std::vector<float> kept(static_cast<size_t>(threads));
  const double seconds = timed(threads, [&](int i) {
    kept[static_cast<size_t>(i)] = multiply_adds(std::make_index_sequence<kAccumulators>{});
  });
  volatile float sink = kept[0];
  (void)sink;
  return 2.0 * 4 * static_cast<double>(kAccumulators * kFmaSteps) * threads / seconds;
}

// Bytes per second read and written by all threads together.
__attribute__((visibility("default"))) double pyc_probe_copy(int32_t threads) {
  static std::vector<Copy> copies;  // called by one thread of the harness
  if (copies.size() < static_cast<size_t>(threads)) copies.resize(static_cast<size_t>(threads));
  const double seconds = timed(threads, [&](int i) {
    Copy& copy = copies[static_cast<size_t>(i)];
    std::memcpy(copy.to.data(), copy.from.data(), kCopyBytes);
  });
  return 2.0 * static_cast<double>(kCopyBytes) * threads / seconds;
}
}

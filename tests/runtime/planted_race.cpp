// A race on purpose: two pool threads write one variable. Built for the thread sanitizer only,
// which must report it; a test runs this program and looks for the report.

#include <atomic>

#include "base/thread_pool.h"

int main() {
  struct Shared {
    std::atomic<int> begun = 0;
    int64_t value = 0;
  };
  auto pool = pyc::ThreadPool::create(2);
  if (!pool.ok()) return 1;
  for (int round = 0; round < 100; ++round) {
    Shared shared;
    (*pool)->parallel_for(
        1000,
        [](void* ctx, int, int64_t begin, int64_t end) {
          auto* shared = static_cast<Shared*>(ctx);
          // Waits for the other part, so that no thread runs both, and orders nothing.
          shared->begun.fetch_add(1, std::memory_order_relaxed);
          while (shared->begun.load(std::memory_order_relaxed) < 2) {
          }
          for (int64_t i = begin; i < end; ++i) shared->value += i;
        },
        &shared);
  }
  return 0;
}

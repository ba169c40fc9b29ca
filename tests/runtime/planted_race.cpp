// A race on purpose: two pool threads write one variable. Built for the thread sanitizer only,
// which must report it; a test runs this program and looks for the report.

#include "base/thread_pool.h"

int main() {
  auto pool = pyc::ThreadPool::create(2);
  if (!pool.ok()) return 1;
  int64_t shared = 0;
  for (int round = 0; round < 100; ++round) {
    (*pool)->parallel_for(
        1000,
        [](void* ctx, int, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) *static_cast<int64_t*>(ctx) += i;
        },
        &shared);
  }
  return 0;
}

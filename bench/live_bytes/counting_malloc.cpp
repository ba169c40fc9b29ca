// libpyc_bench_malloc.so: put before a program by LD_PRELOAD, it counts the bytes that malloc and
// its relatives have out, whoever asks, and the most there were since counting_begin. Bytes are
// those the allocator handed out (malloc_usable_size). glibc only.

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);
}

namespace {

std::atomic<int64_t> live{0};
std::atomic<int64_t> most{0};

int64_t size_of(void* memory) {
  return memory == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(memory));
}

void count(int64_t bytes) {
  const int64_t now = live.fetch_add(bytes) + bytes;
  int64_t before = most.load();
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

void* counted(void* memory) {
  count(size_of(memory));
  return memory;
}

}  // namespace

extern "C" {

// The bytes that are out now; the most since is counted from here.
__attribute__((visibility("default"))) int64_t counting_begin() {
  const int64_t now = live.load();
  most.store(now);
  return now;
}
__attribute__((visibility("default"))) int64_t counting_most() { return most.load(); }
__attribute__((visibility("default"))) int64_t counting_live() { return live.load(); }

void* malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes)); }
void* memalign(size_t alignment, size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
// While it copies, both are there.
void* realloc(void* old, size_t bytes) {
  const int64_t before = size_of(old);
  void* const memory = __libc_realloc(old, bytes);
  if (memory != nullptr || bytes == 0) {
    if (memory == old) {
      count(size_of(memory) - before);
    } else {
      count(size_of(memory));
      count(-before);
    }
  }
  return memory;
}
void free(void* memory) {
  count(-size_of(memory));
  __libc_free(memory);
}
}

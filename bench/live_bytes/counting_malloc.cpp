// libpyc_bench_malloc.so: put before a program by LD_PRELOAD, it counts the bytes that malloc and
// its relatives have out, whoever asks, and the most there were since counting_begin. Bytes are
// those asked for: what the allocator adds depends on where it takes a block from (a page for each
// that it maps by itself, next to nothing for one between others). glibc only.

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Stands at the end of each block. One without it is not of this library: ld.so's first ones.
struct Trailer {
  size_t asked;
  size_t check;
};
constexpr size_t kCheck = 0x70796362656e6368;

size_t usable(void* memory) {
  static auto* const real =
      reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return memory == nullptr ? 0 : real(memory);
}

std::byte* end_of(void* memory, size_t whole) {
  return static_cast<std::byte*>(memory) + whole - sizeof(Trailer);
}

int64_t size_of(void* memory) {
  const size_t whole = usable(memory);
  Trailer t{};
  if (whole >= sizeof t) std::memcpy(&t, end_of(memory, whole), sizeof t);
  return static_cast<int64_t>((t.asked ^ kCheck) == t.check ? t.asked : whole);
}

// What is asked of glibc for a block of `bytes`; one that is too large stays so.
size_t with_trailer(size_t bytes) {
  return bytes > SIZE_MAX - sizeof(Trailer) ? bytes : bytes + sizeof(Trailer);
}

void* marked(void* memory, size_t asked) {
  const Trailer t{asked, asked ^ kCheck};
  if (memory != nullptr) std::memcpy(end_of(memory, usable(memory)), &t, sizeof t);
  return memory;
}

void count(int64_t bytes) {
  const int64_t now = live.fetch_add(bytes) + bytes;
  int64_t before = most.load();
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

void* counted(void* memory, size_t asked) {
  if (memory != nullptr) count(static_cast<int64_t>(asked));
  return marked(memory, asked);
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

void* malloc(size_t bytes) { return counted(__libc_malloc(with_trailer(bytes)), bytes); }
void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) all = SIZE_MAX;
  return counted(__libc_calloc(1, with_trailer(all)), all);
}
void* memalign(size_t alignment, size_t bytes) {
  return counted(__libc_memalign(alignment, with_trailer(bytes)), bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
size_t malloc_usable_size(void* memory) { return static_cast<size_t>(size_of(memory)); }
// While it copies, both are there.
void* realloc(void* old, size_t bytes) {
  if (old != nullptr && bytes == 0) {
    count(-size_of(old));
    return __libc_realloc(old, 0);
  }
  const int64_t before = size_of(old);
  void* const memory = __libc_realloc(old, with_trailer(bytes));
  if (memory == nullptr) return nullptr;
  const auto asked = static_cast<int64_t>(bytes);
  if (memory == old) {
    count(asked - before);
  } else {
    count(asked);
    count(-before);
  }
  return marked(memory, bytes);
}
void free(void* memory) {
  count(-size_of(memory));
  __libc_free(memory);
}
}

#include "base/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/allocation_meter.h"

namespace pyc {
namespace {

std::atomic<uint64_t> allocations{0};
thread_local int64_t of_thread = 0;
std::atomic<int64_t> live{0};
std::atomic<int64_t> most{0};

void count(int64_t bytes) {
  of_thread += bytes;
  const int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t before = most.load(std::memory_order_relaxed);
  while (now > before && !most.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

constexpr size_t round_up(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// `usable` bytes, a multiple of the page size, followed by a page that faults. Null on failure.
std::byte* map_with_guard(size_t usable) {
  const size_t page = page_size();
  void* base =
      mmap(nullptr, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  std::byte* start = static_cast<std::byte*>(base);
  if (mprotect(start + usable, page, PROT_NONE) == 0) return start;
  munmap(base, usable + page);
  return nullptr;
}

// Memory of several megabytes is read much faster from large pages: weights that no cache holds at
// up to twice the rate in a virtual machine, where each page is looked up twice (decision 0091).
constexpr size_t kLargePage = size_t{2} << 20;

// `bytes` bytes, or null. The system is asked for large pages where a whole one fits: a buffer that
// is used as a whole takes no more memory than with small ones.
std::byte* allocate(size_t bytes) {
  const bool is_large = bytes >= kLargePage;
  void* made = nullptr;
  if (posix_memalign(&made, is_large ? kLargePage : AlignedBuffer::kAlignment, bytes) != 0) {
    return nullptr;
  }
#ifdef MADV_HUGEPAGE
  // Refused where the system has none: nothing else depends on it.
  if (is_large) madvise(made, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(made);
}

bool all_canary(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == AlignedBuffer::kCanary; });
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::create(size_t bytes, Mode mode) {
  // Leaves room for rounding up and the guard page.
  constexpr size_t kMaxBytes = std::numeric_limits<ptrdiff_t>::max() / 2;
  AlignedBuffer buffer;
  if (bytes <= kMaxBytes) {
    const size_t capacity = handed_out(bytes);
    if (mode == Mode::kPlain) {
      buffer.data_ = allocate(capacity);
    } else {
      buffer.map_size_ = round_up(capacity, page_size());
      buffer.map_ = map_with_guard(buffer.map_size_);
      if (buffer.map_ != nullptr) {
        buffer.data_ = buffer.map_ + (buffer.map_size_ - capacity);
        std::fill_n(buffer.map_, buffer.map_size_, kCanary);
      }
    }
  }
  if (buffer.data_ == nullptr) {
    return Status(Code::kOutOfMemory, fmt::format("no memory for a buffer of {} bytes", bytes));
  }
  buffer.size_ = bytes;
  allocations.fetch_add(1, std::memory_order_relaxed);
  count(static_cast<int64_t>(handed_out(bytes)));
  return buffer;
}

int64_t allocated_by_thread() { return of_thread; }
int64_t allocated_now() { return live.load(std::memory_order_relaxed); }
int64_t take_allocated_peak() { return most.exchange(allocated_now(), std::memory_order_relaxed); }

uint64_t AlignedBuffer::allocation_count() { return allocations.load(std::memory_order_relaxed); }

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  live.fetch_sub(static_cast<int64_t>(handed_out(size_)), std::memory_order_relaxed);
  if (map_ != nullptr) {
    munmap(map_, map_size_ + page_size());
  } else {
    std::free(data_);
  }
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      map_(std::exchange(other.map_, nullptr)),
      map_size_(std::exchange(other.map_size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  AlignedBuffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(map_, taken.map_);
  std::swap(map_size_, taken.map_size_);
  return *this;
}

bool AlignedBuffer::check_canary() const {
  if (map_ == nullptr) return true;
  return all_canary(map_, data_) && all_canary(data_ + size_, map_ + map_size_);
}

}  // namespace pyc

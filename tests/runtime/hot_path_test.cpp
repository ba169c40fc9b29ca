// Counts every allocation of this program, to prove that a run makes none.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/aligned_buffer.h"
#include "programs.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

// Sanitizers bring operators of their own, which cannot be replaced: there nothing is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PYC_COUNT_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PYC_COUNT_NEW 0
#endif
#endif
#ifndef PYC_COUNT_NEW
#define PYC_COUNT_NEW 1
#endif

#if PYC_COUNT_NEW
namespace {

void* counted(size_t bytes, size_t alignment = alignof(std::max_align_t)) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* counted_or_throw(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
  void* memory = counted(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// A function of its own, or g++ takes the inlined free for a mismatch.
[[gnu::noinline]] void give_back(void* p) noexcept { std::free(p); }

}  // namespace

void* operator new(size_t n) { return counted_or_throw(n); }
void* operator new[](size_t n) { return counted_or_throw(n); }
void* operator new(size_t n, std::align_val_t a) { return counted_or_throw(n, size_t(a)); }
void* operator new[](size_t n, std::align_val_t a) { return counted_or_throw(n, size_t(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
void operator delete[](void* p, size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_back(p); }
#endif

namespace pyc::runtime {
namespace {

TEST(HotPath, TheCounterCounts) {
  if (PYC_COUNT_NEW == 0) GTEST_SKIP() << "sanitizers have their own operator new";
  const int64_t before = allocations;
  ::operator delete(::operator new(1));
  EXPECT_EQ(allocations, before + 1);
}

TEST(HotPath, RunsAllocateNothing) {
  for (const auto& [threads, traced] : {std::pair(1, false), {4, false}, {1, true}, {4, true}}) {
    const RunContract contract{.trace = traced ? std::make_shared<TraceLog>() : nullptr};
    const std::unique_ptr<Model> model =
        make_model(make_two_step_program(), make_pool(threads), {}, nullptr, contract);
    Tensors t;
    bool ok = true;
    int64_t reported = 0;
    // The very first run too: its memory was made with the model.
    const int64_t heap_before = allocations;
    const uint64_t buffers_before = AlignedBuffer::allocation_count();
    for (int i = 0; i < 100; ++i) {
      RunStats stats;
      ok = ok && model->run(t.inputs, t.outputs, &stats).ok();
      reported += stats.allocations;
    }
    const int64_t heap_after = allocations;
    const uint64_t buffers_after = AlignedBuffer::allocation_count();
    EXPECT_TRUE(ok);
    EXPECT_EQ(heap_after, heap_before);
    EXPECT_EQ(buffers_after, buffers_before);
    EXPECT_EQ(reported, 0);
    EXPECT_EQ(t.wrong(), 0);
    if (traced) {
      const TraceRecord record = contract.trace->record();
      EXPECT_EQ(static_cast<int64_t>(record.runs.size()) + record.runs_passed_over, 100);
      EXPECT_GE(record.runs.size(), 32u);
    }
  }
}

TEST(HotPath, ARefusalCostsLaterRunsNothing) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(2));
  Tensors bad;
  bad.inputs.clear();
  EXPECT_FALSE(model->run(bad.inputs, bad.outputs).ok());
  Tensors t;
  const int64_t before = allocations;
  const bool ok = model->run(t.inputs, t.outputs).ok();
  const int64_t after = allocations;
  EXPECT_TRUE(ok);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace pyc::runtime

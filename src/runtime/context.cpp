#include "runtime/context.h"

#include <utility>

namespace pyc::runtime {
namespace {

constexpr int64_t round_up(int64_t bytes) {
  constexpr auto kUnit = static_cast<int64_t>(AlignedBuffer::kAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// An empty buffer, without an allocation, for 0 bytes.
Result<AlignedBuffer> allocate(int64_t bytes) {
  if (bytes == 0) return AlignedBuffer();
  return AlignedBuffer::create(static_cast<size_t>(bytes));
}

}  // namespace

PointerLayout make_layout(const Program& program) {
  PointerLayout layout;
  for (const Step& step : program.steps) {
    layout.first.push_back(layout.size);
    for (const BufferRef& ref : step.buffers) {
      if (ref.where == Where::kInput) layout.inputs.push_back({layout.size, ref.index});
      if (ref.where == Where::kOutput) layout.outputs.push_back({layout.size, ref.index});
      ++layout.size;
    }
  }
  return layout;
}

Result<std::unique_ptr<RunContext>> RunContext::create(const Program& program,
                                                       const PointerLayout& layout, int threads) {
  auto context = std::make_unique<RunContext>();
  context->scratch_per_thread = round_up(program.scratch_bytes);
  PYC_ASSIGN(context->arena, allocate(round_up(program.arena_bytes)));
  PYC_ASSIGN(context->scratch, allocate(context->scratch_per_thread * threads));
  context->faults.assign(static_cast<size_t>(threads), 0);
  context->pointers.assign(layout.size, nullptr);
  size_t position = 0;
  for (const Step& step : program.steps) {
    for (const BufferRef& ref : step.buffers) {
      void*& pointer = context->pointers[position++];
      if (ref.where == Where::kArena) pointer = context->arena.data() + ref.offset;
      // Kernels never write parameters; the table has one pointer type for all buffers.
      if (ref.where == Where::kParameter) {
        pointer = const_cast<void*>(program.parameters[ref.index].data);
      }
    }
  }
  return context;
}

int64_t RunContext::memory_bytes() const {
  return static_cast<int64_t>(arena.size() + scratch.size());
}

int64_t RunContext::blocks() const {
  constexpr int64_t kTables = 1;
  return kTables + (arena.data() != nullptr ? 1 : 0) + (scratch.data() != nullptr ? 1 : 0);
}

std::byte* RunContext::thread_scratch(int thread) {
  return scratch.data() == nullptr ? nullptr : scratch.data() + scratch_per_thread * thread;
}

Result<RunContext*> ContextPool::acquire(int64_t& allocations) {
  if (RunContext* spare = spare_.exchange(nullptr, std::memory_order_acq_rel)) return spare;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      RunContext* context = free_.back();
      free_.pop_back();
      return context;
    }
  }
  PYC_ASSIGN(std::unique_ptr<RunContext> made, RunContext::create(program_, layout_, threads_));
  allocations += made->blocks();
  RunContext* context = made.get();
  const std::lock_guard lock(mutex_);
  free_.reserve(all_.size() + 1);
  all_.push_back(std::move(made));
  return context;
}

void ContextPool::release(RunContext* context) {
  RunContext* none = nullptr;
  if (spare_.compare_exchange_strong(none, context, std::memory_order_acq_rel)) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(context);
}

int64_t ContextPool::made() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(all_.size());
}

}  // namespace pyc::runtime

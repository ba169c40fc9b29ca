#include "runtime/model.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "base/fp_state.h"
#include "runtime/context.h"
#include "runtime/guards.h"

namespace pyc::runtime {
namespace {

// Fault codes that are no run-time checks of the model.
constexpr int32_t kFaultOutOfBounds = -1;  // an interpreter's
constexpr int32_t kFaultThrew = INT32_MIN;
constexpr int32_t kFaultNoMemory = INT32_MIN + 1;

// One step of one run, as the pool's threads see it.
struct StepCall {
  const Step& step;
  RunContext& context;
  void* const* buffers;
  int threads;

  static void run_part(void* self, int thread, int64_t begin, int64_t end) {
    const StepCall& call = *static_cast<const StepCall*>(self);
    int32_t& fault = call.context.faults[static_cast<size_t>(thread)];
    const pyc_kernel_args args = {
        .buffers = call.buffers,
        .dims = nullptr,
        .scratch = call.context.thread_scratch(thread),
        .self = call.step.self,
        .fault = &fault,
        .thread = thread,
        .threads = call.threads,
    };
    try {
      call.step.fn(&args, begin, end);
    } catch (const std::bad_alloc&) {
      fault = kFaultNoMemory;
    } catch (...) {
      fault = kFaultThrew;
    }
  }
};

Status fault_status(const Step& step, int32_t code) {
  if (code == kFaultOutOfBounds) {
    return {Code::kInternal, fmt::format("step '{}': out of bounds access", step.name)};
  }
  if (code == kFaultNoMemory) {
    return {Code::kOutOfMemory, fmt::format("step '{}': no memory for the kernel", step.name)};
  }
  if (code == kFaultThrew) {
    return {Code::kInternal, fmt::format("step '{}': the kernel threw an exception", step.name)};
  }
  if (code < 1 || static_cast<size_t>(code) > step.faults.size()) {
    return {Code::kInternal, fmt::format("step '{}': unknown fault code {}", step.name, code)};
  }
  return {Code::kRuntimeFailed,
          fmt::format("step '{}': {}", step.name, step.faults[static_cast<size_t>(code) - 1])};
}

// The fault of the lowest thread that has one, or 0; clears all of them.
int32_t take_fault(std::vector<int32_t>& faults) {
  int32_t first = 0;
  for (int32_t& fault : faults) {
    if (fault == 0) continue;
    if (first == 0) first = fault;
    fault = 0;
  }
  return first;
}

// Gives a context back to its pool.
class Lease {
 public:
  Lease(ContextPool& pool, RunContext* context) : pool_(pool), context_(context) {}
  ~Lease() { pool_.release(context_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  RunContext& operator*() const { return *context_; }
  RunContext* operator->() const { return context_; }

 private:
  ContextPool& pool_;
  RunContext* context_;
};

}  // namespace

struct Model::Impl {
  Impl(std::shared_ptr<const Program> p, std::shared_ptr<ThreadPool> threads, DecisionLog decisions,
       MemoryReport report, std::shared_ptr<Clock> c, RunContract terms)
      : program(std::move(p)),
        pool(std::move(threads)),
        log(std::move(decisions)),
        memory(report),
        clock(std::move(c)),
        contract(terms),
        contexts(*program, pool->threads()) {}

  Status make_first_context();
  // One run; `step_ns` is empty or gets the time of each step.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             RunStats& measured, std::span<int64_t> step_ns) noexcept;
  // `staged`: some views are not plain.
  Status execute(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                 bool staged, RunStats& measured, std::span<int64_t> step_ns);
  Status stage(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
               RunContext& context, RunStats& measured);
  Status run_steps(RunContext& context, RunStats& measured, std::span<int64_t> step_ns);
  Status run_step(size_t s, RunContext& context);
  void record_refusal(const Status& status) noexcept;

  const std::shared_ptr<const Program> program;
  const std::shared_ptr<ThreadPool> pool;
  const DecisionLog log;
  MemoryReport memory;
  const std::shared_ptr<Clock> clock;
  const RunContract contract;
  ContextPool contexts;
  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> failed_runs{0};
  std::atomic<int64_t> guard_misses{0};
  std::atomic<int64_t> staging_bytes{0};
  std::atomic<int64_t> compile_ns{0};
  std::atomic<bool> cache_hit{false};
  CompileBreakdown compile;
  mutable std::mutex refusals_mutex;
  DecisionLog refusals;
};

Status Model::Impl::make_first_context() {
  int64_t allocations = 0;
  PYC_ASSIGN(RunContext * first, contexts.acquire(allocations));
  const Lease context(contexts, first);
  memory.measured_arena_bytes = context->memory_bytes();
  const int64_t planned = memory.arena_bytes + memory.scratch_bytes;
  if (memory.measured_arena_bytes == planned) return {};
  return {Code::kInternal, fmt::format("memory of a run: planned {} bytes (arena {}, scratch {}), "
                                       "allocated {}",
                                       planned, memory.arena_bytes, memory.scratch_bytes,
                                       memory.measured_arena_bytes)};
}

Status Model::Impl::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                        RunStats& measured, std::span<int64_t> step_ns) noexcept {
  Status status;
  runs.fetch_add(1, std::memory_order_relaxed);
  try {
    const int64_t start = clock->now_ns();
    int64_t staged = 0;
    status = check_views(*program, inputs, outputs, contract.strict_views, staged);
    if (status.ok()) {
      status = execute(inputs, outputs, staged > 0, measured, step_ns);
    } else {
      guard_misses.fetch_add(1, std::memory_order_relaxed);
    }
    if (!status.ok()) record_refusal(status);
    measured.wall_ns = clock->now_ns() - start;
  } catch (...) {
    status = status_of_exception();
  }
  if (!status.ok()) failed_runs.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Status Model::Impl::execute(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                            bool staged, RunStats& measured, std::span<int64_t> step_ns) {
  PYC_ASSIGN(RunContext * acquired, contexts.acquire(measured.allocations));
  const Lease context(contexts, acquired);
  if (staged) {
    PYC_TRY(stage(inputs, outputs, *context, measured));
    PYC_TRY(run_steps(*context, measured, step_ns));
    context->staging.copy_back(outputs);
    return {};
  }
  for (const PointerLayout::Slot& slot : contexts.layout().inputs) {
    context->pointers[slot.position] = inputs[slot.index].origin();
  }
  for (const PointerLayout::Slot& slot : contexts.layout().outputs) {
    context->pointers[slot.position] = outputs[slot.index].origin();
  }
  return run_steps(*context, measured, step_ns);
}

Status Model::Impl::stage(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                          RunContext& context, RunStats& measured) {
  const Staging::Need need = Staging::need_of(inputs, outputs);
  const int64_t needed = memory.peak_bytes + need.memory_bytes;
  if (contract.memory_budget > 0 && needed > contract.memory_budget) {
    return {
        Code::kBudgetExceeded,
        fmt::format("{} views that are not row-major and aligned need {} bytes of copies beside "
                    "the {} of the run, the budget is {}",
                    need.views, need.memory_bytes, memory.peak_bytes, contract.memory_budget)};
  }
  int64_t grown = 0;
  Status filled = context.staging.fill(need, inputs, outputs, grown);
  staging_bytes.fetch_add(grown, std::memory_order_relaxed);
  if (!filled.ok()) return filled;
  measured.allocations += grown > 0 ? 1 : 0;
  measured.staged_views = need.views;
  measured.staged_bytes = need.copied_bytes;
  for (const PointerLayout::Slot& slot : contexts.layout().inputs) {
    context.pointers[slot.position] = context.staging.input(slot.index);
  }
  for (const PointerLayout::Slot& slot : contexts.layout().outputs) {
    context.pointers[slot.position] = context.staging.output(slot.index);
  }
  return {};
}

Status Model::Impl::run_steps(RunContext& context, RunStats& measured, std::span<int64_t> step_ns) {
  const FpStateGuard fp_state;
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const int64_t start = step_ns.empty() ? 0 : clock->now_ns();
    PYC_TRY(run_step(s, context));
    if (!step_ns.empty()) step_ns[s] = clock->now_ns() - start;
    ++measured.steps;
  }
  return {};
}

Status Model::Impl::run_step(size_t s, RunContext& context) {
  const Step& step = program->steps[s];
  StepCall call{step, context, context.pointers.data() + contexts.layout().first[s],
                pool->threads()};
  pool->parallel_for(step.parallel, StepCall::run_part, &call);
  const int32_t fault = take_fault(context.faults);
  return fault == 0 ? Status() : fault_status(step, fault);
}

// Without memory for it a refusal is counted and returned, but not kept.
void Model::Impl::record_refusal(const Status& status) noexcept {
  try {
    Decision decision{
        "run", "refused", std::string(code_name(status.code())), status.message(), {}};
    const std::lock_guard lock(refusals_mutex);
    if (refusals.size() == kMaxRefusals) refusals.erase(refusals.begin());
    refusals.push_back(std::move(decision));
  } catch (const std::bad_alloc&) {
    return;
  }
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::create(std::shared_ptr<const Program> program,
                                             std::shared_ptr<ThreadPool> pool, DecisionLog log,
                                             MemoryReport memory, std::shared_ptr<Clock> clock,
                                             RunContract contract) {
  if (program == nullptr) return Status(Code::kNullPointer, "model: no program");
  if (pool == nullptr) return Status(Code::kNullPointer, "model: no thread pool");
  PYC_TRY(check_program(*program));
  if (clock == nullptr) clock = std::make_shared<MonotonicClock>();
  auto impl = std::make_unique<Impl>(std::move(program), std::move(pool), std::move(log), memory,
                                     std::move(clock), contract);
  PYC_TRY(impl->make_first_context());
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

const std::vector<IoSpec>& Model::inputs() const { return impl_->program->inputs; }
const std::vector<IoSpec>& Model::outputs() const { return impl_->program->outputs; }
const Program& Model::program() const { return *impl_->program; }
const DecisionLog& Model::decisions() const { return impl_->log; }

MemoryReport Model::memory() const {
  MemoryReport report = impl_->memory;
  report.staging_bytes = impl_->staging_bytes.load(std::memory_order_relaxed);
  return report;
}

Status Model::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                  RunStats* stats) {
  RunStats measured;
  Status status = impl_->run(inputs, outputs, measured, {});
  if (stats != nullptr) *stats = measured;
  return status;
}

Result<std::vector<int64_t>> Model::profile(std::span<const TensorView> inputs,
                                            std::span<const TensorView> outputs) {
  RunStats measured;
  std::vector<int64_t> step_ns(impl_->program->steps.size(), 0);
  PYC_TRY(impl_->run(inputs, outputs, measured, step_ns));
  return step_ns;
}

DecisionLog Model::refusals() const {
  const std::lock_guard lock(impl_->refusals_mutex);
  return impl_->refusals;
}

ModelStats Model::stats() const {
  return {
      .runs = impl_->runs.load(std::memory_order_relaxed),
      .failed_runs = impl_->failed_runs.load(std::memory_order_relaxed),
      .guard_misses = impl_->guard_misses.load(std::memory_order_relaxed),
      .contexts = impl_->contexts.made(),
      .compile_ns = impl_->compile_ns.load(std::memory_order_relaxed),
      .cache_hit = impl_->cache_hit.load(std::memory_order_relaxed),
      .compile = impl_->compile,
  };
}

void Model::set_compile_stats(int64_t compile_ns, bool cache_hit, const CompileBreakdown& parts) {
  impl_->compile = parts;
  impl_->compile_ns.store(compile_ns, std::memory_order_relaxed);
  impl_->cache_hit.store(cache_hit, std::memory_order_relaxed);
}

}  // namespace pyc::runtime

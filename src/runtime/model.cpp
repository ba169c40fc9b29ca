#include "runtime/model.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "runtime/guards.h"
#include "runtime/lanes.h"

namespace pyc::runtime {

CompileBreakdown& CompileBreakdown::operator+=(const CompileBreakdown& other) {
  passes_ns += other.passes_ns;
  lower_ns += other.lower_ns;
  select_ns += other.select_ns;
  plan_ns += other.plan_ns;
  code_ns += other.code_ns;
  assemble_ns += other.assemble_ns;
  kernels += other.kernels;
  distinct_kernels += other.distinct_kernels;
  generated_kernels += other.generated_kernels;
  slowest_kernel_ns = std::max(slowest_kernel_ns, other.slowest_kernel_ns);
  return *this;
}
namespace {

// Gives a lane back to its pool.
class Lease {
 public:
  Lease(LanePool& pool, PooledLane* lane) : pool_(pool), lane_(lane) {}
  ~Lease() { pool_.release(lane_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  PooledLane& operator*() const { return *lane_; }
  PooledLane* operator->() const { return lane_; }

 private:
  LanePool& pool_;
  PooledLane* lane_;
};

// Lends the states to a run and takes them back; unless the run says that it is whole, what it may
// have written is void.
class StateLease {
 public:
  StateLease(States& states, const RunStats& measured) : states_(states), measured_(measured) {}
  ~StateLease() {
    if (lent_) states_.take_back(whole, measured_.steps);
  }
  StateLease(const StateLease&) = delete;
  StateLease& operator=(const StateLease&) = delete;
  Status take() {
    if (states_.empty()) return {};
    PYC_TRY(states_.lend());
    lent_ = true;
    return {};
  }
  bool whole = true;

 private:
  States& states_;
  const RunStats& measured_;
  bool lent_ = false;
};

// One run on its way into a trace.
class RunRecord {
 public:
  RunRecord(TraceLog* trace, const Program& program, const PooledLane& lane) : pace_(lane.pace) {
    if (pace_ == nullptr) return;
    run_ = trace->begin_run(*pace_);
    if (run_ == nullptr) return;
    run_->program = &program;
    run_->lane = &lane;
    run_->lane_bytes = lane.lane->memory_bytes();
    run_->thread = trace_thread();
    run_->start = ticks();
  }
  ~RunRecord() {
    if (run_ != nullptr) TraceLog::end_run(*pace_, *run_, ticks());
  }
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;
  std::span<PartTicks> parts() const {
    return run_ == nullptr ? std::span<PartTicks>() : run_->parts;
  }

 private:
  TracePace* const pace_;
  RunTicks* run_ = nullptr;
};

// The program's steps and the kernels that the log says were chosen for them.
std::vector<TraceStep> traced_steps(const Program& program, const DecisionLog& log) {
  std::map<std::string_view, std::string_view> kernels;
  constexpr std::string_view kPrefix = "kernel:";
  for (const Decision& d : log) {
    if (d.what.starts_with(kPrefix)) {
      kernels[std::string_view(d.what).substr(kPrefix.size())] = d.chosen;
    }
  }
  std::vector<TraceStep> steps;
  for (const Step& step : program.steps) {
    const auto kernel = kernels.find(step.name);
    steps.push_back({step.name, std::string(kernel == kernels.end() ? "" : kernel->second)});
  }
  return steps;
}

}  // namespace

struct Model::Impl {
  Impl(std::shared_ptr<const Engine> e, std::shared_ptr<ThreadPool> threads, DecisionLog decisions,
       MemoryReport report, std::shared_ptr<Clock> c, RunContract terms)
      : engine(std::move(e)),
        program(engine->program()),
        pool(std::move(threads)),
        log(std::move(decisions)),
        memory(report),
        clock(std::move(c)),
        contract(std::move(terms)),
        states(program),
        lanes(*engine, *pool, states) {}

  Status make_states();
  Status make_first_lane();
  // One run; `step_ns` is empty or gets the time of each step.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             RunStats& measured, std::span<int64_t> step_ns) noexcept;
  // `staged`: some views are not plain.
  Status execute(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                 bool staged, RunStats& measured, std::span<int64_t> step_ns);
  // Copies the views that are not plain; after it the lane's staging has plain ones.
  Status stage(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
               Staging& staging, RunStats& measured);
  void record_refusal(const Status& status) noexcept;
  // To be called by the holder of the lane; before the first run, which then allocates nothing.
  void trace_lane(PooledLane& lane) const {
    if (contract.trace == nullptr || lane.pace != nullptr) return;
    const int threads = engine->device() ? 1 : pool->threads();  // a device's kernels have no parts
    lane.pace = &contract.trace->add_lane(program.steps.size(), static_cast<size_t>(threads));
  }

  const std::shared_ptr<const Engine> engine;
  const Program& program;
  const std::shared_ptr<ThreadPool> pool;
  const DecisionLog log;
  MemoryReport memory;
  const std::shared_ptr<Clock> clock;
  const RunContract contract;
  States states;
  LanePool lanes;
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

Status Model::Impl::make_states() {
  PYC_TRY(states.allocate());
  memory.measured_state_bytes = states.memory_bytes();
  const int64_t planned = memory.class_bytes[static_cast<size_t>(BufferClass::kState)];
  if (memory.measured_state_bytes == planned) return {};
  return {Code::kInternal, fmt::format("memory of the states: planned {} bytes, allocated {}",
                                       planned, memory.measured_state_bytes)};
}

Status Model::Impl::make_first_lane() {
  int64_t allocations = 0;
  PYC_ASSIGN(PooledLane * first, lanes.acquire(allocations));
  const Lease lease(lanes, first);
  trace_lane(*first);
  memory.measured_arena_bytes = lease->lane->memory_bytes();
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
    status = check_views(program, engine->device(), inputs, outputs, contract.strict_views, staged);
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
  StateLease state(states, measured);
  PYC_TRY(state.take());
  PYC_ASSIGN(PooledLane * acquired, lanes.acquire(measured.allocations));
  const Lease lease(lanes, acquired);
  trace_lane(*acquired);
  const RunRecord record(contract.trace.get(), program, *acquired);
  const StepTimes times{.clock = clock.get(), .ns = step_ns, .parts = record.parts()};
  const auto run_lane = [&](std::span<const TensorView> in, std::span<const TensorView> out) {
    state.whole = false;
    Status status = lease->lane->run(in, out, measured, times);
    state.whole = status.ok();
    return status;
  };
  if (!staged) return run_lane(inputs, outputs);
  Staging& staging = lease->staging;
  PYC_TRY(stage(inputs, outputs, staging, measured));
  PYC_TRY(run_lane(staging.inputs(), staging.outputs()));
  staging.copy_back(outputs);
  return {};
}

Status Model::Impl::stage(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                          Staging& staging, RunStats& measured) {
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
  Status filled = staging.fill(need, inputs, outputs, grown);
  staging_bytes.fetch_add(grown, std::memory_order_relaxed);
  if (!filled.ok()) return filled;
  measured.allocations += grown > 0 ? 1 : 0;
  measured.staged_views = need.views;
  measured.staged_bytes = need.copied_bytes;
  return {};
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

Result<std::unique_ptr<Model>> Model::create(std::shared_ptr<const Engine> engine,
                                             std::shared_ptr<ThreadPool> pool, DecisionLog log,
                                             MemoryReport memory, std::shared_ptr<Clock> clock,
                                             RunContract contract) {
  if (engine == nullptr) return Status(Code::kNullPointer, "model: no engine");
  if (pool == nullptr) return Status(Code::kNullPointer, "model: no thread pool");
  if (clock == nullptr) clock = std::make_shared<MonotonicClock>();
  auto impl = std::make_unique<Impl>(std::move(engine), std::move(pool), std::move(log), memory,
                                     std::move(clock), std::move(contract));
  PYC_TRY(impl->make_states());
  PYC_TRY(impl->make_first_lane());
  if (impl->contract.trace != nullptr) {
    impl->contract.trace->add_steps({impl->engine, &impl->program},
                                    traced_steps(impl->program, impl->log));
  }
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

const std::vector<IoSpec>& Model::inputs() const { return impl_->program.inputs; }
const std::vector<IoSpec>& Model::outputs() const { return impl_->program.outputs; }
const std::vector<StateSpec>& Model::state_specs() const { return impl_->program.states; }
States& Model::states() { return impl_->states; }
const Program& Model::program() const { return impl_->program; }
const Engine& Model::engine() const { return *impl_->engine; }
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
  std::vector<int64_t> step_ns(impl_->program.steps.size(), 0);
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
      .contexts = impl_->lanes.made(),
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

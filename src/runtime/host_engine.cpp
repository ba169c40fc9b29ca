#include "runtime/host_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/allocation_meter.h"
#include "base/fp_state.h"

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

// Fault codes that are no run-time checks of the model.
constexpr int32_t kFaultOutOfBounds = -1;  // an interpreter's
constexpr int32_t kFaultThrew = INT32_MIN;
constexpr int32_t kFaultNoMemory = INT32_MIN + 1;

// A step with its code, and where its buffers stand in a lane's list of pointers.
struct BoundStep {
  HostFunction function;
  int64_t points = 0;
  size_t first = 0;
  int64_t copied_bytes = 0;
  bool again = false;
  size_t first_dim = 0;
  bool has_dims = false;
};

// Of a copy that one thread does at a time.
constexpr int64_t kCopyUnit = int64_t{1} << 16;

void copy_units(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto bytes = static_cast<const Copy*>(args->self)->bytes;
  const int64_t first = begin * kCopyUnit;
  const auto size = static_cast<size_t>(std::min(end * kCopyUnit, bytes) - first);
  std::memcpy(static_cast<std::byte*>(args->buffers[1]) + first,
              static_cast<const std::byte*>(args->buffers[0]) + first, size);
}

struct Scratch {
  AlignedBuffer memory;    // all threads', one behind the other
  int64_t per_thread = 0;  // a multiple of 64

  std::byte* of(int thread) const {
    return memory.data() == nullptr ? nullptr
                                    : const_cast<std::byte*>(memory.data()) + per_thread * thread;
  }
};

// Of the pieces of a step that a thread ran: the fault of the one that lies first, whoever ran the
// others.
struct ThreadFault {
  int32_t code = 0;
  int64_t begin = 0;
};

// One step of one run, as the pool's threads see it.
struct StepCall {
  HostFunction function;
  void* const* buffers;
  const int64_t* dims;
  const Scratch& scratch;
  std::vector<ThreadFault>& faults;
  int threads;

  static void run_part(void* self, int thread, int64_t begin, int64_t end) {
    const StepCall& call = *static_cast<const StepCall*>(self);
    int32_t fault = 0;
    const pyc_kernel_args args = {
        .buffers = call.buffers,
        .dims = call.dims,
        .scratch = call.scratch.of(thread),
        .self = call.function.self,
        .fault = &fault,
        .thread = thread,
        .threads = call.threads,
    };
    try {
      call.function.fn(&args, begin, end);
    } catch (const std::bad_alloc&) {
      fault = kFaultNoMemory;
    } catch (...) {
      fault = kFaultThrew;
    }
    if (fault == 0) return;
    ThreadFault& known = call.faults[static_cast<size_t>(thread)];
    if (known.code == 0 || begin < known.begin) known = {fault, begin};
  }
};

// The same, with the time of each thread.
struct TimedCall {
  StepCall call;
  PartTicks* parts;  // of the first thread
  size_t steps;      // from there to the next thread's

  static void run_part(void* self, int thread, int64_t begin, int64_t end) {
    TimedCall& timed = *static_cast<TimedCall*>(self);
    PartTicks& part = timed.parts[static_cast<size_t>(thread) * timed.steps];
    // Of several pieces that a thread runs, from the first to the last.
    const uint64_t start = part.end == 0 ? ticks() : part.start;
    StepCall::run_part(&timed.call, thread, begin, end);
    part = {trace_thread(), start, ticks()};
  }
};

Status fault_status(const Step& step, int32_t code, void* const* buffers) {
  if (code == kFaultOutOfBounds) {
    return {Code::kInternal, fmt::format("step '{}': out of bounds access", step.name)};
  }
  if (code == kFaultNoMemory) {
    return {Code::kOutOfMemory, fmt::format("step '{}': no memory for the kernel", step.name)};
  }
  if (code == kFaultThrew) {
    return {Code::kInternal, fmt::format("step '{}': the kernel threw an exception", step.name)};
  }
  if (code < 1 || static_cast<size_t>(code) > step.kernel().faults.size()) {
    return {Code::kInternal, fmt::format("step '{}': unknown fault code {}", step.name, code)};
  }
  const Fault& fault = step.kernel().faults[static_cast<size_t>(code) - 1];
  return {Code::kRuntimeFailed,
          fmt::format("step '{}': {}", step.name,
                      describe(fault, {buffers, step.kernel().buffers.size()}))};
}

// The fault of the piece that lies first, or 0; clears all of them.
int32_t take_fault(std::vector<ThreadFault>& faults) {
  ThreadFault first;
  for (ThreadFault& fault : faults) {
    if (fault.code == 0) continue;
    if (first.code == 0 || fault.begin < first.begin) first = fault;
    fault = {};
  }
  return first.code;
}

// A pointer that is the caller's, set at every run.
struct Slot {
  size_t position;
  uint32_t index;  // which input or output
  int64_t offset;  // bytes into it
};

class HostEngine;

class HostLane final : public Lane {
 public:
  HostLane(const HostEngine& engine, ThreadPool& threads) : engine_(engine), threads_(threads) {}
  Status allocate_memory(std::span<std::byte* const> states);
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             RunStats& stats, StepTimes times) override;
  int64_t memory_bytes() const override { return memory_bytes_; }
  int64_t blocks() const override {
    constexpr int64_t kTables = 1;
    return kTables + (arena_.data() != nullptr ? 1 : 0) +
           (scratch_.memory.data() != nullptr ? 1 : 0);
  }

 private:
  // The fault of the piece that lies first, or 0. `parts` is null, or the first thread's.
  int32_t run_step(const BoundStep& step, PartTicks* parts);

  const HostEngine& engine_;
  ThreadPool& threads_;
  AlignedBuffer arena_;
  Scratch scratch_;
  std::vector<void*> pointers_;      // the tables of all steps, one behind the other
  std::vector<ThreadFault> faults_;  // per thread; none between steps
  int64_t memory_bytes_ = 0;         // what the allocator counted while the lane was made
};

class HostEngine final : public Engine {
 public:
  using Engine::Engine;

  int64_t parallel(size_t step) const override { return steps[step].points; }

  Result<std::unique_ptr<Lane>> make_lane(ThreadPool& threads,
                                          std::span<std::byte* const> states) const override {
    auto lane = std::make_unique<HostLane>(*this, threads);
    PYC_TRY(lane->allocate_memory(states));
    return std::unique_ptr<Lane>(std::move(lane));
  }

  void bind(HostFunction function, int64_t points, const Step& step) {
    const Copy* copy = step.copy();
    const std::vector<int64_t> sizes =
        copy == nullptr ? host_dims(step.kernel().launch) : std::vector<int64_t>{};
    steps.push_back({function, points, pointers, copy == nullptr ? 0 : copy->bytes, step.again,
                     dims.size(), !sizes.empty()});
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    for (const BufferRef& ref : step.buffers()) {
      if (ref.where == Where::kInput) inputs.push_back({pointers, ref.index, ref.offset});
      if (ref.where == Where::kOutput) outputs.push_back({pointers, ref.index, ref.offset});
      ++pointers;
    }
  }

  std::vector<BoundStep> steps;  // of the program's steps, in their order
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  size_t pointers = 0;        // of all steps
  std::vector<int64_t> dims;  // of all steps
  std::vector<std::shared_ptr<const HostCode>> code;
};

Status HostLane::allocate_memory(std::span<std::byte* const> states) {
  const Program& program = engine_.program();
  const int threads = threads_.threads();
  const int64_t before = allocated_by_thread();
  scratch_.per_thread = round_up(program.scratch_bytes);
  PYC_ASSIGN(arena_, allocate(round_up(program.arena_bytes)));
  PYC_ASSIGN(scratch_.memory, allocate(scratch_.per_thread * threads));
  memory_bytes_ = allocated_by_thread() - before;
  faults_.assign(static_cast<size_t>(threads), {});
  pointers_.assign(engine_.pointers, nullptr);
  size_t position = 0;
  for (const Step& step : program.steps) {
    for (const BufferRef& ref : step.buffers()) {
      void*& pointer = pointers_[position++];
      if (ref.where == Where::kState) pointer = states[ref.index] + ref.offset;
      if (ref.where == Where::kArena) pointer = arena_.data() + ref.offset;
      // Kernels never write parameters; the table has one pointer type for all buffers.
      if (ref.where == Where::kParameter) {
        const auto* data = static_cast<const std::byte*>(program.parameters[ref.index].data);
        pointer = const_cast<std::byte*>(data + ref.offset);
      }
    }
  }
  return {};
}

Status HostLane::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     RunStats& stats, StepTimes times) {
  for (const Slot& slot : engine_.inputs)
    pointers_[slot.position] = inputs[slot.index].origin() + slot.offset;
  for (const Slot& slot : engine_.outputs)
    pointers_[slot.position] = outputs[slot.index].origin() + slot.offset;
  const FpStateGuard fp_state;
  // A thread alone begins a step where it ended the one before: one reading a step.
  const bool alone = faults_.size() == 1 && !times.parts.empty();
  const int thread = alone ? trace_thread() : -1;
  uint64_t begun = alone ? ticks() : 0;
  for (size_t s = 0; s < engine_.steps.size(); ++s) {
    const int64_t start = times.ns.empty() ? 0 : times.clock->now_ns();
    const bool apart = !alone && !times.parts.empty();
    const int32_t fault = run_step(engine_.steps[s], apart ? times.parts.data() + s : nullptr);
    if (alone) {
      const uint64_t now = ticks();
      if (engine_.steps[s].points > 0) times.parts[s] = {thread, begun, now};
      begun = now;
    }
    if (fault != 0) {
      return fault_status(engine_.program().steps[s], fault,
                          pointers_.data() + engine_.steps[s].first);
    }
    if (!times.ns.empty()) times.ns[s] = times.clock->now_ns() - start;
    ++stats.steps;
    stats.copied_bytes += engine_.steps[s].copied_bytes;
    stats.recomputed_steps += engine_.steps[s].again ? 1 : 0;
  }
  return {};
}

int32_t HostLane::run_step(const BoundStep& step, PartTicks* parts) {
  const int64_t* dims = step.has_dims ? engine_.dims.data() + step.first_dim : nullptr;
  StepCall call{step.function,     pointers_.data() + step.first, dims, scratch_, faults_,
                threads_.threads()};
  if (parts == nullptr) {
    threads_.parallel_for(step.points, StepCall::run_part, &call);
  } else {
    TimedCall timed{call, parts, engine_.steps.size()};
    threads_.parallel_for(step.points, TimedCall::run_part, &timed);
  }
  return take_fault(faults_);
}

}  // namespace

std::string host_launch(int64_t points, std::span<const int64_t> dims) {
  std::string out(reinterpret_cast<const char*>(&points), sizeof(points));
  out.append(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
  return out;
}

std::vector<int64_t> host_dims(std::string_view launch) {
  std::vector<int64_t> dims(launch.size() / sizeof(int64_t) - 1);
  if (!dims.empty()) {
    std::memcpy(dims.data(), launch.data() + sizeof(int64_t), dims.size() * sizeof(int64_t));
  }
  return dims;
}

Result<int64_t> host_points(std::string_view launch) {
  int64_t points = 0;
  if (launch.empty() || launch.size() % sizeof(points) != 0) {
    return Status(Code::kParseError,
                  fmt::format("its launch has {} bytes, expected {} and as many for each size",
                              launch.size(), sizeof(points)));
  }
  std::memcpy(&points, launch.data(), sizeof(points));
  if (points < 0) {
    return Status(Code::kParseError, fmt::format("its launch has {} parallel iterations", points));
  }
  return points;
}

// What another program has loaded is taken as it is. Of programs that are gone nothing is kept.
Result<std::shared_ptr<const HostCode>> HostLoader::load_shared(
    const std::shared_ptr<const std::string>& object) const {
  {
    const std::scoped_lock lock(mutex_);
    const auto known = loaded_.find(object.get());
    if (known != loaded_.end() && known->second.object.lock() == object) {
      if (auto code = known->second.code.lock()) return code;
    }
  }
  PYC_ASSIGN(std::unique_ptr<const HostCode> made, load_object(*object));
  std::shared_ptr<const HostCode> code = std::move(made);
  const std::scoped_lock lock(mutex_);
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.code.expired(); });
  loaded_.insert_or_assign(object.get(), Loaded{object, code});
  return code;
}

Result<std::shared_ptr<const Engine>> HostLoader::load(std::shared_ptr<const Program> program,
                                                       uint32_t place) const {
  PYC_TRY(check_place(program->places[place]));
  auto engine = std::make_shared<HostEngine>(program);
  std::map<const std::string*, std::shared_ptr<const HostCode>> loaded;
  const auto bind = [&](const Step& step) -> Status {
    if (const Copy* copy = step.copy()) {
      if (copy->buffers[0].where == Where::kShelf || copy->buffers[1].where == Where::kShelf) {
        return {Code::kUnsupported, "it moves values to the host, where all of them are"};
      }
      engine->bind({copy_units, copy}, (copy->bytes + kCopyUnit - 1) / kCopyUnit, step);
      return {};
    }
    const Kernel& kernel = step.kernel();
    PYC_ASSIGN(const int64_t points, host_points(kernel.launch));
    std::shared_ptr<const HostCode>& code = loaded[kernel.object.get()];
    if (code == nullptr) {
      PYC_ASSIGN(code, load_shared(kernel.object));
      engine->code.push_back(code);
    }
    const HostFunction function = code->find(kernel.symbol);
    if (function.fn == nullptr) {
      return {Code::kParseError, fmt::format("its object has no function '{}'", kernel.symbol)};
    }
    PYC_TRY(code->check(*program, step));
    engine->bind(function, points, step);
    return {};
  };
  engine->steps.reserve(program->steps.size());
  for (const Step& step : program->steps) {
    Status bound = bind(step);
    if (!bound.ok()) return std::move(bound).with_context(fmt::format("step '{}'", step.name));
  }
  return std::shared_ptr<const Engine>(std::move(engine));
}

}  // namespace pyc::runtime

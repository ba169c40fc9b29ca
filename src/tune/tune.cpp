#include "tune/tune.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/fp_state.h"
#include "base/target_info.h"
#include "base/thread_pool.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/front.h"
#include "driver/policies.h"
#include "runtime/engine.h"
#include "session/cache.h"
#include "session/cache_folder.h"
#include "tune/group_program.h"
#include "tune/probe.h"
#include "tune/reference.h"
#include "tune/timing.h"

namespace pyc::tune {
namespace {

// Candidates whose estimates are further beyond the least are not measured. Chosen by judgement:
// estimates of tiles were seen to be wrong by up to a quarter, on Neoverse-V1.
constexpr double kEstimateError = 1.5;
constexpr size_t kMostCandidates = 5;

// Positions of the candidates that are measured, the one that estimates choose first.
std::vector<size_t> shortlist(const std::vector<backends::Candidate>& all,
                              const std::string& order) {
  std::vector<size_t> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].rejected.empty() && all[i].order == order) out.push_back(i);
  }
  std::ranges::stable_sort(out, {}, [&](size_t i) { return all[i].cost_ns; });
  std::erase_if(out, [&](size_t i) {
    return all[i].cost_ns > kEstimateError * all[out.front()].cost_ns && i != out.front();
  });
  if (out.size() > kMostCandidates) out.resize(kMostCandidates);
  return out;
}

// Writes through more than a core's own cache on every thread: in a model, other steps have done
// so since the step ran last.
class Sweep {
 public:
  static Result<Sweep> create(int threads) {
    Sweep out;
    out.per_thread_ = static_cast<size_t>(2 * host_target().l2_bytes);
    PYC_ASSIGN(out.memory_, AlignedBuffer::create(out.per_thread_ * static_cast<size_t>(threads)));
    return out;
  }
  void run(ThreadPool& pool) { pool.parallel_for(pool.threads(), &Sweep::part, this); }

 private:
  static void part(void* self, int, int64_t begin, int64_t end) {
    auto& sweep = *static_cast<Sweep*>(self);
    std::memset(sweep.memory_.data() + static_cast<size_t>(begin) * sweep.per_thread_, 1,
                static_cast<size_t>(end - begin) * sweep.per_thread_);
  }
  AlignedBuffer memory_;
  size_t per_thread_ = 0;
};

// A candidate with its code loaded.
struct Rival {
  const backends::Candidate* candidate = nullptr;
  std::shared_ptr<const runtime::Engine> engine;
  std::unique_ptr<runtime::Lane> lane;
  std::vector<int64_t> step_ns;
  std::vector<int64_t> samples;
};

class Contest {
 public:
  Contest(const lower::LoweredGraph& lowered, size_t g, const backends::Backend& backend,
          const backends::BackendOptions& options, ThreadPool& pool, Sweep& sweep, Clock& clock)
      : lowered_(lowered),
        graph_(*lowered.graph),
        group_(lowered.groups[g]),
        g_(g),
        backend_(backend),
        options_(options),
        pool_(pool),
        sweep_(sweep),
        clock_(clock),
        values_(values_of(graph_, group_)) {}

  Result<driver::TunedGroup> run(const std::vector<backends::Candidate>& all,
                                 const std::vector<size_t>& listed) {
    PYC_TRY(make_memory());
    PYC_ASSIGN(const Reference reference, Reference::of(graph_, group_, memory_));
    driver::TunedGroup out;
    out.untuned = all[listed.front()].name;
    std::vector<Rival> rivals;
    for (const size_t i : listed) {
      driver::MeasuredKernel& row = out.kernels.emplace_back();
      row.name = all[i].name;
      row.predicted_ns = static_cast<int64_t>(all[i].cost_ns);
      PYC_ASSIGN(Rival rival, load(all[i]));
      PYC_ASSIGN(const bool right, is_right(rival, reference));
      row.wrong = !right;
      if (right) rivals.push_back(std::move(rival));
    }
    if (rivals.empty()) {
      return Status(Code::kInternal,
                    "group " + group_.name + ": no kernel computes what the reference does");
    }
    for (int r = 0; r < kRepeats; ++r) {
      for (Rival& rival : rivals) {
        sweep_.run(pool_);
        PYC_ASSIGN(const int64_t ns, run_once(rival));
        rival.samples.push_back(ns);
      }
    }
    // Rivals are in the order of their estimates: the first right one is what would be chosen.
    Timing best;
    for (const Rival& rival : rivals) {
      const Timing timing = timing_of(rival.samples);
      auto& row =
          *std::ranges::find(out.kernels, rival.candidate->name, &driver::MeasuredKernel::name);
      row.best_ns = std::max<int64_t>(timing.best_ns, 1);
      row.p50_ns = timing.p50_ns;
      row.p95_ns = timing.p95_ns;
      if (!out.chosen.empty() && !is_faster(timing, best)) continue;
      out.chosen = row.name;
      best = timing;
    }
    return out;
  }

 private:
  Status make_memory() {
    uint64_t seed = 1;
    for (const std::vector<ir::ValueId>* list : {&values_.inputs, &values_.outputs}) {
      for (const ir::ValueId v : *list) {
        PYC_ASSIGN(AlignedBuffer made,
                   AlignedBuffer::create(static_cast<size_t>(graph_.type(v).bytes())));
        if (list == &values_.inputs) fill_seeded(graph_.type(v).dtype, made.bytes(), seed++);
        memory_.emplace(v, std::move(made));
      }
    }
    inputs_ = views_of(values_.inputs);
    outputs_ = views_of(values_.outputs);
    return {};
  }

  std::vector<runtime::TensorView> views_of(const std::vector<ir::ValueId>& values) {
    std::vector<runtime::TensorView> out;
    for (const ir::ValueId v : values) {
      const ir::TensorType& type = graph_.type(v);
      out.push_back({.data = memory_.at(v).data(),
                     .dtype = type.dtype,
                     .shape = type.shape,
                     .bytes = type.bytes()});
    }
    return out;
  }

  Result<Rival> load(const backends::Candidate& candidate) {
    PYC_ASSIGN(std::shared_ptr<const runtime::Program> program,
               group_program(lowered_, g_, candidate, backend_, options_));
    Rival out;
    out.candidate = &candidate;
    out.step_ns.resize(program->steps.size());
    PYC_ASSIGN(out.engine, runtime::load_engine(std::move(program), driver::loaders()));
    PYC_ASSIGN(out.lane, out.engine->make_lane(pool_, {}));
    return out;
  }

  Result<int64_t> run_once(Rival& rival) {
    runtime::RunStats stats;
    PYC_TRY(rival.lane->run(inputs_, outputs_, stats, {.clock = &clock_, .ns = rival.step_ns}));
    int64_t sum = 0;
    for (const int64_t ns : rival.step_ns) sum += ns;
    return sum;
  }

  // Against the interpreter where that computed, and everywhere against the first that was right.
  Result<bool> is_right(Rival& rival, const Reference& reference) {
    for (const ir::ValueId v : values_.outputs) {
      std::ranges::fill(memory_.at(v).bytes(), std::byte{0xA5});
    }
    PYC_TRY(run_once(rival).status());
    if (!reference.agrees(memory_)) return false;
    if (first_.empty()) {
      for (const ir::ValueId v : values_.outputs) {
        const auto bytes = memory_.at(v).bytes();
        first_.emplace(v, std::vector<std::byte>(bytes.begin(), bytes.end()));
      }
    }
    return std::ranges::all_of(values_.outputs, [&](ir::ValueId v) {
      return same_elements(graph_.type(v).dtype, memory_.at(v).bytes(), first_.at(v));
    });
  }

  const lower::LoweredGraph& lowered_;
  const ir::Graph& graph_;
  const lower::Group& group_;
  size_t g_;
  const backends::Backend& backend_;
  const backends::BackendOptions& options_;
  ThreadPool& pool_;
  Sweep& sweep_;
  Clock& clock_;
  GroupValues values_;
  Memory memory_;
  std::vector<runtime::TensorView> inputs_;
  std::vector<runtime::TensorView> outputs_;
  std::map<ir::ValueId, std::vector<std::byte>> first_;
};

void count(const driver::TunedGroup& tuned, Report& report) {
  report.changed += tuned.chosen == tuned.untuned ? 0 : 1;
  for (const driver::MeasuredKernel& k : tuned.kernels) report.wrong += k.wrong ? 1 : 0;
  int64_t best = INT64_MAX;
  for (const driver::MeasuredKernel& k : tuned.kernels) {
    if (k.best_ns > 0) best = std::min(best, k.best_ns);
  }
  const driver::MeasuredKernel* untuned = tuned.find(tuned.untuned);
  const bool near = untuned != nullptr && untuned->best_ns > 0 &&
                    static_cast<double>(untuned->best_ns) <= kNear * static_cast<double>(best);
  report.near += near ? 1 : 0;
}

// A group whose candidates compete.
struct Subject {
  size_t g = 0;
  std::string key;
  std::vector<backends::Candidate> candidates;
  std::vector<size_t> listed;
};

std::vector<Subject> subjects_of(const lower::LoweredGraph& lowered,
                                 const backends::Backend& backend,
                                 const backends::BackendOptions& options) {
  std::vector<Subject> out;
  std::map<std::string, bool> seen;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    const lower::Group& group = lowered.groups[g];
    Subject subject{.g = g,
                    .key = driver::group_key(*lowered.graph, group, options),
                    .candidates = backend.candidates(*lowered.graph, group, options),
                    .listed = {}};
    subject.listed = shortlist(subject.candidates, group.order);
    if (subject.listed.size() < 2 || !seen.emplace(subject.key, true).second) continue;
    out.push_back(std::move(subject));
  }
  return out;
}

}  // namespace

Result<Report> tune(const ir::VerifiedGraph& given, driver::CompileOptions o,
                    const Request& request) {
  const FpStateGuard fp_state;
  const int64_t start = now_ns();
  PYC_TRY(driver::check_options(o));
  const std::string folder = session::cache_folder(o);
  if (folder.empty()) {
    return Status(Code::kInvalidArgument,
                  "cache_dir: what is measured is kept in a folder, and none is named; set the "
                  "option (--cache-dir FOLDER), or PYC_CACHE_DIR");
  }
  PYC_TRY(driver::check_runs(o.device));
  PYC_ASSIGN(const backends::Backend* device, driver::find_backend(o.device));
  const backends::Backend& backend = request.backend == nullptr ? *device : *request.backend;
  if (!o.target.empty() && o.target != device->native_target()) {
    return Status(Code::kUnsupported, "target: kernels are measured on the machine they are for");
  }
  // As programs are compiled that a folder keeps.
  o.target = device->native_target();
  o.policy.clear();
  o.tuning = nullptr;
  const driver::TuningStore store(Store(folder), backend, artifact::version());
  driver::TuningTable table = store.read();
  Report report;
  const int threads = driver::thread_count(o);
  if (!table.probes.contains(threads)) {
    driver::TuningTable fresh;
    PYC_ASSIGN(fresh.probes[threads], probe_machine(o));
    PYC_TRY(store.add(fresh));
    table.probes[threads] = fresh.probes[threads];
  }
  report.probe = table.probes[threads];

  DecisionLog log;
  runtime::CompileBreakdown times;
  PYC_ASSIGN(const driver::Policies none, driver::Policies::of(o, log));
  PYC_ASSIGN(const driver::Grouped grouped,
             driver::group_graph(given, o, driver::TimeLimit(o), none, log, times));
  const lower::LoweredGraph& lowered = grouped.lowered;
  const std::vector<Subject> subjects = subjects_of(lowered, backend, grouped.backend_options);
  PYC_ASSIGN(const std::shared_ptr<ThreadPool> pool, session::shared_pool(threads));
  PYC_ASSIGN(Sweep sweep, Sweep::create(threads));
  MonotonicClock system;
  Clock& clock = request.clock == nullptr ? system : *request.clock;
  report.groups = static_cast<int64_t>(subjects.size());
  for (const Subject& subject : subjects) {
    const auto found = table.groups.find(subject.key);
    const bool known = found != table.groups.end();
    if (!known) {
      if (request.budget_ms > 0 && (now_ns() - start) / 1'000'000 >= request.budget_ms) continue;
      Contest contest(lowered, subject.g, backend, grouped.backend_options, *pool, sweep, clock);
      PYC_ASSIGN(driver::TunedGroup tuned, contest.run(subject.candidates, subject.listed));
      driver::TuningTable fresh;
      fresh.groups[subject.key] = tuned;
      PYC_TRY(store.add(fresh));
      table.groups[subject.key] = std::move(tuned);
    }
    const driver::TunedGroup& tuned = table.groups[subject.key];
    (known ? report.known : report.measured) += 1;
    count(tuned, report);
    const lower::Group& group = lowered.groups[subject.g];
    const Step step{.done = report.known + report.measured,
                    .all = report.groups,
                    .known = known,
                    .group = group.name,
                    .flops = group.flops,
                    .tuned = &tuned};
    if (request.after_group && !request.after_group(step)) break;
  }
  return report;
}

}  // namespace pyc::tune

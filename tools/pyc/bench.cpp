#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <numeric>
#include <string_view>

#include "command.h"
#include "report.h"
#include "roofs.h"
#include "say.h"

namespace pyc::tool {
namespace {

double percentile(const std::vector<int64_t>& sorted, double p) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return static_cast<double>(sorted[static_cast<size_t>(p * last + 0.5)]) / 1e3;
}

struct StepTime {
  std::string name;
  std::string kernel;  // empty where nothing was chosen, as for a copy
  int64_t ns = 0;
  double flops = 0.0;
  int64_t bytes = 0;
  std::string bound = "other";
  double reached = 0.0;  // of what the bound allows

  bool multiplies_bytes() const { return kernel.starts_with("i8_matmul"); }

  // The resource that alone would take longest; "other" when the step takes far longer than that.
  void compare_with(const Roofs& roofs) {
    constexpr double kFar = 4.0;
    const double arithmetic =
        flops / (multiplies_bytes() ? roofs.byte_products_per_ns : roofs.flops_per_ns);
    const double memory = static_cast<double>(bytes) / roofs.bytes_per_ns;
    const double least = std::max(arithmetic, memory);
    const auto took = static_cast<double>(std::max<int64_t>(ns, 1));
    reached = least / took;
    if (took <= kFar * least) bound = arithmetic > memory ? "arithmetic" : "memory";
  }
};

class Bench final : public Command {
 public:
  std::string name() const override { return "bench"; }
  std::string summary() const override {
    return "Measure latency, throughput, compile time, memory, and what bounds the run";
  }
  std::string examples() const override {
    return "  pyc bench tests/models/mlp.ir\n"
           "  pyc bench tests/models/transformer_block.ir --threads 2 --seconds 3 --json\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.integer("--warmup", warmup_, "Runs before measuring", 0, 1'000'000);
    options.integer("--warmup-ms", warmup_ms_, "Milliseconds of more such runs", 0, 600'000);
    options.integer("--runs", runs_, "Runs to measure; 0: as many as --seconds allows", 0,
                    100'000'000);
    options.number("--seconds", seconds_, "Time to measure for", Options::kMostSeconds);
    trace_.declare(options);
    trace_.declare_runs(options);
  }

  int run() override {
    model_.finish();
    trace_.begin(model_.compile);
    Progress progress(*this, "measuring " + model_.model);
    progress.watch(model_.compile);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    Model model = settled_model(file, model_.compile, inputs_);
    const std::vector<AnyValue> inputs = inputs_.make(model);
    if (model.is_open()) {
      model.run_values(inputs);  // compiles it
      cold_ms_ = static_cast<double>(model.stats().compile_ns) / 1e6;
      measure(progress, [&] { return run_open(model, inputs); });
    } else {
      cold_ms_ = static_cast<double>(model.stats().compile_ns) / 1e6;
      warm_ms_ = static_cast<double>(file.compile(model_.compile).stats().compile_ns) / 1e6;
      const std::vector<Tensor> outputs = model.make_outputs();
      in_ = views_of(inputs);
      out_ = views_of(outputs);
      measure(progress, [&] { return model.run(in_, out_).wall_ns; });
      profile(model);
    }
    trace_.write();
    progress.end();
    json ? print_json(model) : print_text(model);
    return kExitOk;
  }

 private:
  // The time of a run with the memory of its results made anew.
  static int64_t run_open(Model& model, const std::vector<AnyValue>& inputs) {
    auto stats = sized<pyc_run_stats>();
    model.run_values(inputs, &stats);
    return stats.wall_ns;
  }

  template <class RunOnce>
  void measure(Progress& progress, RunOnce run_once) {
    using Clock = std::chrono::steady_clock;
    for (int64_t i = 0; i < warmup_; ++i) run_once();
    trace_.stop();  // what is measured is not recorded
    auto start = Clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    while (elapsed() * 1e3 < static_cast<double>(warmup_ms_)) run_once();
    start = Clock::now();
    constexpr size_t kMostSamples = 10'000'000;
    while (runs_ > 0 ? times_.size() < static_cast<size_t>(runs_)
                     : times_.empty() || (elapsed() < seconds_ && times_.size() < kMostSamples)) {
      times_.push_back(run_once());
      runs_ > 0 ? progress.part(static_cast<double>(times_.size()), static_cast<double>(runs_))
                : progress.part(elapsed(), seconds_);
    }
    throughput_ = static_cast<double>(times_.size()) / elapsed();
    std::sort(times_.begin(), times_.end());
  }

  // Of several profiled runs, the times of the fastest.
  void profile(Model& model) {
    constexpr int kRuns = 5;
    const size_t count = pyc_model_step_count(model.get());
    std::vector<int64_t> best;
    for (int i = 0; i < kRuns; ++i) {
      std::vector<int64_t> ns(count);
      check([&](pyc_error** e) {
        return pyc_profile_model(model.get(), in_.data(), in_.size(), out_.data(), out_.size(),
                                 ns.data(), count, e);
      });
      const auto total = [](const auto& v) { return std::accumulate(v.begin(), v.end(), 0LL); };
      if (best.empty() || total(ns) < total(best)) best = ns;
    }
    const std::map<std::string, std::string> kernels = kernels_of(model);
    for (size_t i = 0; i < count; ++i) {
      auto info = sized<pyc_step_info>();
      check([&](pyc_error** e) { return pyc_model_step(model.get(), i, &info, e); });
      const auto kernel = kernels.find(info.name);
      steps_.push_back({.name = info.name,
                        .kernel = kernel == kernels.end() ? "" : kernel->second,
                        .ns = best[i],
                        .flops = info.flops,
                        .bytes = info.bytes_moved});
    }
    roofs_ = probe_roofs(model_.compile, std::ranges::any_of(steps_, &StepTime::multiplies_bytes));
    for (StepTime& step : steps_) step.compare_with(roofs_);
  }

  // By the name of the group.
  static std::map<std::string, std::string> kernels_of(const Model& model) {
    constexpr std::string_view kSubject = "kernel:";
    std::map<std::string, std::string> kernels;
    for_each_decision(model, [&](const pyc_decision& d, const auto&) {
      const std::string_view what = d.what;
      if (what.starts_with(kSubject)) kernels[std::string(what.substr(kSubject.size()))] = d.chosen;
    });
    return kernels;
  }

  // Part of the steps' time that is bound by it, 0 to 1.
  double share(std::string_view bound) const {
    double part = 0.0;
    double all = 0.0;
    for (const StepTime& s : steps_) {
      all += static_cast<double>(s.ns);
      if (s.bound == bound) part += static_cast<double>(s.ns);
    }
    return all == 0.0 ? 0.0 : part / all;
  }

  double flops() const {
    double sum = 0.0;
    for (const StepTime& s : steps_) sum += s.flops;
    return sum;
  }

  // Of the whole process, as the system counts it; -1 where it does not say.
  static int64_t resident_bytes() {
    int64_t pages = -1;
    if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(statm, "%*d %" SCNd64, &pages) != 1) pages = -1;
      std::fclose(statm);
    }
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
  }

  static Json known(int64_t bytes) { return bytes < 0 ? Json(nullptr) : Json(bytes); }

  // The peak is planned but for the run's own memory, which the allocator counted.
  static void print_peak(const pyc_memory_report& m) {
    say("peak    planned {} B, of it for a run {} B; the allocator handed out {} B\n", m.peak_bytes,
        m.arena_bytes + m.scratch_bytes, m.measured_arena_bytes);
    const int64_t resident = resident_bytes();
    say("process {} resident, besides the peak: code {} B, kept programs {} B\n",
        resident < 0 ? "unknown" : fmt::format("{} B", resident), m.code_bytes,
        m.kept_program_bytes);
  }

  void print_text(const Model& model) const {
    const double p50 = percentile(times_, 0.5);
    say("latency p50 {:.1f} us, p90 {:.1f}, p95 {:.1f}, p99 {:.1f} ({} runs)\n", p50,
        percentile(times_, 0.9), percentile(times_, 0.95), percentile(times_, 0.99), times_.size());
    if (model.is_open()) {
      say("speed   {:.1f} runs/s\ncompile {:.1f} ms\n", throughput_, cold_ms_);
    } else {
      say("speed   {:.1f} runs/s, {:.2f} GFLOP/s\n", throughput_, flops() / (p50 * 1e3));
      say("compile cold {:.1f} ms, from the cache {:.2f} ms\n", cold_ms_, warm_ms_);
    }
    print_memory(model.memory());
    if (model.is_open()) {
      say("breaks  {}\n", model.breaks().summary().summary);
      return;
    }
    print_peak(model.memory());
    say("bound   arithmetic {:.0f} %, memory {:.0f} %, other {:.0f} % of the time\n",
        100 * share("arithmetic"), 100 * share("memory"), 100 * share("other"));
    const std::string of_bytes =
        roofs_.byte_products_per_ns > 0.0
            ? fmt::format(", {:.1f} GFLOP/s in products of bytes", roofs_.byte_products_per_ns)
            : "";
    say("roofs   {:.1f} GFLOP/s{}, {:.1f} GB/s, as PyC reaches them here\n", roofs_.flops_per_ns,
        of_bytes, roofs_.bytes_per_ns);
    std::vector<StepTime> slowest = steps_;
    std::stable_sort(slowest.begin(), slowest.end(),
                     [](const StepTime& a, const StepTime& b) { return a.ns > b.ns; });
    constexpr size_t kShown = 5;
    slowest.resize(std::min(slowest.size(), kShown));
    for (const StepTime& s : slowest) {
      const char* bound = s.bound == "other" ? "the nearer bound" : "it";
      say("step    {}{}{}: {:.1f} us, {:.2f} GFLOP/s, {:.2f} GB/s, bound by {}, {:.0f} % of {}\n",
          s.name, s.kernel.empty() ? "" : " ", s.kernel, static_cast<double>(s.ns) / 1e3,
          s.flops / static_cast<double>(s.ns),
          static_cast<double>(s.bytes) / static_cast<double>(s.ns), s.bound, 100 * s.reached,
          bound);
    }
  }

  void print_json(const Model& model) const {
    Json report = {{"latency_us",
                    {{"p50", percentile(times_, 0.5)},
                     {"p90", percentile(times_, 0.9)},
                     {"p95", percentile(times_, 0.95)},
                     {"p99", percentile(times_, 0.99)},
                     {"min", percentile(times_, 0.0)},
                     {"max", percentile(times_, 1.0)}}},
                   {"runs", times_.size()},
                   {"runs_per_second", throughput_},
                   {"flops", flops()},
                   {"compile_ms_cold", cold_ms_},
                   {"compile_ms_warm", warm_ms_},
                   {"memory", memory_json(model.memory())},
                   {"planned_peak_bytes", model.memory().peak_bytes},
                   {"process",
                    {{"resident_bytes", known(resident_bytes())},
                     {"code_bytes", model.memory().code_bytes},
                     {"kept_program_bytes", model.memory().kept_program_bytes}}},
                   {"roofs",
                    {{"gflops", roofs_.flops_per_ns},
                     {"gbytes_per_second", roofs_.bytes_per_ns},
                     {"byte_product_gflops", roofs_.byte_products_per_ns}}},
                   {"bound",
                    {{"arithmetic", share("arithmetic")},
                     {"memory", share("memory")},
                     {"other", share("other")}}},
                   {"steps", Json::array()}};
    for (const StepTime& s : steps_) {
      report["steps"].push_back({{"name", s.name},
                                 {"kernel", s.kernel},
                                 {"ns", s.ns},
                                 {"flops", s.flops},
                                 {"bytes", s.bytes},
                                 {"bound", s.bound},
                                 {"reached", s.reached}});
    }
    print(report);
  }

  ModelOptions model_;
  InputOptions inputs_;
  TraceFlag trace_;
  int64_t warmup_ = 3;
  int64_t warmup_ms_ = 0;
  int64_t runs_ = 0;
  double seconds_ = 1.0;
  double cold_ms_ = 0.0;
  double warm_ms_ = 0.0;
  double throughput_ = 0.0;
  std::vector<pyc_tensor_view> in_;
  std::vector<pyc_tensor_view> out_;
  std::vector<int64_t> times_;  // sorted
  Roofs roofs_;
  std::vector<StepTime> steps_;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<Bench>(); }

}  // namespace pyc::tool

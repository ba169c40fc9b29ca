// pyc_bench_trace_cost [--threads N] [--every-run] MODEL...: what a trace costs the runs of a
// model, by the clock; with --every-run, what it costs to record each.
//
// A pair is the model compiled twice, once with a trace, each with memory of its own. Bursts of
// runs of both follow each other in turn; a ratio is that of the bursts of one turn, the whole time
// of their calls. Pairs without any trace show what else makes two models differ: the control.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <pyc/pyc.hpp>
#include <string>
#include <vector>

namespace {

constexpr int kPairs = 8;
constexpr int kTurns = 25;
constexpr double kBurstUs = 800.0;
constexpr int kWarmUp = 20;

// A model with its tensors.
class Runner {
 public:
  Runner(const std::string& path, int threads, pyc_trace* trace)
      : model_(pyc::Model::load(path, options(threads, trace))) {
    for (size_t i = 0; i < model_.input_count(); ++i) {
      const pyc_value_info info = model_.input(i);
      inputs_.push_back(
          pyc::Tensor::random(info.dtype, pyc::Shape(info.shape, info.shape + info.rank), i + 1));
      in_.push_back(inputs_.back().view());
    }
    outputs_ = model_.make_outputs();
    for (const pyc::Tensor& output : outputs_) out_.push_back(output.view());
    steps = model_.run(in_, out_).steps;
    burst_us(kWarmUp);
  }

  // The time of a run.
  double burst_us(int runs) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) model_.run(in_, out_);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    return took.count() / runs;
  }

  int64_t steps = 0;

 private:
  static pyc::CompileOptions options(int threads, pyc_trace* trace) {
    pyc::CompileOptions out;
    out.set("threads", threads);
    out.trace(trace);
    return out;
  }

  pyc::Model model_;
  std::vector<pyc::Tensor> inputs_;
  std::vector<pyc::Tensor> outputs_;
  std::vector<pyc_tensor_view> in_;
  std::vector<pyc_tensor_view> out_;
};

struct Seen {
  std::vector<double> plain_us;
  std::vector<double> ratios;
  int64_t steps = 0;
  pyc::Trace::Runs runs;
};

struct Setting {
  int threads = 1;
  bool every_run = false;
};

void add_pair(const std::string& path, const Setting& setting, bool traced, bool plain_first,
              Seen& seen) {
  const int threads = setting.threads;
  pyc::Trace trace;
  if (setting.every_run) trace.every_run();
  pyc_trace* const to = traced ? trace.get() : nullptr;
  Runner first(path, threads, plain_first ? nullptr : to);
  Runner second(path, threads, plain_first ? to : nullptr);
  Runner& plain = plain_first ? first : second;
  Runner& other = plain_first ? second : first;
  const int runs = std::max(1, static_cast<int>(kBurstUs / plain.burst_us(kWarmUp)));
  for (int turn = 0; turn < kTurns; ++turn) {
    double plain_us = 0;
    if (turn % 2 == 0) plain_us = plain.burst_us(runs);
    const double other_us = other.burst_us(runs);
    if (turn % 2 != 0) plain_us = plain.burst_us(runs);
    seen.plain_us.push_back(plain_us);
    seen.ratios.push_back(other_us / plain_us);
  }
  seen.steps = plain.steps;
  const pyc::Trace::Runs counted = trace.runs();
  seen.runs.recorded += counted.recorded;
  seen.runs.passed_over += counted.passed_over;
}

Seen measured(const std::string& path, const Setting& setting, bool traced) {
  Seen seen;
  for (int pair = 0; pair < kPairs; ++pair) add_pair(path, setting, traced, pair % 2 == 0, seen);
  return seen;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// "1.0123 (1.0101–1.0145)": the median and its 95 % interval.
std::string with_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const auto reach = static_cast<size_t>(0.98 * std::sqrt(static_cast<double>(values.size())));
  return fmt::format("{:.4f} ({:.4f}–{:.4f})", values[half], values[half - reach],
                     values[std::min(half + reach, values.size() - 1)]);
}

std::string name_of(const std::filesystem::path& path) {
  return (path.stem() == "model" ? path.parent_path() : path).filename().string();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  Setting setting;
  if (models.size() > 1 && models[0] == "--threads") {
    setting.threads = std::stoi(models[1]);
    models.erase(models.begin(), models.begin() + 2);
  }
  if (!models.empty() && models[0] == "--every-run") {
    setting.every_run = true;
    models.erase(models.begin());
  }
  if (models.empty()) {
    for (const char* name : {"linear_relu", "mlp", "transformer_block", "decoder_step"}) {
      models.push_back(fmt::format("tests/models/{}.ir", name));
    }
  }
  fmt::print("| model, {} thread{} | steps | not traced us | recorded | traced / not | control |\n",
             setting.threads, setting.threads == 1 ? "" : "s");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const std::string& path : models) {
    try {
      const Seen control = measured(path, setting, false);
      const Seen traced = measured(path, setting, true);
      const auto recorded = static_cast<double>(traced.runs.recorded);
      fmt::print("| `{}` | {} | {:.2f} | {:.1f} % | {} | {} |\n", name_of(path), traced.steps,
                 median(traced.plain_us),
                 100 * recorded / (recorded + static_cast<double>(traced.runs.passed_over)),
                 with_interval(traced.ratios), with_interval(control.ratios));
    } catch (const std::exception& error) {
      fmt::print("| `{}` | not run: {} |\n", name_of(path), error.what());
    }
    std::fflush(stdout);
  }
  return 0;
}

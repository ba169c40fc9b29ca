// What other options would come to: peak and time of modes, budgets, thread counts and kernels.

#include <fmt/format.h>
#include <pyc/predict.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// Times nearer than this are called even: the costs of kernels are no better, and a machine does as
// much by itself.
constexpr double kPredictedEven = 0.05;
constexpr double kMeasuredEven = 0.03;

// The kernels that are left out to see what they are worth.
constexpr const char* kTiles = "f32_matmul";

// One set of options, what is predicted for it and, if asked, what was measured.
struct Scenario {
  std::string mode;
  int64_t threads = 0;
  std::string budget;  // "none", "100 %", "smallest"
  int64_t budget_bytes = 0;
  std::string without = {};  // kernels that are left out
  std::string refusal = {};
  pyc_prediction predicted = {};
  int64_t measured_peak = -1;
  double measured_us = -1;
};

class WhatIf final : public Command {
 public:
  std::string name() const override { return "what-if"; }
  std::string summary() const override {
    return "Predict peak and time for modes, budgets, thread counts and kernels";
  }
  std::string examples() const override {
    return "  pyc what-if tests/models/unet.ir\n"
           "  pyc what-if tests/models/transformer_block.ir --measure --json\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.flag("--measure", measure_, "Also compile and run each, and print what was measured");
    options.integer("--runs", runs_, "Runs to take the median of", 1, 100'000);
  }

  int run() override {
    model_.finish();
    Progress progress(*this, "planning " + model_.model);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    const Graph graph = settled_graph(file, model_.compile);
    plan_all(graph);
    if (measure_) {
      for (Scenario& s : scenarios_) measure(file, s);
    }
    progress.end();
    json ? print_json() : print_text();
    return kExitOk;
  }

 private:
  CompileOptions options_of(const Scenario& s) const {
    CompileOptions options(model_.compile);
    options.set("mode", s.mode);
    options.set("threads", std::to_string(s.threads));
    options.set("memory_budget", std::to_string(s.budget_bytes));
    if (!s.without.empty()) options.set("exclude", s.without);  // beside those asked for
    return options;
  }

  void add(const Graph& graph, Scenario s, bool smallest) {
    s.predicted = sized<pyc_prediction>();
    try {
      const CompileOptions options = options_of(s);
      check([&](pyc_error** e) {
        return pyc_predict(graph.get(), options.get(), smallest ? 1 : 0, &s.predicted, e);
      });
      if (smallest) s.budget_bytes = s.predicted.peak_bytes;
    } catch (const Error& e) {
      if (e.code() != PYC_STATUS_BUDGET_EXCEEDED) throw;
      s.refusal = e.message();
    }
    scenarios_.push_back(std::move(s));
  }

  // Every mode with every budget, then other numbers of threads, then without tiles for products.
  // Percents are of the peak that the options as given come to without a budget.
  void plan_all(const Graph& graph) {
    const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
    const int64_t asked = std::stoll(model_.compile.text("threads"));
    const int64_t threads = asked > 0 ? asked : cores;
    const std::string own = model_.compile.text("mode");
    add(graph, {own, threads, "none"}, false);
    const int64_t peak = scenarios_.front().predicted.peak_bytes;
    for (const std::string& mode : modes()) {
      if (mode != own) add(graph, {mode, threads, "none"}, false);
      for (const int64_t percent : {100, 75, 50}) {
        add(graph, {mode, threads, fmt::format("{} %", percent), peak * percent / 100}, false);
      }
      add(graph, {mode, threads, "smallest"}, true);
    }
    for (int64_t n = 1; n <= cores; n *= 2) {
      if (n != threads) add(graph, {own, n, "none"}, false);
    }
    add(graph, {.mode = own, .threads = threads, .budget = "none", .without = kTiles}, false);
  }

  static std::vector<std::string> modes() {
    for (const pyc_option_info& option : compile_options()) {
      if (std::string_view(option.name) == "mode") {
        return {option.words, option.words + option.word_count};
      }
    }
    return {};
  }

  void measure(const ModelFile& file, Scenario& s) const {
    if (!s.refusal.empty()) return;
    Model model = file.compile(options_of(s));
    const std::vector<AnyValue> inputs = inputs_.make(model);
    const std::vector<Tensor> outputs = model.make_outputs();
    const std::vector<pyc_tensor_view> in = views_of(inputs);
    const std::vector<pyc_tensor_view> out = views_of(outputs);
    std::vector<int64_t> ns;
    model.run(in, out);
    for (int64_t i = 0; i < runs_; ++i) ns.push_back(model.run(in, out).wall_ns);
    std::sort(ns.begin(), ns.end());
    s.measured_us = static_cast<double>(ns[ns.size() / 2]) / 1e3;
    const pyc_memory_report memory = model.memory();
    // All but the arena and the scratch are the caller's or the program's own bytes.
    s.measured_peak =
        memory.peak_bytes - memory.arena_bytes - memory.scratch_bytes + memory.measured_arena_bytes;
  }

  static double predicted_us(const Scenario& s) {
    return s.predicted.run_ns < 0 ? -1 : s.predicted.run_ns / 1e3;
  }
  static double measured_us(const Scenario& s) { return s.measured_us; }

  // How a time stands against that of the options as given; "" where one is not known.
  static std::string against(double time, double usual, double even) {
    if (time < 0 || usual < 0) return "";
    if (std::abs(time - usual) <= even * std::max(time, usual)) return "even";
    return time < usual ? "faster" : "slower";
  }
  std::string predicted_against(const Scenario& s) const {
    return against(predicted_us(s), predicted_us(scenarios_.front()), kPredictedEven);
  }
  std::string measured_against(const Scenario& s) const {
    return against(s.measured_us, scenarios_.front().measured_us, kMeasuredEven);
  }

  static std::string title(const Scenario& s) {
    return fmt::format("{}, budget {}, {} thread{}{}{}", s.mode, s.budget, s.threads,
                       s.threads == 1 ? "" : "s", s.without.empty() ? "" : ", without ", s.without);
  }
  // The fastest of those that were not refused, or that several are too near to tell.
  void say_fastest(const char* label, double (*time)(const Scenario&), double even) const {
    const Scenario* best = nullptr;
    for (const Scenario& s : scenarios_) {
      if (!s.refusal.empty() || time(s) < 0) continue;
      if (best == nullptr || time(s) < time(*best)) best = &s;
    }
    if (best == nullptr) return;
    const auto near = std::ranges::count_if(scenarios_, [&](const Scenario& s) {
      return s.refusal.empty() && against(time(s), time(*best), even) == "even";
    });
    say("{}{}", label, title(*best));
    if (near > 1) say("; no clear winner: {} more are within {:.0f} %", near - 1, even * 100);
    say("\n");
  }

  void print_text() const {
    say("{:<13} {:>7}  {:<9} {:<10} {:>14} {:>6} {:>14} {:>12} {:<6}", "mode", "threads", "budget",
        "without", "peak", "again", "copied", "time", "");
    if (measure_) say(" {:>14} {:>12}", "measured peak", "time");
    say("\n");
    for (const Scenario& s : scenarios_) {
      say("{:<13} {:>7}  {:<9} {:<10} ", s.mode, s.threads, s.budget, s.without);
      if (!s.refusal.empty()) {
        say("refused: {} B is too little\n", s.budget_bytes);
        continue;
      }
      const std::string time =
          s.predicted.run_ns < 0 ? "unknown" : fmt::format("{:.1f} us", predicted_us(s));
      const bool usual = &s == &scenarios_.front();
      say("{:>12} B {:>6} {:>12} B {:>12} {:<6}", s.predicted.peak_bytes,
          s.predicted.recomputed_steps, s.predicted.copied_bytes, time,
          usual ? "" : predicted_against(s));
      if (measure_) {
        say(" {:>12} B {:>12} {}", s.measured_peak, fmt::format("{:.1f} us", s.measured_us),
            usual ? "" : measured_against(s));
      }
      say("\n");
    }
    say_fastest("predicted fastest: ", predicted_us, kPredictedEven);
    if (measure_) say_fastest("measured fastest:  ", measured_us, kMeasuredEven);
  }

  void print_json() const {
    Json rows = Json::array();
    for (const Scenario& s : scenarios_) {
      Json row = {{"mode", s.mode},
                  {"threads", s.threads},
                  {"budget", s.budget},
                  {"budget_bytes", s.budget_bytes},
                  {"without", s.without}};
      if (!s.refusal.empty()) {
        row["refused"] = s.refusal;
      } else {
        row["predicted"] = {{"peak_bytes", s.predicted.peak_bytes},
                            {"arena_bytes", s.predicted.arena_bytes},
                            {"steps", s.predicted.steps},
                            {"recomputed_steps", s.predicted.recomputed_steps},
                            {"copied_bytes", s.predicted.copied_bytes},
                            {"run_us", predicted_us(s)},
                            {"against_first", predicted_against(s)}};
      }
      if (s.measured_us >= 0) {
        row["measured"] = {{"peak_bytes", s.measured_peak},
                           {"run_us", s.measured_us},
                           {"against_first", measured_against(s)}};
      }
      rows.push_back(std::move(row));
    }
    print(Json{{"scenarios", std::move(rows)}});
  }

  ModelOptions model_;
  InputOptions inputs_;
  bool measure_ = false;
  int64_t runs_ = 21;
  std::vector<Scenario> scenarios_;
};

}  // namespace

std::unique_ptr<Command> make_what_if() { return std::make_unique<WhatIf>(); }

}  // namespace pyc::tool

// Measures a model's kernels and keeps what is fastest.

#include <fmt/format.h>
#include <pyc/tune.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Tune final : public Command {
 public:
  std::string name() const override { return "tune"; }
  std::string summary() const override {
    return "Measure a model's kernels here, so that compiles choose the fastest";
  }
  std::string examples() const override {
    return "  pyc tune tests/models/mlp.ir --cache-dir cache\n"
           "  pyc tune tests/models/mlp.ir --cache-dir cache --budget 60\n"
           "  pyc explain tests/models/mlp.ir --cache-dir cache\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.number("--budget", budget_s_,
                   "Seconds after which no further kernel is begun; a later call goes on there; "
                   "0: no limit",
                   Options::kMostSeconds);
  }

  int run() override {
    model_.finish();
    Progress progress(*this, "tuning " + model_.model);
    progress_ = &progress;
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    const Graph graph = settled_graph(file, model_.compile);
    auto report = sized<pyc_tune_report>();
    check([&](pyc_error** e) {
      return pyc_tune(graph.get(), model_.compile.get(), static_cast<int64_t>(budget_s_ * 1e3),
                      &Tune::after_group, this, &report, e);
    });
    progress.end();
    json ? print_json(report) : print_text(report);
    return kExitOk;
  }

 private:
  static int32_t after_group(void* self, const pyc_tuned_group* group) {
    auto& tune = *static_cast<Tune*>(self);
    tune.progress_->part(static_cast<double>(group->done), static_cast<double>(group->all));
    tune.rows_.push_back({{"group", group->group},
                          {"untuned", group->untuned},
                          {"chosen", group->chosen},
                          {"untuned_us", group->untuned_ns / 1e3},
                          {"chosen_us", group->chosen_ns / 1e3},
                          {"predicted_us", group->predicted_ns / 1e3},
                          {"gflops", group->chosen_ns > 0 ? group->flops / group->chosen_ns : 0.0},
                          {"known", group->known != 0},
                          {"candidates", group->candidates}});
    tune.lines_.push_back(line_of(*group));
    return 0;
  }

  static std::string line_of(const pyc_tuned_group& g) {
    std::string text =
        fmt::format("{:<6} {:<28} {:10.1f} us", g.group, g.chosen, g.chosen_ns / 1e3);
    if (g.flops > 0 && g.chosen_ns > 0) {
      text += fmt::format(" {:8.1f} GFLOP/s", g.flops / g.chosen_ns);
    }
    if (std::string_view(g.chosen) != g.untuned) {
      text += fmt::format("  in place of {}, {:.1f} us", g.untuned, g.untuned_ns / 1e3);
    }
    return text;
  }

  void print_json(const pyc_tune_report& r) {
    print(Json{{"groups", std::move(rows_)},
               {"measured", r.measured},
               {"known", r.known},
               {"left", r.left},
               {"changed", r.changed},
               {"near_best", r.near_best},
               {"wrong", r.wrong},
               {"machine",
                {{"gflops", r.flops_per_ns},
                 {"gigabytes_per_s", r.bytes_per_ns},
                 {"step_us", r.step_ns / 1e3}}}});
  }

  void print_text(const pyc_tune_report& r) const {
    for (const std::string& line : lines_) say("{}\n", line);
    say("{} of {} kernels measured now, {} before; {} left\n", r.measured, r.groups, r.known,
        r.left);
    say("{} chosen otherwise than by estimates, which were within 3 % of the fastest for {} of "
        "{}\n",
        r.changed, r.near_best, r.measured + r.known);
    if (r.wrong > 0) say("{} left out: their results were wrong\n", r.wrong);
    say("this machine: {:.1f} GFLOP/s, {:.1f} GB/s, {:.2f} us a step\n", r.flops_per_ns,
        r.bytes_per_ns, r.step_ns / 1e3);
  }

  ModelOptions model_;
  InputOptions inputs_;
  double budget_s_ = 0;
  Progress* progress_ = nullptr;
  Json rows_ = Json::array();
  std::vector<std::string> lines_;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<Tune>(); }

}  // namespace pyc::tool

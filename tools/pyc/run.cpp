#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "report.h"

namespace pyc::tool {
namespace {

constexpr size_t kShownElements = 4;

std::string first_values(const Tensor& tensor) {
  const pyc_tensor_view view = tensor.view();
  const int64_t count = view.bytes / pyc_dtype_size(view.dtype);
  std::vector<double> numbers(std::min(kShownElements, static_cast<size_t>(count)));
  check([&](pyc_error** e) {
    return pyc_tensor_read_f64(&view, 0, static_cast<int64_t>(numbers.size()), numbers.data(), e);
  });
  std::string text;
  for (const double x : numbers) text += fmt::format("{}{:.6g}", text.empty() ? "" : " ", x);
  return static_cast<size_t>(count) > numbers.size() ? text + " …" : text;
}

// Outputs may have any name; a file's name may not.
std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

class Run final : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override {
    return "Compile a model, or load a compiled one, and run it";
  }
  std::string examples() const override {
    return "  pyc run tests/models/mlp.ir\n"
           "  pyc run mlp.pycm --threads 2\n"
           "  pyc run model.ir --input x=x.npy --output-dir out\n"
           "  pyc run model.ir --device reference --determinism strict --seed 7\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.text("--output-dir", output_dir_, "Folder to write each output to, as NAME.npy");
    options.integer("--repeat", repeat_, "Runs; the median time is shown", 1, 1'000'000);
    options.flag("--explain", explain_, "Print the main decisions too");
  }

  int run() override {
    model_.finish();
    const Progress progress("running " + model_.model);
    Model model = Model::load(model_.model, model_.compile);
    const std::vector<Tensor> inputs = inputs_.make(model);
    const std::vector<Tensor> outputs = model.make_outputs();
    const auto in = views_of(inputs);
    const auto out = views_of(outputs);
    std::vector<int64_t> times;
    for (int64_t i = 0; i < repeat_; ++i) times.push_back(model.run(in, out).wall_ns);
    std::sort(times.begin(), times.end());
    const double run_us = static_cast<double>(times[times.size() / 2]) / 1e3;
    if (!output_dir_.empty()) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        outputs[i].save_npy(output_dir_ + "/" + file_name(model.output(i).name));
      }
    }
    json ? print_json(model, outputs, run_us) : print_text(model, outputs, run_us, times.size());
    return kExitOk;
  }

 private:
  static void print_json(const Model& model, const std::vector<Tensor>& outputs, double run_us) {
    Json report;
    report["outputs"] = Json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
      Json row = value_json(model.output(i));
      row["digest"] = outputs[i].digest();
      report["outputs"].push_back(std::move(row));
    }
    report["compile_ms"] = static_cast<double>(model.stats().compile_ns) / 1e6;
    report["run_us"] = run_us;
    report["memory"] = memory_json(model.memory());
    report["log"] = Json::parse(model.decision_log());
    print(report);
  }

  void print_text(const Model& model, const std::vector<Tensor>& outputs, double run_us,
                  size_t runs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const pyc_value_info info = model.output(i);
      fmt::print("output  {}: {} digest {}\n        {}\n", info.name, type_text(info),
                 outputs[i].digest(), first_values(outputs[i]));
    }
    fmt::print("time    compile {:.1f} ms, run {:.1f} us (median of {})\n",
               static_cast<double>(model.stats().compile_ns) / 1e6, run_us, runs);
    print_memory(model.memory());
    if (!explain_) return;
    fmt::print("decisions\n");
    for_each_decision(model, [](const pyc_decision& d, const auto& alternatives) {
      const std::string_view what = d.what;
      if (what.starts_with("kernel:") || what.starts_with("fusion:") ||
          what.starts_with("compile")) {
        fmt::print("  {}\n", decision_text(d, alternatives));
      }
    });
  }

  ModelOptions model_;
  InputOptions inputs_;
  std::string output_dir_;
  int64_t repeat_ = 1;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace pyc::tool

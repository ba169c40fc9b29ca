#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// Outputs may have any name; a file's name may not.
std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return;
  const std::string why = error ? error.message() : "it is a file";
  throw Error(PYC_STATUS_IO_ERROR, fmt::format("--output-dir: cannot make {}: {}", path, why), "");
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
           "  pyc run model.onnx --input x=x.npy --output-dir out\n"
           "  pyc run model.onnx --input words=words.pb --input list=sequence.pb\n"
           "  pyc run model.onnx --dim batch=4 --shape ids=4,128\n"
           "  pyc run tests/models/decoder_step.ir --state keys=keys.next --state "
           "values=values.next --repeat 8\n"
           "  pyc run tests/models/mlp.ir --repeat 20 --trace trace.json\n"
           "  pyc run model.ir --device reference --determinism strict --seed 7\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.text("--output-dir", output_dir_,
                 "Folder to write each output to, as NAME.npy; made where it is not there");
    options.integer("--repeat", repeat_, "Runs; the median time is shown", 1, 1'000'000);
    trace_.declare(options);
    trace_.declare_runs(options);
    options.flag("--explain", explain_, "Print the main decisions too");
  }

  int run() override {
    model_.finish();
    trace_.begin(model_.compile);
    Progress progress(*this, "running " + model_.model);
    progress.watch(model_.compile);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    Model model = settled_model(file, model_.compile, inputs_);
    const std::vector<AnyValue> inputs = inputs_.make(model);
    std::vector<int64_t> times;
    Results outputs;
    auto stats = sized<pyc_run_stats>();
    for (int64_t i = 0; i < repeat_; ++i) {
      outputs = model.run_values(inputs, &stats);
      times.push_back(stats.wall_ns);
      if (repeat_ > 1) progress.part(static_cast<double>(i + 1), static_cast<double>(repeat_));
    }
    std::sort(times.begin(), times.end());
    const double run_us = static_cast<double>(times[times.size() / 2]) / 1e3;
    if (!output_dir_.empty()) save(model, outputs);
    trace_.write();
    progress.end();
    json ? print_json(model, outputs, run_us, stats)
         : print_text(model, outputs, run_us, times.size(), stats);
    return kExitOk;
  }

 private:
  // Other values than tensors have no .npy file.
  void save(const Model& model, const Results& outputs) const {
    make_folder(output_dir_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = model.output(i).name;
      if (pyc_result_type(outputs[i]) != PYC_TYPE_TENSOR) {
        say(stderr, "note: output '{}' is {}: not written to {}\n", name,
            pyc_result_type_text(outputs[i]), output_dir_);
        continue;
      }
      const pyc_tensor_view view = outputs.tensor(i);
      const std::string path = output_dir_ + "/" + file_name(name);
      check([&](pyc_error** e) { return pyc_tensor_save_npy(&view, path.c_str(), e); });
    }
  }

  static void print_json(const Model& model, const Results& outputs, double run_us,
                         const pyc_run_stats& last) {
    Json report;
    report["outputs"] = Json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
      Json row = {{"name", model.output(i).name}};
      const Json result = result_json(outputs[i]);
      for (const std::string& name : result.names()) row[name] = result[name];
      report["outputs"].push_back(std::move(row));
    }
    report["compile_ms"] = static_cast<double>(model.stats().compile_ns) / 1e6;
    report["run_us"] = run_us;
    report["memory"] = memory_json(model.memory());
    report["values"] = {{"bytes", last.value_bytes}, {"peak_bytes", last.value_peak_bytes}};
    report["copied_bytes"] = last.copied_bytes;
    report["recomputed_steps"] = last.recomputed_steps;
    report["transfers"] = {{"sent_bytes", last.sent_bytes}, {"fetched_bytes", last.fetched_bytes}};
    report["log"] = Json::parse(model.decision_log()).value();
    print(report);
  }

  void print_text(const Model& model, const Results& outputs, double run_us, size_t runs,
                  const pyc_run_stats& last) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      say("output  {}: {}", model.output(i).name, Lines{result_text(outputs[i], "        ")});
    }
    say("time    compile {:.1f} ms, run {:.1f} us (median of {})\n",
        static_cast<double>(model.stats().compile_ns) / 1e6, run_us, runs);
    print_memory(model.memory());
    if (last.recomputed_steps > 0) {
      say("again   {} of {} steps, for the memory budget\n", last.recomputed_steps, last.steps);
    }
    if (const int64_t mapped = model.memory().mapped_bytes; mapped > 0) {
      say("file    {} of parameters stay in a mapped file, {} B copied in the last run\n",
          bytes_text(mapped), last.copied_bytes);
    }
    if (model.state_count() > 0) {
      say("state   {} B kept, {} B copied in the last run\n", model.memory().state_bytes,
          last.copied_bytes);
    }
    for_each_decision(model, [](const pyc_decision& d, const auto&) {
      constexpr std::string_view kPrefix = "contract:";
      const std::string_view what = d.what;
      if (!what.starts_with(kPrefix)) return;
      say("contract {} {} [{}] {}\n", what.substr(kPrefix.size()), d.chosen, d.reason, d.detail);
    });
    if (model.is_open()) {
      say("values  peak {} B, {} B at the end\n", last.value_peak_bytes, last.value_bytes);
      say("breaks  {}\n", model.breaks().summary().summary);
    }
    trace_.print();
    if (!explain_) return;
    say("decisions\n");
    for_each_decision(model, [](const pyc_decision& d, const auto& alternatives) {
      const std::string_view what = d.what;
      if (what.starts_with("kernel:") || what.starts_with("fusion:") ||
          what.starts_with("compile") || what.starts_with("graph_break") ||
          what.starts_with("order:") || what.starts_with("state:") || what == "device") {
        say("  {}\n", Lines{decision_text(d, alternatives)});
      }
    });
  }

  ModelOptions model_;
  InputOptions inputs_;
  TraceFlag trace_;
  std::string output_dir_;
  int64_t repeat_ = 1;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run() { return std::make_unique<Run>(); }

}  // namespace pyc::tool

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "command.h"
#include "roofs.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Report final : public Command {
 public:
  std::string name() const override { return "report"; }
  std::string summary() const override {
    return "Write a page that shows graph, timeline, memory, roofline and decisions of a model";
  }
  std::string examples() const override {
    return "  pyc report tests/models/transformer_block.ir -o report.html\n"
           "  pyc report model.onnx --dim batch=4 --threads 2 --runs 20 -o report.html\n"
           "  pyc report tests/models/mlp.ir --runs 0 --json\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.text("-o,--output", output_, "The HTML file to write");
    options.integer("--runs", runs_, "Runs to measure, after one that is not; 0: none", 0, 10'000);
    options.flag("--no-probe", no_probe_, "Do not measure what the machine reaches at best");
  }

  int run() override {
    if (output_.empty() && !json) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, "no file to write is given: -o FILE.html", "");
    }
    model_.finish();
    Progress progress(*this, "reporting on " + model_.model);
    progress.watch(model_.compile);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    const std::optional<Graph> graph = one_graph(file);
    Model model =
        graph ? Model(*graph, model_.compile) : settled_model(file, model_.compile, inputs_);
    const std::string title = std::filesystem::path(model_.model).filename().string();
    auto facts = sized<pyc_report_facts>();
    facts.title = title.c_str();
    const std::vector<int64_t> times = measure(model);
    facts.step_ns = times.data();
    facts.step_ns_count = times.size();
    if (!times.empty() && !no_probe_) {
      const Roofs roofs = probe_roofs(model_.compile);
      facts.flops_per_ns = roofs.flops_per_ns;
      facts.bytes_per_ns = roofs.bytes_per_ns;
    }
    const auto text = [&](int32_t format) {
      return take_text([&](char** out, pyc_error** e) {
        return pyc_model_report(model.get(), graph ? graph->get() : nullptr, &facts, format, out,
                                e);
      });
    };
    if (!output_.empty()) {
      const std::string page = text(PYC_REPORT_HTML);
      write_file("-o", output_, page);
      progress.end();
      if (!quiet && !json) {
        const std::string shown =
            model.is_open() ? "compiled in parts as it runs, so no steps were measured"
                            : fmt::format("{} steps, {} runs measured",
                                          pyc_model_step_count(model.get()), runs_of(model, times));
        say("{}: {}, {}; open it in a browser\n", output_,
            bytes_text(static_cast<int64_t>(page.size())), shown);
      }
    }
    if (json) say("{}\n", Lines{text(PYC_REPORT_JSON)});
    return kExitOk;
  }

 private:
  // The model as one graph of the shapes chosen; nothing where parts of it are no tensor code, and
  // for a model that was compiled ahead of time.
  std::optional<Graph> one_graph(const ModelFile& file) {
    return ShapeChoice(file, model_.compile, &inputs_).settle([&] {
      return closed_graph(file, model_.compile);
    });
  }

  static size_t runs_of(const Model& model, const std::vector<int64_t>& times) {
    return times.empty() ? 0 : times.size() / pyc_model_step_count(model.get());
  }

  // The time of each step, run after run. An open model has no steps; it is run for its decisions.
  std::vector<int64_t> measure(Model& model) const {
    std::vector<int64_t> times;
    if (runs_ == 0) return times;
    const std::vector<AnyValue> inputs = inputs_.make(model);
    if (model.is_open()) {
      model.run_values(inputs);
      return times;
    }
    const std::vector<Tensor> outputs = model.make_outputs();
    const std::vector<pyc_tensor_view> in = views_of(inputs);
    const std::vector<pyc_tensor_view> out = views_of(outputs);
    model.run(in, out);
    const size_t steps = pyc_model_step_count(model.get());
    times.resize(steps * static_cast<size_t>(runs_));
    for (size_t at = 0; at < times.size(); at += steps) {
      check([&](pyc_error** e) {
        return pyc_profile_model(model.get(), in.data(), in.size(), out.data(), out.size(),
                                 times.data() + at, steps, e);
      });
    }
    return times;
  }

  ModelOptions model_;
  InputOptions inputs_;
  std::string output_;
  int64_t runs_ = 5;
  bool no_probe_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<Report>(); }

}  // namespace pyc::tool

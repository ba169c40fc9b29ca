#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// Tensor files are told by .npy's magic or the ending .pb.
bool is_tensor_file(const std::string& path) {
  return starts_with(path, "\x93NUMPY") || path.ends_with(".pb");
}

class Inspect final : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "Show what a model, compiled model or tensor file holds";
  }
  std::string examples() const override {
    return "  pyc inspect model.onnx --dim batch=4\n"
           "  pyc inspect tests/models/mlp.ir\n"
           "  pyc inspect tests/models/mlp.ir --node h1\n"
           "  pyc inspect mlp.pycm\n"
           "  pyc inspect x.npy\n";
  }
  void declare(Options& options) override {
    options.positional("file", file_, "Model file, .pycm, .npy or .pb file");
    shapes_.declare(options);
    options.text("--node", node_, "Only the value of this name and the node that makes it");
  }

  int run() override {
    if (is_tensor_file(file_)) return show_tensor(Tensor::load(file_));
    if (starts_with(file_, "\x89PYCM")) return show_artifact(Artifact(file_));
    shapes_.finish(shaped_);
    Progress progress(*this, "reading " + file_);
    const ModelFile model = ModelFile::load(file_);
    progress.end();
    return node_.empty() ? show_model(model) : show_node(model.graph(shaped_));
  }

 private:
  int show_tensor(const Tensor& tensor) const {
    const pyc_tensor_view view = tensor.view();
    const std::vector<double> numbers = tensor.numbers();
    double lo = INFINITY;
    double hi = -INFINITY;
    int64_t nans = 0;
    for (const double x : numbers) {
      nans += std::isnan(x) ? 1 : 0;
      if (x < lo) lo = x;
      if (x > hi) hi = x;
    }
    const bool any = lo <= hi;
    if (json) {
      print(Json{{"dtype", pyc_dtype_name(view.dtype)},
                 {"shape", tensor.shape()},
                 {"bytes", view.bytes},
                 {"digest", tensor.digest()},
                 {"min", any ? Json(lo) : Json(nullptr)},
                 {"max", any ? Json(hi) : Json(nullptr)},
                 {"nan", nans}});
      return kExitOk;
    }
    say("tensor  {}{} digest {}\n", pyc_dtype_name(view.dtype), shape_text(view.shape, view.rank),
        tensor.digest());
    if (any) say("values  from {:.6g} to {:.6g}, {} NaN\n", lo, hi, nans);
    return kExitOk;
  }

  int show_artifact(const Artifact& artifact) const {
    const pyc_artifact_info info = artifact.info();
    if (json) {
      Json report = {{"version", info.version},
                     {"device", info.device},
                     {"target", info.target},
                     {"runs_here", *info.missing == '\0'},
                     {"determinism", info.determinism},
                     {"fingerprint", info.fingerprint},
                     {"inputs", Json::array()},
                     {"outputs", Json::array()},
                     {"steps", info.step_count},
                     {"decisions", info.decision_count},
                     {"file_bytes", info.file_bytes},
                     {"code_bytes", info.code_bytes},
                     {"parameter_bytes", info.parameter_bytes},
                     {"peak_bytes", info.peak_bytes}};
      for (size_t i = 0; i < info.input_count; ++i) {
        report["inputs"].push_back(value_json(artifact.input(i)));
      }
      for (size_t i = 0; i < info.output_count; ++i) {
        report["outputs"].push_back(value_json(artifact.output(i)));
      }
      print(report);
      return kExitOk;
    }
    for (size_t i = 0; i < info.input_count; ++i) {
      say("input   {}: {}\n", artifact.input(i).name, type_text(artifact.input(i)));
    }
    for (size_t i = 0; i < info.output_count; ++i) {
      say("output  {}: {}\n", artifact.output(i).name, type_text(artifact.output(i)));
    }
    const std::string here = *info.missing == '\0'
                                 ? "this machine runs it"
                                 : fmt::format("not this machine's: {}", info.missing);
    say("made    by PyC {} for {} ({}), determinism {}\n", info.version, machine_text(info), here,
        info.determinism);
    say("holds   {} steps, code {}, parameters {}, file {}\nprint   {}\n", info.step_count,
        bytes_text(info.code_bytes), bytes_text(info.parameter_bytes), bytes_text(info.file_bytes),
        info.fingerprint);
    return kExitOk;
  }

  // Of a model that is one graph; hashing it reads all of its constants.
  std::string fingerprint(const ModelFile& model) const {
    if (!model.unsupported().empty()) return "";
    const std::optional<Graph> graph = closed_graph(model, shaped_);
    return graph ? graph->fingerprint() : "";
  }

  int show_model(const ModelFile& model) const {
    const std::string print_of_graph = fingerprint(model);
    const Breaks breaks = model.breaks(shaped_);
    Json report = Json::parse(model.describe()).value();
    report["fingerprint"] = print_of_graph.empty() ? Json(nullptr) : Json(print_of_graph);
    report["breaks"] = breaks_json(breaks);
    if (json) {
      print(report);
      return kExitOk;
    }
    for (size_t i = 0; i < model.input_count(); ++i) {
      say("input   {}: {}\n", model.input(i).name, model.input(i).type_text);
    }
    for (size_t i = 0; i < model.output_count(); ++i) {
      say("output  {}: {}\n", model.output(i).name, model.output(i).type_text);
    }
    say("nodes   {}:", report["nodes"].integer());
    for (const std::string& op : report["ops"].names()) {
      say(" {}×{}", report["ops"][op].integer(), op);
    }
    say("\nconst   {} with {}\n", report["constants"].integer(),
        bytes_text(report["constant_bytes"].integer()));
    if (report.contains("opsets")) show_origin(report);
    say("breaks  {}\n", breaks.summary().summary);
    for (const pyc_unsupported_node& node : model.unsupported()) show_unsupported(node);
    if (!print_of_graph.empty()) say("hash    {}\n", print_of_graph);
    return kExitOk;
  }

  static void show_origin(const Json& report) {
    say("opset  ");
    for (const std::string& domain : report["opsets"].names()) {
      say(" {}{}", domain.empty() ? "" : domain + ":", report["opsets"][domain].integer());
    }
    say(", IR version {}, by {}\n", report["ir_version"].integer(), report["producer"].string());
  }

  static void show_unsupported(const pyc_unsupported_node& node) {
    const std::string domain = node.domain;
    say("unknown  node '{}': {}{}{} of opset {}{}\n", node.name, domain, domain.empty() ? "" : ".",
        node.op, node.opset,
        *node.nearest == '\0' ? "" : fmt::format(", did you mean '{}'?", node.nearest));
  }

  int show_node(const Graph& graph) const {
    const std::string name = node_.starts_with('%') ? node_.substr(1) : node_;
    pyc_value value = 0;
    check(
        [&](pyc_error** e) { return pyc_graph_find_value(graph.get(), name.c_str(), &value, e); });
    Json report = value_json(graph.value(value));
    constexpr const char* kKinds[] = {"input", "constant", "result"};
    report["kind"] = kKinds[graph.value(value).kind];
    std::string line = fmt::format("{} {}: {}", kKinds[graph.value(value).kind], name,
                                   type_text(graph.value(value)));
    for (size_t i = 0; i < graph.node_count(); ++i) {
      const pyc_node_info node = graph.node(i);
      const auto* end = node.outputs + node.output_count;
      if (std::find(node.outputs, end, value) == end) continue;
      report["op"] = node.op;
      report["location"] = node.location;
      report["inputs"] = Json::array();
      line += fmt::format("\nnode    {} from {}", node.op, node.location);
      for (size_t k = 0; k < node.input_count; ++k) {
        const pyc_value_info info = graph.value(node.inputs[k]);
        report["inputs"].push_back(value_json(info));
        line += fmt::format("\nreads   {}: {}", info.name, type_text(info));
      }
    }
    json ? print(report) : say("{}\n", line);
    return kExitOk;
  }

  std::string file_;
  std::string node_;
  ShapeOptions shapes_;
  CompileOptions shaped_;
};

}  // namespace

std::unique_ptr<Command> make_inspect() { return std::make_unique<Inspect>(); }

}  // namespace pyc::tool

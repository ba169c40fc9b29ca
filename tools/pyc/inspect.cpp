#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "command.h"
#include "report.h"

namespace pyc::tool {
namespace {

// Tensor files are told by .npy's magic or the ending .pb.
bool is_tensor_file(const std::string& path) {
  return starts_with(path, "\x93NUMPY") || path.ends_with(".pb");
}

struct Summary {
  std::vector<pyc_value_info> inputs;
  std::map<std::string, int64_t> ops;
  int64_t constants = 0;
  int64_t constant_bytes = 0;
};

Summary summarize(const Graph& graph) {
  Summary out;
  for (pyc_value v = 0; v < graph.value_count(); ++v) {
    const pyc_value_info info = graph.value(v);
    if (info.kind == PYC_VALUE_INPUT) out.inputs.push_back(info);
    if (info.kind != PYC_VALUE_CONSTANT) continue;
    ++out.constants;
    out.constant_bytes += info.bytes;
  }
  for (size_t i = 0; i < graph.node_count(); ++i) ++out.ops[graph.node(i).op];
  return out;
}

class Inspect final : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "Show what a model, compiled model or tensor file holds";
  }
  std::string examples() const override {
    return "  pyc inspect tests/models/mlp.ir\n"
           "  pyc inspect tests/models/mlp.ir --node h1\n"
           "  pyc inspect mlp.pycm\n"
           "  pyc inspect x.npy\n";
  }
  void declare(Options& options) override {
    options.positional("file", file_, "Model file, .pycm, .npy or .pb file");
    options.text("--node", node_, "Only the value of this name and the node that makes it");
  }

  int run() override {
    if (is_tensor_file(file_)) return show_tensor(Tensor::load(file_));
    if (starts_with(file_, "\x89PYCM")) return show_artifact(Artifact(file_));
    const Graph graph = Graph::load(file_);
    return node_.empty() ? show_graph(graph) : show_node(graph);
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
    fmt::print("tensor  {}{} digest {}\n", pyc_dtype_name(view.dtype),
               shape_text(view.shape, view.rank), tensor.digest());
    if (any) fmt::print("values  from {:.6g} to {:.6g}, {} NaN\n", lo, hi, nans);
    return kExitOk;
  }

  int show_artifact(const Artifact& artifact) const {
    const pyc_artifact_info info = artifact.info();
    if (json) {
      Json report = {{"version", info.version},
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
      fmt::print("input   {}: {}\n", artifact.input(i).name, type_text(artifact.input(i)));
    }
    for (size_t i = 0; i < info.output_count; ++i) {
      fmt::print("output  {}: {}\n", artifact.output(i).name, type_text(artifact.output(i)));
    }
    const std::string here = *info.missing == '\0'
                                 ? "this machine runs it"
                                 : fmt::format("not this machine's: {}", info.missing);
    fmt::print("made    by PyC {} for {} ({}), determinism {}\n", info.version, info.target, here,
               info.determinism);
    fmt::print("holds   {} steps, code {}, parameters {}, file {}\nprint   {}\n", info.step_count,
               bytes_text(info.code_bytes), bytes_text(info.parameter_bytes),
               bytes_text(info.file_bytes), info.fingerprint);
    return kExitOk;
  }

  int show_graph(const Graph& graph) const {
    const Summary s = summarize(graph);
    if (json) {
      Json report = {{"fingerprint", graph.fingerprint()},
                     {"inputs", Json::array()},
                     {"outputs", Json::array()},
                     {"nodes", graph.node_count()},
                     {"constants", s.constants},
                     {"constant_bytes", s.constant_bytes},
                     {"ops", Json::object()}};
      for (const pyc_value_info& info : s.inputs) report["inputs"].push_back(value_json(info));
      for (const pyc_value v : graph.outputs()) {
        report["outputs"].push_back(value_json(graph.value(v)));
      }
      for (const auto& [op, count] : s.ops) report["ops"][op] = count;
      print(report);
      return kExitOk;
    }
    for (const pyc_value_info& info : s.inputs) {
      fmt::print("input   {}: {}\n", info.name, type_text(info));
    }
    for (const pyc_value v : graph.outputs()) {
      fmt::print("output  {}: {}\n", graph.value(v).name, type_text(graph.value(v)));
    }
    fmt::print("nodes   {}:", graph.node_count());
    for (const auto& [op, count] : s.ops) fmt::print(" {}×{}", count, op);
    fmt::print("\nconst   {} with {}\nprint   {}\n", s.constants, bytes_text(s.constant_bytes),
               graph.fingerprint());
    return kExitOk;
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
    json ? print(report) : fmt::print("{}\n", line);
    return kExitOk;
  }

  std::string file_;
  std::string node_;
};

}  // namespace

std::unique_ptr<Command> make_inspect() { return std::make_unique<Inspect>(); }

}  // namespace pyc::tool

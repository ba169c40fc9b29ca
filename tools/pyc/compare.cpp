#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// How the values of one node differ between the two devices.
struct Difference {
  std::string name;
  std::string op;
  std::string type;
  bool same_bits = true;
  bool unlike = false;  // other kinds or numbers of values
  int64_t elements = 0;
  int64_t beyond = 0;  // elements further apart than the tolerance
  int64_t first = -1;  // of those: the first
  double max_abs = 0.0;
  double max_rel = 0.0;
};

struct Tolerance {
  double absolute = 0.0;
  double relative = 0.0;
  bool exact() const { return absolute == 0.0 && relative == 0.0; }
};

std::vector<double> numbers_of(const pyc_tensor_view& view) {
  std::vector<double> out(static_cast<size_t>(number_count(view)));
  check([&](pyc_error** e) {
    return pyc_tensor_read_f64(&view, 0, static_cast<int64_t>(out.size()), out.data(), e);
  });
  return out;
}

bool same_bytes(const pyc_tensor_view& a, const pyc_tensor_view& b) {
  return a.bytes == b.bytes && (a.bytes == 0 || std::memcmp(a.data, b.data, a.bytes) == 0);
}

void compare_values(const pyc_tensor_view& a, const pyc_tensor_view& b, const Tolerance& tolerance,
                    Difference& out) {
  const std::vector<double> x = numbers_of(a);
  const std::vector<double> y = numbers_of(b);
  out.elements = static_cast<int64_t>(x.size());
  out.same_bits = same_bytes(a, b);
  out.unlike = x.size() != y.size();
  if (out.same_bits || out.unlike) return;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double apart = std::abs(x[i] - y[i]);
    out.max_abs = std::max(out.max_abs, apart);
    if (y[i] != 0.0) out.max_rel = std::max(out.max_rel, apart / std::abs(y[i]));
    if (apart <= tolerance.absolute + tolerance.relative * std::abs(y[i])) continue;
    if (out.beyond++ == 0) out.first = static_cast<int64_t>(i);
  }
}

class Compare final : public Command {
 public:
  std::string name() const override { return "compare"; }
  std::string summary() const override {
    return "Compare every value of a model between two devices";
  }
  std::string examples() const override {
    return "  pyc compare tests/models/mlp.ir\n"
           "  pyc compare model.ir --a reference --b cpu --rtol 1e-5 --atol 1e-7\n";
  }
  void declare(Options& options) override {
    model_.declare(options, ModelOptions::Offer::kNoDevice);
    inputs_.declare(options);
    options.choice("--a", a_, "First device", device_names());
    options.choice("--b", b_, "Second device", device_names());
    options.number("--atol", tolerance_.absolute, "Absolute difference that is still equal");
    options.number("--rtol", tolerance_.relative,
                   "Relative difference that is still equal; with both 0 the bits must agree");
    options.flag("--all", all_, "List equal nodes too");
  }

  int run() override {
    model_.finish();
    Progress progress(*this, "comparing " + model_.model);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    // Settles the shapes, too.
    const bool whole = !settled_model(file, model_.compile, inputs_).is_open();
    std::optional<Graph> graph;
    if (whole) graph = file.graph(model_.compile);
    std::vector<Difference> nodes = graph ? compare_nodes(*graph) : compare_outputs(file);
    const auto divergent =
        std::find_if(nodes.begin(), nodes.end(), [&](const Difference& d) { return differs(d); });
    const Difference* first = divergent == nodes.end() ? nullptr : &*divergent;
    progress.end();
    json ? print_json(nodes, first) : print_text(nodes, first);
    return first == nullptr ? kExitOk : kExitDifferent;
  }

 private:
  bool differs(const Difference& d) const {
    return tolerance_.exact() ? !d.same_bits : d.unlike || d.beyond > 0;
  }

  std::vector<Difference> compare_nodes(Graph& graph) const {
    graph.verify();
    std::vector<Difference> nodes = mark_all_results(graph);
    const std::vector<Tensor> a = values_on(a_, graph, nodes.size());
    const std::vector<Tensor> b = values_on(b_, graph, nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      compare_values(a[i].view(), b[i].view(), tolerance_, nodes[i]);
    }
    return nodes;
  }

  // Of a model that is not one graph only the outputs are there to compare.
  std::vector<Difference> compare_outputs(const ModelFile& file) const {
    const auto run_on = [&](const std::string& device) {
      CompileOptions options = model_.compile;
      options.set("device", device);
      Model model = file.compile(options);
      return model.run_values(inputs_.make(model));
    };
    const Results a = run_on(a_);
    const Results b = run_on(b_);
    std::vector<Difference> out;
    for (size_t i = 0; i < a.size(); ++i) {
      Difference d{.name = file.output(i).name, .op = "output", .type = pyc_result_type_text(a[i])};
      if (pyc_result_type(a[i]) == PYC_TYPE_TENSOR && pyc_result_type(b[i]) == PYC_TYPE_TENSOR) {
        compare_values(a.tensor(i), b.tensor(i), tolerance_, d);
      } else {
        d.same_bits = result_json(a[i]) == result_json(b[i]);
        d.unlike = !d.same_bits;
      }
      out.push_back(std::move(d));
    }
    return out;
  }

  // Makes every node's results outputs, in the order the nodes run.
  static std::vector<Difference> mark_all_results(Graph& graph) {
    std::vector<Difference> out;
    for (size_t i = 0; i < graph.node_count(); ++i) {
      const pyc_node_info node = graph.node(i);
      const std::vector<pyc_value> results(node.outputs, node.outputs + node.output_count);
      for (const pyc_value v : results) {
        const pyc_value_info info = graph.value(v);
        out.push_back({.name = info.name, .op = graph.node(i).op, .type = type_text(info)});
        graph.output(v);
      }
    }
    return out;
  }

  // Unfused, so that every node's value is computed on its own. The added outputs stand last.
  std::vector<Tensor> values_on(const std::string& device, const Graph& graph, size_t count) const {
    CompileOptions options = model_.compile;
    options.set("device", device);
    options.set("fuse", false);
    Model model(graph, options);
    const std::vector<AnyValue> inputs = inputs_.make(model);
    std::vector<Tensor> outputs = model.make_outputs();
    model.run(views_of(inputs), views_of(outputs));
    outputs.erase(outputs.begin(), outputs.end() - static_cast<std::ptrdiff_t>(count));
    return outputs;
  }

  void print_text(const std::vector<Difference>& nodes, const Difference* first) const {
    for (const Difference& d : nodes) {
      if (d.same_bits && !all_) continue;
      say("{}  {} = {}: {}: ", differs(d) ? "differs" : "equal  ", d.name, d.op, d.type);
      if (d.same_bits) {
        say("same bits\n");
        continue;
      }
      say("{} of {} elements beyond the tolerance, at most {:.3g} apart ({:.3g} relative)\n",
          d.beyond, d.elements, d.max_abs, d.max_rel);
    }
    const auto same =
        std::count_if(nodes.begin(), nodes.end(), [](const Difference& d) { return d.same_bits; });
    say("{} of {} values have the same bits on {} and {}\n", same, nodes.size(), a_, b_);
    if (first == nullptr) return;
    say("first divergent node: {} = {}", first->name, first->op);
    if (first->first >= 0) say(", from element {} on", first->first);
    say("\n");
  }

  void print_json(const std::vector<Difference>& nodes, const Difference* first) const {
    Json report = {{"a", a_},
                   {"b", b_},
                   {"atol", tolerance_.absolute},
                   {"rtol", tolerance_.relative},
                   {"equal", first == nullptr},
                   {"first_divergent", first == nullptr ? Json(nullptr) : Json(first->name)},
                   {"nodes", Json::array()}};
    for (const Difference& d : nodes) {
      report["nodes"].push_back({{"name", d.name},
                                 {"op", d.op},
                                 {"type", d.type},
                                 {"same_bits", d.same_bits},
                                 {"elements", d.elements},
                                 {"beyond", d.beyond},
                                 {"first", d.first},
                                 {"max_abs", d.max_abs},
                                 {"max_rel", d.max_rel}});
    }
    print(report);
  }

  ModelOptions model_;
  InputOptions inputs_;
  std::string a_ = "reference";
  std::string b_ = "cpu";
  Tolerance tolerance_;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_compare() { return std::make_unique<Compare>(); }

}  // namespace pyc::tool

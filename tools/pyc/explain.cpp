#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"
#include "why_not.h"

namespace pyc::tool {
namespace {

class Explain final : public Command {
 public:
  std::string name() const override { return "explain"; }
  std::string summary() const override {
    return "Show groups, kernel candidates and every decision of a compile";
  }
  std::string examples() const override {
    return "  pyc explain tests/models/mlp.ir\n"
           "  pyc explain tests/models/mlp.ir --node h1\n"
           "  pyc explain tests/models/mlp.ir --why-not h1,logits\n"
           "  pyc explain tests/models/mlp.ir --json\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.text("--node", node_, "Only the group that computes this value, and what was decided");
    options.text("--why-not", pair_, "A,B: why these two values are not computed by one kernel");
  }

  int run() override {
    model_.finish();
    Progress progress(*this, "compiling " + model_.model);
    progress.watch(model_.compile);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    Model model = settled_model(file, model_.compile, inputs_);
    const std::optional<Graph> graph = closed_graph(file, model_.compile);
    std::string canonical = node_.starts_with('%') ? node_.substr(1) : node_;
    if (graph && !node_.empty()) require_name(*graph, canonical);
    const std::vector<Group> groups =
        split_groups(graph ? graph->dump("groups", model_.compile) : "");
    // An open model is compiled when it runs.
    if (model.is_open() && model.stats().runs == 0) model.run_values(inputs_.make(model));
    progress.end();
    if (!pair_.empty()) return explain_pair(model, graph, groups);
    if (json) {
      Json log = Json::parse(model.decision_log()).value();
      log["pass_report"] = nullptr;
      if (graph) {
        std::string report;
        graph->run_passes({}, &report);
        log["pass_report"] = Json::parse(report).value();
      }
      print(log);
      return kExitOk;
    }
    if (node_.empty()) say("breaks  {}\n", model.breaks().summary().summary);
    std::string group_name;
    for (const Group& group : groups) {
      if (!node_.empty() && &group != group_of(groups, canonical)) continue;
      group_name = group.name;
      say("{}", Lines{group.text});
    }
    for_each_decision(model, [&](const pyc_decision& d, const auto& alternatives) {
      if (node_.empty() || concerns(d, canonical, group_name)) {
        say("{}\n", Lines{decision_text(d, alternatives)});
      }
    });
    return kExitOk;
  }

 private:
  static void require_name(const Graph& graph, const std::string& name) {
    pyc_value value = 0;
    check(
        [&](pyc_error** e) { return pyc_graph_find_value(graph.get(), name.c_str(), &value, e); });
  }

  int explain_pair(const Model& model, const std::optional<Graph>& graph,
                   const std::vector<Group>& groups) const {
    const size_t comma = pair_.find(',');
    if (comma == std::string::npos) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT,
                  fmt::format("--why-not: expected two values A,B, found '{}'", pair_), "");
    }
    if (!graph) {
      throw Error(PYC_STATUS_UNSUPPORTED,
                  "--why-not: the model is not one graph; choose its shapes with --shape or --dim",
                  "");
    }
    std::string names[] = {pair_.substr(0, comma), pair_.substr(comma + 1)};
    for (std::string& name : names) {
      if (name.starts_with('%')) name.erase(0, 1);
      require_name(*graph, name);
    }
    const std::string text = why_not(model, groups, names[0], names[1]);
    if (json) {
      print({{"a", names[0]}, {"b", names[1]}, {"text", text}});
    } else {
      say("{}", Lines{text});
    }
    return kExitOk;
  }

  static bool concerns(const pyc_decision& d, const std::string& name, const std::string& group) {
    const std::string_view what = d.what;
    const std::string_view subject = what.substr(what.find(':') + 1);
    if (what == "graph_break") {
      return std::string_view(d.chosen).ends_with("'" + name + "'");
    }
    return subject == name || subject == "%" + name || (!group.empty() && subject == group);
  }

  ModelOptions model_;
  InputOptions inputs_;
  std::string node_;
  std::string pair_;
};

}  // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

}  // namespace pyc::tool

#include <fmt/format.h>

#include <sstream>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// One group of the "groups" stage.
struct Group {
  std::string name;
  std::string text;
};

std::vector<Group> split_groups(const std::string& text) {
  std::vector<Group> groups;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("group ")) {
      groups.push_back({line.substr(6, line.find(' ', 6) - 6), ""});
    }
    if (!groups.empty()) groups.back().text += line + "\n";
  }
  return groups;
}

class Explain final : public Command {
 public:
  std::string name() const override { return "explain"; }
  std::string summary() const override {
    return "Show groups, kernel candidates and every decision of a compile";
  }
  std::string examples() const override {
    return "  pyc explain tests/models/mlp.ir\n"
           "  pyc explain tests/models/mlp.ir --node h1\n"
           "  pyc explain tests/models/mlp.ir --json\n";
  }
  void declare(Options& options) override {
    model_.declare(options);
    inputs_.declare(options);
    options.text("--node", node_, "Only the group that computes this value, and what was decided");
  }

  int run() override {
    model_.finish();
    const Progress progress("compiling " + model_.model);
    const ModelFile file = ModelFile::load(model_.model);
    inputs_.read(file);
    Model model = settled_model(file, model_.compile, inputs_);
    const std::optional<Graph> graph = closed_graph(file, model_.compile);
    std::string canonical = node_.starts_with('%') ? node_.substr(1) : node_;
    if (graph && !node_.empty()) require_name(*graph, canonical);
    const std::string groups = graph ? graph->dump("groups", model_.compile) : "";
    // An open model is compiled when it runs.
    if (model.is_open() && model.stats().runs == 0) model.run_values(inputs_.make(model));
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
    for (const Group& group : split_groups(groups)) {
      if (!node_.empty() && group.text.find("  %" + canonical + " = ") == std::string::npos) {
        continue;
      }
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
};

}  // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

}  // namespace pyc::tool

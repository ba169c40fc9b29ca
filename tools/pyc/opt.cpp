#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

std::vector<pyc_pass_info> known_passes() {
  std::vector<pyc_pass_info> out;
  for (size_t i = 0; i < pyc_pass_count(); ++i) {
    out.push_back(sized<pyc_pass_info>());
    check([&](pyc_error** e) { return pyc_pass(i, &out.back(), e); });
  }
  return out;
}

std::string pass_list() {
  std::string text;
  for (const pyc_pass_info& pass : known_passes()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", pass.name);
  }
  return text;
}

class Opt final : public Command {
 public:
  std::string name() const override { return "opt"; }
  std::string summary() const override { return "Run passes on a graph and print it as text IR"; }
  std::string examples() const override {
    return "  pyc opt tests/models/mlp.ir\n"
           "  pyc opt tests/models/mlp.ir --passes decompose,eliminate_dead\n"
           "  pyc opt tests/models/mlp.ir --report passes.json\n";
  }
  void declare(Options& options) override {
    options.positional("model", model_, "Model file; its content says which format it has");
    shapes_.declare(options);
    options.text("--passes", passes_,
                 "Names with commas, in the order of this list; all by default: " + pass_list());
    options.text("--report", report_, "File to write what each pass did to, as JSON");
  }

  int run() override {
    std::vector<std::string> names;
    std::istringstream in(passes_);
    for (std::string name; std::getline(in, name, ',');) names.push_back(name);
    CompileOptions shaped;
    shapes_.finish(shaped);
    Progress progress(*this, "optimizing " + model_);
    const Graph graph = settled_graph(ModelFile::load(model_), shaped);
    std::string report;
    const Graph result = graph.run_passes(names, &report);
    if (!report_.empty()) save(report + "\n");
    progress.end();
    if (!json) {
      say("{}", Lines{result.print()});
      return kExitOk;
    }
    if (names.empty()) {
      for (const pyc_pass_info& pass : known_passes()) names.emplace_back(pass.name);
    }
    print(Json{{"passes", names},
               {"nodes_before", graph.node_count()},
               {"nodes_after", result.node_count()},
               {"text", result.print()}});
    return kExitOk;
  }

 private:
  void save(const std::string& text) const {
    std::ofstream file(report_, std::ios::binary);
    file << text;
    if (!file.flush()) {
      throw Error(PYC_STATUS_IO_ERROR, "cannot write the report to '" + report_ + "'", "");
    }
  }

  std::string model_;
  ShapeOptions shapes_;
  std::string passes_;
  std::string report_;
};

}  // namespace

std::unique_ptr<Command> make_opt() { return std::make_unique<Opt>(); }

}  // namespace pyc::tool

#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Dump final : public Command {
 public:
  std::string name() const override { return "dump"; }
  std::string summary() const override { return "Print the text of one stage of a compile"; }
  std::string examples() const override {
    return "  pyc dump tests/models/mlp.ir --stage loop\n"
           "  pyc dump tests/models/mlp.ir --stage asm --target x86_avx512\n"
           "  pyc dump tests/models/mlp.ir --stage cuda --device cuda --target sm_90a\n"
           "  pyc dump tests/models/mlp.ir --stage dot | dot -Tsvg -o mlp.svg\n"
           "  pyc dump model.onnx --stage open\n"
           "  pyc dump model.onnx --stage segments --shape x=2x3\n";
  }
  void declare(Options& options) override {
    model_.declare(options, ModelOptions::Offer::kAhead);
    options.choice("--stage", stage_, "Which",
                   {"open", "segments", "graph", "passes", "groups", "dot", "loop", "plan", "llvm",
                    "asm", "cuda", "ptx", "sass"});
  }

  int run() override {
    model_.finish();
    Progress progress(*this, "compiling " + model_.model);
    progress.watch(model_.compile);
    const ModelFile file = ModelFile::load(model_.model);
    const std::string text = stage_ == "open" ? file.text(model_.compile)
                             : stage_ == "segments"
                                 ? file.segments(model_.compile)
                                 : settled_graph(file, model_.compile).dump(stage_, model_.compile);
    progress.end();
    if (json) {
      print(Json{{"stage", stage_}, {"text", text}});
    } else {
      say("{}", Lines{text});
    }
    return kExitOk;
  }

 private:
  ModelOptions model_;
  std::string stage_ = "graph";
};

}  // namespace

std::unique_ptr<Command> make_dump() { return std::make_unique<Dump>(); }

}  // namespace pyc::tool

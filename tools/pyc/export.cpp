#include <fmt/format.h>

#include <filesystem>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Export final : public Command {
 public:
  std::string name() const override { return "export"; }
  std::string summary() const override { return "Write a model as an ONNX file"; }
  std::string examples() const override {
    return "  pyc export tests/models/mlp.ir -o mlp.onnx\n"
           "  pyc export tests/models/mlp.ir -o mlp.onnx --optimized\n";
  }
  void declare(Options& options) override {
    options.positional("model", model_, "Model file; its content says which format it has");
    shapes_.declare(options);
    options.text("-o,--output", output_, "The file to write");
    options.flag("--optimized", optimized_, "Run the passes first");
  }

  int run() override {
    if (output_.empty()) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, "no file to write is given", "");
    }
    CompileOptions shaped;
    shapes_.finish(shaped);
    Progress progress(*this, "exporting " + model_);
    const Graph graph = settled_graph(ModelFile::load(model_), shaped);
    const Graph written = optimized_ ? graph.run_passes() : graph.clone();
    written.export_onnx(output_);
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(output_));
    progress.end();
    if (json) {
      print(Json{{"file", output_},
                 {"bytes", bytes},
                 {"nodes", written.node_count()},
                 {"optimized", optimized_}});
    } else {
      say("{}: {} nodes, {}\n", output_, written.node_count(), bytes_text(bytes));
    }
    return kExitOk;
  }

 private:
  std::string model_;
  ShapeOptions shapes_;
  std::string output_;
  bool optimized_ = false;
};

}  // namespace

std::unique_ptr<Command> make_export() { return std::make_unique<Export>(); }

}  // namespace pyc::tool

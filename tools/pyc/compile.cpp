#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

class Compile final : public Command {
 public:
  std::string name() const override { return "compile"; }
  std::string summary() const override { return "Compile a model ahead of time into a file"; }
  std::string examples() const override {
    return "  pyc compile tests/models/mlp.ir -o mlp.pycm\n"
           "  pyc run mlp.pycm\n"
           "  pyc compile tests/models/mlp.ir -o mlp.pycm --target x86_avx512\n";
  }
  void declare(Options& options) override {
    model_.declare(options, ModelOptions::Offer::kAhead);
    options.text("-o,--output", output_, "The file to write");
  }

  int run() override {
    if (output_.empty()) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, "no file to write is given: -o FILE.pycm", "");
    }
    model_.finish();
    const Progress progress("compiling " + model_.model);
    settled_graph(ModelFile::load(model_.model), model_.compile)
        .compile_to_file(output_, model_.compile);
    const Artifact artifact(output_);
    const pyc_artifact_info info = artifact.info();
    if (json) {
      print(Json{{"file", output_},
                 {"target", info.target},
                 {"fingerprint", info.fingerprint},
                 {"steps", info.step_count},
                 {"file_bytes", info.file_bytes},
                 {"code_bytes", info.code_bytes},
                 {"parameter_bytes", info.parameter_bytes}});
    } else {
      say("{}: for {}, {} steps, code {}, parameters {}\n", output_, info.target, info.step_count,
          bytes_text(info.code_bytes), bytes_text(info.parameter_bytes));
    }
    return kExitOk;
  }

 private:
  ModelOptions model_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_compile() { return std::make_unique<Compile>(); }

}  // namespace pyc::tool

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
           "  pyc compile tests/models/mlp.ir -o mlp.pycm --target x86_avx512\n"
           "  pyc compile tests/open_models/branch_loop.ir -o branch.pycm --shape x=2,4\n";
  }
  void declare(Options& options) override {
    model_.declare(options, ModelOptions::Offer::kAhead);
    options.text("-o,--output", output_, "The file to write");
    trace_.declare(options);
  }

  int run() override {
    if (output_.empty()) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, "no file to write is given: -o FILE.pycm", "");
    }
    model_.finish();
    trace_.begin(model_.compile);
    Progress progress(*this, "compiling " + model_.model);
    progress.watch(model_.compile);
    compile_settled(ModelFile::load(model_.model), model_.compile, output_);
    trace_.write();
    progress.end();
    const Artifact artifact(output_);
    const pyc_artifact_info info = artifact.info();
    if (json) {
      print(Json{{"file", output_},
                 {"device", info.device},
                 {"target", info.target},
                 {"fingerprint", info.fingerprint},
                 {"programs", info.program_count},
                 {"steps", info.step_count},
                 {"file_bytes", info.file_bytes},
                 {"code_bytes", info.code_bytes},
                 {"parameter_bytes", info.parameter_bytes}});
    } else {
      const std::string programs =
          info.program_count == 1 ? "" : fmt::format("{} programs, ", info.program_count);
      say("{}: for {}, {}{} steps, code {}, parameters {}\n", output_, machine_text(info), programs,
          info.step_count, bytes_text(info.code_bytes), bytes_text(info.parameter_bytes));
    }
    return kExitOk;
  }

 private:
  ModelOptions model_;
  TraceFlag trace_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_compile() { return std::make_unique<Compile>(); }

}  // namespace pyc::tool

#include <fmt/format.h>

#include <map>

#include "artifact/artifact.h"
#include "runtime/code_module.h"

namespace pyc::artifact {

Status check_machine(const Artifact& artifact, const TargetInfo& machine) {
  const std::string missing = missing_for(artifact.target, machine);
  if (missing.empty()) return {};
  return {
      Code::kUnsupported,
      fmt::format("the artefact holds code for '{}', which this machine cannot run: {}; compile "
                  "the model again for it",
                  artifact.target, missing)};
}

Status load_code(runtime::Program& program) {
  std::map<const std::string*, std::shared_ptr<const runtime::CodeModule>> modules;
  for (runtime::Step& step : program.steps) {
    auto& module = modules[step.object.get()];
    if (module == nullptr) {
      auto loaded = runtime::CodeModule::load(*step.object);
      if (!loaded.ok()) {
        return std::move(loaded).status().with_context(fmt::format("step '{}'", step.name));
      }
      module = std::move(loaded).value();
      program.owners.push_back(module);
    }
    step.fn = module->lookup(step.symbol);
  }
  for (runtime::Step& step : program.steps) step.object.reset();
  return check_program(program);
}

}  // namespace pyc::artifact

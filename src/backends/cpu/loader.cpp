#include "backends/cpu/loader.h"

#include <fmt/format.h>

#include "runtime/code_module.h"
#include "runtime/host_engine.h"

namespace pyc::cpu {
namespace {

class MachineCode final : public runtime::HostCode {
 public:
  explicit MachineCode(std::unique_ptr<runtime::CodeModule> module) : module_(std::move(module)) {}
  runtime::HostFunction find(std::string_view symbol) const override {
    return {module_->lookup(symbol), nullptr};
  }

 private:
  std::unique_ptr<runtime::CodeModule> module_;
};

class MachineCodeLoader final : public runtime::HostLoader {
 public:
  std::string_view backend() const override { return "cpu"; }
  // Without a target it is this process that made the code, for the machine it is on.
  Status check_place(const runtime::Place& place) const override {
    return place.target.empty() ? Status() : check_target(place.target, host_target());
  }

 private:
  Result<std::unique_ptr<const runtime::HostCode>> load_object(
      const std::string& object) const override {
    PYC_ASSIGN(std::unique_ptr<runtime::CodeModule> module, runtime::CodeModule::load(object));
    return std::unique_ptr<const runtime::HostCode>(
        std::make_unique<MachineCode>(std::move(module)));
  }
};

}  // namespace

const runtime::Loader& loader() {
  static const MachineCodeLoader instance;
  return instance;
}

Status check_target(std::string_view target, const TargetInfo& machine) {
  const std::string missing = missing_for(target, machine);
  if (missing.empty()) return {};
  return {Code::kUnsupported,
          fmt::format("the program holds code for '{}', which this machine cannot run: {}; compile "
                      "the model again for it",
                      target, missing)};
}

}  // namespace pyc::cpu

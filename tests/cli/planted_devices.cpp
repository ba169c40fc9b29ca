// The table of devices of pyc_planted, in place of the library's own: the device "planted" is the
// reference with one wrong kernel, for tests of what finds wrong kernels; it does not keep the
// level strict.

#include <fmt/format.h>

#include <array>

#include "backends/cpu/backend.h"
#include "backends/reference/loader.h"
#include "backends/reference/reference.h"
#include "driver/devices.h"
#include "runtime/host_engine.h"

namespace pyc::driver {
namespace {

// The value that is computed wrongly, and its element.
constexpr std::string_view kSpoiltValue = "a2";
constexpr int kSpoiltElement = 5;

void spoil(const pyc_kernel_args* args, int64_t, int64_t) {
  static_cast<float*>(args->buffers[0])[kSpoiltElement] += 1.0F;
}

// The reference's objects, and one that is the name of the function above.
constexpr std::string_view kSpoil = "spoil";

class SpoilCode final : public runtime::HostCode {
 public:
  runtime::HostFunction find(std::string_view) const override { return {spoil, nullptr}; }
};

class PlantedLoader final : public runtime::HostLoader {
 public:
  std::string_view backend() const override { return "planted"; }

 private:
  Result<std::unique_ptr<const runtime::HostCode>> load_object(
      const std::string& object) const override {
    if (object != kSpoil) return reference::load_text(object);
    return std::unique_ptr<const runtime::HostCode>(std::make_unique<SpoilCode>());
  }
};

class PlantedBackend final : public backends::Backend {
 public:
  std::string_view name() const override { return "planted"; }
  backends::Capabilities capabilities() const override { return {.ieee_floats = false}; }
  std::vector<backends::Candidate> candidates(
      const ir::Graph& graph, const lower::Group& group,
      const backends::BackendOptions& options) const override {
    return reference_->candidates(graph, group, options);
  }
  Result<std::vector<backends::CompiledGroup>> compile(
      const lower::LoweredGraph& lowered, std::span<const backends::Candidate> chosen,
      const backends::BackendOptions& options, backends::CompileStats* stats) const override {
    PYC_ASSIGN(std::vector<backends::CompiledGroup> groups,
               reference_->compile(lowered, chosen, options, stats));
    const ir::Graph& graph = *lowered.graph;
    for (size_t g = 0; g < groups.size(); ++g) {
      const ir::ValueId value = graph.nodes[lowered.groups[g].members.back()].outputs[0];
      if (graph.value(value).name != kSpoiltValue) continue;
      backends::CompiledStep step;
      step.symbol = kSpoil;
      step.object = std::make_shared<const std::string>(kSpoil);
      step.launch = runtime::host_launch(1);
      step.operands = {{.kind = backends::Operand::Kind::kValue, .value = value}};
      groups[g].steps.push_back(step);
    }
    return groups;
  }
  const runtime::Loader& loader() const override { return loader_; }
  Result<std::string> dump(const lower::LoweredGraph& lowered, size_t group,
                           const backends::Candidate& chosen,
                           const backends::BackendOptions& options,
                           std::string_view stage) const override {
    return reference_->dump(lowered, group, chosen, options, stage);
  }

 private:
  PlantedLoader loader_;
  std::unique_ptr<backends::Backend> reference_ = backends::make_reference_backend();
};

const auto& table() {
  static const std::array<std::unique_ptr<backends::Backend>, 3> backends = {
      backends::make_cpu_backend(), backends::make_reference_backend(),
      std::make_unique<PlantedBackend>()};
  return backends;
}

}  // namespace

Result<const backends::Backend*> find_backend(std::string_view device) {
  for (const auto& backend : table()) {
    if (backend->name() == device) return backend.get();
  }
  return Status(Code::kUnknownOption, fmt::format("device '{}' is not known", device));
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names;
  for (const auto& backend : table()) names.push_back(backend->name());
  return names;
}

Status check_runs(std::string_view device) { return find_backend(device).status(); }

std::span<const runtime::Loader* const> loaders() {
  static const auto all = [] {
    std::vector<const runtime::Loader*> list;
    for (const auto& backend : table()) list.push_back(&backend->loader());
    return list;
  }();
  return all;
}

}  // namespace pyc::driver

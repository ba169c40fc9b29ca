#include "backends/cuda/backend.h"
#include "backends/cuda/disassemble.h"

#include <fmt/format.h>

#include <map>

#include "backends/cuda/disassemble.h"
#include "backends/cuda/gpu.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/loader.h"
#include "base/all_cores.h"
#include "base/clock.h"

namespace pyc::backends {
namespace {

// What code can be made for without a GPU: the architecture whose bits were proven.
constexpr std::string_view kTarget = "sm_90a";
constexpr std::string_view kUnit = "sm90";  // its matrix unit's arithmetic

const cuda::CudaPlan& cuda_plan(const Candidate& chosen) {
  return static_cast<const cuda::CudaPlan&>(*chosen.plan);
}

Result<std::string> architecture_for(const BackendOptions& options) {
  if (!options.target.empty()) return options.target;
  PYC_ASSIGN(const cuda::DeviceFacts facts, cuda::shared_facts());
  return facts.architecture;
}

// Whether code is made for kTarget, as it is where there is no GPU to make it for.
Result<bool> is_for_target(const BackendOptions& options) {
  const auto architecture = architecture_for(options);
  if (architecture.ok()) return *architecture == kTarget;
  if (architecture.status().code() == Code::kUnsupported) return true;
  return architecture.status();
}

// 13000 is "13.0".
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string unit_of(const cuda::KernelText& kernel) {
  const cuda::KernelText* const kernels[] = {&kernel};
  return cuda::unit_text(cuda::cuda_dialect(), kernels);
}

// One kernel that some steps share.
struct CubinUnit {
  std::string text;
  std::string group;  // the first that wants it, for messages
  std::shared_ptr<const std::string> object;
  int64_t ns = 0;
};

// A kernel without a point has no text, and no code.
Status compile_cubin(const cuda::Nvrtc& nvrtc, const std::string& architecture, CubinUnit& unit) {
  const int64_t start = now_ns();
  std::string image;
  if (!unit.text.empty()) {
    PYC_ASSIGN(image, nvrtc.cubin(unit.text, architecture));
  }
  unit.object = std::make_shared<const std::string>(std::move(image));
  unit.ns = now_ns() - start;
  return {};
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  Capabilities capabilities() const override {
    return {.targets = {kTarget},
            .states = false,
            .streams = false,
            .offloads = true,
            .joined_products = true,
            .stages = {"cuda", "ptx", "sass"}};
  }
  std::string native_target() const override {
    const auto facts = cuda::shared_facts();
    return facts.ok() && facts->architecture == kTarget ? facts->architecture : "";
  }

  std::string found_here() const override {
    const auto driver = cuda::shared_driver();
    const auto facts = cuda::shared_facts();
    const auto nvrtc = cuda::shared_nvrtc();
    std::string out = facts.ok() ? fmt::format("{}, {}, {} multiprocessors", facts->name,
                                               facts->architecture, facts->multiprocessors)
                                 : facts.status().message();
    if (driver.ok()) out += fmt::format("; driver for CUDA {}", version_text((*driver)->version()));
    return out + "; " +
           (nvrtc.ok() ? fmt::format("NVRTC {} at {}", (*nvrtc)->version(), (*nvrtc)->path())
                       : "no NVRTC, so it compiles nothing");
  }

  // Of the whole device, roughly: tiles bring 16 bytes of neighbours at a time, and elements one by
  // one with their indices computed.
  lower::LayoutFacts layout_facts(const BackendOptions&) const override {
    return {.tile_product = 4e-5,
            .generic_product = 1e-3,
            .read = 1.3e-3,
            .strided_read = 8e-3,
            .packed_read = 5e-4,
            .run = 8,
            .step = 20.0};
  }

  // Other architectures have units of other arithmetic, not probed yet.
  Result<std::string_view> matrix_unit(const BackendOptions& options) const override {
    PYC_ASSIGN(const bool has_unit, is_for_target(options));
    return std::string_view(has_unit ? kUnit : "");
  }

  std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                    const BackendOptions& options) const override {
    std::vector<Candidate> out;
    for (const cuda::KernelGenerator* generator : cuda::kernel_generators()) {
      if (generator->is_for_unit(group.order)) {
        const auto has_unit = is_for_target(options);
        if (!has_unit.ok() || !*has_unit) continue;
      }
      for (Candidate& c : generator->candidates(graph, group)) out.push_back(std::move(c));
    }
    return out;
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override;

  const runtime::Loader& loader() const override { return cuda::loader(); }

  Result<std::string> dump(const lower::LoweredGraph&, size_t, const Candidate& chosen,
                           const BackendOptions& options, std::string_view stage) const override {
    std::string out;
    for (const cuda::CudaPlan::Part& part : cuda_plan(chosen).parts) {
      if (part.kernel.blocks == 0) continue;
      if (stage == "cuda") {
        out += fmt::format("// {}, {} blocks of {}\n{}", part.kernel.form, part.kernel.blocks,
                           part.kernel.threads, part.kernel.text);
        continue;
      }
      PYC_ASSIGN(const std::string architecture, architecture_for(options));
      PYC_ASSIGN(const auto nvrtc, cuda::shared_nvrtc());
      if (stage == "sass") {
        PYC_ASSIGN(const std::string cubin, nvrtc->cubin(unit_of(part.kernel), architecture));
        PYC_ASSIGN(const std::string code, cuda::disassembled(cubin));
        out += code;
        continue;
      }
      PYC_ASSIGN(const std::string ptx, nvrtc->ptx(unit_of(part.kernel), architecture));
      out += ptx.c_str();  // it ends with a zero
    }
    return out;
  }
};

Result<std::vector<CompiledGroup>> CudaBackend::compile(const lower::LoweredGraph& lowered,
                                                        std::span<const Candidate> chosen,
                                                        const BackendOptions& options,
                                                        CompileStats* stats) const {
  PYC_CHECK(chosen.size() == lowered.groups.size(), "a choice for every group");
  PYC_ASSIGN(const std::string architecture, architecture_for(options));
  PYC_ASSIGN(const auto nvrtc, cuda::shared_nvrtc());
  std::vector<CubinUnit> units;
  std::map<std::string, size_t> known;
  std::vector<CompiledGroup> out(lowered.groups.size());
  std::vector<std::vector<size_t>> units_of(lowered.groups.size());
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    for (const cuda::CudaPlan::Part& part : cuda_plan(chosen[g]).parts) {
      std::string text = part.kernel.blocks == 0 ? "" : unit_of(part.kernel);
      const auto [it, is_new] = known.try_emplace(text, units.size());
      if (is_new) units.push_back({std::move(text), lowered.groups[g].name, nullptr, 0});
      units_of[g].push_back(it->second);
      CompiledStep step;
      step.symbol = part.kernel.symbol;
      step.launch = part.launch;
      step.operands = part.operands;
      out[g].steps.push_back(std::move(step));
    }
    for (const cuda::CudaPlan::Packer& pack : cuda_plan(chosen[g]).packers) {
      PYC_ASSIGN(runtime::Parameter packed, pack(*lowered.graph, lowered.groups[g]));
      out[g].packed.push_back(std::move(packed));
    }
  }
  PYC_TRY(on_all_cores(units.size(), [&](size_t i) -> Status {
    PYC_TRY(compile_cubin(*nvrtc, architecture, units[i])
                .with_context("compiling group " + units[i].group));
    if (options.after_kernel) options.after_kernel(static_cast<int64_t>(units.size()));
    return {};
  }));
  CompileStats counted;
  for (size_t g = 0; g < out.size(); ++g) {
    for (size_t s = 0; s < out[g].steps.size(); ++s) {
      out[g].steps[s].object = units[units_of[g][s]].object;
      ++counted.kernels;
    }
  }
  counted.distinct = static_cast<int64_t>(units.size());
  for (const CubinUnit& unit : units) counted.slowest_ns = std::max(counted.slowest_ns, unit.ns);
  if (stats != nullptr) *stats = counted;
  return out;
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace pyc::backends

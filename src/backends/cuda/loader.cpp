#include "backends/cuda/loader.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/cuda/engine.h"
#include "backends/cuda/gpu.h"
#include "backends/cuda/launch.h"

namespace pyc::cuda {
namespace {

bool lies_within(uint64_t offset, uint64_t bytes, size_t size) {
  return offset <= size && bytes <= size - offset;
}

Status broken_image(const char* what) {
  return {Code::kParseError, fmt::format("its object is no cubin: {}", what)};
}

// The driver's words for bytes that are no code of its.
Status as_object_error(Status status) {
  if (status.code() == Code::kCompileFailed || status.code() == Code::kNotFound) {
    return {Code::kParseError, status.message()};
  }
  return status;
}

// A copy that is not between the arena and the host.
bool copies_elsewhere(const runtime::Step& step) {
  using runtime::Where;
  const runtime::Copy* copy = step.copy();
  return copy != nullptr && copy->buffers[0].where != Where::kShelf &&
         copy->buffers[1].where != Where::kShelf;
}

class CubinLoader final : public runtime::Loader {
 public:
  std::string_view backend() const override { return "cuda"; }
  Status available() const override { return shared_facts().status(); }

  Status check_place(const runtime::Place& place) const override {
    if (place.target.empty()) return {};
    PYC_ASSIGN(const DeviceFacts facts, shared_facts());
    if (place.target == facts.architecture) return {};
    return {Code::kUnsupported,
            fmt::format("the program holds code for '{}', the device {} is '{}'; compile the model "
                        "again for it",
                        place.target, facts.name, facts.architecture)};
  }

  Result<std::shared_ptr<const runtime::Engine>> load(
      std::shared_ptr<const runtime::Program> program, uint32_t place) const override {
    PYC_TRY(check_place(program->places[place]));
    if (program->steps.size() >= kFaultsOfStep) {
      return Status(Code::kUnsupported, fmt::format("{} steps; a fault word tells {} apart",
                                                    program->steps.size(), kFaultsOfStep));
    }
    if (!program->states.empty() || std::ranges::any_of(program->steps, copies_elsewhere)) {
      return Status(
          Code::kUnsupported,
          "the program keeps state from one run to the next, which the engine 'cuda' does "
          "not; compile the model for the cpu");
    }
    PYC_ASSIGN(std::shared_ptr<Gpu> gpu, shared_gpu());
    auto engine = std::make_shared<CudaEngine>(program, gpu);
    std::map<const std::string*, const Module*> modules;
    for (size_t s = 0; s < program->steps.size(); ++s) {
      PYC_TRY(bind(*engine, *program, s, modules)
                  .with_context(fmt::format("step '{}'", program->steps[s].name)));
    }
    PYC_ASSIGN(engine->parameters, gpu->parameters.upload(program->parameters));
    return std::shared_ptr<const runtime::Engine>(std::move(engine));
  }

 private:
  static Status bind(CudaEngine& engine, const runtime::Program& program, size_t step,
                     std::map<const std::string*, const Module*>& modules) {
    if (program.steps[step].copy() != nullptr) {
      engine.steps.emplace_back();  // the lane does it
      return {};
    }
    const runtime::Kernel& kernel = program.steps[step].kernel();
    PYC_ASSIGN(const Launch launch, decode_launch(kernel.launch));
    PYC_TRY(check_launch(launch, program, kernel));
    FunctionHandle function = nullptr;
    if (launch.shape.blocks > 0) {
      const Module*& module = modules[kernel.object.get()];
      if (module == nullptr) {
        PYC_TRY(check_image(*kernel.object));
        auto loaded = Module::load(engine.gpu().device, *kernel.object);
        if (!loaded.ok()) return as_object_error(std::move(loaded).status());
        module = engine.modules.emplace_back(std::make_unique<Module>(std::move(*loaded))).get();
      }
      auto found = module->function(kernel.symbol, launch.shape.shared_bytes);
      if (!found.ok()) return as_object_error(std::move(found).status());
      function = *found;
    }
    engine.bind(function, launch, kernel);
    return {};
  }
};

}  // namespace

Status check_image(const std::string& image) {
  Elf64_Ehdr head{};
  if (image.size() < sizeof(head)) return broken_image("too short");
  std::memcpy(&head, image.data(), sizeof(head));
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) {
    return broken_image("not an ELF file of 64 bits");
  }
  const bool tables =
      (head.e_shnum == 0 || head.e_shentsize == sizeof(Elf64_Shdr)) &&
      (head.e_phnum == 0 || head.e_phentsize == sizeof(Elf64_Phdr)) &&
      lies_within(head.e_shoff, uint64_t{head.e_shnum} * sizeof(Elf64_Shdr), image.size()) &&
      lies_within(head.e_phoff, uint64_t{head.e_phnum} * sizeof(Elf64_Phdr), image.size());
  if (!tables || head.e_shnum == 0) return broken_image("its tables are not inside");
  for (size_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section{};
    std::memcpy(&section, image.data() + head.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!lies_within(section.sh_offset, section.sh_size, image.size())) {
      return broken_image("a section is not inside");
    }
  }
  for (size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, image.data() + head.e_phoff + i * sizeof(segment), sizeof(segment));
    if (!lies_within(segment.p_offset, segment.p_filesz, image.size())) {
      return broken_image("a segment is not inside");
    }
  }
  return {};
}

const runtime::Loader& loader() {
  static const CubinLoader instance;
  return instance;
}

}  // namespace pyc::cuda

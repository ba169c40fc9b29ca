#include "cuda/device_runs.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace pyc::test {
namespace {

constexpr uint32_t kNoFault = UINT32_MAX;

std::string hex(Word word) {
  char text[24];
  snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(word));
  return text;
}

std::string difference(const Bytes& found, const Bytes& expected, DType t) {
  if (found == expected) return "";
  const auto size = static_cast<size_t>(dtype_size(t));
  size_t count = 0;
  std::string first;
  for (size_t i = 0; i + size <= expected.size(); i += size) {
    if (memcmp(&found[i], &expected[i], size) == 0) continue;
    if (count++ > 0) continue;
    first = "element " + std::to_string(i / size) + ": found " + hex(load_word(&found[i], t)) +
            ", expected " + hex(load_word(&expected[i], t));
  }
  return first + " (" + std::to_string(count) + " of " + std::to_string(expected.size() / size) +
         " differ)";
}

}  // namespace

Result<KernelSet> KernelSet::make(const std::vector<CaseRun>& runs, cuda::KernelForm form,
                                  size_t of_unit) {
  const auto texts_of = [form](const lower::Group& group,
                               const std::string& symbol) -> Result<std::vector<cuda::KernelText>> {
    PYC_ASSIGN(cuda::KernelText text,
               cuda::kernel_text(group.kernel, symbol, cuda::cuda_dialect(), form));
    return std::vector{std::move(text)};
  };
  return make(runs, texts_of, of_unit);
}

Result<KernelSet> KernelSet::make(const std::vector<CaseRun>& runs, const TextsOf& texts_of,
                                  size_t of_unit) {
  KernelSet set;
  for (const CaseRun& run : runs) {
    for (const lower::Group& group : run.lowered.groups) {
      const std::string key = loop::print(group.kernel);
      if (set.kernels_.contains(key)) continue;
      const std::string symbol = "pyc_k" + std::to_string(set.kernels_.size());
      auto texts = texts_of(group, symbol);
      if (!texts.ok()) return std::move(texts).status().with_context(run.name);
      if (set.members_.empty() || set.members_.back().size() >= of_unit) {
        set.members_.emplace_back();
      }
      for (const auto& kept : set.kernels_.emplace(key, std::move(*texts)).first->second) {
        set.units_[kept.symbol] = set.members_.size() - 1;
        set.members_.back().push_back(&kept);
      }
    }
  }
  return set;
}

std::string KernelSet::unit_source(size_t unit) const {
  return cuda::unit_text(cuda::cuda_dialect(), members_[unit]);
}

Status KernelSet::compile(const cuda::Nvrtc& nvrtc, const std::string& architecture, int threads) {
  images_.assign(members_.size(), "");
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < members_.size(); i = next++) {
      auto image = nvrtc.cubin(unit_source(i), architecture);
      const std::lock_guard lock(mutex);
      if (image.ok()) {
        images_[i] = std::move(*image);
      } else if (first.ok()) {
        first = std::move(image).status();
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& t : pool) t.join();
  return first;
}

const std::vector<cuda::KernelText>& KernelSet::texts(const loop::Kernel& kernel) const {
  return kernels_.at(loop::print(kernel));
}

std::map<std::string, int> KernelSet::count_by_form() const {
  std::map<std::string, int> counts;
  for (const auto& [key, texts] : kernels_) {
    for (const cuda::KernelText& text : texts) ++counts[text.form];
  }
  return counts;
}

Result<CaseRunner> CaseRunner::make(const cuda::DevicePtr& device, const KernelSet& kernels) {
  CaseRunner runner;
  runner.device_ = device;
  runner.kernels_ = &kernels;
  PYC_ASSIGN(runner.stream_, cuda::Stream::create(device));
  for (const std::string& image : kernels.images()) {
    PYC_ASSIGN(cuda::Module module, cuda::Module::load(device, image));
    runner.modules_.push_back(std::move(module));
  }
  return runner;
}

Result<cuda::FunctionHandle> CaseRunner::function_of(const cuda::KernelText& text) {
  const auto found = functions_.find(text.symbol);
  if (found != functions_.end()) return found->second;
  PYC_ASSIGN(const cuda::FunctionHandle function,
             modules_[kernels_->unit_of(text)].function(text.symbol, text.shared_bytes));
  functions_[text.symbol] = function;
  return function;
}

Result<std::map<ir::ValueId, cuda::DeviceMemory>> CaseRunner::upload(const CaseRun& c) {
  std::map<ir::ValueId, cuda::DeviceMemory> memory;
  const ir::Graph& graph = *c.lowered.graph;
  for (const lower::Group& group : c.lowered.groups) {
    for (const ir::ValueId v : group.buffer_values) {
      if (v == ir::kNoId || memory.contains(v)) continue;
      PYC_ASSIGN(cuda::DeviceMemory made,
                 device_->allocate(static_cast<size_t>(bytes_of(graph, v))));
      const auto given = c.given.find(v);
      if (given != c.given.end() && !given->second.empty()) {
        PYC_TRY(stream_.copy_in(made.get(), given->second));
      }
      memory.emplace(v, std::move(made));
    }
  }
  return memory;
}

Status CaseRunner::launch_group(const CaseRun& c, size_t index, uint64_t fault,
                                const std::map<ir::ValueId, cuda::DeviceMemory>& memory,
                                std::vector<cuda::DeviceMemory>& workspaces) {
  const lower::Group& group = c.lowered.groups[index];
  const std::vector<cuda::KernelText>& texts = kernels_->texts(group.kernel);
  PYC_ASSIGN(cuda::DeviceMemory workspace,
             device_->allocate(static_cast<size_t>(texts[0].workspace_bytes)));
  const uint64_t shared = workspace.get();
  workspaces.push_back(std::move(workspace));
  for (const cuda::KernelText& text : texts) {
    if (text.blocks == 0) continue;
    PYC_ASSIGN(const cuda::FunctionHandle function, function_of(text));
    std::vector<uint64_t> parameters;
    for (const uint32_t b : text.buffers) {
      parameters.push_back(memory.at(group.buffer_values[b]).get());
    }
    parameters.insert(parameters.end(), {shared, fault, index});
    PYC_TRY(stream_.launch(function, {text.blocks, text.threads, text.shared_bytes}, parameters));
  }
  return {};
}

Result<std::string> CaseRunner::run(const CaseRun& c) {
  PYC_ASSIGN(const auto memory, upload(c));
  PYC_ASSIGN(cuda::DeviceMemory fault, device_->allocate(sizeof(uint32_t)));
  PYC_TRY(stream_.fill_words(fault.get(), kNoFault, 1));
  std::vector<cuda::DeviceMemory> workspaces;
  for (size_t g = 0; g < c.lowered.groups.size(); ++g) {
    PYC_TRY(launch_group(c, g, fault.get(), memory, workspaces));
  }
  uint32_t word = 0;
  PYC_TRY(stream_.copy_out(std::as_writable_bytes(std::span(&word, 1)), fault.get()));
  std::map<ir::ValueId, Bytes> found;
  for (const auto& [v, expected] : c.results) {
    found[v].resize(expected.size());
    if (!expected.empty()) PYC_TRY(stream_.copy_out(found[v], memory.at(v).get()));
  }
  PYC_TRY(stream_.synchronize());

  const uint32_t expected_word =
      c.fault == 0 ? kNoFault
                   : static_cast<uint32_t>(c.faulty_group) * 65536 + static_cast<uint32_t>(c.fault);
  if (word != expected_word) {
    return "fault word " + hex(word) + ", expected " + hex(expected_word);
  }
  for (const auto& [v, expected] : c.results) {
    const std::string text = difference(found[v], expected, c.lowered.graph->type(v).dtype);
    if (!text.empty()) return "value %" + c.lowered.graph->value(v).name + ", " + text;
  }
  return std::string();
}

}  // namespace pyc::test

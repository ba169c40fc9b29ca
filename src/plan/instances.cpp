#include "plan/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace pyc::plan {
namespace {

Status broken(std::string message) { return {Code::kInternal, "plan: " + std::move(message)}; }

class InstanceTable {
 public:
  InstanceTable(const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
                std::span<const StatePair> states)
      : lowered_(lowered),
        graph_(*lowered.graph),
        needs_(needs),
        writer_(graph_.values.size(), ir::kNoId),
        output_(graph_.values.size(), ir::kNoId),
        instance_(graph_.values.size(), ir::kNoId) {
    plan_.states.assign(states.begin(), states.end());
  }

  Result<ExecutionPlan> build() {
    PYC_TRY(check_sizes());
    PYC_TRY(find_writers());
    PYC_TRY(find_outputs());
    PYC_TRY(find_states());
    for (size_t g = 0; g < lowered_.groups.size(); ++g) PYC_TRY(check_reads(g));
    add_inputs();
    add_constants();
    add_steps();
    return std::move(plan_);
  }

 private:
  Status check_sizes() const {
    if (needs_.size() != lowered_.groups.size()) {
      return broken(fmt::format("expected the needs of {} groups, found {}", lowered_.groups.size(),
                                needs_.size()));
    }
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      const lower::Group& group = lowered_.groups[g];
      if (group.buffer_values.size() != group.kernel.buffers.size()) {
        return broken(fmt::format("group '{}': expected a value for each of {} buffers, found {}",
                                  group.name, group.kernel.buffers.size(),
                                  group.buffer_values.size()));
      }
      if (needs_[g].workspace_bytes < 0 || needs_[g].scratch_bytes < 0) {
        return broken(fmt::format("group '{}': needs a negative size", group.name));
      }
      for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
        PYC_TRY(check_buffer(group, b));
      }
    }
    return {};
  }

  Status check_buffer(const lower::Group& group, size_t b) const {
    const loop::Buffer& buffer = group.kernel.buffers[b];
    const ir::ValueId value = group.buffer_values[b];
    const int64_t begin = group.buffer_offset(b);
    if (buffer.access == loop::Access::kScratch) {
      if (value == ir::kNoId) return {};
      return broken(
          fmt::format("group '{}': scratch buffer '{}' has a value", group.name, buffer.name));
    }
    if (value >= graph_.values.size()) {
      return broken(fmt::format("group '{}': buffer '{}' has no value", group.name, buffer.name));
    }
    const int64_t kernel_bytes = (begin + buffer.elements) * dtype_size(buffer.dtype);
    if (begin < 0 || kernel_bytes > graph_.type(value).bytes()) {
      return broken(fmt::format("group '{}': the kernel takes {} bytes of '{}', which has {}",
                                group.name, kernel_bytes, graph_.value(value).name,
                                graph_.type(value).bytes()));
    }
    return {};
  }

  Status find_writers() {
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      const lower::Group& group = lowered_.groups[g];
      for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
        if (group.kernel.buffers[b].access != loop::Access::kWrite) continue;
        const ir::ValueId value = group.buffer_values[b];
        if (graph_.value(value).kind != ir::ValueKind::kResult) {
          return broken(fmt::format("group '{}' writes '{}', which no node computes", group.name,
                                    graph_.value(value).name));
        }
        if (writer_[value] != ir::kNoId) {
          return broken(fmt::format("'{}' is written by '{}' and by '{}'", graph_.value(value).name,
                                    lowered_.groups[writer_[value]].name, group.name));
        }
        writer_[value] = static_cast<uint32_t>(g);
      }
    }
    return {};
  }

  Status find_outputs() {
    if (lowered_.output_values.size() != graph_.outputs.size()) {
      return broken(fmt::format("expected storage for {} outputs, found {}", graph_.outputs.size(),
                                lowered_.output_values.size()));
    }
    for (size_t i = 0; i < lowered_.output_values.size(); ++i) {
      const ir::ValueId value = lowered_.output_values[i];
      if (value >= graph_.values.size() || writer_[value] == ir::kNoId) {
        return broken(fmt::format("no group writes output {}", i));
      }
      if (output_[value] != ir::kNoId) {
        return broken(fmt::format("'{}' cannot be the storage of output {} and of output {}",
                                  graph_.value(value).name, output_[value], i));
      }
      output_[value] = static_cast<uint32_t>(i);
    }
    return {};
  }

  // Numbers inputs and outputs: those of states by their state, the others without gaps.
  Status find_states() {
    input_of_.assign(graph_.inputs.size(), {BufferClass::kHostInput, 0});
    output_of_.assign(graph_.outputs.size(), {BufferClass::kOutput, 0});
    for (uint32_t s = 0; s < plan_.states.size(); ++s) {
      const auto [input, output] = plan_.states[s];
      if (input >= input_of_.size() || output >= output_of_.size()) {
        return broken(fmt::format("state {} is no pair of an input and an output", s));
      }
      if (input_of_[input].cls == BufferClass::kState ||
          output_of_[output].cls == BufferClass::kState) {
        return broken(fmt::format("state {} shares its input or its output with another", s));
      }
      const int64_t before = graph_.type(graph_.inputs[input]).bytes();
      const int64_t after = graph_.type(lowered_.output_values[output]).bytes();
      if (before != after) {
        return broken(
            fmt::format("state {} has {} bytes before a run and {} after it", s, before, after));
      }
      input_of_[input] = output_of_[output] = {BufferClass::kState, s};
    }
    for (std::vector<Role>* roles : {&input_of_, &output_of_}) {
      uint32_t next = 0;
      for (Role& role : *roles) {
        if (role.cls != BufferClass::kState) role.index = next++;
      }
    }
    return {};
  }

  Status check_reads(size_t g) const {
    const lower::Group& group = lowered_.groups[g];
    for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
      if (group.kernel.buffers[b].access != loop::Access::kRead) continue;
      const ir::ValueId value = group.buffer_values[b];
      if (graph_.value(value).kind != ir::ValueKind::kResult) continue;
      if (writer_[value] >= g) {  // kNoId is larger than every group
        return broken(fmt::format("group '{}' reads '{}', which no earlier group writes",
                                  group.name, graph_.value(value).name));
      }
    }
    for (const lower::KernelNeeds::Packed& packed : needs_[g].packed) {
      if (packed.source >= graph_.values.size() || packed.bytes < 0 ||
          graph_.value(packed.source).kind != ir::ValueKind::kConstant) {
        return broken(fmt::format("group '{}' packs what is no constant", group.name));
      }
      if (packed.packing.empty()) {
        return broken(fmt::format("group '{}' does not say how it packs '{}'", group.name,
                                  graph_.value(packed.source).name));
      }
      PYC_TRY(check_same_size(g, packed));
    }
    return {};
  }

  // What is packed alike has one size.
  Status check_same_size(size_t g, const lower::KernelNeeds::Packed& packed) const {
    for (size_t other = 0; other < g; ++other) {
      for (const lower::KernelNeeds::Packed& p : needs_[other].packed) {
        if (p.source != packed.source || p.packing != packed.packing || p.bytes == packed.bytes) {
          continue;
        }
        return broken(fmt::format("groups '{}' and '{}' pack '{}' alike, into {} bytes and into {}",
                                  lowered_.groups[other].name, lowered_.groups[g].name,
                                  graph_.value(packed.source).name, p.bytes, packed.bytes));
      }
    }
    return {};
  }

  uint32_t add(std::string name, BufferClass cls, ir::ValueId value, int64_t bytes) {
    Instance instance;
    instance.name = std::move(name);
    instance.cls = cls;
    instance.value = value;
    instance.bytes = bytes;
    plan_.instances.push_back(std::move(instance));
    return static_cast<uint32_t>(plan_.instances.size() - 1);
  }

  // What an instance is to the caller of a run.
  struct Role {
    BufferClass cls = BufferClass::kTemporary;
    uint32_t index = 0;  // io_index
  };

  uint32_t add_value(ir::ValueId value, Role role) {
    instance_[value] = add(graph_.value(value).name, role.cls, value, graph_.type(value).bytes());
    plan_.instances[instance_[value]].io_index = role.index;
    return instance_[value];
  }

  void add_inputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) add_value(graph_.inputs[i], input_of_[i]);
  }

  bool packs(size_t group, ir::ValueId value) const {
    return std::any_of(needs_[group].packed.begin(), needs_[group].packed.end(),
                       [&](const lower::KernelNeeds::Packed& p) { return p.source == value; });
  }

  void add_constants() {
    std::vector<bool> read(graph_.values.size(), false);
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      for (const ir::ValueId value : lowered_.groups[g].buffer_values) {
        if (value != ir::kNoId && !packs(g, value)) read[value] = true;
      }
    }
    uint32_t parameters = 0;
    for (ir::ValueId value = 0; value < graph_.values.size(); ++value) {
      if (!read[value] || graph_.value(value).kind != ir::ValueKind::kConstant) continue;
      add_value(value, {BufferClass::kParameter, parameters++});
    }
    add_packed(parameters);
  }

  // A constant that groups want packed alike is packed once; its name tells of the first of them.
  void add_packed(uint32_t parameters) {
    std::map<std::pair<ir::ValueId, std::string>, uint32_t> known;
    packed_.resize(lowered_.groups.size());
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      for (const lower::KernelNeeds::Packed& packed : needs_[g].packed) {
        const auto [it, is_new] = known.try_emplace({packed.source, packed.packing}, 0);
        if (is_new) {
          it->second = add(fmt::format("{}.packed[{}]", graph_.value(packed.source).name,
                                       lowered_.groups[g].name),
                           BufferClass::kParameter, packed.source, packed.bytes);
          plan_.instances[it->second].packing = packed.packing;
          plan_.instances[it->second].io_index = parameters++;
        }
        packed_[g].push_back(it->second);
      }
    }
  }

  void add_steps() {
    plan_.steps.resize(lowered_.groups.size());
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      plan_.steps[g].group = static_cast<uint32_t>(g);
      add_operands(g, plan_.steps[g]);
    }
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      if (needs_[g].workspace_bytes == 0) continue;
      plan_.steps[g].workspace = add(lowered_.groups[g].name + ".workspace",
                                     BufferClass::kWorkspace, ir::kNoId, needs_[g].workspace_bytes);
    }
  }

  void add_operands(size_t g, Step& step) {
    const lower::Group& group = lowered_.groups[g];
    for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
      const ir::ValueId value = group.buffer_values[b];
      if (value == ir::kNoId || packs(g, value)) continue;
      if (group.kernel.buffers[b].access == loop::Access::kRead) {
        const bool known =
            std::find(step.reads.begin(), step.reads.end(), instance_[value]) != step.reads.end();
        if (!known) step.reads.push_back(instance_[value]);
        continue;
      }
      const bool is_output = output_[value] != ir::kNoId;
      step.writes.push_back(add_value(value, is_output ? output_of_[output_[value]] : Role()));
    }
    step.reads.insert(step.reads.end(), packed_[g].begin(), packed_[g].end());
  }

  const lower::LoweredGraph& lowered_;
  const ir::Graph& graph_;
  std::span<const lower::KernelNeeds> needs_;
  std::vector<uint32_t> writer_;               // per value: the group that writes it
  std::vector<uint32_t> output_;               // per value: the model output it is
  std::vector<uint32_t> instance_;             // per value: its instance
  std::vector<Role> input_of_;                 // per input of the graph
  std::vector<Role> output_of_;                // per output of the graph
  std::vector<std::vector<uint32_t>> packed_;  // per group: the instances of its packed constants
  ExecutionPlan plan_;
};

}  // namespace

Result<ExecutionPlan> make_instances(const lower::LoweredGraph& lowered,
                                     std::span<const lower::KernelNeeds> needs,
                                     std::span<const StatePair> states) {
  return InstanceTable(lowered, needs, states).build();
}

}  // namespace pyc::plan

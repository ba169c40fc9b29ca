#include "tune/group_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"
#include "driver/assemble.h"

namespace pyc::tune {
namespace {

bool is_constant(const ir::Graph& graph, ir::ValueId v) {
  return graph.value(v).kind == ir::ValueKind::kConstant;
}

void add_once(std::vector<ir::ValueId>& values, ir::ValueId v) {
  if (std::ranges::find(values, v) == values.end()) values.push_back(v);
}

uint32_t index_of(const std::vector<ir::ValueId>& values, ir::ValueId v) {
  return static_cast<uint32_t>(std::ranges::find(values, v) - values.begin());
}

std::vector<runtime::IoSpec> specs_of(const ir::Graph& graph,
                                      const std::vector<ir::ValueId>& values) {
  std::vector<runtime::IoSpec> out;
  for (const ir::ValueId v : values) {
    const ir::Value& value = graph.value(v);
    out.push_back({value.name, value.type.dtype, value.type.shape, value.type.bytes()});
  }
  return out;
}

// A copy, since bytes in a file may lie at any address.
Result<runtime::Parameter> parameter_of(const ir::ConstData& constant) {
  PYC_ASSIGN(AlignedBuffer made, AlignedBuffer::create(constant.bytes.size()));
  std::memcpy(made.data(), constant.bytes.data(), constant.bytes.size());
  auto owner = std::make_shared<const AlignedBuffer>(std::move(made));
  return runtime::Parameter{owner, owner->data(), static_cast<int64_t>(constant.bytes.size())};
}

}  // namespace

GroupValues values_of(const ir::Graph& graph, const lower::Group& group) {
  GroupValues out;
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId v = group.buffer_values[b];
    if (v == ir::kNoId) continue;
    if (group.kernel.buffers[b].access == loop::Access::kWrite) {
      add_once(out.outputs, v);
    } else if (!is_constant(graph, v)) {
      add_once(out.inputs, v);
    }
  }
  return out;
}

Result<std::shared_ptr<const runtime::Program>> group_program(
    const lower::LoweredGraph& lowered, size_t g, const backends::Candidate& candidate,
    const backends::Backend& backend, const backends::BackendOptions& options) {
  const ir::Graph& graph = *lowered.graph;
  const lower::Group& group = lowered.groups[g];
  const lower::LoweredGraph alone{
      .graph = lowered.graph, .groups = {group}, .output_values = {}, .decisions = {}};
  backends::CompileStats stats;
  PYC_ASSIGN(const std::vector<backends::CompiledGroup> compiled,
             backend.compile(alone, {&candidate, 1}, options, &stats));
  const GroupValues values = values_of(graph, group);
  auto program = std::make_shared<runtime::Program>();
  program->places = {{.backend = std::string(backend.name()), .target = options.target}};
  program->inputs = specs_of(graph, values.inputs);
  program->outputs = specs_of(graph, values.outputs);
  program->arena_bytes = static_cast<int64_t>(
      AlignedBuffer::handed_out(static_cast<size_t>(candidate.needs.workspace_bytes)));
  program->scratch_bytes = candidate.needs.scratch_bytes;
  program->parameters = compiled[0].packed;
  std::vector<ir::ValueId> constants;  // behind the packed ones

  const auto place = [&](const backends::Operand& operand) -> Result<runtime::BufferRef> {
    using Kind = backends::Operand::Kind;
    if (operand.kind == Kind::kScratch) return runtime::BufferRef{runtime::Where::kScratch, 0, 0};
    if (operand.kind == Kind::kWorkspace) {
      return runtime::BufferRef{runtime::Where::kArena, 0, operand.offset};
    }
    if (operand.kind == Kind::kPacked) {
      return runtime::BufferRef{runtime::Where::kParameter, operand.packed, 0};
    }
    const ir::ValueId v = operand.value;
    if (const uint32_t i = index_of(values.outputs, v); i < values.outputs.size()) {
      return runtime::BufferRef{runtime::Where::kOutput, i, operand.offset};
    }
    if (!is_constant(graph, v)) {
      return runtime::BufferRef{runtime::Where::kInput, index_of(values.inputs, v), operand.offset};
    }
    const uint32_t known = index_of(constants, v);
    if (known == constants.size()) {
      PYC_ASSIGN(runtime::Parameter made, parameter_of(*graph.value(v).constant));
      program->parameters.push_back(std::move(made));
      constants.push_back(v);
    }
    const auto index = static_cast<uint32_t>(compiled[0].packed.size()) + known;
    return runtime::BufferRef{runtime::Where::kParameter, index, operand.offset};
  };
  for (const backends::CompiledStep& s : compiled[0].steps) {
    runtime::Step step = driver::step_of(graph, group, s);
    for (const backends::Operand& operand : s.operands) {
      PYC_ASSIGN(const runtime::BufferRef ref, place(operand));
      step.kernel().buffers.push_back(ref);
    }
    program->steps.push_back(std::move(step));
  }
  return std::shared_ptr<const runtime::Program>(std::move(program));
}

}  // namespace pyc::tune

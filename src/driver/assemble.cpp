#include "driver/assemble.h"

namespace pyc::driver {
namespace {

std::vector<runtime::IoSpec> io_specs(const ir::Graph& graph, std::span<const ir::ValueId> values) {
  std::vector<runtime::IoSpec> specs;
  for (ir::ValueId v : values) {
    const ir::Value& value = graph.value(v);
    specs.push_back({value.name, value.type.dtype, value.type.shape, value.type.bytes()});
  }
  return specs;
}

// A constant as a kernel may read it: where its bytes lie (in a mapped file) at an odd address, a
// copy.
runtime::Parameter aligned_parameter(const SharedBytes& bytes, DType dtype) {
  const auto size = static_cast<int64_t>(bytes.size());
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % static_cast<uintptr_t>(dtype_size(dtype)) == 0) {
    auto owner = std::make_shared<const SharedBytes>(bytes);
    return {owner, owner->data(), size};
  }
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.copy());
  return {copy, copy->data(), size};
}

class Assembler {
 public:
  Assembler(const lower::LoweredGraph& lowered, const plan::ExecutionPlan& plan,
            std::span<const backends::CompiledGroup> groups)
      : lowered_(lowered),
        plan_(plan),
        groups_(groups),
        buffer_of_(lowered.graph->values.size(), ir::kNoId) {
    for (uint32_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].value != ir::kNoId) buffer_of_[plan.buffers[b].value] = b;
    }
  }

  void fill(runtime::Program& program) {
    program.arena_bytes = plan_.metrics.arena_bytes;
    program.scratch_bytes = plan_.metrics.scratch_bytes;
    add_constants(program);
    for (const plan::PlannedStep& step : plan_.steps) {
      const backends::CompiledGroup& compiled = groups_[step.group];
      add_packed(step, compiled, program);
      program.owners.insert(program.owners.end(), compiled.owners.begin(), compiled.owners.end());
      for (const backends::CompiledStep& s : compiled.steps) {
        program.steps.push_back(make_step(step, compiled, s));
      }
    }
  }

 private:
  static runtime::Parameter& parameter_at(runtime::Program& program, uint32_t index) {
    if (program.parameters.size() <= index) program.parameters.resize(index + 1);
    return program.parameters[index];
  }

  void add_constants(runtime::Program& program) {
    for (const plan::PlannedBuffer& b : plan_.buffers) {
      if (b.cls != BufferClass::kParameter || b.value == ir::kNoId) continue;
      const auto& data = lowered_.graph->value(b.value).constant;
      parameter_at(program, b.io_index) =
          aligned_parameter(data->bytes, lowered_.graph->type(b.value).dtype);
    }
  }

  // A step's packed constants are the last of its reads.
  uint32_t packed_buffer(const plan::PlannedStep& step, const backends::CompiledGroup& compiled,
                         size_t i) const {
    return step.reads[step.reads.size() - compiled.packed.size() + i];
  }

  void add_packed(const plan::PlannedStep& step, const backends::CompiledGroup& compiled,
                  runtime::Program& program) {
    for (size_t i = 0; i < compiled.packed.size(); ++i) {
      const plan::PlannedBuffer& b = plan_.buffers[packed_buffer(step, compiled, i)];
      PYC_CHECK(b.bytes == compiled.packed[i].bytes, "packed constant of an unplanned size");
      parameter_at(program, b.io_index) = compiled.packed[i];
    }
  }

  runtime::BufferRef place(uint32_t buffer) const {
    const plan::PlannedBuffer& b = plan_.buffers[buffer];
    switch (b.cls) {
      case BufferClass::kHostInput:
        return {runtime::Where::kInput, b.io_index, 0};
      case BufferClass::kOutput:
        return {runtime::Where::kOutput, b.io_index, 0};
      case BufferClass::kParameter:
        return {runtime::Where::kParameter, b.io_index, 0};
      case BufferClass::kTemporary:
      case BufferClass::kWorkspace:
        break;
    }
    return {runtime::Where::kArena, 0, b.offset};
  }

  runtime::BufferRef resolve(const plan::PlannedStep& step, const backends::CompiledGroup& compiled,
                             const backends::Operand& operand) const {
    switch (operand.kind) {
      case backends::Operand::Kind::kValue:
        return place(buffer_of_[operand.value]);
      case backends::Operand::Kind::kPacked:
        return place(packed_buffer(step, compiled, operand.packed));
      case backends::Operand::Kind::kWorkspace: {
        runtime::BufferRef ref = place(step.workspace);
        ref.offset += operand.offset;
        return ref;
      }
      case backends::Operand::Kind::kScratch:
        break;
    }
    return {runtime::Where::kScratch, 0, 0};
  }

  runtime::Step make_step(const plan::PlannedStep& step, const backends::CompiledGroup& compiled,
                          const backends::CompiledStep& s) const {
    const lower::Group& group = lowered_.groups[step.group];
    runtime::Step out;
    out.name = group.name;
    out.fn = s.fn;
    out.self = s.self;
    out.symbol = s.symbol;
    out.object = compiled.object;
    out.parallel = s.parallel;
    out.bytes_moved = group.bytes;
    out.flops = group.flops;
    out.faults = group.faults;
    for (const backends::Operand& operand : s.operands) {
      out.buffers.push_back(resolve(step, compiled, operand));
    }
    return out;
  }

  const lower::LoweredGraph& lowered_;
  const plan::ExecutionPlan& plan_;
  std::span<const backends::CompiledGroup> groups_;
  std::vector<uint32_t> buffer_of_;  // planned buffer of each value
};

}  // namespace

Result<std::shared_ptr<const runtime::Program>> assemble(
    const ir::Graph& io, const lower::LoweredGraph& lowered, const plan::ExecutionPlan& plan,
    std::span<const backends::CompiledGroup> groups) {
  auto program = std::make_shared<runtime::Program>();
  program->inputs = io_specs(io, io.inputs);
  program->outputs = io_specs(io, io.outputs);
  Assembler(lowered, plan, groups).fill(*program);
  return std::shared_ptr<const runtime::Program>(std::move(program));
}

runtime::MemoryReport memory_report(const plan::ExecutionPlan& plan, int threads) {
  runtime::MemoryReport report;
  report.class_bytes = plan.metrics.class_bytes;
  report.arena_bytes = plan.metrics.arena_bytes;
  report.scratch_bytes = plan.metrics.scratch_bytes * threads;
  report.peak_bytes = plan.metrics.peak_bytes;
  return report;
}

}  // namespace pyc::driver

#include "driver/assemble.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/in_place.h"
#include "plan/offload.h"
#include "plan/recompute.h"
#include "plan/refusal.h"

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

// Takes the inputs and outputs of states out of those that the caller hands in.
void take_states(std::span<const plan::StatePair> states, runtime::Program& program) {
  for (const plan::StatePair& s : states) {
    program.states.push_back({program.inputs[s.input], program.outputs[s.output].name});
  }
  const auto remove = [&](std::vector<runtime::IoSpec>& specs, uint32_t plan::StatePair::*index) {
    std::vector<runtime::IoSpec> left;
    for (uint32_t i = 0; i < specs.size(); ++i) {
      if (std::ranges::find(states, i, index) == states.end()) left.push_back(std::move(specs[i]));
    }
    specs = std::move(left);
  };
  remove(program.inputs, &plan::StatePair::input);
  remove(program.outputs, &plan::StatePair::output);
}

// A constant as a kernel may read it: where its bytes lie (in a mapped file) at an odd address, a
// copy that all programs with this constant share.
runtime::Parameter aligned_parameter(const ir::ConstData& constant, DType dtype) {
  const SharedBytes& bytes = constant.bytes;
  const auto size = static_cast<int64_t>(bytes.size());
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % static_cast<uintptr_t>(dtype_size(dtype)) == 0) {
    auto owner = std::make_shared<const SharedBytes>(bytes);
    return {owner, owner->data(), size, owner->in_file()};
  }
  const std::string what = "aligned copy";
  if (const auto found = constant.made.find(what); found.owner != nullptr) {
    return {found.owner, found.bytes.data(), size};
  }
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.copy());
  constant.made.keep(what, {copy, *copy});
  return {copy, copy->data(), size};
}

// Position of a value among the step's operands, which need not be the kernel's; -1: not there.
int32_t operand_of(const backends::CompiledStep& s, ir::ValueId value) {
  const auto it = std::ranges::find_if(s.operands, [&](const backends::Operand& o) {
    return o.kind == backends::Operand::Kind::kValue && o.value == value;
  });
  return it == s.operands.end() ? -1 : static_cast<int32_t>(it - s.operands.begin());
}

class Assembler {
 public:
  Assembler(const lower::LoweredGraph& lowered, const plan::ExecutionPlan& plan,
            std::span<const backends::CompiledGroup> groups)
      : lowered_(lowered), plan_(plan), groups_(groups) {}

  Status fill(runtime::Program& program) {
    program.arena_bytes = plan_.host().arena_bytes;
    program.scratch_bytes = plan_.host().scratch_bytes;
    add_constants(program);
    const std::vector<bool> again = plan::runs_again(plan_);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const plan::Step& step = plan_.steps[i];
      note_writes(step, program);
      if (step.kind == plan::StepKind::kCopy) {
        program.steps.push_back(make_copy(step));
        continue;
      }
      const backends::CompiledGroup& compiled = groups_[step.group];
      PYC_TRY(check_in_place(step, compiled));
      add_packed(step, compiled, program);
      for (const backends::CompiledStep& s : compiled.steps) {
        program.steps.push_back(make_step(step, compiled, s));
        program.steps.back().again = again[i];
        choose_direction(s, program.steps.back().kernel());
      }
    }
    return {};
  }

 private:
  // Code is made for results in place where the kernel's buffers say so. Elsewhere what is read was
  // packed: the last step that names it comes before the first that names the result.
  Status check_in_place(const plan::Step& step, const backends::CompiledGroup& compiled) const {
    const lower::Group& group = lowered_.groups[step.group];
    for (const loop::InPlacePair& pair : step.in_place) {
      const ir::ValueId read = plan_.instances[pair.read].value;
      const ir::ValueId written = plan_.instances[pair.written].value;
      if (is_written_in_place(group, read, written)) continue;
      bool is_written = false;
      for (const backends::CompiledStep& s : compiled.steps) {
        is_written = is_written || operand_of(s, written) >= 0;
        if (!is_written || operand_of(s, read) < 0) continue;
        return plan::refusal(
            "false_in_place",
            fmt::format("{} names '{}' when '{}' is written in its memory", group.name,
                        lowered_.graph->value(read).name, lowered_.graph->value(written).name));
      }
    }
    return {};
  }

  static bool is_written_in_place(const lower::Group& group, ir::ValueId read,
                                  ir::ValueId written) {
    for (size_t b = 0; b < group.buffer_values.size(); ++b) {
      const uint32_t of = group.kernel.buffers[b].in_place_of;
      if (group.buffer_values[b] != written || of == loop::kNone) continue;
      if (group.buffer_values[of] == read) return true;
    }
    return false;
  }

  // The states that the step, the next of the program, is the first to write.
  void note_writes(const plan::Step& step, runtime::Program& program) {
    states_written_.resize(program.states.size(), false);
    for (const uint32_t i : step.writes) {
      const plan::Instance& written = plan_.instances[i];
      if (written.cls != BufferClass::kState || states_written_[written.io_index]) continue;
      states_written_[written.io_index] = true;
      program.states[written.io_index].first_write = static_cast<int64_t>(program.steps.size());
    }
  }

  static runtime::Parameter& parameter_at(runtime::Program& program, uint32_t index) {
    if (program.parameters.size() <= index) program.parameters.resize(index + 1);
    return program.parameters[index];
  }

  void add_constants(runtime::Program& program) {
    for (const plan::Instance& b : plan_.instances) {
      if (!is_parameter(b) || !b.packing.empty()) continue;
      const auto& data = lowered_.graph->value(b.value).constant;
      parameter_at(program, b.io_index) =
          aligned_parameter(*data, lowered_.graph->type(b.value).dtype);
    }
  }

  // The step's instance of a value as it is.
  uint32_t instance_of(const plan::Step& step, ir::ValueId value) const {
    const uint32_t read = plan::find_instance(plan_, step.reads, value);
    return read != ir::kNoId ? read : plan::find_instance(plan_, step.writes, value);
  }

  // A step's packed constants are the last of its reads.
  uint32_t packed_buffer(const plan::Step& step, const backends::CompiledGroup& compiled,
                         size_t i) const {
    return step.reads[step.reads.size() - compiled.packed.size() + i];
  }

  void add_packed(const plan::Step& step, const backends::CompiledGroup& compiled,
                  runtime::Program& program) {
    for (size_t i = 0; i < compiled.packed.size(); ++i) {
      const plan::Instance& b = source_of(packed_buffer(step, compiled, i));
      PYC_CHECK(b.bytes == compiled.packed[i].bytes, "packed constant of an unplanned size");
      parameter_at(program, b.io_index) = compiled.packed[i];
    }
  }

  static bool is_parameter(const plan::Instance& b) {
    return b.cls == BufferClass::kParameter || b.cls == BufferClass::kMapped;
  }

  // The parameter that the instance is, or that it is the window of.
  const plan::Instance& source_of(uint32_t instance) const {
    const plan::Instance& read = plan_.instances[instance];
    if (is_parameter(read)) return read;
    const auto source = std::ranges::find_if(plan_.instances, [&](const plan::Instance& b) {
      return is_parameter(b) && b.value == read.value && b.packing == read.packing;
    });
    PYC_CHECK(source != plan_.instances.end(), "a window of a parameter");
    return *source;
  }

  runtime::BufferRef place(uint32_t instance) const {
    const plan::Instance& b = plan_.instances[instance];
    switch (b.cls) {
      case BufferClass::kHostInput:
        return {runtime::Where::kInput, b.io_index, 0};
      case BufferClass::kOutput:
        return {runtime::Where::kOutput, b.io_index, 0};
      case BufferClass::kParameter:
      case BufferClass::kMapped:
        return {runtime::Where::kParameter, b.io_index, 0};
      case BufferClass::kState:
        return {runtime::Where::kState, b.io_index, 0};
      case BufferClass::kTemporary:
      case BufferClass::kWorkspace:
        break;
    }
    return {b.place == plan::kShelf ? runtime::Where::kShelf : runtime::Where::kArena, 0, b.offset};
  }

  runtime::BufferRef resolve(const plan::Step& step, const backends::CompiledGroup& compiled,
                             const backends::Operand& operand) const {
    switch (operand.kind) {
      case backends::Operand::Kind::kValue: {
        runtime::BufferRef ref = place(instance_of(step, operand.value));
        ref.offset += operand.offset;
        return ref;
      }
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

  runtime::Step make_copy(const plan::Step& step) const {
    const plan::Instance& to = plan_.instances[step.writes[0]];
    runtime::Step out;
    out.name = "copy." + to.name;
    out.bytes_moved = 2 * to.bytes;
    out.work = runtime::Copy{{place(step.reads[0]), place(step.writes[0])}, to.bytes};
    return out;
  }

  // Every second step that reads a packed constant goes backwards (CompiledStep::backwards).
  void choose_direction(const backends::CompiledStep& s, runtime::Kernel& kernel) {
    if (s.backwards.empty()) return;
    const auto packed =
        std::ranges::find(s.operands, backends::Operand::Kind::kPacked, &backends::Operand::kind);
    if (packed == s.operands.end()) return;
    const runtime::BufferRef& ref =
        kernel.buffers[static_cast<size_t>(packed - s.operands.begin())];
    // Elsewhere it lies in a copy made for this step.
    if (ref.where != runtime::Where::kParameter) return;
    backwards_.resize(std::max<size_t>(backwards_.size(), ref.index + 1));
    if (backwards_[ref.index]) kernel.symbol = s.backwards;
    backwards_[ref.index] = !backwards_[ref.index];
  }

  runtime::Step make_step(const plan::Step& step, const backends::CompiledGroup& compiled,
                          const backends::CompiledStep& s) const {
    runtime::Step out = step_of(*lowered_.graph, lowered_.groups[step.group], s);
    for (const backends::Operand& operand : s.operands) {
      out.kernel().buffers.push_back(resolve(step, compiled, operand));
    }
    return out;
  }

  const lower::LoweredGraph& lowered_;
  const plan::ExecutionPlan& plan_;
  std::span<const backends::CompiledGroup> groups_;
  std::vector<bool> states_written_;
  std::vector<bool> backwards_;  // by parameter: the next step that reads it goes backwards
};

// Of a step that packs: it reads its values and writes about as much.
int64_t bytes_packed(const ir::Graph& graph, const backends::CompiledStep& s) {
  int64_t bytes = 0;
  for (const backends::Operand& operand : s.operands) {
    if (operand.kind != backends::Operand::Kind::kValue) continue;
    bytes += 2 * graph.type(operand.value).bytes();
  }
  return bytes;
}

}  // namespace

runtime::Step step_of(const ir::Graph& graph, const lower::Group& group,
                      const backends::CompiledStep& s) {
  runtime::Step out;
  out.name = group.name;
  out.bytes_moved = s.prepares ? bytes_packed(graph, s) : group.bytes;
  out.flops = s.prepares ? 0.0 : group.flops;
  runtime::Kernel& kernel = out.kernel();
  kernel.symbol = s.symbol;
  kernel.object = s.object;
  kernel.launch = s.launch;
  for (Fault fault : group.faults) {
    if (fault.buffer >= 0) {
      const auto b = static_cast<size_t>(fault.buffer);
      const int64_t elements = graph.type(group.buffer_values[b]).elements();
      // Of a part of the value no place in it can be told.
      const bool whole = group.kernel.buffers[b].elements == elements;
      fault.buffer = whole ? operand_of(s, group.buffer_values[b]) : -1;
    }
    kernel.faults.push_back(std::move(fault));
  }
  return out;
}

Result<std::shared_ptr<const runtime::Program>> assemble(
    const ir::Graph& io, const lower::LoweredGraph& lowered, const plan::ExecutionPlan& plan,
    std::span<const backends::CompiledGroup> groups, runtime::Place place) {
  auto program = std::make_shared<runtime::Program>();
  program->places = {std::move(place)};
  program->inputs = io_specs(io, io.inputs);
  program->outputs = io_specs(io, io.outputs);
  take_states(plan.states, *program);
  PYC_TRY(Assembler(lowered, plan, groups).fill(*program));
  return std::shared_ptr<const runtime::Program>(std::move(program));
}

runtime::MemoryReport memory_report(const plan::ExecutionPlan& plan, int threads) {
  runtime::MemoryReport report;
  report.class_bytes = plan.host().class_bytes;
  report.arena_bytes = plan.host().arena_bytes;
  report.scratch_bytes = plan.host().scratch_bytes * threads;
  report.peak_bytes = plan.host().peak_bytes;
  return report;
}

}  // namespace pyc::driver

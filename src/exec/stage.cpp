#include "exec/stage.h"

#include <algorithm>

namespace pyc::exec {
namespace {

bool same_content(const DynValue& a, const DynValue& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

void add_report(const runtime::MemoryReport& one, runtime::MemoryReport& sum) {
  for (size_t i = 0; i < one.class_bytes.size(); ++i) sum.class_bytes[i] += one.class_bytes[i];
  sum.arena_bytes += one.arena_bytes;
  sum.scratch_bytes += one.scratch_bytes;
  sum.measured_arena_bytes += one.measured_arena_bytes;
  sum.staging_bytes += one.staging_bytes;
}

}  // namespace

bool StageProgram::fits(const Signature& types, const Frame& frame) const {
  return signature == types && std::all_of(pinned.begin(), pinned.end(), [&](const auto& pin) {
           return same_content(pin.second, *frame.find(pin.first));
         });
}

std::shared_ptr<StageProgram> Stage::find(const Signature& types, const Frame& frame) {
  const auto it = std::find_if(programs.begin(), programs.end(),
                               [&](const auto& program) { return program->fits(types, frame); });
  if (it == programs.end()) return nullptr;
  programs.splice(programs.begin(), programs, it);
  return programs.front();
}

bool Stage::keeps_all() const {
  if (programs.size() <= Executor::kMaxPrograms) return true;
  if (programs.size() > Executor::kMaxShared) return false;
  int64_t bytes = 0;
  size_t own = 0;  // programs with code of their own
  for (const auto& program : programs) {
    const bool ready = program->condition == StageProgram::Condition::kReady;
    if (!ready || !program->code.shared) {
      ++own;
    } else {
      const runtime::MemoryReport memory = program->code.model->memory();
      bytes += memory.arena_bytes + memory.scratch_bytes;
    }
  }
  return own <= Executor::kMaxPrograms && bytes <= Executor::kSharedBytes;
}

void Stage::add_memory(runtime::MemoryReport& sum) const {
  for (const auto& program : programs) {
    if (program->condition != StageProgram::Condition::kReady) continue;
    if (program->code.model != nullptr) add_report(program->code.model->memory(), sum);
    program->next->add_memory(sum);
  }
}

}  // namespace pyc::exec

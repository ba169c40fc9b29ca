#include "exec/stage.h"

#include <algorithm>

#include "base/hash.h"

namespace pyc::exec {
namespace {

uint64_t hash_of(const Signature& types) {
  uint64_t hash = types.size();
  for (const int64_t word : types) hash = mix(hash, static_cast<uint64_t>(word));
  return hash;
}

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
  const auto [begin, end] = by_types_.equal_range(hash_of(types));
  const auto found = std::find_if(
      begin, end, [&](const auto& entry) { return (*entry.second)->fits(types, frame); });
  if (found == end) return nullptr;
  programs_.splice(programs_.begin(), programs_, found->second);
  return programs_.front();
}

void Stage::add(std::shared_ptr<StageProgram> program) {
  programs_.push_front(std::move(program));
  by_types_.emplace(hash_of(programs_.front()->signature), programs_.begin());
  if (!keeps_all()) remove(programs_.back());
}

void Stage::remove(const std::shared_ptr<StageProgram>& program) {
  const auto [begin, end] = by_types_.equal_range(hash_of(program->signature));
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return *entry.second == program; });
  if (found == end) return;
  const Programs::iterator gone = found->second;  // `program` may be what it holds
  by_types_.erase(found);
  programs_.erase(gone);
}

bool Stage::keeps_all() const {
  if (programs_.size() <= Executor::kMaxPrograms) return true;
  if (programs_.size() > Executor::kMaxShared) return false;
  int64_t bytes = 0;
  size_t own = 0;  // programs_ with code of their own
  for (const auto& program : programs_) {
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
  for (const auto& program : programs_) {
    if (program->condition != StageProgram::Condition::kReady) continue;
    if (program->code.model != nullptr) add_report(program->code.model->memory(), sum);
    program->next->add_memory(sum);
  }
}

}  // namespace pyc::exec

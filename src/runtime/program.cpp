#include "runtime/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace pyc::runtime {
namespace {

// More than any machine has.
constexpr int64_t kMostShelf = int64_t{1} << 48;

Status broken(std::string message) { return {Code::kInternal, "program: " + std::move(message)}; }

Status check_io(std::string_view what, const IoSpec& io) {
  int64_t bytes = dtype_size(io.dtype);
  bool fits = true;
  for (const int64_t dim : io.shape) {
    fits = fits && dim >= 0 && (dim == 0 || bytes <= std::numeric_limits<int64_t>::max() / dim);
    if (fits) bytes *= dim;
  }
  if (fits && bytes == io.bytes) return {};
  return broken(fmt::format("{} '{}': its shape does not have {} bytes", what, io.name, io.bytes));
}

bool exists(const Program& program, const BufferRef& ref) {
  const auto within = [&ref](const auto& all) {
    return ref.index < all.size() && ref.offset >= 0 && ref.offset <= all[ref.index].bytes;
  };
  switch (ref.where) {
    case Where::kInput:
      return within(program.inputs);
    case Where::kOutput:
      return within(program.outputs);
    case Where::kParameter:
      return within(program.parameters);
    case Where::kArena:
      return ref.offset >= 0 && ref.offset < program.arena_bytes;
    case Where::kScratch:
      return true;
    case Where::kShelf:
      return ref.offset >= 0 && ref.offset <= kMostShelf;
    case Where::kState:
      return ref.index < program.states.size() && ref.offset >= 0 &&
             ref.offset <= program.states[ref.index].input.bytes;
  }
  return false;
}

// Both buffers exist.
bool fits_copy(const Program& program, const Copy& copy) {
  const auto room = [&](const BufferRef& ref) { return bytes_behind(program, ref); };
  const auto& [from, to] = copy.buffers;
  if (from.where == Where::kShelf && to.where != Where::kArena) return false;
  const bool shelved = to.where == Where::kShelf && from.where == Where::kArena;
  const bool target = to.where == Where::kState || to.where == Where::kArena || shelved;
  const bool same = from.where == to.where && from.index == to.index;
  const bool apart =
      !same || std::max(from.offset, to.offset) - std::min(from.offset, to.offset) >= copy.bytes;
  return from.where != Where::kScratch && target && apart && copy.bytes >= 0 &&
         copy.bytes <= room(from) && copy.bytes <= room(to);
}

Status check_step(const Program& program, const Step& step) {
  if (step.place >= program.places.size()) {
    return broken(fmt::format("step '{}': place {} of {} does not exist", step.name, step.place,
                              program.places.size()));
  }
  const Copy* copy = step.copy();
  if (copy == nullptr && step.kernel().object == nullptr) {
    return broken(fmt::format("step '{}': no code", step.name));
  }
  for (size_t b = 0; b < step.buffers().size(); ++b) {
    const bool computes = copy == nullptr && step.buffers()[b].where == Where::kShelf;
    if (computes || !exists(program, step.buffers()[b])) {
      return broken(fmt::format("step '{}': buffer {} does not exist", step.name, b));
    }
  }
  if (copy != nullptr && !fits_copy(program, *copy)) {
    return broken(fmt::format("step '{}': its buffers cannot be copied", step.name));
  }
  return {};
}

}  // namespace

std::vector<bool> streamed_parameters(const Program& program) {
  std::vector<bool> streamed(program.parameters.size(), false);
  for (const Step& step : program.steps) {
    const Copy* copy = step.copy();
    if (copy == nullptr || copy->buffers[0].where != Where::kParameter) continue;
    streamed[copy->buffers[0].index] = true;
  }
  return streamed;
}

int64_t shelf_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const Step& step : program.steps) {
    const Copy* copy = step.copy();
    if (copy == nullptr) continue;
    for (const BufferRef& ref : copy->buffers) {
      if (ref.where == Where::kShelf) bytes = std::max(bytes, ref.offset + copy->bytes);
    }
  }
  return bytes;
}

int64_t bytes_behind(const Program& program, const BufferRef& ref) {
  switch (ref.where) {
    case Where::kInput:
      return program.inputs[ref.index].bytes - ref.offset;
    case Where::kOutput:
      return program.outputs[ref.index].bytes - ref.offset;
    case Where::kParameter:
      return program.parameters[ref.index].bytes - ref.offset;
    case Where::kState:
      return program.states[ref.index].input.bytes - ref.offset;
    case Where::kArena:
      return program.arena_bytes - ref.offset;
    case Where::kShelf:
      return kMostShelf;
    case Where::kScratch:
      break;
  }
  return program.scratch_bytes;
}

Status check_program(const Program& program) {
  if (program.places.empty()) return broken("it has no place to run in");
  if (program.places[0].space != kHostSpace) {
    return broken(fmt::format("its first place is in the space '{}', expected '{}'",
                              program.places[0].space, kHostSpace));
  }
  for (const IoSpec& io : program.inputs) PYC_TRY(check_io("input", io));
  for (const IoSpec& io : program.outputs) PYC_TRY(check_io("output", io));
  for (const StateSpec& state : program.states) PYC_TRY(check_io("state", state.input));
  for (size_t p = 0; p < program.parameters.size(); ++p) {
    const Parameter& parameter = program.parameters[p];
    if (parameter.bytes < 0 || (parameter.data == nullptr && parameter.bytes > 0)) {
      return broken(fmt::format("parameter {} has no data", p));
    }
  }
  constexpr int64_t kMaxBytes = int64_t{1} << 52;  // sums with threads never overflow
  if (program.arena_bytes < 0 || program.scratch_bytes < 0 || program.arena_bytes > kMaxBytes ||
      program.scratch_bytes > kMaxBytes) {
    return broken(fmt::format("arena of {} bytes, scratch of {}", program.arena_bytes,
                              program.scratch_bytes));
  }
  for (const Step& step : program.steps) PYC_TRY(check_step(program, step));
  return {};
}

}  // namespace pyc::runtime

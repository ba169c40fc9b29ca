#include "runtime/program.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

namespace pyc::runtime {
namespace {

Status broken(std::string message) { return {Code::kInternal, "program: " + std::move(message)}; }

Status check_io(std::string_view what, const IoSpec& io) {
  int64_t bytes = dtype_size(io.dtype);
  bool fits = true;
  for (const int64_t dim : io.shape) {
    fits = fits && dim >= 0 && (dim == 0 || bytes <= std::numeric_limits<int64_t>::max() / dim);
    if (fits) bytes *= dim;
  }
  if (fits && bytes == io.bytes) return {};
  return broken(fmt::format("{} '{}': its shape does not give {} bytes", what, io.name, io.bytes));
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
  }
  return false;
}

Status check_step(const Program& program, const Step& step) {
  if (step.place >= program.places.size()) {
    return broken(fmt::format("step '{}': place {} of {} does not exist", step.name, step.place,
                              program.places.size()));
  }
  const Kernel& kernel = step.kernel();
  if (kernel.object == nullptr) return broken(fmt::format("step '{}': no code", step.name));
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (!exists(program, kernel.buffers[b])) {
      return broken(fmt::format("step '{}': buffer {} does not exist", step.name, b));
    }
  }
  return {};
}

}  // namespace

Status check_program(const Program& program) {
  if (program.places.empty()) return broken("it has no place to run in");
  if (program.places[0].space != kHostSpace) {
    return broken(fmt::format("its first place is in the space '{}', expected '{}'",
                              program.places[0].space, kHostSpace));
  }
  for (const IoSpec& io : program.inputs) PYC_TRY(check_io("input", io));
  for (const IoSpec& io : program.outputs) PYC_TRY(check_io("output", io));
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

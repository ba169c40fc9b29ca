#include "backends/reference/loader.h"

#include <fmt/format.h>

#include "eval/interpreter.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::reference {
namespace {

bool is_written(runtime::Where where) {
  return where == runtime::Where::kOutput || where == runtime::Where::kArena ||
         where == runtime::Where::kState;
}

// The interpreter keeps to the buffers of its text; the step's must be of that kind and size.
Status check_buffer(const loop::Buffer& buffer, const runtime::Program& program,
                    const runtime::BufferRef& ref) {
  const bool scratch = buffer.access == loop::Access::kScratch;
  const bool fits = (ref.where == runtime::Where::kScratch) == scratch &&
                    (buffer.access != loop::Access::kWrite || is_written(ref.where));
  if (!fits) return {Code::kParseError, "is of another kind in its kernel"};
  const int64_t there = runtime::bytes_behind(program, ref);
  if (buffer.elements <= there / dtype_size(buffer.dtype)) return {};
  return {Code::kParseError, fmt::format("has {} elements of {} in its kernel, {} bytes are there",
                                         buffer.elements, dtype_name(buffer.dtype), there)};
}

class Interpreted final : public runtime::HostCode {
 public:
  Interpreted(std::unique_ptr<const eval::Interpreter> interpreter, const loop::Kernel& kernel)
      : interpreter_(std::move(interpreter)),
        buffers_(kernel.buffers),
        scratch_bytes_(kernel.scratch_bytes()) {}

  runtime::HostFunction find(std::string_view symbol) const override {
    if (symbol != kSymbol) return {};
    return {eval::run_interpreted, interpreter_.get()};
  }

  Status check(const runtime::Program& program, const runtime::Step& step) const override {
    const std::vector<runtime::BufferRef>& refs = step.kernel().buffers;
    if (refs.size() != buffers_.size() || scratch_bytes_ > program.scratch_bytes) {
      return {Code::kParseError,
              fmt::format("its kernel has {} buffers and {} bytes of scratch, "
                          "the step {} and {}",
                          buffers_.size(), scratch_bytes_, refs.size(), program.scratch_bytes)};
    }
    for (size_t b = 0; b < refs.size(); ++b) {
      PYC_TRY(
          check_buffer(buffers_[b], program, refs[b]).with_context(fmt::format("buffer {}", b)));
    }
    return {};
  }

 private:
  std::unique_ptr<const eval::Interpreter> interpreter_;
  std::vector<loop::Buffer> buffers_;
  int64_t scratch_bytes_;
};

class InterpreterLoader final : public runtime::HostLoader {
 public:
  std::string_view backend() const override { return "reference"; }

 private:
  Result<std::unique_ptr<const runtime::HostCode>> load_object(
      const std::string& object) const override {
    return load_text(object);
  }
};

}  // namespace

Result<std::unique_ptr<const runtime::HostCode>> load_text(const std::string& object) {
  PYC_ASSIGN(const loop::Kernel kernel, loop::parse_kernel(object));
  PYC_TRY(loop::verify_kernel(kernel));
  PYC_ASSIGN(std::unique_ptr<const eval::Interpreter> made, eval::Interpreter::create(kernel));
  return std::unique_ptr<const runtime::HostCode>(
      std::make_unique<Interpreted>(std::move(made), kernel));
}

const runtime::Loader& loader() {
  static const InterpreterLoader instance;
  return instance;
}

}  // namespace pyc::reference

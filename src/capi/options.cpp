#include "capi/options.h"

#include <cstddef>

#include "capi/guard.h"

namespace pyc::capi {
namespace {

// Of the first version of pyc_compile_options, which ended with `target`.
constexpr size_t kFirstOptions = offsetof(pyc_compile_options, loop_limit);

Result<driver::Determinism> to_determinism(int32_t level) {
  switch (level) {
    case PYC_DETERMINISM_STRICT:
      return driver::Determinism::kStrict;
    case PYC_DETERMINISM_DEFAULT:
    case PYC_DETERMINISM_BALANCED:
      return driver::Determinism::kBalanced;
    case PYC_DETERMINISM_FAST:
      return driver::Determinism::kFast;
    default:
      return Status(Code::kInvalidArgument, fmt::format("determinism: expected 0 to {}, found {}",
                                                        PYC_DETERMINISM_FAST, level));
  }
}

}  // namespace

Result<driver::CompileOptions> to_options(const pyc_compile_options* given) {
  pyc_compile_options o;
  PYC_TRY(read_struct(given, "pyc_compile_options", kFirstOptions, o));
  driver::CompileOptions out;
  if (o.device != nullptr) out.device = o.device;
  PYC_ASSIGN(out.determinism, to_determinism(o.determinism));
  out.threads = o.threads;
  out.lanes = o.lanes;
  constexpr uint32_t kKnown = PYC_COMPILE_NO_FUSE | PYC_COMPILE_NO_REUSE | PYC_COMPILE_NO_CACHE;
  if ((o.flags & ~kKnown) != 0) {
    return Status(Code::kUnknownOption,
                  fmt::format("flags: expected bits of {:#x}, found {:#x}", kKnown, o.flags));
  }
  out.fuse = (o.flags & PYC_COMPILE_NO_FUSE) == 0;
  out.reuse = (o.flags & PYC_COMPILE_NO_REUSE) == 0;
  out.cache = (o.flags & PYC_COMPILE_NO_CACHE) == 0;
  if (o.memory_budget < 0) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("memory_budget: expected 0 (none) or more bytes, found {}", o.memory_budget));
  }
  out.memory_budget = o.memory_budget == 0 ? -1 : o.memory_budget;
  PYC_TRY(require_list(o.excluded_kernels, o.excluded_kernel_count, "excluded_kernels"));
  for (size_t i = 0; i < o.excluded_kernel_count; ++i) {
    PYC_TRY(require(o.excluded_kernels[i], "an excluded kernel"));
    out.kernels.emplace_back(o.excluded_kernels[i]);
  }
  out.target = to_text(o.target);
  out.cache_dir = to_text(o.cache_dir);
  if (o.loop_limit < 0) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("loop_limit: expected 0 (the default) or more, found {}", o.loop_limit));
  }
  if (o.loop_limit > 0) out.loop_limit = o.loop_limit;
  if (o.value_limit < 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("value_limit: expected 0 (the default) or more bytes, found {}",
                              o.value_limit));
  }
  out.value_limit = o.value_limit;
  return out;
}

Result<driver::ShapeChoice> to_shapes(const pyc_compile_options* given) {
  pyc_compile_options o;
  PYC_TRY(read_struct(given, "pyc_compile_options", kFirstOptions, o));
  driver::ShapeChoice out;
  PYC_TRY(require_list(o.dims, o.dim_count, "dims"));
  for (size_t i = 0; i < o.dim_count; ++i) {
    PYC_TRY(require(o.dims[i].name, "the name of a dim"));
    out.dims.insert_or_assign(o.dims[i].name, o.dims[i].size);
  }
  PYC_TRY(require_list(o.shapes, o.shape_count, "shapes"));
  for (size_t i = 0; i < o.shape_count; ++i) {
    const pyc_shape_choice& choice = o.shapes[i];
    PYC_TRY(require(choice.input, "the input of a shape"));
    if (choice.rank < 0 || choice.rank > ir::kMaxRank) {
      return Status(Code::kInvalidArgument, fmt::format("shape of '{}': expected a rank from 0 to "
                                                        "{}, found {}",
                                                        choice.input, ir::kMaxRank, choice.rank));
    }
    PYC_TRY(require_list(choice.shape, static_cast<size_t>(choice.rank), "a shape"));
    std::vector<int64_t>& shape = out.inputs[choice.input];
    shape.clear();
    if (choice.rank > 0) shape.assign(choice.shape, choice.shape + choice.rank);
  }
  return out;
}

}  // namespace pyc::capi

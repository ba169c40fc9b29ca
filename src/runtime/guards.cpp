#include "runtime/guards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace pyc::runtime {
namespace {

constexpr size_t kMaxDimsShown = 16;

// The dtype comes from outside and may be none.
bool is_dtype(DType t) { return static_cast<int>(t) < kValueDTypeCount; }

std::string type_text(DType dtype, std::span<const int64_t> shape) {
  std::string text = is_dtype(dtype) ? std::string(dtype_name(dtype))
                                     : fmt::format("dtype {}", static_cast<int>(dtype));
  const std::span<const int64_t> shown = shape.first(std::min(shape.size(), kMaxDimsShown));
  text += fmt::format("[{}", fmt::join(shown, ","));
  return text + (shown.size() < shape.size() ? ",...]" : "]");
}

struct Subject {
  std::string_view what;  // "input" or "output"
  const IoSpec& spec;
  const TensorView& view;

  std::string expected() const { return type_text(spec.dtype, spec.shape); }
  Status refuse(Code code, std::string_view expected, std::string_view found) const {
    return Status(code,
                  fmt::format("{} '{}': expected {}, found {}", what, spec.name, expected, found))
        .with_node(spec.name);
  }
  Status refuse_type(Code code) const {
    return refuse(code, expected(), type_text(view.dtype, view.shape));
  }
};

uintptr_t address(const TensorView& view) { return reinterpret_cast<uintptr_t>(view.data); }

// An input that the model declares as a scalar may have one dim of 1, as exporters write it: the
// bytes are the same.
bool is_one_for_a_scalar(const Subject& s) {
  return s.what == "input" && s.spec.shape.empty() && s.view.shape.size() == 1 &&
         s.view.shape[0] == 1;
}

Status check_view(const Subject& s) {
  if (s.view.data == nullptr && s.spec.bytes != 0) {
    return s.refuse(Code::kNullPointer, s.expected(), "a null pointer");
  }
  if (s.view.dtype != s.spec.dtype) return s.refuse_type(Code::kDtypeMismatch);
  if (!is_one_for_a_scalar(s)) {
    if (s.view.shape.size() != s.spec.shape.size()) return s.refuse_type(Code::kRankMismatch);
    if (s.view.shape != s.spec.shape) return s.refuse_type(Code::kShapeMismatch);
  }
  if (s.view.bytes != s.spec.bytes) {
    return s.refuse(Code::kSizeMismatch, fmt::format("{} bytes for {}", s.spec.bytes, s.expected()),
                    fmt::format("{}", s.view.bytes));
  }
  const auto size = static_cast<uintptr_t>(dtype_size(s.spec.dtype));
  if (s.spec.bytes != 0 && address(s.view) % size != 0) {
    return s.refuse(Code::kMisaligned,
                    fmt::format("{} at a multiple of {} bytes", s.expected(), size),
                    fmt::format("an address {} past one", address(s.view) % size));
  }
  return {};
}

Status check_list(std::string_view what, std::span<const IoSpec> specs,
                  std::span<const TensorView> views) {
  if (views.size() != specs.size()) {
    return {Code::kInvalidArgument,
            fmt::format("expected {} {}s, found {}", specs.size(), what, views.size())};
  }
  for (size_t i = 0; i < specs.size(); ++i) PYC_TRY(check_view({what, specs[i], views[i]}));
  return {};
}

bool overlap(const TensorView& a, const TensorView& b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  const uintptr_t start_a = address(a);
  const uintptr_t start_b = address(b);
  return start_a <= start_b ? start_b - start_a < static_cast<uintptr_t>(a.bytes)
                            : start_a - start_b < static_cast<uintptr_t>(b.bytes);
}

Status check_apart(std::string_view what, std::span<const IoSpec> specs,
                   std::span<const TensorView> views, const Subject& output) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (!overlap(views[i], output.view)) continue;
    return output.refuse(Code::kInvalidArgument, "memory of its own",
                         fmt::format("memory shared with {} '{}'", what, specs[i].name));
  }
  return {};
}

}  // namespace

Status check_views(const Program& program, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs) {
  PYC_TRY(check_list("input", program.inputs, inputs));
  PYC_TRY(check_list("output", program.outputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Subject output{"output", program.outputs[i], outputs[i]};
    PYC_TRY(check_apart("input", program.inputs, inputs, output));
    PYC_TRY(check_apart("output", program.outputs, outputs.first(i), output));
  }
  return {};
}

}  // namespace pyc::runtime

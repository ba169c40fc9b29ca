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

// The common case at once: the type that is expected, row-major, aligned, on the host.
bool fits_plainly(const IoSpec& spec, const TensorView& view) {
  return view.dtype == spec.dtype && std::ranges::equal(view.shape, spec.shape) &&
         view.strides.empty() && view.data != nullptr && view.byte_offset >= 0 &&
         view.bytes - view.byte_offset >= spec.bytes && view.device.on_host() && is_aligned(view);
}

// An input that the model declares as a scalar may have one dim of 1, as exporters write it: the
// bytes are the same.
bool is_one_for_a_scalar(const Subject& s) {
  return s.what == "input" && s.spec.shape.empty() && s.view.shape.size() == 1 &&
         s.view.shape[0] == 1;
}

Status check_view(const Subject& s, bool written, bool strict, int64_t& staged) {
  if (s.view.data == nullptr && s.spec.bytes != 0) {
    return s.refuse(Code::kNullPointer, s.expected(), "a null pointer");
  }
  if (s.view.dtype != s.spec.dtype) return s.refuse_type(Code::kDtypeMismatch);
  if (!is_one_for_a_scalar(s)) {
    if (s.view.shape.size() != s.spec.shape.size()) return s.refuse_type(Code::kRankMismatch);
    if (!std::ranges::equal(s.view.shape, s.spec.shape)) return s.refuse_type(Code::kShapeMismatch);
  }
  std::optional<ViewProblem> problem = find_problem(s.view, written);
  if (!problem && is_plain(s.view)) return {};
  if (!problem && strict) problem = why_not_plain(s.view);
  if (problem) {
    return s.refuse(problem->code, fmt::format("{} for {}", problem->expected, s.expected()),
                    problem->found);
  }
  ++staged;
  return {};
}

// The host cannot copy the elements of another memory one by one: the view must be plain.
Status check_there(const Subject& s, bool written) {
  TensorView here = s.view;
  here.device = {};
  if (fits_plainly(s.spec, here)) return {};
  int64_t staged = 0;
  PYC_TRY(check_view({s.what, s.spec, here}, written, false, staged));
  if (staged == 0) return {};
  return s.refuse(Code::kUnsupported, fmt::format("row-major, aligned {}", s.expected()),
                  "another order in the memory of a device");
}

Status check_list(std::string_view what, std::span<const IoSpec> specs,
                  std::optional<DeviceId> device, std::span<const TensorView> views, bool strict,
                  int64_t& staged) {
  if (views.size() != specs.size()) {
    std::string names;
    for (const IoSpec& spec : specs)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", spec.name);
    return {Code::kInvalidArgument, fmt::format("expected {} {}s, found {}: the {}s are {}",
                                                specs.size(), what, views.size(), what, names)};
  }
  const bool written = what == "output";
  for (size_t i = 0; i < specs.size(); ++i) {
    if (fits_plainly(specs[i], views[i])) continue;
    if (device && views[i].device == *device) {
      PYC_TRY(check_there({what, specs[i], views[i]}, written));
      continue;
    }
    PYC_TRY(check_view({what, specs[i], views[i]}, written, strict, staged));
  }
  return {};
}

ByteRange bytes_of(const IoSpec& spec, const TensorView& view) {
  if (!view.strides.empty()) return range_of(view);
  const auto begin = reinterpret_cast<uintptr_t>(view.origin());
  return {begin, begin + static_cast<uintptr_t>(spec.bytes)};
}

bool overlap(ByteRange a, ByteRange b) {
  return a.begin != a.end && b.begin != b.end && a.begin < b.end && b.begin < a.end;
}

Status check_apart(std::string_view what, std::span<const IoSpec> specs,
                   std::span<const TensorView> views, const Subject& output) {
  const ByteRange written = bytes_of(output.spec, output.view);
  for (size_t i = 0; i < views.size(); ++i) {
    if (!overlap(bytes_of(specs[i], views[i]), written)) continue;
    return output.refuse(Code::kInvalidArgument, "memory of its own",
                         fmt::format("memory shared with {} '{}'", what, specs[i].name));
  }
  return {};
}

}  // namespace

Status check_view_of(const IoSpec& state, const TensorView& view, bool written) {
  int64_t staged = 0;
  return check_view({"state", state, view}, written, false, staged);
}

Status check_views(const Program& program, std::optional<DeviceId> device,
                   std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                   bool strict, int64_t& staged) {
  staged = 0;
  PYC_TRY(check_list("input", program.inputs, device, inputs, strict, staged));
  PYC_TRY(check_list("output", program.outputs, device, outputs, strict, staged));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Subject output{"output", program.outputs[i], outputs[i]};
    PYC_TRY(check_apart("input", program.inputs, inputs, output));
    PYC_TRY(check_apart("output", program.outputs, outputs.first(i), output));
  }
  return {};
}

}  // namespace pyc::runtime

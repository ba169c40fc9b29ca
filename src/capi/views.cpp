#include "capi/views.h"

#include <utility>

#include "capi/guard.h"

namespace pyc::capi {
namespace {

constexpr size_t kFirstView = sizeof(pyc_tensor_view);

Status convert(const pyc_tensor_view& view, runtime::TensorView& out) {
  if (view.rank < 0 || view.rank > ir::kMaxRank) {
    return {Code::kRankMismatch,
            fmt::format("rank: expected 0 to {}, found {}", ir::kMaxRank, view.rank)};
  }
  const auto rank = static_cast<size_t>(view.rank);
  if (rank > 0 && view.shape == nullptr) return require(view.shape, "shape");
  if (!is_dtype(view.dtype)) return to_dtype(view.dtype).status();
  out.data = view.data;
  out.dtype = static_cast<DType>(view.dtype);
  out.shape = {view.shape, rank};
  out.bytes = view.bytes;
  out.strides = {view.strides, view.strides == nullptr ? 0 : rank};
  out.byte_offset = view.byte_offset;
  out.device = {view.device_type == 0 ? runtime::DeviceId::kHost : view.device_type,
                view.device_id};
  return {};
}

// A view of whatever version of the struct.
Status read_view(const pyc_tensor_view* view, runtime::TensorView& out) {
  if (view->struct_size == sizeof(pyc_tensor_view)) return convert(*view, out);
  pyc_tensor_view known;
  PYC_TRY(read_struct(view, "pyc_tensor_view", kFirstView, known));
  return convert(known, out);
}

}  // namespace

Status Views::set(const pyc_tensor_view* views, size_t count, std::string_view what) {
  if (count > 0 && views == nullptr) return require(views, what);
  if (views_.size() < count) views_.resize(count);
  count_ = count;
  const auto* at = reinterpret_cast<const std::byte*>(views);
  for (size_t i = 0; i < count; ++i) {
    const auto* view = reinterpret_cast<const pyc_tensor_view*>(at);
    Status status;
    if (view->struct_size != views->struct_size) {
      status = {Code::kInvalidArgument, fmt::format("struct_size: expected {} like the first's, "
                                                    "found {}",
                                                    views->struct_size, view->struct_size)};
    } else {
      status = read_view(view, views_[i]);
    }
    if (!status.ok()) return std::move(status).with_context(fmt::format("{} {}", what, i));
    at += views->struct_size;
  }
  return {};
}

Result<runtime::TensorView> to_view(const pyc_tensor_view* view) {
  PYC_TRY(require(view, "view"));
  runtime::TensorView out;
  PYC_TRY(read_view(view, out));
  return out;
}

Result<ir::TensorType> check_view(const runtime::TensorView& view, bool written) {
  PYC_ASSIGN(ir::TensorType type, to_type(static_cast<pyc_dtype>(view.dtype), view.shape.data(),
                                          static_cast<int64_t>(view.shape.size())));
  if (const auto problem = runtime::find_problem(view, written)) {
    return Status(problem->code, fmt::format("view: expected {} for {}, found {}",
                                             problem->expected, type.to_string(), problem->found));
  }
  return type;
}

Result<DynValue> to_value(const runtime::TensorView& view) {
  PYC_ASSIGN(ir::TensorType type, check_view(view, false));
  if (!runtime::is_plain(view)) {
    PYC_ASSIGN(NewTensor copy, new_tensor(type.dtype, std::move(type.shape)));
    runtime::gather(view, copy.data);
    return std::move(copy.value);
  }
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = type.dtype;
  value.bytes = SharedBytes(nullptr, {view.origin(), static_cast<size_t>(type.bytes())});
  value.shape = std::move(type.shape);
  return value;
}

Status write_view(std::span<const std::byte> bytes, std::span<const int64_t> shape, DType dtype,
                  pyc_tensor_view* view) {
  PYC_TRY(check_out_struct(view, "pyc_tensor_view", kFirstView));
  pyc_tensor_view out{};
  out.data = const_cast<std::byte*>(bytes.data());  // who may write to it is said with each call
  out.bytes = static_cast<int64_t>(bytes.size());
  out.shape = shape.data();
  out.rank = static_cast<int64_t>(shape.size());
  out.dtype = static_cast<pyc_dtype>(dtype);
  out.device_type = runtime::DeviceId::kHost;
  write_struct(view, out);
  return {};
}

}  // namespace pyc::capi

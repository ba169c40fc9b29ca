#include "pyc/runtime_allocator.h"

#include <atomic>
#include <utility>

#include "base/convert.h"
#include "base/hash.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/views.h"
#include "tooling/seeded_run.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

std::atomic<int64_t> live_tensors{0};
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void give_tensor(NewTensor tensor, pyc_tensor** out) {
  const auto bytes = static_cast<int64_t>(tensor.value.bytes.size());
  *out = new pyc_tensor{std::move(tensor)};
  live_tensors.fetch_add(1);
  const int64_t now = live_bytes.fetch_add(bytes) + bytes;
  int64_t peak = peak_bytes.load();
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

Result<std::optional<DType>> expected_dtype(pyc_dtype dtype) {
  if (dtype == PYC_DTYPE_ANY) return std::optional<DType>();
  PYC_ASSIGN(const DType known, to_dtype(dtype));
  return std::optional<DType>(known);
}

Result<DynValue> value_of(const pyc_tensor_view* view) {
  PYC_ASSIGN(const runtime::TensorView given, to_view(view));
  return to_value(given);
}

}  // namespace

pyc_status pyc_tensor_create(pyc_dtype dtype, const int64_t* shape, int64_t rank,
                             pyc_tensor** tensor, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(tensor, "tensor"));
    PYC_ASSIGN(ir::TensorType type, to_type(dtype, shape, rank));
    PYC_ASSIGN(NewTensor made, new_tensor(type.dtype, std::move(type.shape)));
    std::memset(made.data, 0, made.value.bytes.size());
    give_tensor(std::move(made), tensor);
    return {};
  });
}

void pyc_tensor_destroy(pyc_tensor* tensor) {
  if (tensor == nullptr) return;
  live_tensors.fetch_sub(1);
  live_bytes.fetch_sub(static_cast<int64_t>(tensor->tensor.value.bytes.size()));
  delete tensor;
}

pyc_status pyc_tensor_get_view(const pyc_tensor* tensor, pyc_tensor_view* view, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(tensor, "tensor"));
    const DynValue& value = tensor->tensor.value;
    return write_view(value.bytes, value.shape, value.dtype, view);
  });
}

pyc_status pyc_tensor_load_file(const char* path, pyc_dtype dtype, pyc_tensor** tensor,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    PYC_TRY(require(tensor, "tensor"));
    PYC_ASSIGN(const auto expected, expected_dtype(dtype));
    PYC_ASSIGN(NewTensor read, io::read_tensor(path, expected));
    give_tensor(std::move(read), tensor);
    return {};
  });
}

pyc_status pyc_tensor_load_bytes(const void* data, size_t size, pyc_dtype dtype,
                                 pyc_tensor** tensor, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(data, size, "data"));
    PYC_TRY(require(tensor, "tensor"));
    PYC_ASSIGN(const auto expected, expected_dtype(dtype));
    PYC_ASSIGN(NewTensor read, io::parse_tensor({static_cast<const char*>(data), size}, expected));
    give_tensor(std::move(read), tensor);
    return {};
  });
}

pyc_status pyc_tensor_save_npy(const pyc_tensor_view* view, const char* path, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const DynValue value, value_of(view));
    PYC_TRY(require(path, "path"));
    return io::write_npy(path, {value.dtype, value.shape}, value.bytes);
  });
}

pyc_status pyc_tensor_fill_random(const pyc_tensor_view* view, uint64_t seed, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const runtime::TensorView given, to_view(view));
    PYC_ASSIGN(const ir::TensorType type, check_view(given, true));
    runtime::scatter(tooling::seeded_data(type, seed)->bytes.data(), given);
    return {};
  });
}

pyc_status pyc_tensor_digest(const pyc_tensor_view* view, char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const DynValue value, value_of(view));
    return give_text(hash128(value.bytes).hex(), text);
  });
}

pyc_status pyc_tensor_read_f64(const pyc_tensor_view* view, int64_t first, int64_t count,
                               double* numbers, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const DynValue value, value_of(view));
    const DType part = part_dtype(value.dtype);
    const int64_t size = dtype_size(part);
    const int64_t whole = static_cast<int64_t>(value.bytes.size()) / size;
    if (first < 0 || count < 0 || first > whole || count > whole - first) {
      return {Code::kInvalidArgument,
              fmt::format("expected a range within {} elements, found {} from {} on", whole, count,
                          first)};
    }
    PYC_TRY(require_list(numbers, static_cast<size_t>(count), "numbers"));
    const auto* at = value.bytes.data() + first * size;
    for (int64_t i = 0; i < count; ++i, at += size) {
      numbers[i] = word_to_double(load_word(at, part), part);
    }
    return {};
  });
}

pyc_status pyc_allocator_get_stats(pyc_allocator_stats* stats, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(stats, "pyc_allocator_stats", sizeof(pyc_allocator_stats)));
    pyc_allocator_stats out{};
    out.live_tensors = live_tensors.load();
    out.live_bytes = live_bytes.load();
    out.peak_bytes = peak_bytes.load();
    out.allocations = static_cast<int64_t>(AlignedBuffer::allocation_count());
    write_struct(stats, out);
    return {};
  });
}

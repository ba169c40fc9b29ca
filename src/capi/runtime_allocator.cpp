#include "pyc/runtime_allocator.h"

#include <atomic>
#include <utility>

#include "base/convert.h"
#include "base/hash.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "driver/seeded_run.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

std::atomic<int64_t> live_tensors{0};
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void give_tensor(io::Tensor tensor, pyc_tensor** out) {
  const auto bytes = static_cast<int64_t>(tensor.data.size());
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

std::span<const std::byte> elements_of(const pyc_tensor_view& view) {
  return {static_cast<const std::byte*>(view.data), static_cast<size_t>(view.bytes)};
}

}  // namespace

namespace pyc::capi {

Result<ir::TensorType> check_view(const pyc_tensor_view* view) {
  PYC_TRY(require(view, "view"));
  PYC_ASSIGN(ir::TensorType type, to_type(view->dtype, view->shape, view->rank));
  if (view->bytes != type.bytes()) {
    return Status(Code::kSizeMismatch, fmt::format("view: expected {} bytes for {}, found {}",
                                                   type.bytes(), type.to_string(), view->bytes));
  }
  if (view->bytes != 0) PYC_TRY(require(view->data, "the view's data"));
  return type;
}

}  // namespace pyc::capi

pyc_status pyc_tensor_create(pyc_dtype dtype, const int64_t* shape, int64_t rank,
                             pyc_tensor** tensor, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(tensor, "tensor"));
    PYC_ASSIGN(ir::TensorType type, to_type(dtype, shape, rank));
    PYC_ASSIGN(AlignedBuffer data, AlignedBuffer::create(static_cast<size_t>(type.bytes())));
    std::memset(data.data(), 0, data.size());
    give_tensor({"", std::move(type), std::move(data)}, tensor);
    return {};
  });
}

void pyc_tensor_destroy(pyc_tensor* tensor) {
  if (tensor == nullptr) return;
  live_tensors.fetch_sub(1);
  live_bytes.fetch_sub(static_cast<int64_t>(tensor->tensor.data.size()));
  delete tensor;
}

pyc_status pyc_tensor_get_view(const pyc_tensor* tensor, pyc_tensor_view* view, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(tensor, "tensor"));
    PYC_TRY(require(view, "view"));
    const io::Tensor& t = tensor->tensor;
    *view = {};
    // The handle owns writable memory; a const handle only means that it is not replaced.
    view->data = const_cast<std::byte*>(t.data.data());
    view->shape = t.type.shape.data();
    view->rank = t.type.rank();
    view->bytes = t.type.bytes();
    view->dtype = static_cast<pyc_dtype>(t.type.dtype);
    return {};
  });
}

pyc_status pyc_tensor_load_file(const char* path, pyc_dtype dtype, pyc_tensor** tensor,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    PYC_TRY(require(tensor, "tensor"));
    PYC_ASSIGN(const auto expected, expected_dtype(dtype));
    PYC_ASSIGN(io::Tensor read, io::read_tensor(path, expected));
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
    PYC_ASSIGN(io::Tensor read, io::parse_tensor({static_cast<const char*>(data), size}, expected));
    give_tensor(std::move(read), tensor);
    return {};
  });
}

pyc_status pyc_tensor_save_npy(const pyc_tensor_view* view, const char* path, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const ir::TensorType type, check_view(view));
    PYC_TRY(require(path, "path"));
    return io::write_npy(path, type, elements_of(*view));
  });
}

pyc_status pyc_tensor_fill_random(const pyc_tensor_view* view, uint64_t seed, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const ir::TensorType type, check_view(view));
    const auto data = driver::seeded_data(type, seed);
    if (view->bytes != 0) std::memcpy(view->data, data->bytes.data(), data->bytes.size());
    return {};
  });
}

pyc_status pyc_tensor_digest(const pyc_tensor_view* view, char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_view(view).status());
    return give_text(hash128(elements_of(*view)).hex(), text);
  });
}

pyc_status pyc_tensor_read_f64(const pyc_tensor_view* view, int64_t first, int64_t count,
                               double* numbers, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_ASSIGN(const ir::TensorType type, check_view(view));
    const DType part = part_dtype(type.dtype);
    const int64_t size = dtype_size(part);
    const int64_t whole = type.bytes() / size;
    if (first < 0 || count < 0 || first > whole || count > whole - first) {
      return {Code::kInvalidArgument,
              fmt::format("expected a range within {} elements, found {} from {} on", whole, count,
                          first)};
    }
    PYC_TRY(require_list(numbers, static_cast<size_t>(count), "numbers"));
    const auto* at = static_cast<const std::byte*>(view->data) + first * size;
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

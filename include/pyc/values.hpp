// PyC for C++20: errors, handles and values. pyc.hpp has the rest and includes this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pyc/pyc.h"

namespace pyc {
// The names are those of this version of the header: they never meet others of the same spelling.
inline namespace api1 {

class Error : public std::runtime_error {
 public:
  Error(pyc_status code, const std::string& message, std::string node)
      : std::runtime_error(std::string(pyc_status_name(code)) + ": " + message),
        code_(code),
        message_(message),
        node_(std::move(node)) {}

  pyc_status code() const { return code_; }
  // what() without the code's name.
  const std::string& message() const { return message_; }
  // The node, input or output it is about; "" when it is about none.
  const std::string& node() const { return node_; }
  const char* cure() const { return pyc_status_cure(code_); }

 private:
  pyc_status code_;
  std::string message_;
  std::string node_;
};

// For calls of the C ABI: `call` gets a pyc_error** and returns a status; throws unless it is OK.
template <class Call>
void check(Call call) {
  pyc_error* error = nullptr;
  const pyc_status status = call(&error);
  if (status == PYC_STATUS_OK) return;
  const Error thrown(status, pyc_error_message(error), pyc_error_node(error));
  pyc_error_destroy(error);
  throw thrown;
}

// Owns a handle of the C ABI.
template <class T, void (*Destroy)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* handle) : handle_(handle) {}
  ~Handle() { Destroy(handle_); }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  T* get() const { return handle_; }
  // For calls that make a handle; requires that there is none yet.
  T** put() { return &handle_; }

 private:
  T* handle_ = nullptr;
};

// Text the C ABI made.
template <class Call>
std::string take_text(Call call) {
  Handle<char, pyc_text_destroy> text;
  check([&](pyc_error** e) { return call(text.put(), e); });
  return text.get();
}

// Zeros, but for the size: what a struct of the C ABI starts as.
template <class T>
T sized() {
  T out{};
  out.struct_size = sizeof(T);
  return out;
}

using Shape = std::vector<int64_t>;

// The numbers in a tensor, as pyc_tensor_read_f64 counts them.
inline int64_t number_count(const pyc_tensor_view& view) {
  const bool complex = view.dtype == PYC_DTYPE_C64 || view.dtype == PYC_DTYPE_C128;
  return view.bytes / pyc_dtype_size(view.dtype) * (complex ? 2 : 1);
}

// A row-major tensor in memory of its own, 64-byte aligned.
class Tensor {
 public:
  Tensor(pyc_dtype dtype, const Shape& shape) {
    check([&](pyc_error** e) {
      return pyc_tensor_create(dtype, shape.data(), static_cast<int64_t>(shape.size()),
                               handle_.put(), e);
    });
  }
  // A .npy file or an ONNX TensorProto.
  static Tensor load(const std::string& path, pyc_dtype dtype = PYC_DTYPE_ANY) {
    Tensor out;
    check([&](pyc_error** e) {
      return pyc_tensor_load_file(path.c_str(), dtype, out.handle_.put(), e);
    });
    return out;
  }
  // Floats in [-1, 1), integers in [0, 10), by the seed.
  static Tensor random(pyc_dtype dtype, const Shape& shape, uint64_t seed) {
    Tensor out(dtype, shape);
    const pyc_tensor_view view = out.view();
    check([&](pyc_error** e) { return pyc_tensor_fill_random(&view, seed, e); });
    return out;
  }
  template <class T>
  static Tensor of(pyc_dtype dtype, const Shape& shape, std::span<const T> elements) {
    Tensor out(dtype, shape);
    if (out.elements<T>().size() != elements.size()) {
      throw Error(PYC_STATUS_SIZE_MISMATCH, "as many elements as the shape says are needed", "");
    }
    std::copy(elements.begin(), elements.end(), out.elements<T>().begin());
    return out;
  }

  pyc_tensor_view view() const {
    auto view = sized<pyc_tensor_view>();
    check([&](pyc_error** e) { return pyc_tensor_get_view(handle_.get(), &view, e); });
    return view;
  }
  pyc_dtype dtype() const { return view().dtype; }
  Shape shape() const {
    const pyc_tensor_view v = view();
    return Shape(v.shape, v.shape + v.rank);
  }
  // The elements as a T, whose size must be that of the dtype.
  template <class T>
  std::span<T> elements() const {
    const pyc_tensor_view v = view();
    if (static_cast<int64_t>(sizeof(T)) != pyc_dtype_size(v.dtype)) {
      throw Error(PYC_STATUS_DTYPE_MISMATCH,
                  std::string("elements of ") + pyc_dtype_name(v.dtype) + " have another size", "");
    }
    return {static_cast<T*>(v.data), static_cast<size_t>(v.bytes) / sizeof(T)};
  }
  std::vector<double> numbers() const {
    const pyc_tensor_view v = view();
    std::vector<double> out(static_cast<size_t>(number_count(v)));
    check([&](pyc_error** e) {
      return pyc_tensor_read_f64(&v, 0, static_cast<int64_t>(out.size()), out.data(), e);
    });
    return out;
  }
  std::string digest() const {
    const pyc_tensor_view v = view();
    return take_text([&](char** text, pyc_error** e) { return pyc_tensor_digest(&v, text, e); });
  }
  void save_npy(const std::string& path) const {
    const pyc_tensor_view v = view();
    check([&](pyc_error** e) { return pyc_tensor_save_npy(&v, path.c_str(), e); });
  }

 private:
  Tensor() = default;
  Handle<pyc_tensor, pyc_tensor_destroy> handle_;
};

// What a run gave: tensors, strings, sequences. pyc/results.h reads them.
class Results {
 public:
  size_t size() const { return pyc_results_count(handle_.get()); }
  const pyc_result* operator[](size_t i) const {
    const pyc_result* out = nullptr;
    check([&](pyc_error** e) { return pyc_results_get(handle_.get(), i, &out, e); });
    return out;
  }
  // Of a tensor of numbers; good as long as the results live.
  pyc_tensor_view tensor(size_t i) const {
    auto view = sized<pyc_tensor_view>();
    check([&](pyc_error** e) { return pyc_result_tensor((*this)[i], &view, e); });
    return view;
  }
  pyc_results** put() { return handle_.put(); }

 private:
  Handle<pyc_results, pyc_results_destroy> handle_;
};

// A value of any kind to run a model on. Copies share their content. pyc/results.h reads it.
class AnyValue {
 public:
  // An optional without a value.
  AnyValue() {
    check([&](pyc_error** e) { return pyc_result_nothing(handle_.put(), e); });
  }
  // A copy of the tensor.
  explicit AnyValue(const pyc_tensor_view& view) {
    check([&](pyc_error** e) { return pyc_result_from_tensor(&view, handle_.put(), e); });
  }
  explicit AnyValue(const Tensor& tensor) : AnyValue(tensor.view()) {}
  // An output or an item, which then outlives the results it came from.
  explicit AnyValue(const pyc_result* from) {
    check([&](pyc_error** e) { return pyc_result_copy(from, handle_.put(), e); });
  }
  // A tensor of strings.
  AnyValue(std::span<const std::string> strings, const Shape& shape) {
    std::vector<pyc_string> list;
    for (const std::string& s : strings) list.push_back({s.data(), s.size()});
    if (static_cast<int64_t>(list.size()) !=
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())) {
      throw Error(PYC_STATUS_SIZE_MISMATCH, "as many strings as the shape says are needed", "");
    }
    check([&](pyc_error** e) {
      return pyc_result_from_strings(list.data(), shape.data(), static_cast<int64_t>(shape.size()),
                                     handle_.put(), e);
    });
  }
  static AnyValue sequence(std::span<const AnyValue> items) {
    AnyValue out{Handle<pyc_result, pyc_result_destroy>()};
    const auto list = pointers(items);
    check([&](pyc_error** e) {
      return pyc_result_from_items(list.data(), list.size(), out.handle_.put(), e);
    });
    return out;
  }
  AnyValue(const AnyValue& other) : AnyValue(other.get()) {}
  AnyValue(AnyValue&& other) noexcept = default;
  AnyValue& operator=(AnyValue other) noexcept {
    handle_ = std::move(other.handle_);
    return *this;
  }
  ~AnyValue() = default;

  // Of a tensor of numbers; good as long as the value or a copy lives, and not to be written to.
  pyc_tensor_view tensor() const {
    auto view = sized<pyc_tensor_view>();
    check([&](pyc_error** e) { return pyc_result_tensor(get(), &view, e); });
    return view;
  }
  pyc_result* get() const { return handle_.get(); }
  static std::vector<const pyc_result*> pointers(std::span<const AnyValue> values) {
    std::vector<const pyc_result*> out;
    for (const AnyValue& value : values) out.push_back(value.get());
    return out;
  }

 private:
  friend class ModelFile;
  explicit AnyValue(Handle<pyc_result, pyc_result_destroy> handle) : handle_(std::move(handle)) {}
  Handle<pyc_result, pyc_result_destroy> handle_;
};

}  // namespace api1
}  // namespace pyc

#include "base/dyn_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/convert.h"
#include "base/value_meter.h"

namespace pyc {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 40;

// Content and the account of it, which go together.
template <class T>
struct Counted {
  Counted(T made, size_t bytes, size_t handed_out)
      : content(std::move(made)),
        charge(static_cast<int64_t>(bytes), static_cast<int64_t>(handed_out)) {}
  Counted(T made, size_t bytes) : Counted(std::move(made), bytes, bytes) {}
  T content;
  Charge charge;
};

// Shares the content of what is counted.
template <class T>
std::shared_ptr<const T> counted(T content, size_t bytes) {
  auto owner = std::make_shared<Counted<T>>(std::move(content), bytes);
  const T* inner = &owner->content;
  return {std::move(owner), inner};
}

template <class T, class Convert>
std::vector<T> elements_of(const DynValue& tensor, Convert convert) {
  const auto size = static_cast<size_t>(dtype_size(tensor.dtype));
  std::vector<T> out;
  out.reserve(tensor.bytes.size() / size);
  for (size_t at = 0; at + size <= tensor.bytes.size(); at += size) {
    out.push_back(convert(load_word(tensor.bytes.data() + at, tensor.dtype)));
  }
  return out;
}

template <class T>
DynValue small_tensor(DType dtype, std::vector<int64_t> shape, std::span<const T> values) {
  auto owner = std::make_shared<Counted<std::vector<std::byte>>>(
      std::vector<std::byte>(values.size_bytes()), values.size_bytes());
  std::vector<std::byte>& bytes = owner->content;
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  DynValue v;
  v.kind = DynValue::Kind::kTensor;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.bytes = SharedBytes(owner, bytes);
  return v;
}

}  // namespace

int64_t DynValue::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

std::string DynValue::to_string() const {
  switch (kind) {
    case Kind::kAbsent:
      return "nothing";
    case Kind::kTensor:
      return fmt::format("{}[{}]", dtype_name(dtype), fmt::join(shape, ","));
    case Kind::kStrings:
      return fmt::format("string[{}]", fmt::join(shape, ","));
    case Kind::kSequence:
      return fmt::format("sequence of {}", items->size());
  }
  return "?";
}

DynValue DynValue::of_strings(std::vector<int64_t> shape, std::vector<std::string> strings) {
  DynValue v;
  v.kind = Kind::kStrings;
  v.shape = std::move(shape);
  size_t bytes = strings.size() * sizeof(std::string);
  for (const std::string& s : strings) bytes += s.size();
  v.strings = counted(std::move(strings), bytes);
  return v;
}

DynValue DynValue::of_items(std::vector<DynValue> items) {
  DynValue v;
  v.kind = Kind::kSequence;
  const size_t bytes = items.size() * sizeof(DynValue);
  v.items = counted(std::move(items), bytes);
  return v;
}

DynValue DynValue::of_ints(const std::vector<int64_t>& values) {
  return small_tensor<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

DynValue DynValue::of_int(int64_t value) {
  return small_tensor<int64_t>(DType::kI64, {}, std::span(&value, 1));
}

DynValue DynValue::of_bool(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return small_tensor<uint8_t>(DType::kBool, {}, std::span(&byte, 1));
}

Result<int64_t> tensor_bytes(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = dtype_size(dtype);
  bool empty = false;
  for (const int64_t d : shape) {
    if (d < 0) {
      return Status(Code::kInvalidArgument,
                    fmt::format("a dim is at least 0, found {} in [{}]", d, fmt::join(shape, ",")));
    }
    empty = empty || d == 0;
  }
  // An empty tensor costs nothing, but products over some of its dims must not overflow either.
  const int64_t most = empty ? int64_t{1} << 60 : kMaxBytes;
  for (const int64_t dim : shape) {
    const int64_t d = std::max<int64_t>(dim, 1);
    if (d > most / bytes) {
      return Status(Code::kBudgetExceeded,
                    fmt::format("a tensor of {}[{}] is over the limit of {} bytes",
                                dtype_name(dtype), fmt::join(shape, ","), most));
    }
    bytes *= d;
  }
  return empty ? 0 : bytes;
}

Result<NewTensor> new_tensor(DType dtype, std::vector<int64_t> shape) {
  PYC_ASSIGN(const int64_t size, tensor_bytes(dtype, shape));
  const size_t handed_out = AlignedBuffer::handed_out(static_cast<size_t>(size));
  Status room = check_room(size, static_cast<int64_t>(handed_out));
  if (!room.ok()) {
    return std::move(room).with_context(
        fmt::format("{}[{}]", dtype_name(dtype), fmt::join(shape, ",")));
  }
  PYC_ASSIGN(AlignedBuffer memory, AlignedBuffer::create(static_cast<size_t>(size)));
  auto owner = std::make_shared<Counted<AlignedBuffer>>(std::move(memory),
                                                        static_cast<size_t>(size), handed_out);
  NewTensor made;
  made.data = owner->content.data();
  made.value.kind = DynValue::Kind::kTensor;
  made.value.dtype = dtype;
  made.value.shape = std::move(shape);
  made.value.bytes = SharedBytes(owner, {made.data, static_cast<size_t>(size)});
  return made;
}

std::vector<int64_t> to_ints(const DynValue& tensor) {
  return elements_of<int64_t>(tensor, [&](Word w) {
    return static_cast<int64_t>(convert_word(w, tensor.dtype, DType::kI64));
  });
}

std::vector<double> to_doubles(const DynValue& tensor) {
  if (is_complex(tensor.dtype)) {
    DynValue parts = tensor;
    parts.dtype = part_dtype(tensor.dtype);
    return to_doubles(parts);
  }
  return elements_of<double>(tensor, [&](Word w) { return word_to_double(w, tensor.dtype); });
}

}  // namespace pyc

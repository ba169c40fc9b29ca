#include "ir/types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "base/convert.h"
#include "base/philox.h"
#include "ir/literal.h"
#include "ir/rules.h"

namespace pyc::ir {
namespace {

bool is_known(DType dtype) { return static_cast<int>(dtype) < kValueDTypeCount; }

// Also for numbers that name no dtype, which messages about broken graphs must survive.
std::string safe_dtype_name(DType dtype) {
  if (is_known(dtype)) return std::string(dtype_name(dtype));
  return fmt::format("dtype#{}", static_cast<int>(dtype));
}

// Dim `i` of the shape broadcast to `rank` dims.
int64_t padded_dim(const Shape& shape, size_t rank, size_t i) {
  const size_t missing = rank - shape.size();
  return i < missing ? 1 : shape[i - missing];
}

template <class T, class Format>
std::string list_to_string(const std::vector<T>& items, Format format) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    out += format(items[i]);
  }
  return out + "]";
}

std::string double_to_string(double value) {
  return format_element(std::bit_cast<Word>(value), DType::kF64);
}

// Repeats the first `unit` bytes over the whole span.
void repeat_first(std::span<std::byte> bytes, size_t unit) {
  size_t done = std::min(unit, bytes.size());
  while (done < bytes.size()) {
    const size_t more = std::min(done, bytes.size() - done);
    std::memcpy(bytes.data() + done, bytes.data(), more);
    done += more;
  }
}

// The element for u in [0, 1).
Word uniform_word(DType dtype, double lo, double hi, double u) {
  if (dtype == DType::kBool) return u < 0.5 ? 1 : 0;
  const double x = lo + (hi - lo) * u;
  return word_from_double(is_int(dtype) ? std::floor(x) : x, dtype);
}

// philox_uniform01(seed, 0, i) for i = 4·block … 4·block + 3, for the price of one.
std::array<double, 4> uniform_block(uint64_t seed, uint64_t block) {
  const auto words =
      philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {words[0] * 0x1p-32, words[1] * 0x1p-32, words[2] * 0x1p-32, words[3] * 0x1p-32};
}

}  // namespace

int64_t TensorType::elements() const {
  int64_t product = 1;
  for (const int64_t dim : shape) product *= dim;
  return product;
}

std::string TensorType::to_string() const {
  return safe_dtype_name(dtype) + shape_to_string(shape);
}

std::string shape_to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Status check_type(const TensorType& type) {
  if (is_complex(type.dtype)) {
    return {Code::kInvalidArgument,
            fmt::format("[bad_dtype] {}: graphs compute with real numbers only; the parts of "
                        "complex ones are two tensors, or a further dim of 2",
                        type.to_string())};
  }
  return check_value_type(type);
}

Status check_value_type(const TensorType& type) {
  if (!is_known(type.dtype)) {
    return {Code::kInvalidArgument, fmt::format("[bad_dtype] {} is not one of the {} dtypes",
                                                safe_dtype_name(type.dtype), kValueDTypeCount)};
  }
  if (type.rank() > kMaxRank) {
    return {Code::kInvalidArgument,
            fmt::format("[bad_rank] rank {} is over the limit of {}", type.rank(), kMaxRank)};
  }
  int64_t bytes = dtype_size(type.dtype);
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const int64_t dim = type.shape[i];
    if (dim < 0) {
      return {Code::kInvalidArgument,
              fmt::format("[bad_dim] {}: expected dims of at least 0, found "
                          "{} as dim {}",
                          type.to_string(), dim, i)};
    }
    // A dim of 0 counts as 1 here: strides of empty tensors must not overflow either.
    const int64_t factor = std::max<int64_t>(dim, 1);
    if (factor > kMaxElements / bytes) {
      return {Code::kInvalidArgument, fmt::format("[too_large] {}: over the limit of {} bytes",
                                                  type.to_string(), kMaxElements)};
    }
    bytes *= factor;
  }
  return {};
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = padded_dim(a, rank, i);
    const int64_t y = padded_dim(b, rank, i);
    if (x != y && x != 1 && y != 1) {
      return Status(Code::kShapeMismatch,
                    fmt::format("cannot broadcast {} with {}: expected equal dims or a 1, found {} "
                                "and {} in dim -{}",
                                shape_to_string(a), shape_to_string(b), x, y, rank - i));
    }
    result[i] = x == 1 ? y : x;
  }
  return result;
}

std::string_view attr_kind_name(AttrKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"int",   "float", "bool",  "string",
                                                      "dtype", "ints",  "floats"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string attr_to_string(const Attr& a) {
  switch (kind_of(a)) {
    case AttrKind::kInt:
      return fmt::format("{}", std::get<int64_t>(a));
    case AttrKind::kFloat:
      return double_to_string(std::get<double>(a));
    case AttrKind::kBool:
      return std::get<bool>(a) ? "true" : "false";
    case AttrKind::kString:
      return quote(std::get<std::string>(a));
    case AttrKind::kDType:
      return safe_dtype_name(std::get<DType>(a));
    case AttrKind::kInts:
      return list_to_string(std::get<std::vector<int64_t>>(a),
                            [](int64_t v) { return fmt::format("{}", v); });
    case AttrKind::kFloats:
      return list_to_string(std::get<std::vector<double>>(a), double_to_string);
  }
  return "?";
}

std::shared_ptr<const ConstData> splat_word(const TensorType& type, Word value) {
  auto data = std::make_shared<ConstData>();
  data->form = ConstData::Form::kSplat;
  data->lo = data->hi = word_to_double(value, type.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  if (!bytes.empty()) {
    store_word(bytes.data(), type.dtype, value);
    repeat_first(bytes, static_cast<size_t>(dtype_size(type.dtype)));
  }
  data->bytes = std::move(bytes);
  return data;
}

MadeBytes::Found MadeBytes::find(const std::string& what) const {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(what);
  if (it == entries_.end()) return {};
  return {it->second.owner.lock(), it->second.bytes};
}

void MadeBytes::keep(const std::string& what, const Found& made) {
  const std::scoped_lock lock(mutex_);
  entries_.insert_or_assign(what, Entry{made.owner, made.bytes});
}

std::shared_ptr<const ConstData> splat_data(const TensorType& type, double value) {
  return splat_word(type, word_from_double(value, type.dtype));
}

Word random_word(DType dtype, uint64_t seed, double lo, double hi, uint64_t i) {
  return uniform_word(dtype, lo, hi, philox_uniform01(seed, 0, i));
}

std::shared_ptr<const ConstData> random_data(const TensorType& type, uint64_t seed, double lo,
                                             double hi) {
  auto data = std::make_shared<ConstData>();
  data->form = ConstData::Form::kRandom;
  data->seed = seed;
  data->lo = lo;
  data->hi = hi;
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
  const int64_t size = dtype_size(type.dtype);
  const int64_t elements = type.elements();
  for (int64_t i = 0; i < elements; i += 4) {
    const auto block = uniform_block(seed, static_cast<uint64_t>(i / 4));
    for (int64_t k = 0; k < std::min<int64_t>(4, elements - i); ++k) {
      store_word(bytes.data() + (i + k) * size, type.dtype,
                 uniform_word(type.dtype, lo, hi, block[static_cast<size_t>(k)]));
    }
  }
  data->bytes = std::move(bytes);
  return data;
}

std::shared_ptr<const ConstData> dense_data(SharedBytes bytes) {
  auto data = std::make_shared<ConstData>();
  data->bytes = std::move(bytes);
  return data;
}

}  // namespace pyc::ir

#include "host/complex.h"

#include <fmt/format.h>

#include <cstring>

#include "host/elements.h"
#include "host/select.h"

namespace pyc::host {
namespace {

Status check_complex(const DynValue& value) {
  PYC_TRY(check_tensor(value, "input"));
  if (is_complex(value.dtype)) return {};
  return {Code::kDtypeMismatch,
          fmt::format("expected complex numbers, found {}", value.to_string())};
}

DType joined_dtype(const ComplexParts& parts) {
  return parts.real.dtype == DType::kF32 ? DType::kC64 : DType::kC128;
}

}  // namespace

Result<ComplexParts> split_parts(const DynValue& value) {
  PYC_TRY(check_complex(value));
  const DType part = part_dtype(value.dtype);
  PYC_ASSIGN(NewTensor real, new_tensor(part, value.shape));
  PYC_ASSIGN(NewTensor imaginary, new_tensor(part, value.shape));
  const auto size = static_cast<size_t>(dtype_size(part));
  const std::byte* from = value.bytes.data();
  for (size_t at = 0; at < real.value.bytes.size(); at += size) {
    std::memcpy(real.data + at, from + 2 * at, size);
    std::memcpy(imaginary.data + at, from + 2 * at + size, size);
  }
  return ComplexParts{std::move(real.value), std::move(imaginary.value)};
}

Result<DynValue> join_parts(const ComplexParts& parts) {
  PYC_TRY(check_numbers(parts.real, "real part"));
  PYC_TRY(check_numbers(parts.imaginary, "imaginary part"));
  const DType part = parts.real.dtype;
  if ((part != DType::kF32 && part != DType::kF64) || parts.imaginary.dtype != part) {
    return Status(Code::kDtypeMismatch,
                  fmt::format("{} and {} are no parts of complex numbers", parts.real.to_string(),
                              parts.imaginary.to_string()));
  }
  if (parts.real.shape != parts.imaginary.shape) {
    return Status(Code::kShapeMismatch,
                  fmt::format("the parts are {} and {}", parts.real.to_string(),
                              parts.imaginary.to_string()));
  }
  PYC_ASSIGN(NewTensor made, new_tensor(joined_dtype(parts), parts.real.shape));
  const auto size = static_cast<size_t>(dtype_size(part));
  for (size_t at = 0; at < parts.real.bytes.size(); at += size) {
    std::memcpy(made.data + 2 * at, parts.real.bytes.data() + at, size);
    std::memcpy(made.data + 2 * at + size, parts.imaginary.bytes.data() + at, size);
  }
  return made.value;
}

Result<DynValue> nonzero_complex(const DynValue& value) {
  PYC_TRY(check_complex(value));
  const std::vector<double> parts = to_doubles(value);
  PYC_ASSIGN(NewTensor truth, new_tensor(DType::kBool, value.shape));
  for (size_t i = 0; 2 * i < parts.size(); ++i) {
    truth.data[i] = std::byte{parts[2 * i] != 0.0 || parts[2 * i + 1] != 0.0};
  }
  return nonzero(truth.value);
}

}  // namespace pyc::host

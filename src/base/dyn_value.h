#pragma once

// A value whose type is only known when it is there: what flows between compiled segments and
// through host functions. Plain data; copies share their content, which the meter of the run that
// made it counts (base/value_meter.h): a tensor's bytes, for each string its bytes and
// sizeof(std::string), for each item of a sequence sizeof(DynValue) and, counted once, its content.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shared_bytes.h"
#include "base/status.h"

namespace pyc {

struct DynValue {
  enum class Kind : uint8_t {
    kAbsent,    // an optional without a value, or an input that was left out
    kTensor,    // dtype, shape, bytes (row-major, aligned to the dtype)
    kStrings,   // shape, strings
    kSequence,  // items
  };
  Kind kind = Kind::kAbsent;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  SharedBytes bytes;
  std::shared_ptr<const std::vector<std::string>> strings;
  std::shared_ptr<const std::vector<DynValue>> items;

  bool absent() const { return kind == Kind::kAbsent; }
  bool is_tensor() const { return kind == Kind::kTensor; }
  // Product of the dims; 1 for a scalar.
  int64_t elements() const;
  // "f32[2,3]", "string[4]", "sequence of 3", "nothing".
  std::string to_string() const;

  static DynValue of_strings(std::vector<int64_t> shape, std::vector<std::string> strings);
  static DynValue of_items(std::vector<DynValue> items);
  // An i64 tensor of rank 1, or a scalar.
  static DynValue of_ints(const std::vector<int64_t>& values);
  static DynValue of_int(int64_t value);
  static DynValue of_bool(bool value);
};

// The size of a tensor in bytes; kBudgetExceeded when it is over what PyC accepts (2^40 bytes), and
// kInvalidArgument for a negative dim.
Result<int64_t> tensor_bytes(DType dtype, const std::vector<int64_t>& shape);

// Memory for a tensor, filled by whoever asked for it and then shared. kBudgetExceeded when it is
// more than the run may hold.
struct NewTensor {
  DynValue value;
  std::byte* data = nullptr;
};
Result<NewTensor> new_tensor(DType dtype, std::vector<int64_t> shape);

// The elements of an integer or bool tensor, and of any tensor of numbers; of a complex one the
// parts, in turn.
std::vector<int64_t> to_ints(const DynValue& tensor);
std::vector<double> to_doubles(const DynValue& tensor);

}  // namespace pyc

// The structs of DLPack's ABI (version 1), as its specification fixes them.
#pragma once

#include <cstdint>

namespace pyc::python::dlpack {

enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

// What a capsule "dltensor" holds.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

// What a capsule "dltensor_versioned" holds.
struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  Tensor tensor;
};
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kCopied = 2;

inline constexpr const char* kPlainName = "dltensor";
inline constexpr const char* kVersionedName = "dltensor_versioned";
inline constexpr const char* kUsedPlainName = "used_dltensor";
inline constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

}  // namespace pyc::python::dlpack

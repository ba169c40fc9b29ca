// What PyC's element types are called elsewhere: by the buffer protocol, numpy, ml_dtypes, DLPack.
#pragma once

#include <cstdint>
#include <string_view>

#include "dlpack.h"
#include "pyc/common.h"

namespace pyc::python {

struct DtypeNames {
  pyc_dtype dtype;
  const char* format;   // of the buffer protocol; null: it has none
  const char* numpy;    // a name of numpy's or, without a format, of ml_dtypes'
  dlpack::DataType dl;  // 0 bits: none; sub-byte types are packed there, one to a byte here
};

// Null for a number that is no dtype.
const DtypeNames* names_of(pyc_dtype dtype);
// PYC_DTYPE_ANY for what PyC has no type for, other byte orders among it.
pyc_dtype dtype_of_format(const char* format, int64_t item_bytes);
pyc_dtype dtype_of_extension(std::string_view name);
pyc_dtype dtype_of_dlpack(dlpack::DataType type);

}  // namespace pyc::python

#pragma once

// The part of verify_kernel that looks at values alone: operations, types, definitions of
// functions.

#include <string>

#include "base/status.h"
#include "loop/loop.h"

namespace pyc::loop {

inline bool is_real(DType t) { return t == DType::kF32 || t == DType::kF64; }
inline bool is_whole(DType t) { return is_int(t) && !is_narrow_int(t); }
inline std::string name_of(DType t) { return std::string(dtype_name(t)); }
inline Status refuse(const std::string& where, const std::string& message) {
  return {Code::kVerifyFailed, where + ": " + message};
}

Status verify_offset(const std::string& where, const std::string& what, const ExprNode& offset,
                     int64_t elements);
// An operation on operands that are verified: anything but variables and loads.
Status verify_operation(const std::string& where, const Pool& pool, const ExprNode& n);
// The functions of a pool and all they call, and that their calls can be written out.
Status verify_functions(const Pool& pool);

}  // namespace pyc::loop

#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/types.h"

namespace pyc::ops {

// How a part of a message is written.
inline std::string to_text(std::string_view s) { return std::string(s); }
inline std::string to_text(int64_t v) { return std::to_string(v); }
inline std::string to_text(DType t) { return std::string(dtype_name(t)); }
inline std::string to_text(const ir::Shape& s) { return ir::shape_to_string(s); }
inline std::string to_text(const ir::TensorType& t) { return t.to_string(); }

// The refusal whose message is all parts, one after the other.
template <class... Parts>
Status refuse(Code code, const Parts&... parts) {
  std::string message;
  ((message += to_text(parts)), ...);
  return {code, std::move(message)};
}

}  // namespace pyc::ops

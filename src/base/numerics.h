#pragma once

#include <string_view>

namespace pyc {

// The version of docs/NUMERICS.md that results follow: part of artefacts and of every cache key, so
// that nothing made by other rules is taken for a result of these.
inline constexpr std::string_view kNumericsVersion = "2";

}  // namespace pyc

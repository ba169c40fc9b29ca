#pragma once

// One scalar operation at a time, by the rules at the top of loop.h, on values held as Words.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/convert.h"

namespace pyc::eval {

template <class T>
inline T get(Word w) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(w));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(w);
  } else {
    return static_cast<T>(w);
  }
}

template <class T>
inline Word put(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(v);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<uint64_t>(v);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Word>(static_cast<int64_t>(v));
  } else {
    return v;
  }
}

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;

template <class T>
inline T add(T a, T b) {
  if constexpr (kIsFloat<T>) return a + b;
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class T>
inline T sub(T a, T b) {
  if constexpr (kIsFloat<T>) return a - b;
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <class T>
inline T mul(T a, T b) {
  if constexpr (kIsFloat<T>) return a * b;
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
inline T div(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return sub<T>(0, a);
    }
    return static_cast<T>(a / b);
  }
}

template <class T>
inline T rem(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

template <class T>
inline T minimum(T a, T b) {
  if constexpr (kIsFloat<T>) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <class T>
inline T maximum(T a, T b) {
  if constexpr (kIsFloat<T>) {
    if (a != a || b != b) return a + b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

// A negative shift count is a count of the width or more.
template <class T>
inline T shift_left(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (static_cast<U>(b) >= std::numeric_limits<U>::digits) return 0;
  return static_cast<T>(static_cast<uint64_t>(a) << static_cast<U>(b));
}

template <class T>
inline T shift_right(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U kWidth = std::numeric_limits<U>::digits;
  if constexpr (std::is_signed_v<T>) {
    const U count = static_cast<U>(b) >= kWidth ? kWidth - 1 : static_cast<U>(b);
    return static_cast<T>(a >> count);
  } else {
    return b >= kWidth ? T{0} : static_cast<T>(a >> b);
  }
}

template <class T>
inline Word negated(Word w) {
  if constexpr (kIsFloat<T>) {
    return w ^ (Word{1} << (8 * sizeof(T) - 1));
  } else {
    return put(sub<T>(0, get<T>(w)));
  }
}

template <class T>
inline Word absolute(Word w) {
  if constexpr (kIsFloat<T>) {
    return w & ~(Word{1} << (8 * sizeof(T) - 1));
  } else if constexpr (std::is_signed_v<T>) {
    return get<T>(w) < 0 ? negated<T>(w) : w;
  } else {
    return w;
  }
}

// Both for a positive divisor.
inline int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - (a - q * b < 0 ? 1 : 0);
}

inline int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

}  // namespace pyc::eval

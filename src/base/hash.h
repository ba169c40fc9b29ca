#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pyc {

// A 128-bit XXH3 digest: for fingerprints and checksums, not against forgery.
struct Digest {
  uint64_t hi = 0;
  uint64_t lo = 0;

  // 32 lower-case hexadecimal digits, `hi` first (the form xxh128sum prints).
  std::string hex() const;
  auto operator<=>(const Digest&) const = default;
};

// The digest of `bytes`: the same on every machine.
Digest hash128(std::span<const std::byte> bytes);

// For tables of this process that are asked with views of the names they hold.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

// For tables of this process: one more word into a hash.
inline uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 32);
}

// A digest of many parts. Copies go on independently.
class Hasher {
 public:
  Hasher();

  // The bytes alone, no length: in pieces or at once is the same.
  Hasher& update(std::span<const std::byte> bytes);
  // The length and the characters, so that ("ab", "c") and ("a", "bc") differ.
  Hasher& update(std::string_view text);
  // The value, extended to 64 bits and little-endian: the integer's type does not matter.
  template <std::integral T>
  Hasher& update(T value) {
    return update_word(static_cast<uint64_t>(value));
  }

  // The digest of all updates so far; more may follow.
  Digest finish() const;

 private:
  Hasher& update_word(uint64_t value);

  static constexpr size_t kStateBytes = 576;
  alignas(64) std::byte state_[kStateBytes];  // an XXH3_state_t
};

}  // namespace pyc

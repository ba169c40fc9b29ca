#include "base/hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

namespace pyc {
namespace {

Digest to_digest(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

XXH3_state_t* as_state(std::byte* storage) {
  return std::launder(reinterpret_cast<XXH3_state_t*>(storage));
}

const XXH3_state_t* as_state(const std::byte* storage) {
  return std::launder(reinterpret_cast<const XXH3_state_t*>(storage));
}

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", hi, lo); }

Digest hash128(std::span<const std::byte> bytes) {
  return to_digest(XXH3_128bits(bytes.data(), bytes.size()));
}

Hasher::Hasher() {
  static_assert(sizeof(XXH3_state_t) <= kStateBytes);
  static_assert(alignof(XXH3_state_t) <= 64);
  XXH3_state_t* state = new (state_) XXH3_state_t;
  XXH3_INITSTATE(state);
  XXH3_128bits_reset(state);
}

Hasher& Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(as_state(state_), bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::update(std::string_view text) {
  update_word(text.size());
  return update(std::as_bytes(std::span(text)));
}

Hasher& Hasher::update_word(uint64_t value) {
  std::byte bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return update(bytes);
}

Digest Hasher::finish() const { return to_digest(XXH3_128bits_digest(as_state(state_))); }

}  // namespace pyc

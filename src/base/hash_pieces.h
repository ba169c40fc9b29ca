#pragma once

#include <cstddef>
#include <span>

#include "base/hash.h"

namespace pyc {

// The digest of the digests of pieces of kHashPiece bytes, of the parts one behind the other: for
// what is long, since all cores can share it. How the parts are cut does not matter.
inline constexpr size_t kHashPiece = size_t{4} << 20;
Digest hash_pieces(std::span<const std::span<const std::byte>> parts);
inline Digest hash_pieces(std::span<const std::byte> bytes) { return hash_pieces({&bytes, 1}); }

}  // namespace pyc

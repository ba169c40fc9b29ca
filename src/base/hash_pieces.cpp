#include "base/hash_pieces.h"

#include <algorithm>
#include <vector>

#include "base/all_cores.h"
#include "base/status.h"

namespace pyc {
namespace {

// The digest of `count` bytes from `begin` on of the parts one behind the other.
Digest hash_range(std::span<const std::span<const std::byte>> parts, size_t begin, size_t count) {
  Hasher hasher;
  for (const std::span<const std::byte> part : parts) {
    if (count == 0) break;
    if (begin >= part.size()) {
      begin -= part.size();
      continue;
    }
    const std::span<const std::byte> taken =
        part.subspan(begin, std::min(count, part.size() - begin));
    hasher.update(taken);
    count -= taken.size();
    begin = 0;
  }
  return hasher.finish();
}

}  // namespace

Digest hash_pieces(std::span<const std::span<const std::byte>> parts) {
  size_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  std::vector<Digest> digests((bytes + kHashPiece - 1) / kHashPiece);
  const Status done = on_all_cores(digests.size(), [&](size_t i) {
    const size_t begin = i * kHashPiece;
    digests[i] = hash_range(parts, begin, std::min(kHashPiece, bytes - begin));
    return Status();
  });
  PYC_CHECK(done.ok(), done.to_string());
  Hasher all;
  for (const Digest& digest : digests) all.update(digest.hi).update(digest.lo);
  return all.finish();
}

}  // namespace pyc

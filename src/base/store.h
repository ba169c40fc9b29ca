#pragma once

// A folder of results that took long to make, each found by all that it was made from (its key).
// Any number of processes may use one folder at the same time, on one machine or over a network.
//
// An entry is a file named by the 128-bit hash of its key, numbers little-endian:
//
//   0   mark, 8 bytes
//   8   u32 format, u32 zero
//   16  u64 bytes of the key, u64 bytes of the content
//   32  digest of everything behind the header, in pieces (hash_pieces; u64 hi, u64 lo)
//   48  digest of bytes 0 … 47
//   64  the key, padded with zeros to a multiple of 64; then the content
//
// The key itself is kept and compared, so that two keys of one hash never give each other's
// content; every byte is under a digest, so that damage is found. Digests find damage, not malice.
// An entry is written beside its name and renamed: readers see all of it or nothing.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"

namespace pyc {

class Store {
 public:
  static constexpr int64_t kMaxBytes = int64_t{4} << 30;

  // Nothing is read or made yet.
  explicit Store(std::string folder, int64_t max_bytes = kMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // The content that was put under exactly this key, mapped and aligned to 64 bytes; its entry is
  // now the last to be evicted. Nothing when there is none that can be used: `problem` then says
  // what is wrong with the one there is, and is "" when there is none.
  std::optional<SharedBytes> get(std::string_view key, std::string* problem = nullptr) const;

  // Keeps the pieces, one behind the other, as the content of the key, in place of any other; makes
  // the folder. Then the entries not used for longest go until the rest keeps max_bytes, and what
  // writers that were killed left behind over an hour ago. On failure (kIoError, kNotFound) what
  // was there before is still there.
  Status put(std::string_view key, std::span<const SharedBytes> pieces) const;

  struct Entry {
    std::string file;  // its name in the folder
    int64_t bytes = 0;
    int64_t used_ns = 0;       // when it was written or last got, since 1970
    std::string problem = {};  // of verify: why it cannot be used, or ""
  };
  // Those not used for longest first; none when there is no folder. Other files do not count.
  Result<std::vector<Entry>> list() const;
  // The same, with every entry read and checked.
  Result<std::vector<Entry>> verify() const;
  // Removes all entries, and what writers that were killed left behind; returns how many.
  Result<int64_t> clear() const;

  // Where the entry of a key is, or would be.
  std::string path_of(std::string_view key) const;

 private:
  Status evict() const;

  std::string folder_;
  int64_t max_bytes_;
};

}  // namespace pyc

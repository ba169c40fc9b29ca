#pragma once

// The compile cache on disk: artefacts in a folder that the user names, found by a hash of what
// they were compiled from. Any number of processes may use one folder at the same time.

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/status.h"

namespace pyc::driver {

class DiskCache {
 public:
  static constexpr int64_t kMaxBytes = int64_t{4} << 30;

  // What PYC_CACHE_DIR names, or "".
  static std::string default_folder();

  explicit DiskCache(std::string folder, int64_t max_bytes = kMaxBytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // The artefact that was inserted under exactly this key, now the last to be evicted. kNotFound
  // when there is none; else the refusal of a damaged or foreign file.
  Result<artifact::Artifact> find(const std::string& key) const;
  // Writes it, all or nothing, in place of any other under this key; makes the folder. Then the
  // entries not found for longest go until the rest keeps max_bytes.
  Status insert(const std::string& key, artifact::Artifact artifact) const;

  struct Entry {
    std::string file;  // its name in the folder
    int64_t bytes = 0;
    int64_t used_ns = 0;  // when it was written or last found, since 1970
    std::string problem;  // of verify: why it cannot be used, or ""
  };
  // Those not used for longest first; none when there is no folder. Other files do not count.
  Result<std::vector<Entry>> list() const;
  // The same, with every entry read and checked.
  Result<std::vector<Entry>> verify() const;
  // Removes all entries, and what writers that were killed left behind; gives how many.
  Result<int64_t> clear() const;

  // Where the entry of a key is, or would be.
  std::string path_of(const std::string& key) const;

 private:
  Status evict() const;

  std::string folder_;
  int64_t max_bytes_;
};

}  // namespace pyc::driver

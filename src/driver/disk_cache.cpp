#include "driver/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "driver/artifacts.h"

namespace pyc::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".pycm";
constexpr size_t kDigits = 32;
constexpr int64_t kNsPerSecond = 1'000'000'000;

bool is_entry(const std::string& name) {
  return name.size() == kDigits + kEnding.size() && name.ends_with(kEnding) &&
         std::all_of(name.begin(), name.begin() + kDigits,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_left_behind(const std::string& name) { return name.starts_with(".pyc-tmp."); }

Status io_error(std::string_view what, const std::string& path, const std::error_code& error) {
  return {Code::kIoError, fmt::format("cannot {} '{}': {}", what, path, error.message())};
}

// Calls visit(name) for each file of the folder.
template <class Visit>
Status each_file(const std::string& folder, Visit visit) {
  const auto names = list_folder(folder);
  if (names.status().code() == Code::kNotFound) return {};
  PYC_TRY(names.status());
  for (const std::string& name : *names) visit(name);
  return {};
}

}  // namespace

std::string DiskCache::default_folder() {
  const char* named = std::getenv("PYC_CACHE_DIR");
  return named == nullptr ? "" : named;
}

std::string DiskCache::path_of(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, hash128(std::as_bytes(std::span(key))).hex(), kEnding);
}

Result<artifact::Artifact> DiskCache::find(const std::string& key) const {
  const std::string path = path_of(key);
  PYC_ASSIGN(SharedBytes file, map_file(path));
  PYC_ASSIGN(artifact::Artifact found, artifact::decode(std::move(file)));
  if (found.key != key) {
    return Status(Code::kParseError, "the entry was made from something else");
  }
  // Entries are evicted by the time of their last use; that it cannot be noted is no harm.
  static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
  return found;
}

Status DiskCache::insert(const std::string& key, artifact::Artifact artifact) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return io_error("make the folder", folder_, error);
  artifact.key = key;
  PYC_TRY(write_artifact(artifact, path_of(key)));
  return evict();
}

Result<std::vector<DiskCache::Entry>> DiskCache::list() const {
  std::vector<Entry> entries;
  PYC_TRY(each_file(folder_, [&](const std::string& name) {
    struct stat info {};
    // One that another process has removed just now is none.
    if (!is_entry(name) || ::stat((folder_ + "/" + name).c_str(), &info) != 0) return;
    entries.push_back({name, info.st_size,
                       int64_t{info.st_mtim.tv_sec} * kNsPerSecond + info.st_mtim.tv_nsec, ""});
  }));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used_ns, a.file) < std::pair(b.used_ns, b.file);
  });
  return entries;
}

Result<std::vector<DiskCache::Entry>> DiskCache::verify() const {
  PYC_ASSIGN(std::vector<Entry> entries, list());
  for (Entry& entry : entries) {
    const std::string path = folder_ + "/" + entry.file;
    auto file = map_file(path);
    auto read = file.ok() ? artifact::decode(std::move(*file)) : std::move(file).status();
    if (!read.ok()) {
      entry.problem = read.status().message();
    } else if (path_of(read->key) != path) {
      entry.problem = "the entry was made from something else";
    }
  }
  return entries;
}

Result<int64_t> DiskCache::clear() const {
  int64_t removed = 0;
  std::error_code first;
  PYC_TRY(each_file(folder_, [&](const std::string& name) {
    if (!is_entry(name) && !is_left_behind(name)) return;
    std::error_code error;
    if (fs::remove(folder_ + "/" + name, error)) removed += is_entry(name) ? 1 : 0;
    if (error && !first) first = error;
  }));
  if (first) return io_error("remove entries of", folder_, first);
  return removed;
}

Status DiskCache::evict() const {
  PYC_ASSIGN(const std::vector<Entry> entries, list());
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.bytes;
  for (const Entry& entry : entries) {
    if (sum <= max_bytes_) break;
    std::error_code error;
    fs::remove(folder_ + "/" + entry.file, error);
    if (error) return io_error("remove", entry.file, error);
    sum -= entry.bytes;
  }
  return {};
}

}  // namespace pyc::driver

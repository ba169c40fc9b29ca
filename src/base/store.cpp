#include "base/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/hash_pieces.h"
#include "base/mapped_file.h"

namespace pyc {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// Like PNG's: line-end conversion and text tools destroy it visibly.
constexpr std::string_view kStoreMark = "\x89PYCS\r\n\x1a";
constexpr uint32_t kStoreFormat = 2;
constexpr size_t kStoreAlignment = 64;
constexpr std::string_view kEntryEnding = ".entry";
constexpr size_t kHashDigits = 32;
constexpr int64_t kNsPerSecond = 1'000'000'000;

struct EntryHeader {
  std::array<char, 8> mark = {};
  uint32_t format = 0;
  uint32_t zero = 0;
  uint64_t key_bytes = 0;
  uint64_t content_bytes = 0;
  std::array<uint64_t, 2> body = {};    // digest of what is behind the header
  std::array<uint64_t, 2> header = {};  // digest of what is before this
};
static_assert(sizeof(EntryHeader) == kStoreAlignment);

std::array<uint64_t, 2> words(const Digest& digest) { return {digest.hi, digest.lo}; }

std::array<uint64_t, 2> header_digest(const EntryHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return words(hash128(bytes.first(offsetof(EntryHeader, header))));
}

uint64_t zeros_behind(uint64_t bytes) {
  return (kStoreAlignment - bytes % kStoreAlignment) % kStoreAlignment;
}

Status unusable(std::string_view why) {
  return {Code::kParseError, fmt::format("the entry {}", why)};
}

// An entry of a file, as far as its own bytes tell.
struct ReadEntry {
  std::string_view key;
  std::span<const std::byte> content;
};

Result<ReadEntry> read_entry(std::span<const std::byte> file) {
  EntryHeader header;
  if (file.size() < sizeof(header)) return unusable("is cut off");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::string_view(header.mark.data(), header.mark.size()) != kStoreMark) {
    return unusable("does not begin like one");
  }
  if (header.header != header_digest(header)) return unusable("is damaged in its header");
  if (header.format != kStoreFormat) {
    return unusable(fmt::format("has format {}, known is {}", header.format, kStoreFormat));
  }
  const std::span<const std::byte> body = file.subspan(sizeof(header));
  const uint64_t padding = zeros_behind(header.key_bytes);
  // Compared one after the other, so that no sum overflows.
  if (header.key_bytes > body.size() || padding > body.size() - header.key_bytes ||
      header.content_bytes != body.size() - header.key_bytes - padding) {
    return unusable("is cut off, or longer than it says");
  }
  if (header.body != words(hash_pieces(body))) return unusable("is damaged");
  return ReadEntry{{reinterpret_cast<const char*>(body.data()), header.key_bytes},
                   body.subspan(header.key_bytes + padding)};
}

std::string entry_name(std::string_view key) {
  return fmt::format("{}{}", hash128(std::as_bytes(std::span(key))).hex(), kEntryEnding);
}

bool is_entry(const std::string& name) {
  return name.size() == kHashDigits + kEntryEnding.size() && name.ends_with(kEntryEnding) &&
         std::all_of(name.begin(), name.begin() + kHashDigits,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_left_behind(const std::string& name) { return name.starts_with(".pyc-tmp."); }

Status store_error(std::string_view what, const std::string& path, const std::error_code& error) {
  return {Code::kIoError, fmt::format("cannot {} '{}': {}", what, path, error.message())};
}

// The files of the folder; none when there is no folder.
Result<std::vector<std::string>> names_in(const std::string& folder) {
  auto names = list_folder(folder);
  if (names.status().code() == Code::kNotFound) return std::vector<std::string>();
  return names;
}

// What writers that were killed left behind, once no writer can be at it any more.
void remove_left_behind(const std::string& folder, std::span<const std::string> names) {
  constexpr int64_t kLongestWriteSeconds = 3600;
  const int64_t now = ::time(nullptr);
  for (const std::string& name : names) {
    struct stat info {};
    const std::string path = folder + "/" + name;
    if (!is_left_behind(name) || ::stat(path.c_str(), &info) != 0) continue;
    // One that cannot be removed is no harm, and clear() says why.
    if (now - info.st_mtim.tv_sec > kLongestWriteSeconds) ::unlink(path.c_str());
  }
}

Status check_entry(const std::string& folder, const std::string& name) {
  PYC_ASSIGN(const SharedBytes file, map_file(folder + "/" + name));
  PYC_ASSIGN(const ReadEntry entry, read_entry(file));
  return entry_name(entry.key) == name ? Status() : unusable("was made from something else");
}

// The entries among the files, those not used for longest first.
std::vector<Store::Entry> entries_of(const std::string& folder,
                                     std::span<const std::string> names) {
  std::vector<Store::Entry> entries;
  for (const std::string& name : names) {
    struct stat info {};
    // One that another process has removed just now is none.
    if (!is_entry(name) || ::stat((folder + "/" + name).c_str(), &info) != 0) continue;
    entries.push_back(
        {name, info.st_size, int64_t{info.st_mtim.tv_sec} * kNsPerSecond + info.st_mtim.tv_nsec});
  }
  std::sort(entries.begin(), entries.end(), [](const Store::Entry& a, const Store::Entry& b) {
    return std::pair(a.used_ns, a.file) < std::pair(b.used_ns, b.file);
  });
  return entries;
}

}  // namespace

std::string Store::path_of(std::string_view key) const { return folder_ + "/" + entry_name(key); }

std::optional<SharedBytes> Store::get(std::string_view key, std::string* problem) const {
  if (problem != nullptr) problem->clear();
  const auto refused = [&](const Status& status) -> std::optional<SharedBytes> {
    if (problem != nullptr && status.code() != Code::kNotFound) *problem = status.message();
    return std::nullopt;
  };
  const std::string path = path_of(key);
  auto file = map_file(path);
  if (!file.ok()) return refused(file.status());
  const auto entry = read_entry(*file);
  if (!entry.ok()) return refused(entry.status());
  if (entry->key != key) return refused(unusable("was made from something else"));
  // Entries are evicted by the time of their last use; that it cannot be noted is no harm.
  static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
  const std::span<const std::byte> content = entry->content;
  return SharedBytes(std::make_shared<const SharedBytes>(std::move(*file)), content);
}

Status Store::put(std::string_view key, std::span<const SharedBytes> pieces) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return store_error("make the folder", folder_, error);
  const std::array<std::byte, kStoreAlignment> zeros = {};
  EntryHeader header;
  std::copy(kStoreMark.begin(), kStoreMark.end(), header.mark.begin());
  header.format = kStoreFormat;
  header.key_bytes = key.size();
  std::vector<std::span<const std::byte>> parts = {
      std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(key)),
      std::span(zeros).first(zeros_behind(key.size()))};
  for (const SharedBytes& piece : pieces) {
    header.content_bytes += piece.size();
    parts.push_back(piece);
  }
  header.body = words(hash_pieces(std::span(parts).subspan(1)));
  header.header = header_digest(header);
  PYC_TRY(write_file_atomic(path_of(key), parts));
  return evict();
}

Result<std::vector<Store::Entry>> Store::list() const {
  PYC_ASSIGN(const std::vector<std::string> names, names_in(folder_));
  return entries_of(folder_, names);
}

Result<std::vector<Store::Entry>> Store::verify() const {
  PYC_ASSIGN(std::vector<Entry> entries, list());
  for (Entry& entry : entries) entry.problem = check_entry(folder_, entry.file).message();
  return entries;
}

Result<int64_t> Store::clear() const {
  PYC_ASSIGN(const std::vector<std::string> names, names_in(folder_));
  int64_t removed = 0;
  std::error_code first;
  for (const std::string& name : names) {
    if (!is_entry(name) && !is_left_behind(name)) continue;
    std::error_code error;
    if (fs::remove(folder_ + "/" + name, error)) removed += is_entry(name) ? 1 : 0;
    if (error && !first) first = error;
  }
  if (first) return store_error("remove entries of", folder_, first);
  return removed;
}

Status Store::evict() const {
  PYC_ASSIGN(const std::vector<std::string> names, names_in(folder_));
  remove_left_behind(folder_, names);
  const std::vector<Entry> entries = entries_of(folder_, names);
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.bytes;
  for (const Entry& entry : entries) {
    if (sum <= max_bytes_) break;
    std::error_code error;
    fs::remove(folder_ + "/" + entry.file, error);
    if (error) return store_error("remove", entry.file, error);
    sum -= entry.bytes;
  }
  return {};
}

}  // namespace pyc

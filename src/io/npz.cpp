// The .npz format: a zip archive. It is read from its end: the end record says where the directory
// is, the directory says where each entry is. What an entry says of itself is compared with it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "io/named_tensors.h"
#include "io/tensor_file.h"

namespace pyc::io {
namespace {

constexpr std::string_view kNpyEnding = ".npy";
constexpr uint32_t kEntryMark = 0x04034b50;
constexpr uint32_t kDirectoryMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kWideEndMark = 0x06064b50;
constexpr uint32_t kWideLocatorMark = 0x07064b50;
constexpr size_t kEntryBytes = 30;
constexpr size_t kDirectoryBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kWideEndBytes = 56;
constexpr size_t kWideLocatorBytes = 20;
constexpr size_t kMaxComment = 0xffff;
constexpr uint64_t kNarrowLimit = 0xffffffff;  // this number in a field of 32 bits: it is elsewhere
constexpr uint16_t kWideField = 1;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

Status bad_archive(std::string_view what) {
  return {Code::kParseError, fmt::format("not a .npz file: {}", what)};
}

// A number of the file, little-endian; the caller has checked that it is there.
template <class T>
T number_at(std::string_view bytes, uint64_t at) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[at + i]));
  }
  return value;
}

bool fits(std::string_view bytes, uint64_t at, uint64_t size) {
  return at <= bytes.size() && size <= bytes.size() - at;
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320 ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

uint32_t crc32(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t c = 0xffffffff;
  for (const char byte : bytes) c = kTable[(c ^ static_cast<unsigned char>(byte)) & 0xff] ^ c >> 8;
  return ~c;
}

// What the directory says of an entry.
struct ZipEntry {
  std::string_view name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t size = 0;
  uint64_t at = 0;             // of its own header
  std::string_view body = {};  // its packed bytes, in the file
};

struct Directory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t at = 0;
};

// Of an archive over 4 GiB, or one written as if it were: the wide end record, which a locator
// right before the end record points to.
Result<Directory> wide_directory(std::string_view file, uint64_t end) {
  if (end < kWideLocatorBytes ||
      number_at<uint32_t>(file, end - kWideLocatorBytes) != kWideLocatorMark) {
    return bad_archive("its end record points to a wide one that is not there");
  }
  const auto at = number_at<uint64_t>(file, end - kWideLocatorBytes + 8);
  if (!fits(file, at, kWideEndBytes) || number_at<uint32_t>(file, at) != kWideEndMark) {
    return bad_archive("its wide end record is not where the locator says");
  }
  return Directory{number_at<uint64_t>(file, at + 32), number_at<uint64_t>(file, at + 40),
                   number_at<uint64_t>(file, at + 48)};
}

Result<Directory> find_directory(std::string_view file) {
  if (file.size() < kEndBytes) return bad_archive("it is too short");
  const uint64_t last = file.size() - kEndBytes;
  const uint64_t first = last - std::min<uint64_t>(last, kMaxComment);
  std::optional<uint64_t> end;
  for (uint64_t at = last + 1; at-- > first && !end;) {
    const bool marked = number_at<uint32_t>(file, at) == kEndMark;
    if (marked && number_at<uint16_t>(file, at + 20) == file.size() - at - kEndBytes) end = at;
  }
  if (!end) return bad_archive("it has no end record; it is cut off or no zip archive");
  if (number_at<uint16_t>(file, *end + 4) != 0 || number_at<uint16_t>(file, *end + 6) != 0) {
    return Status(Code::kUnsupported, "an archive in several parts is not read");
  }
  Directory d{number_at<uint16_t>(file, *end + 10), number_at<uint32_t>(file, *end + 12),
              number_at<uint32_t>(file, *end + 16)};
  if (d.entries == 0xffff || d.bytes == kNarrowLimit || d.at == kNarrowLimit) {
    PYC_ASSIGN(d, wide_directory(file, *end));
  }
  if (!fits(file, d.at, d.bytes) || d.at + d.bytes > *end) {
    return bad_archive("its directory lies beyond its end");
  }
  if (d.entries > d.bytes / kDirectoryBytes) return bad_archive("its directory is cut off");
  return d;
}

// Numbers of 64 bits stand in an extra field, in this order, if the narrow one is full.
Status widen(std::string_view extra, ZipEntry& entry) {
  const std::array<uint64_t*, 3> wanted = {&entry.size, &entry.packed, &entry.at};
  uint64_t at = 0;
  while (fits(extra, at, 4)) {
    const auto id = number_at<uint16_t>(extra, at);
    const auto size = number_at<uint16_t>(extra, at + 2);
    at += 4;
    if (!fits(extra, at, size)) break;
    const std::string_view field = extra.substr(at, size);
    at += size;
    if (id != kWideField) continue;
    uint64_t place = 0;
    for (uint64_t* value : wanted) {
      if (*value != kNarrowLimit) continue;
      if (!fits(field, place, sizeof(uint64_t))) return bad_archive("a wide size is cut off");
      *value = number_at<uint64_t>(field, place);
      place += sizeof(uint64_t);
    }
    return {};
  }
  return bad_archive("a wide size is missing");
}

Result<std::vector<ZipEntry>> read_directory(std::string_view file, const Directory& d) {
  std::vector<ZipEntry> entries;
  const std::string_view text = file.substr(d.at, d.bytes);
  uint64_t at = 0;
  for (uint64_t i = 0; i < d.entries; ++i) {
    if (!fits(text, at, kDirectoryBytes) || number_at<uint32_t>(text, at) != kDirectoryMark) {
      return bad_archive("its directory is cut off");
    }
    const uint64_t name = number_at<uint16_t>(text, at + 28);
    const uint64_t extra = number_at<uint16_t>(text, at + 30);
    const uint64_t comment = number_at<uint16_t>(text, at + 32);
    if (!fits(text, at + kDirectoryBytes, name + extra + comment)) {
      return bad_archive("its directory is cut off");
    }
    ZipEntry entry{.name = text.substr(at + kDirectoryBytes, name),
                   .flags = number_at<uint16_t>(text, at + 8),
                   .method = number_at<uint16_t>(text, at + 10),
                   .crc = number_at<uint32_t>(text, at + 16),
                   .packed = number_at<uint32_t>(text, at + 20),
                   .size = number_at<uint32_t>(text, at + 24),
                   .at = number_at<uint32_t>(text, at + 42)};
    if (entry.packed == kNarrowLimit || entry.size == kNarrowLimit || entry.at == kNarrowLimit) {
      PYC_TRY(widen(text.substr(at + kDirectoryBytes + name, extra), entry));
    }
    entries.push_back(entry);
    at += kDirectoryBytes + name + extra + comment;
  }
  if (at != d.bytes) return bad_archive("there is more in its directory than entries");
  return entries;
}

Status bad_entry(const ZipEntry& entry, Code code, std::string_view what) {
  return {code, fmt::format("entry '{}': {}", entry.name.substr(0, 80), what)};
}

// Finds the packed bytes of an entry, before the directory; its own header must agree with that.
Status find_body(std::string_view file, const Directory& d, ZipEntry& entry) {
  const std::string_view body = file.substr(0, d.at);
  if (!fits(body, entry.at, kEntryBytes) || number_at<uint32_t>(body, entry.at) != kEntryMark) {
    return bad_entry(entry, Code::kParseError, "it is not where the directory says");
  }
  const uint64_t name = number_at<uint16_t>(body, entry.at + 26);
  const uint64_t extra = number_at<uint16_t>(body, entry.at + 28);
  const uint64_t start = entry.at + kEntryBytes + name + extra;
  if (!fits(body, start, entry.packed)) {
    return bad_entry(entry, Code::kParseError, "it ends beyond the file");
  }
  if (body.substr(entry.at + kEntryBytes, name) != entry.name ||
      number_at<uint16_t>(body, entry.at + 8) != entry.method) {
    return bad_entry(entry, Code::kParseError, "its header and the directory differ");
  }
  entry.body = body.substr(start, entry.packed);
  return {};
}

Result<NamedTensor> read_zip_entry(const ZipEntry& entry) {
  if ((entry.flags & kEncrypted) != 0) {
    return bad_entry(entry, Code::kUnsupported, "it is encrypted");
  }
  if (entry.method != kStored) {
    return bad_entry(entry, Code::kUnsupported,
                     entry.method == kDeflated
                         ? "it is compressed; write it with numpy.savez, not savez_compressed"
                         : "it is packed by a method that is not read; write it with numpy.savez");
  }
  if (entry.packed != entry.size) {
    return bad_entry(entry, Code::kParseError, "it is stored, yet has two sizes");
  }
  if (crc32(entry.body) != entry.crc) {
    return bad_entry(entry, Code::kParseError, "its checksum is wrong: it is damaged");
  }
  if (!entry.name.ends_with(kNpyEnding) || entry.name.size() == kNpyEnding.size()) {
    return bad_entry(entry, Code::kParseError, "a .npz file holds NAME.npy and nothing else");
  }
  auto tensor = parse_npy(entry.body, std::nullopt);
  if (!tensor.ok()) {
    return bad_entry(entry, tensor.status().code(), tensor.status().message());
  }
  return NamedTensor{std::string(entry.name.substr(0, entry.name.size() - kNpyEnding.size())),
                     std::move(tensor->value)};
}

// Entries that share bytes make a small file a large one.
Status check_apart(std::string_view file, std::vector<ZipEntry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.at < b.at; });
  for (size_t i = 1; i < entries.size(); ++i) {
    const std::string_view before = entries[i - 1].body;
    if (file.data() + entries[i].at < before.data() + before.size()) {
      return bad_entry(entries[i], Code::kParseError, "it overlaps another entry");
    }
  }
  return {};
}

template <class T>
void append_number(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// What entry header and directory have in common: version 2.0, UTF-8 names, stored, 1 Jan 1980.
void append_common(std::string& out, std::string_view name, std::string_view bytes) {
  constexpr uint16_t kVersion = 20;
  constexpr uint16_t kUtf8 = 1 << 11;
  constexpr uint16_t kFirstDay = 0x21;
  append_number<uint16_t>(out, kVersion);
  append_number<uint16_t>(out, kUtf8);
  append_number<uint16_t>(out, kStored);
  append_number<uint16_t>(out, 0);
  append_number<uint16_t>(out, kFirstDay);
  append_number<uint32_t>(out, crc32(bytes));
  append_number<uint32_t>(out, static_cast<uint32_t>(bytes.size()));
  append_number<uint32_t>(out, static_cast<uint32_t>(bytes.size()));
  append_number<uint16_t>(out, static_cast<uint16_t>(name.size()));
  append_number<uint16_t>(out, 0);
}

}  // namespace

Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes) {
  PYC_ASSIGN(const Directory directory, find_directory(bytes));
  PYC_ASSIGN(std::vector<ZipEntry> entries, read_directory(bytes, directory));
  std::set<std::string_view> names;
  for (ZipEntry& entry : entries) {
    PYC_TRY(find_body(bytes, directory, entry));
    if (!names.insert(entry.name).second) {
      return bad_entry(entry, Code::kParseError, "the name comes twice");
    }
  }
  PYC_TRY(check_apart(bytes, entries));
  std::vector<NamedTensor> tensors;
  for (const ZipEntry& entry : entries) {
    PYC_ASSIGN(NamedTensor tensor, read_zip_entry(entry));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<std::string> npz_bytes(std::span<const NamedBytes> tensors) {
  std::string out;
  std::string directory;
  std::set<std::string_view> names;
  for (const NamedBytes& tensor : tensors) {
    const std::string name = tensor.name + std::string(kNpyEnding);
    if (tensor.name.empty() || name.size() > kMaxComment || !names.insert(tensor.name).second) {
      return Status(Code::kInvalidArgument,
                    fmt::format("'{}' cannot be a name in a .npz file: it is empty, too long, or "
                                "comes twice",
                                tensor.name.substr(0, 80)));
    }
    const std::string file = npy_bytes(tensor.type, tensor.bytes);
    const auto at = static_cast<uint32_t>(out.size());
    append_number<uint32_t>(out, kEntryMark);
    append_common(out, name, file);
    out += name;
    out += file;
    append_number<uint32_t>(directory, kDirectoryMark);
    append_number<uint16_t>(directory, 20);
    append_common(directory, name, file);
    directory.append(10, '\0');  // no comment, first part, no attributes
    append_number<uint32_t>(directory, at);
    directory += name;
    if (out.size() + directory.size() >= kNarrowLimit || names.size() == kMaxComment) {
      return Status(Code::kUnsupported, "a .npz file of 4 GiB or more is not written");
    }
  }
  const auto at = static_cast<uint32_t>(out.size());
  out += directory;
  append_number<uint32_t>(out, kEndMark);
  append_number<uint32_t>(out, 0);
  append_number<uint16_t>(out, static_cast<uint16_t>(tensors.size()));
  append_number<uint16_t>(out, static_cast<uint16_t>(tensors.size()));
  append_number<uint32_t>(out, static_cast<uint32_t>(directory.size()));
  append_number<uint32_t>(out, at);
  append_number<uint16_t>(out, 0);
  return out;
}

}  // namespace pyc::io

// The safetensors format. The header's JSON has one form only, so that a reader for that form is
// smaller and stricter than one for JSON: two levels, strings and whole numbers, no key twice.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "base/escape.h"
#include "io/named_tensors.h"
#include "io/tensor_file.h"

namespace pyc::io {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the format says
constexpr std::string_view kMetadataKey = "__metadata__";

struct SafeName {
  std::string_view text;
  DType dtype;
};
constexpr std::array<SafeName, 17> kSafeNames = {{
    {"BOOL", DType::kBool},
    {"I8", DType::kI8},
    {"I16", DType::kI16},
    {"I32", DType::kI32},
    {"I64", DType::kI64},
    {"U8", DType::kU8},
    {"U16", DType::kU16},
    {"U32", DType::kU32},
    {"U64", DType::kU64},
    {"F8_E4M3", DType::kF8E4M3FN},
    {"F8_E5M2", DType::kF8E5M2},
    {"F8_E8M0", DType::kF8E8M0},
    {"F16", DType::kF16},
    {"BF16", DType::kBF16},
    {"F32", DType::kF32},
    {"F64", DType::kF64},
    {"C64", DType::kC64},
}};

Status bad_safetensors(std::string_view what) {
  return {Code::kParseError, fmt::format("not a safetensors file: {}", what)};
}

// What the header says of a tensor.
struct SafeEntry {
  std::string name;
  std::string dtype;
  ir::Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

void append_utf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

class SafeHeaderParser {
 public:
  explicit SafeHeaderParser(std::string_view text) : text_(text) {}

  Status run() {
    if (text_.empty() || text_[0] != '{')
      return bad_safetensors("its header does not begin with {");
    std::set<std::string, std::less<>> seen;
    PYC_TRY(members([&](const std::string& name) -> Status {
      if (!seen.insert(name).second) {
        return bad_safetensors(fmt::format("the name '{}' comes twice", name.substr(0, 80)));
      }
      return name == kMetadataKey ? read_metadata() : read_tensor_entry(name);
    }));
    skip_blanks();
    return at_ == text_.size() ? Status() : bad_safetensors("there is text after its header");
  }

  std::map<std::string, std::string> metadata;
  std::vector<SafeEntry> entries;

 private:
  // An object: `member` is called behind each key and its colon.
  template <class Member>
  Status members(Member member) {
    PYC_TRY(require_char('{'));
    if (take('}')) return {};
    do {
      PYC_ASSIGN(const std::string name, text_value());
      PYC_TRY(require_char(':'));
      PYC_TRY(member(name));
    } while (take(','));
    return require_char('}');
  }

  Status read_metadata() {
    return members([&](const std::string& key) -> Status {
      PYC_ASSIGN(std::string value, text_value());
      if (metadata.emplace(key, std::move(value)).second) return {};
      return bad_safetensors(fmt::format("metadata '{}' comes twice", key.substr(0, 80)));
    });
  }

  Status read_tensor_entry(const std::string& name) {
    SafeEntry entry{.name = name, .dtype = {}, .shape = {}};
    int seen = 0;
    PYC_TRY(members([&](const std::string& key) -> Status {
      constexpr std::array<std::string_view, 3> kKeys = {"dtype", "shape", "data_offsets"};
      const auto found = std::find(kKeys.begin(), kKeys.end(), key);
      const int bit = 1 << (found - kKeys.begin());
      if (found == kKeys.end() || (seen & bit) != 0) {
        return bad_safetensors(
            fmt::format("tensor '{}' has '{}', which is not known or comes twice",
                        name.substr(0, 80), key.substr(0, 40)));
      }
      seen |= bit;
      return read_field(key, entry);
    }));
    if (seen != 7) {
      return bad_safetensors(
          fmt::format("tensor '{}' lacks dtype, shape or data_offsets", name.substr(0, 80)));
    }
    entries.push_back(std::move(entry));
    return {};
  }

  Status read_field(std::string_view key, SafeEntry& entry) {
    if (key == "dtype") {
      PYC_ASSIGN(entry.dtype, text_value());
      return {};
    }
    PYC_ASSIGN(const std::vector<uint64_t> list, numbers());
    if (key == "data_offsets") {
      if (list.size() != 2) return bad_safetensors("data_offsets are two numbers");
      entry.begin = list[0];
      entry.end = list[1];
      return {};
    }
    for (const uint64_t dim : list) {
      if (dim > static_cast<uint64_t>(ir::kMaxElements)) {
        return bad_safetensors(fmt::format("tensor '{}' has a dim of {}", entry.name, dim));
      }
      entry.shape.push_back(static_cast<int64_t>(dim));
    }
    return {};
  }

  Result<std::vector<uint64_t>> numbers() {
    std::vector<uint64_t> list;
    PYC_TRY(require_char('['));
    if (take(']')) return list;
    do {
      skip_blanks();
      uint64_t value = 0;
      const char* first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
      const bool leading_zero = end - first > 1 && *first == '0';
      if (error != std::errc() || leading_zero) {
        return bad_safetensors("expected a whole number from 0 on");
      }
      if (list.size() == static_cast<size_t>(ir::kMaxRank)) {
        return bad_safetensors(fmt::format("more than {} dims", ir::kMaxRank));
      }
      list.push_back(value);
      at_ += static_cast<size_t>(end - first);
    } while (take(','));
    PYC_TRY(require_char(']'));
    return list;
  }

  Result<std::string> text_value() {
    PYC_TRY(require_char('"'));
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        ++at_;
        PYC_TRY(read_escape(out));
        continue;
      }
      const size_t length = utf8_length(text_.substr(at_));
      if (length == 0 || static_cast<unsigned char>(text_[at_]) < ' ') {
        return bad_safetensors("a string of its header is no UTF-8 or has control characters");
      }
      out += text_.substr(at_, length);
      at_ += length;
    }
    if (at_ == text_.size()) return bad_safetensors("a string of its header has no end");
    ++at_;
    return out;
  }

  // What stands behind a backslash.
  Status read_escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char letter = at_ < text_.size() ? text_[at_++] : '\0';
    if (const size_t i = kLetters.find(letter); letter != '\0' && i != std::string_view::npos) {
      out += kMeant[i];
      return {};
    }
    std::optional<uint32_t> c = letter == 'u' ? four_digits() : std::nullopt;
    if (c && *c >= 0xd800 && *c < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const std::optional<uint32_t> low = four_digits();
      if (!low || *low < 0xdc00 || *low > 0xdfff) return bad_safetensors("half a character");
      c = 0x10000 + ((*c - 0xd800) << 10) + (*low - 0xdc00);
    }
    if (!c || (*c >= 0xd800 && *c <= 0xdfff)) {
      return bad_safetensors("an escape in its header is not valid JSON");
    }
    append_utf8(out, *c);
    return {};
  }

  std::optional<uint32_t> four_digits() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() != 4 || read.ec != std::errc() || read.ptr != end) return std::nullopt;
    at_ += digits.size();
    return value;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Status require_char(char c) {
    return take(c) ? Status() : bad_safetensors(fmt::format("expected '{}' in its header", c));
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string_view text_;
  size_t at_ = 0;
};

Result<NamedTensor> read_elements(const SafeEntry& entry, std::string_view data) {
  const auto known = std::find_if(kSafeNames.begin(), kSafeNames.end(),
                                  [&](const SafeName& n) { return n.text == entry.dtype; });
  const auto at_tensor = [&](const Status& status) {
    return Status(status.code(),
                  fmt::format("tensor '{}': {}", entry.name.substr(0, 80), status.message()));
  };
  if (known == kSafeNames.end()) {
    return at_tensor({Code::kUnsupported, fmt::format("there is no element type '{}' in PyC",
                                                      entry.dtype.substr(0, 40))});
  }
  const std::string_view elements = data.substr(entry.begin, entry.end - entry.begin);
  auto tensor = make_tensor(known->dtype, entry.shape, elements.size());
  if (!tensor.ok()) return at_tensor(tensor.status());
  if (tensor->value.bytes.size() != elements.size()) {
    return at_tensor(bad_safetensors(fmt::format("expected {} bytes of elements for {}, found {}",
                                                 tensor->value.bytes.size(),
                                                 tensor->value.to_string(), elements.size())));
  }
  if (!elements.empty()) std::memcpy(tensor->data, elements.data(), elements.size());
  return NamedTensor{entry.name, std::move(tensor->value)};
}

// The elements of all tensors are the whole rest of the file, each once.
Status check_offsets(std::vector<SafeEntry>& entries, uint64_t bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const SafeEntry& a, const SafeEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const SafeEntry& entry : entries) {
    if (entry.begin != at || entry.end < entry.begin || entry.end > bytes) {
      return bad_safetensors(fmt::format(
          "tensor '{}' has the elements {} to {} of {}: they overlap, leave a hole or end beyond "
          "the file",
          entry.name.substr(0, 80), entry.begin, entry.end, bytes));
    }
    at = entry.end;
  }
  if (at == bytes) return {};
  return bad_safetensors(fmt::format("its last {} bytes belong to no tensor", bytes - at));
}

Result<std::string> quoted_json(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return Status(Code::kInvalidArgument, "a name in safetensors must be UTF-8");
    const auto c = static_cast<unsigned char>(text[0]);
    if (c < ' ') {
      out += fmt::format("\\u{:04x}", c);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

Result<std::string> metadata_json(const std::map<std::string, std::string>& metadata) {
  std::string out;
  for (const auto& [key, value] : metadata) {
    PYC_ASSIGN(const std::string quoted_key, quoted_json(key));
    PYC_ASSIGN(const std::string quoted_value, quoted_json(value));
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quoted_key, quoted_value);
  }
  return "{" + out + "}";
}

Result<std::string> entry_json(const NamedBytes& tensor, uint64_t at) {
  PYC_CHECK(tensor.bytes.size() == static_cast<size_t>(tensor.type.bytes()),
            "as many bytes as the type says");
  const auto known = std::find_if(kSafeNames.begin(), kSafeNames.end(),
                                  [&](const SafeName& n) { return n.dtype == tensor.type.dtype; });
  if (known == kSafeNames.end()) {
    return Status(Code::kUnsupported, fmt::format("tensor '{}': safetensors has no {}", tensor.name,
                                                  dtype_name(tensor.type.dtype)));
  }
  PYC_ASSIGN(const std::string name, quoted_json(tensor.name));
  return fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name,
                     known->text, fmt::join(tensor.type.shape, ","), at, at + tensor.bytes.size());
}

}  // namespace

Result<std::string_view> header_part(std::string_view file) {
  if (file.size() < kLengthBytes) return bad_safetensors("it ends within the length of its header");
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(file[i]);
  }
  if (length > kMaxHeaderBytes) {
    return bad_safetensors(
        fmt::format("its header has {} bytes, over the {} there may be", length, kMaxHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) return bad_safetensors("it ends within its header");
  return file.substr(0, kLengthBytes + length);
}

Result<Safetensors> parse_safetensors(std::string_view bytes) {
  PYC_ASSIGN(const std::string_view header, header_part(bytes));
  SafeHeaderParser parser(header.substr(kLengthBytes));
  PYC_TRY(parser.run());
  const std::string_view data = bytes.substr(header.size());
  PYC_TRY(check_offsets(parser.entries, data.size()));
  Safetensors out{.metadata = std::move(parser.metadata), .tensors = {}};
  for (const SafeEntry& entry : parser.entries) {
    PYC_ASSIGN(NamedTensor tensor, read_elements(entry, data));
    out.tensors.push_back(std::move(tensor));
  }
  return out;
}

Result<SafetensorsHeader> safetensors_header(std::span<const NamedBytes> tensors,
                                             const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader out;
  out.order.resize(tensors.size());
  std::iota(out.order.begin(), out.order.end(), size_t{0});
  std::stable_sort(out.order.begin(), out.order.end(), [&](size_t a, size_t b) {
    return dtype_size(tensors[a].type.dtype) > dtype_size(tensors[b].type.dtype);
  });
  PYC_ASSIGN(std::string text, metadata_json(metadata));
  text = fmt::format("{{\"{}\":{}", kMetadataKey, text);
  std::set<std::string_view> names = {kMetadataKey};
  uint64_t at = 0;
  for (const size_t i : out.order) {
    if (!names.insert(tensors[i].name).second) {
      return Status(Code::kInvalidArgument,
                    fmt::format("two tensors are named '{}'", tensors[i].name));
    }
    PYC_ASSIGN(const std::string entry, entry_json(tensors[i], at));
    text += entry;
    at += tensors[i].bytes.size();
  }
  text += '}';
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return Status(Code::kUnsupported, "a safetensors header over 100 MB is not written");
  }
  for (size_t i = 0; i < kLengthBytes; ++i) {
    out.bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  out.bytes += text;
  return out;
}

}  // namespace pyc::io

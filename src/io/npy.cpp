// The .npy format: magic, version, length of the header, a Python dict as text, elements.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "io/tensor_file.h"

namespace pyc::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionBytes = 2;
constexpr size_t kHeaderAlignment = 64;

// How numpy names the types. Those of one name are told apart by what the caller expects.
struct Descr {
  std::string_view text;  // without the byte order
  DType dtype;
  bool named;  // false: numpy only knows the size
};
constexpr std::array<Descr, kValueDTypeCount> kDescrs = {{
    {"b1", DType::kBool, true},        {"i1", DType::kI8, true},
    {"i2", DType::kI16, true},         {"i4", DType::kI32, true},
    {"i8", DType::kI64, true},         {"u1", DType::kU8, true},
    {"u2", DType::kU16, true},         {"u4", DType::kU32, true},
    {"u8", DType::kU64, true},         {"V1", DType::kI2, false},
    {"V1", DType::kI4, false},         {"V1", DType::kU2, false},
    {"V1", DType::kU4, false},         {"V1", DType::kF4E2M1, false},
    {"V1", DType::kF8E8M0, false},     {"V1", DType::kF8E4M3FN, false},
    {"V1", DType::kF8E4M3FNUZ, false}, {"V1", DType::kF8E5M2, false},
    {"V1", DType::kF8E5M2FNUZ, false}, {"f2", DType::kF16, true},
    {"V2", DType::kBF16, false},       {"f4", DType::kF32, true},
    {"f8", DType::kF64, true},         {"c8", DType::kC64, true},
    {"c16", DType::kC128, true},
}};

Status malformed(std::string_view what) {
  return {Code::kParseError, fmt::format("not a .npy file: {}", what)};
}

// The header's dict: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
struct Header {
  std::string descr;
  bool fortran_order = false;
  ir::Shape shape;
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> run() {
    Header header;
    int seen = 0;
    PYC_TRY(expect('{'));
    while (!accept('}')) {
      PYC_ASSIGN(const std::string key, quoted());
      PYC_TRY(expect(':'));
      PYC_TRY(value(key, header, seen));
      if (!accept(',')) {
        PYC_TRY(expect('}'));
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) return malformed("there is text after the header's dict");
    if (seen != 7) return malformed("the header lacks 'descr', 'fortran_order' or 'shape'");
    return header;
  }

 private:
  Status value(const std::string& key, Header& header, int& seen) {
    if (key == "descr") {
      seen |= 1;
      PYC_ASSIGN(header.descr, quoted());
      return {};
    }
    if (key == "fortran_order") {
      seen |= 2;
      header.fortran_order = word("True");
      return header.fortran_order || word("False") ? Status()
                                                   : malformed("fortran_order is no bool");
    }
    if (key == "shape") {
      seen |= 4;
      return tuple(header.shape);
    }
    return malformed(fmt::format("unknown key '{}' in the header", key.substr(0, 40)));
  }

  Status tuple(ir::Shape& shape) {
    shape.clear();
    PYC_TRY(expect('('));
    while (!accept(')')) {
      skip_space();
      int64_t dim = 0;
      const char* first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) return malformed("a dim is no number from 0 on");
      if (shape.size() == static_cast<size_t>(ir::kMaxRank)) {
        return malformed(fmt::format("more than {} dims", ir::kMaxRank));
      }
      shape.push_back(dim);
      at_ += static_cast<size_t>(end - first);
      if (!accept(',')) {
        PYC_TRY(expect(')'));
        break;
      }
    }
    return {};
  }

  Result<std::string> quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return malformed("expected a string in the header");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return malformed("a string in the header has no end");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  bool word(std::string_view expected) {
    skip_space();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  bool accept(char c) { return word(std::string_view(&c, 1)); }
  Status expect(char c) {
    return accept(c) ? Status() : malformed(fmt::format("expected '{}' in the header", c));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<DType> dtype_of(std::string_view descr, std::optional<DType> expected) {
  const auto refuse = [&](std::string_view why) {
    return Status(Code::kUnsupported, fmt::format("numpy type '{}': {}", descr.substr(0, 40), why));
  };
  if (descr.empty()) return malformed("the descr is empty");
  if (descr[0] == '>') return refuse("big-endian elements are not read; save little-endian ones");
  const size_t order = descr.find_first_of("<|=") == 0 ? 1 : 0;
  const std::string_view name = descr.substr(order);
  bool nameless = false;
  for (const Descr& d : kDescrs) {
    if (d.text != name) continue;
    if (d.named || expected == d.dtype) return d.dtype;
    nameless = true;
  }
  if (nameless) return refuse("it names a size only: say which dtype it is (bf16, f8e4m3fn …)");
  return refuse("there is no such element type in PyC");
}

// Elements whose first index runs fastest, put in row-major order.
void transpose_elements(const char* from, const NewTensor& tensor) {
  const auto size = static_cast<size_t>(dtype_size(tensor.value.dtype));
  const ir::Shape& shape = tensor.value.shape;
  ir::Shape index(shape.size());
  const int64_t elements = tensor.value.elements();
  const ir::Shape strides = ir::strides_of(shape);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t to = 0;
    for (size_t d = 0; d < shape.size(); ++d) to += index[d] * strides[d];
    std::memcpy(tensor.data + static_cast<size_t>(to) * size, from + static_cast<size_t>(i) * size,
                size);
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
}

// The length field has two bytes in version 1 and four later.
Result<std::pair<size_t, size_t>> header_place(std::string_view bytes) {
  const size_t fixed = kMagic.size() + kVersionBytes;
  if (bytes.size() < fixed) return malformed("it ends within its magic");
  const int major = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (major < 1 || major > 3) {
    return Status(Code::kUnsupported, fmt::format(".npy version {} is not known", major));
  }
  const size_t width = major == 1 ? 2 : 4;
  if (bytes.size() < fixed + width) return malformed("it ends within its header's length");
  size_t length = 0;
  for (size_t i = width; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[fixed + i]);
  }
  if (length > bytes.size() - fixed - width) return malformed("it ends within its header");
  return std::pair(fixed + width, length);
}

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<NewTensor> parse_npy(std::string_view bytes, std::optional<DType> expected) {
  if (!is_npy(bytes)) return malformed("it does not start with its magic");
  PYC_ASSIGN(const auto place, header_place(bytes));
  PYC_ASSIGN(Header header, HeaderParser(bytes.substr(place.first, place.second)).run());
  PYC_ASSIGN(const DType dtype, dtype_of(header.descr, expected));
  const std::string_view elements = bytes.substr(place.first + place.second);
  PYC_ASSIGN(NewTensor tensor, make_tensor(dtype, std::move(header.shape), elements.size()));
  const DynValue& value = tensor.value;
  if (value.bytes.size() != elements.size()) {
    return malformed(fmt::format("expected {} bytes of elements for {}, found {}",
                                 value.bytes.size(), value.to_string(), elements.size()));
  }
  if (header.fortran_order && value.shape.size() > 1) {
    transpose_elements(elements.data(), tensor);
  } else if (!elements.empty()) {
    std::memcpy(tensor.data, elements.data(), elements.size());
  }
  return tensor;
}

std::string npy_bytes(const ir::TensorType& type, std::span<const std::byte> data) {
  PYC_CHECK(data.size() == static_cast<size_t>(type.bytes()), "as many bytes as the type says");
  const auto descr = std::find_if(kDescrs.begin(), kDescrs.end(),
                                  [&](const Descr& d) { return d.dtype == type.dtype; });
  const std::string shape = type.rank() == 1 ? fmt::format("({},)", type.shape[0])
                                             : fmt::format("({})", fmt::join(type.shape, ", "));
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                   dtype_size(type.dtype) == 1 ? "|" : "<", descr->text, shape);
  const size_t fixed = kMagic.size() + kVersionBytes + 2;
  const size_t total =
      (fixed + header.size() + 1 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  header.resize(total - fixed - 1, ' ');
  header += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
          static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  return out;
}

}  // namespace pyc::io

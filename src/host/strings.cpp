#include "host/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <clocale>
#include <cwctype>
#include <unordered_set>

#include "base/value_meter.h"
#include "host/elements.h"

namespace pyc::host {
namespace {

constexpr std::string_view kWhite = " \t\n\v\f\r";
constexpr size_t kMaxBytes = size_t{1} << 32;  // of all strings of a result

// Reads both arrays stretched to one shape.
template <class Use>
Result<Ints> for_pairs(const DynValue& a, const DynValue& b, Use use) {
  PYC_TRY(check_strings(a, "input 0"));
  PYC_TRY(check_strings(b, "input 1"));
  PYC_ASSIGN(Ints shape, broadcast(a.shape, b.shape));
  const Ints from_a = broadcast_reads(a.shape, shape);
  const Ints from_b = broadcast_reads(b.shape, shape);
  for (size_t i = 0; i < from_a.size(); ++i) {
    PYC_TRY(use((*a.strings)[static_cast<size_t>(from_a[i])],
                (*b.strings)[static_cast<size_t>(from_b[i])]));
  }
  return shape;
}

std::vector<std::string> split_white(std::string_view text, int64_t most) {
  std::vector<std::string> parts;
  size_t at = text.find_first_not_of(kWhite);
  while (at != std::string_view::npos) {
    const bool last = most >= 0 && static_cast<int64_t>(parts.size()) >= most;
    const size_t end = last ? std::string_view::npos : text.find_first_of(kWhite, at);
    parts.emplace_back(text.substr(at, end - at));
    at = end == std::string_view::npos ? end : text.find_first_not_of(kWhite, end);
  }
  return parts;
}

std::vector<std::string> split_at(std::string_view text, std::string_view delimiter, int64_t most) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (;;) {
    const bool last = most >= 0 && static_cast<int64_t>(parts.size()) >= most;
    const size_t end = last ? std::string_view::npos : text.find(delimiter, at);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

// The code point at `at` and its length in bytes; length 0 when it is no UTF-8.
struct Decoded {
  uint32_t point = 0;
  size_t length = 0;
};
Decoded decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 && lead < 0xF8 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead >= 0xF8 || at + length > text.size()) return {};
  uint32_t point = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    point = (point << 6) | (byte(at + i) & 0x3FU);
  }
  return {point, length};
}

void encode(uint32_t point, std::string* out) {
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | ((point >> shift) & 0x3F)));
  };
  if (point < 0x80) {
    out->push_back(static_cast<char>(point));
  } else if (point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (point >> 6)));
    tail(0);
  } else if (point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (point >> 12)));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | (point >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

// One table for all runs and machines, whatever locale the process has.
locale_t case_table() {
  static const locale_t table = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return table;
}

}  // namespace

Result<std::string> change_case(const std::string& text, CaseChange change) {
  if (change == CaseChange::kNone) return text;
  const bool upper = change == CaseChange::kUpper;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Decoded d = decode(text, at);
    if (d.length == 0) {
      out.push_back(text[at++]);
      continue;
    }
    at += d.length;
    if (d.point < 0x80) {
      const char c = static_cast<char>(d.point);
      const bool letter = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
      out.push_back(letter ? static_cast<char>(c ^ 0x20) : c);
      continue;
    }
    if (case_table() == nullptr) {
      return Status(Code::kUnsupported, "the system has no table of letters (locale C.UTF-8)");
    }
    const auto wide = static_cast<wint_t>(d.point);
    encode(static_cast<uint32_t>(upper ? towupper_l(wide, case_table())
                                       : towlower_l(wide, case_table())),
           &out);
  }
  return out;
}

Result<DynValue> concat_strings(const DynValue& a, const DynValue& b) {
  NewStrings joined;
  size_t bytes = 0;
  PYC_ASSIGN(Ints shape, for_pairs(a, b, [&](const std::string& x, const std::string& y) {
               bytes += x.size() + y.size();
               if (bytes > kMaxBytes) {
                 return Status(Code::kBudgetExceeded,
                               fmt::format("the strings are over {} bytes", kMaxBytes));
               }
               return joined.add(x + y);
             }));
  return std::move(joined).finish(std::move(shape));
}

Result<DynValue> equal_strings(const DynValue& a, const DynValue& b) {
  Ints same;
  PYC_ASSIGN(Ints shape, for_pairs(a, b, [&](const std::string& x, const std::string& y) {
               same.push_back(x == y ? 1 : 0);
               return Status();
             }));
  return tensor_of(DType::kBool, std::move(shape), same);
}

Result<SplitStrings> split_strings(const DynValue& input, const std::string& delimiter,
                                   int64_t most) {
  PYC_TRY(check_strings(input, "input"));
  std::vector<std::vector<std::string>> rows;
  Ints counts;
  size_t widest = 0;
  size_t parts_made = 0;
  for (const std::string& s : *input.strings) {
    rows.push_back(delimiter.empty() ? split_white(s, most) : split_at(s, delimiter, most));
    counts.push_back(static_cast<int64_t>(rows.back().size()));
    widest = std::max(widest, rows.back().size());
    parts_made += rows.back().size();
    PYC_TRY(check_room(static_cast<int64_t>(parts_made * sizeof(std::string))));
  }
  Ints shape = input.shape;
  shape.push_back(static_cast<int64_t>(widest));
  PYC_ASSIGN(const DynValue space, zeros_like(input, shape));  // refuses what is too large
  std::vector<std::string> parts = *space.strings;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::move(rows[i].begin(), rows[i].end(), parts.begin() + static_cast<int64_t>(i * widest));
  }
  PYC_ASSIGN(DynValue numbers, tensor_of(DType::kI64, input.shape, counts));
  return SplitStrings{DynValue::of_strings(std::move(shape), std::move(parts)), std::move(numbers)};
}

Result<DynValue> normalize_strings(const DynValue& input, const NormalizeSpec& spec) {
  PYC_TRY(check_strings(input, "input"));
  const size_t rank = input.shape.size();
  if (rank != 1 && !(rank == 2 && input.shape[0] == 1)) {
    return Status(Code::kShapeMismatch,
                  fmt::format("expected string[C] or string[1,C], found {}", input.to_string()));
  }
  // Words that may differ in case are compared in lower case.
  const CaseChange compared = spec.case_sensitive ? CaseChange::kNone : CaseChange::kLower;
  std::unordered_set<std::string> stops;
  for (const std::string& word : spec.stop_words) {
    PYC_ASSIGN(std::string key, change_case(word, compared));
    stops.insert(std::move(key));
  }
  std::vector<std::string> kept;
  for (const std::string& word : *input.strings) {
    PYC_ASSIGN(const std::string key, change_case(word, compared));
    if (stops.contains(key)) continue;
    PYC_ASSIGN(std::string changed, change_case(word, spec.change));
    kept.push_back(std::move(changed));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  return DynValue::of_strings(rank == 1 ? Ints{count} : Ints{1, count}, std::move(kept));
}

}  // namespace pyc::host

#include "base/dtype.h"

#include <array>
#include <cstddef>

namespace pyc {
namespace {

struct Entry {
  std::string_view name;
  int64_t size;
  int64_t bits = size * 8;
};

// In the order of DType.
constexpr std::array<Entry, kValueDTypeCount> kEntries = {{
    {"bool", 1},     {"i2", 1, 2},      {"i4", 1, 4},  {"i8", 1},         {"i16", 2},
    {"i32", 4},      {"i64", 8},        {"u2", 1, 2},  {"u4", 1, 4},      {"u8", 1},
    {"u16", 2},      {"u32", 4},        {"u64", 8},    {"f4e2m1", 1, 4},  {"f8e8m0", 1},
    {"f8e4m3fn", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1}, {"f16", 2},
    {"bf16", 2},     {"f32", 4},        {"f64", 8},    {"c64", 8},        {"c128", 16},
}};

const Entry& entry(DType t) { return kEntries[static_cast<size_t>(t)]; }

}  // namespace

int64_t dtype_size(DType t) { return entry(t).size; }

int64_t dtype_bits(DType t) { return entry(t).bits; }

std::string_view dtype_name(DType t) { return entry(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace pyc

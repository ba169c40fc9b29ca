#include "edge_cases.h"

#include <cmath>
#include <cstring>

#include "data.h"
#include "support.h"

namespace probe {
namespace {

// Writes cases with numbers instead of bits; infinities and NaNs by their patterns.
class Writer {
 public:
  explicit Writer(Format format) : a_(a_type(format)), b_(b_type(format)) {}

  using Product = std::pair<double, double>;
  void add(const char* group, const char* name, float acc, const std::vector<Product>& products) {
    add_bits(group, name, bits_of(acc), products);
  }
  void add_bits(const char* group, const char* name, uint32_t acc,
                const std::vector<Product>& products) {
    EdgeCase c = {group, name, acc, {}};
    for (const auto& [x, y] : products) c.products.emplace_back(operand(a_, x), operand(b_, y));
    cases_.push_back(std::move(c));
  }
  // The first product has this pattern on the left.
  void add_pattern(const char* group, const char* name, uint32_t acc, uint16_t left, double right) {
    cases_.push_back({group, name, acc, {{left, operand(b_, right)}}});
  }
  std::vector<EdgeCase> take() { return std::move(cases_); }

 private:
  static uint16_t operand(pyc::DType type, double x) {
    if (!std::isinf(x)) return operand_bits(type, x);
    const uint16_t infinity = type == pyc::DType::kBF16  ? 0x7F80
                              : type == pyc::DType::kF16 ? 0x7C00
                                                         : 0x7C;
    const auto sign = static_cast<uint16_t>(x < 0 ? 1U << (pyc::dtype_bits(type) - 1) : 0);
    return infinity | sign;
  }
  pyc::DType a_;
  pyc::DType b_;
  std::vector<EdgeCase> cases_;
};

constexpr double kInf = INFINITY;
constexpr float kMax = 0x1.fffffep127F;

void add_nans(Format format, Writer& w) {
  for (const uint32_t acc : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0x7FC12345U, 0xFFFFFFFFU})
    w.add_bits("nan", text("acc NaN %08x", acc).c_str(), acc, {{1, 1}});
  w.add_bits("nan", "acc NaN, products zero", 0x7FC12345U, {});
  std::vector<uint16_t> patterns = {0x7FC0, 0xFFC0, 0x7F81, 0x7FD5, 0xFFFF};
  if (format == Format::kF16) patterns = {0x7E00, 0xFE00, 0x7C01, 0x7E55, 0xFFFF};
  if (format == Format::kE4M3 || format == Format::kE4M3E5M2) patterns = {0x7F, 0xFF};
  if (format == Format::kE5M2) patterns = {0x7E, 0xFE, 0x7D, 0xFF};
  for (const uint16_t pattern : patterns) {
    w.add_pattern("nan", text("factor NaN %04x", pattern).c_str(), 0, pattern, 1);
    w.add_pattern("nan", text("factor NaN %04x times 0", pattern).c_str(), 0, pattern, 0);
  }
  w.add_pattern("nan", "factor NaN, acc inf", bits_of(INFINITY), patterns[0], 1);
  w.add_pattern("nan", "factor NaN, acc NaN", 0xFFC54321U, patterns[0], 1);
}

void add_infinities(Writer& w) {
  w.add("inf", "inf*1", 0, {{kInf, 1}});
  w.add("inf", "-inf*1", 0, {{-kInf, 1}});
  w.add("inf", "inf*-1", 0, {{kInf, -1}});
  w.add("inf", "1*inf", 0, {{1, kInf}});
  w.add("inf", "inf*inf", 0, {{kInf, kInf}});
  w.add("inf", "inf*-inf", 0, {{kInf, -kInf}});
  w.add("inf", "inf*0", 0, {{kInf, 0}});
  w.add("inf", "-0*inf", 0, {{-0.0, kInf}});
  w.add("inf", "inf*1 - inf*1", 0, {{kInf, 1}, {-kInf, 1}});
  w.add("inf", "inf*1 + inf*1", 0, {{kInf, 1}, {kInf, 1}});
  w.add("inf", "inf*least normal", 0, {{kInf, 0x1p-6}});
  w.add("inf", "acc inf, 1*1", INFINITY, {{1, 1}});
  w.add("inf", "acc -inf, zeros", -INFINITY, {});
  w.add("inf", "acc inf, -inf*1", INFINITY, {{-kInf, 1}});
  w.add("inf", "acc inf, inf*1", INFINITY, {{kInf, 1}});
  w.add("inf", "acc inf, inf*0", INFINITY, {{kInf, 0}});
}

void add_zeros(Writer& w) {
  w.add("zero", "acc +0, zeros", 0.0F, {});
  w.add("zero", "acc -0, zeros", -0.0F, {});
  const std::vector<Writer::Product> minus(16, {-0.0, 1});
  w.add("zero", "acc -0, all -0*1", -0.0F, minus);
  w.add("zero", "acc +0, all -0*1", 0.0F, minus);
  w.add("zero", "acc -0, one -0*1", -0.0F, {{-0.0, 1}});
  w.add("zero", "x - x", 0.0F, {{3, 1}, {-3, 1}});
  w.add("zero", "x - x, acc -0", -0.0F, {{3, 1}, {-3, 1}});
  w.add("zero", "acc -3 + 3", -3.0F, {{3, 1}});
  w.add("zero", "acc 3 - 3", 3.0F, {{-3, 1}});
  w.add("zero", "1 - 1 - acc 2^-40", -0x1p-40F, {{1, 1}, {-1, 1}});
}

void add_f32_ends(Writer& w) {
  w.add("range", "acc least subnormal", 0x1p-149F, {});
  w.add("range", "acc -least subnormal", -0x1p-149F, {});
  w.add("range", "acc largest subnormal", from_bits(0x007FFFFF), {});
  w.add("range", "acc subnormal, 0.5*0.5", 0x1p-130F, {{0.5, 0.5}});
  w.add("range", "acc max, zeros", kMax, {});
  w.add("range", "acc max, 1*1", kMax, {{1, 1}});
  w.add("range", "acc max, -1*1", kMax, {{-1, 1}});
  w.add("range", "acc -max, -1*1", -kMax, {{-1, 1}});
  // A zero product with a large factor: does its exponent count?
  w.add("range", "acc 2^-30(1+2^-23), 0*8", 0x1.000002p-30F, {{0, 8}});
  w.add("range", "acc 2^-140, zeros*8", 0x1p-140F, {{0, 8}, {8, 0}});
}

void add_bf16_ends(Writer& w) {
  w.add("overflow", "2^127*2", 0, {{0x1p127, 2}});
  w.add("overflow", "-2^127*2", 0, {{-0x1p127, 2}});
  w.add("overflow", "2^127*2^127", 0, {{0x1p127, 0x1p127}});
  w.add("overflow", "2^127 + 2^127", 0, {{0x1p127, 1}, {0x1p127, 1}});
  w.add("overflow", "acc max + 2^104", kMax, {{0x1p104, 1}});
  w.add("overflow", "acc max + 2^103", kMax, {{0x1p103, 1}});
  w.add("overflow", "acc max + 2^102", kMax, {{0x1p102, 1}});
  w.add("overflow", "acc -max - 2^104", -kMax, {{-0x1p104, 1}});
  w.add("overflow", "acc max + max", kMax, {{0x1.fep127, 1}});
  w.add("overflow", "2^127 + 2^127 - 2^127", 0, {{0x1p127, 1}, {0x1p127, 1}, {-0x1p127, 1}});
  w.add("overflow", "2^128 - 2^127", 0, {{0x1p127, 2}, {-0x1p127, 1}});
  w.add("overflow", "2^128 - 2^128", 0, {{0x1p127, 2}, {-0x1p127, 2}});
  w.add("overflow", "2^200 - 2^200", 0, {{0x1p100, 0x1p100}, {-0x1p100, 0x1p100}});
  w.add("overflow", "2^200 - 2^200, acc 1", 1, {{0x1p100, 0x1p100}, {-0x1p100, 0x1p100}});
  w.add("overflow", "2^200 - 2^199", 0, {{0x1p100, 0x1p100}, {-0x1p100, 0x1p99}});
  w.add("overflow", "2^200, acc -inf", -INFINITY, {{0x1p100, 0x1p100}});
  w.add("overflow", "1.5*1.5*2^126 = 2.25*2^126", 0, {{0x1.8p126, 1.5}});
  w.add("overflow", "1.5*1.5*2^127", 0, {{0x1.8p127, 1.5}});
  w.add("underflow", "2^-75*2^-74", 0, {{0x1p-75, 0x1p-74}});
  w.add("underflow", "-2^-75*2^-74", 0, {{-0x1p-75, 0x1p-74}});
  w.add("underflow", "2^-140 (1+2^-7)", 0, {{0x1.02p-70, 0x1p-70}});
  w.add("underflow", "2^-145 (1+2^-7)", 0, {{0x1.02p-75, 0x1p-70}});
  for (int i = 0; i <= 4; ++i) {
    const int count = 1 << i;
    w.add("underflow", text("%d of 2^-%d", count, 149 + i).c_str(), 0,
          std::vector<Writer::Product>(static_cast<size_t>(count),
                                       {std::ldexp(1.0, -75 - i), 0x1p-74}));
    w.add("underflow", text("%d of -2^-%d", count, 149 + i).c_str(), 0,
          std::vector<Writer::Product>(static_cast<size_t>(count),
                                       {-std::ldexp(1.0, -75 - i), 0x1p-74}));
    w.add("underflow", text("acc 2^-149 + %d of 2^-%d", count, 149 + i).c_str(), 0x1p-149F,
          std::vector<Writer::Product>(static_cast<size_t>(count),
                                       {std::ldexp(1.0, -75 - i), 0x1p-74}));
    w.add("underflow", text("acc 2^-126 - %d of 2^-%d", count, 149 + i).c_str(), 0x1p-126F,
          std::vector<Writer::Product>(static_cast<size_t>(count),
                                       {-std::ldexp(1.0, -75 - i), 0x1p-74}));
  }
  // With a zero accumulator: the product at which a unit of the last place is lost says what E is.
  for (const int high : {-149, -145, -140, -135, -134, -133, -132, -131})
    for (int low = -161; low <= -155; ++low)
      for (const double sign : {1.0, -1.0})
        w.add("floor", text("%s(2^%d - 2^%d)", sign < 0 ? "-" : "", high, low).c_str(), 0,
              {{std::ldexp(sign, high + 74), 0x1p-74}, {-std::ldexp(sign, low + 74), 0x1p-74}});
  w.add("underflow", "2^-126*1", 0, {{0x1p-126, 1}});
  w.add("underflow", "2^-127*1 (subnormal factor)", 0, {{0x1p-127, 1}});
  w.add("underflow", "2^-133*1 (least factor)", 0, {{0x1p-133, 1}});
  w.add("underflow", "2^-133*2^100", 0, {{0x1p-133, 0x1p100}});
  w.add("underflow", "1*2^-133", 0, {{1, 0x1p-133}});
  w.add("underflow", "2^-133*2^-133", 0, {{0x1p-133, 0x1p-133}});
  w.add("underflow", "-2^-133*2^-133", 0, {{-0x1p-133, 0x1p-133}});
  w.add("underflow", "acc 2^-126 - 2^-127", 0x1p-126F, {{-0x1p-63, 0x1p-64}});
  w.add("underflow", "acc 2^-149 + 2^-110", 0x1p-149F, {{0x1p-55, 0x1p-55}});
  w.add("underflow", "2^-126 - 2^-126 + 2^-149", 0,
        {{0x1p-63, 0x1p-63}, {-0x1p-63, 0x1p-63}, {0x1p-75, 0x1p-74}});
  w.add("underflow", "acc 2^-30(1+2^-23), 0*2^127", 0x1.000002p-30F, {{0, 0x1p127}});
  w.add("underflow", "acc 2^-30(1+2^-23), 2^127*0", 0x1.000002p-30F, {{0x1p127, 0}});
  w.add("underflow", "acc 2^-140, 0*1", 0x1p-140F, {{0, 1}});
}

void add_f16_ends(Writer& w) {
  w.add("overflow", "acc max + 65504*65504", kMax, {{65504, 65504}});
  w.add("underflow", "2^-24*1 (least factor)", 0, {{0x1p-24, 1}});
  w.add("underflow", "2^-24*2^-24", 0, {{0x1p-24, 0x1p-24}});
  w.add("underflow", "-2^-24*2^-24", 0, {{-0x1p-24, 0x1p-24}});
  w.add("underflow", "2^-24*65504", 0, {{0x1p-24, 65504}});
  w.add("underflow", "1023*2^-24*1", 0, {{0x1.ff8p-15, 1}});
  w.add("underflow", "acc 2^-149 + 2^-48", 0x1p-149F, {{0x1p-24, 0x1p-24}});
  w.add("underflow", "acc 2^-60 + 2^-48", 0x1p-60F, {{0x1p-24, 0x1p-24}});
  w.add("underflow", "acc 2^-52 + 2^-24*2^-14", 0x1p-52F, {{0x1p-24, 0x1p-14}});
  w.add("underflow", "acc 2^-38(1+2^-23), 0*2^15", 0x1.000002p-38F, {{0, 0x1p15}});
}

}  // namespace

std::vector<EdgeCase> edge_cases(Format format) {
  Writer w(format);
  add_nans(format, w);
  if (format != Format::kE4M3 && format != Format::kE4M3E5M2) add_infinities(w);
  add_zeros(w);
  add_f32_ends(w);
  if (format == Format::kBF16) add_bf16_ends(w);
  if (format == Format::kF16) add_f16_ends(w);
  return w.take();
}

Tiles tiles_of(Format format, const std::vector<EdgeCase>& cases) {
  Tiles t;
  t.format = format;
  t.tiles = static_cast<int>(cases.size());
  t.a.resize(cases.size() * kRows * kStepBytes);
  t.b.resize(cases.size() * kColumns * kStepBytes);
  t.c.resize(t.results());
  const auto size = static_cast<size_t>(pyc::dtype_size(a_type(format)));
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t k = 0; k < cases[i].products.size(); ++k) {
      const auto [x, y] = cases[i].products[k];
      for (size_t row = 0; row < kRows; ++row)
        std::memcpy(&t.a[(i * kRows + row) * kStepBytes + k * size], &x, size);
      for (size_t row = 0; row < kColumns; ++row)
        std::memcpy(&t.b[(i * kColumns + row) * kStepBytes + k * size], &y, size);
    }
    for (size_t j = 0; j < size_t{kRows} * kColumns; ++j)
      t.c[i * kRows * kColumns + j] = from_bits(cases[i].acc);
  }
  return t;
}

}  // namespace probe

// Every rule of every op's `simplify`, proven: the graph of the rule runs on the reference with the
// optional passes and without, on all pairs of elements for 8-bit dtypes, on all elements of 16-bit
// ones (against edge values as second operand), on all pairs of edge values for wider ones. Every
// bit of every output must be the same, and the rule must have done something.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/convert.h"
#include "driver/optimize.h"
#include "passes/run_text.h"

namespace pyc::passes {
namespace {

// Elements of a wide type that rules go wrong on.
std::vector<Word> edge_values(DType t) {
  std::vector<Word> words;
  const int bits = static_cast<int>(8 * dtype_size(t));
  const Word mask = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1;
  if (t == DType::kBool) return {0, 1};
  if (is_float(t)) {
    for (const double x : {0.0, 1.0, 1.5, 3.0, 1e-3, 7e37, 2.5e-39, 1e300, 65504.0, 0.1}) {
      for (const double sign : {1.0, -1.0}) words.push_back(word_from_double(sign * x, t));
    }
    const Word sign = Word{1} << (bits - 1);
    const Word inf = word_from_double(HUGE_VAL, t);
    for (const Word w : {Word{1}, Word{2}, inf, inf - 1, inf + 1, inf | 3}) {
      words.push_back(w & mask);
      words.push_back((w | sign) & mask);
    }
    return words;
  }
  for (const int64_t x : {0, 1, 2, 3, 5, 127, 128, 255, 256, 32767, 32768, 65535}) {
    words.push_back(static_cast<Word>(x));
    words.push_back(static_cast<Word>(-x));
  }
  for (int b = 0; b < bits; ++b) {
    words.push_back(Word{1} << b);
    words.push_back((Word{1} << b) - 1);
    words.push_back(~(Word{1} << b));
  }
  return words;
}

std::vector<Word> all_values(DType t) {
  if (t == DType::kBool || dtype_size(t) > 2) return edge_values(t);
  std::vector<Word> words(size_t{1} << (8 * dtype_size(t)));
  for (size_t i = 0; i < words.size(); ++i) words[i] = i;
  return words;
}

// Two operands as tensors of one length: all pairs.
std::pair<Bytes, Bytes> pairs(DType t, bool second) {
  const std::vector<Word> first_values = all_values(t);
  std::vector<Word> second_values = dtype_size(t) == 2 ? edge_values(t) : first_values;
  if (dtype_size(t) == 2) second_values.resize(24);
  if (!second) second_values.resize(1);
  Bytes x;
  Bytes y;
  const auto size = static_cast<size_t>(dtype_size(t));
  const auto put = [&](Bytes& bytes, Word w) {
    bytes.resize(bytes.size() + size);
    store_word(bytes.data() + bytes.size() - size, t, w);
  };
  for (const Word a : first_values) {
    for (const Word b : second_values) {
      put(x, a);
      put(y, b);
    }
  }
  return {x, y};
}

struct Rule {
  std::string name;
  std::string body;  // with T for the dtype; makes %z of %x and %y
  std::vector<DType> types;
};

const std::vector<DType> kFloatTypes = {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF16,
                                        DType::kBF16,     DType::kF32,    DType::kF64};
const std::vector<DType> kIntTypes = {DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                      DType::kI32, DType::kU32, DType::kI64, DType::kU64};
const std::vector<DType> kSignedTypes = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};

std::vector<DType> joined(const std::vector<DType>& a, const std::vector<DType>& b) {
  std::vector<DType> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

std::vector<Rule> rules() {
  const auto numbers = joined(kFloatTypes, kIntTypes);
  const auto with_sign = joined(kFloatTypes, kSignedTypes);
  const std::vector<DType> infinite = {DType::kF8E5M2, DType::kF16, DType::kBF16, DType::kF32,
                                       DType::kF64};
  const auto constant = [](std::string value, std::string rest) {
    return "%k = const T[] splat(" + value + ")\n" + rest;
  };
  return {
      {"mul_one", constant("1", "%z = mul(%x, %k)"), numbers},
      {"mul_zero", constant("0", "%z = mul(%x, %k)"), kIntTypes},
      {"div_one", constant("1", "%z = div(%x, %k)"), numbers},
      {"div_four", constant("4.0", "%z = div(%x, %k)"), kFloatTypes},
      {"div_minus_half", constant("-0.5", "%z = div(%x, %k)"), kFloatTypes},
      {"div_large", constant("256.0", "%z = div(%x, %k)"), kFloatTypes},
      {"div_tiny", constant("0.015625", "%z = div(%x, %k)"), kFloatTypes},
      {"add_negative_zero", constant("-0.0", "%z = add(%k, %x)"), kFloatTypes},
      {"add_zero", constant("0", "%z = add(%x, %k)"), kIntTypes},
      {"sub_zero", constant("0", "%z = sub(%x, %k)"), numbers},
      {"sub_itself", "%z = sub(%x, %x)", kIntTypes},
      {"add_negated", "%n = neg(%y)\n%z = add(%x, %n)", with_sign},
      {"negated_add", "%n = neg(%x)\n%z = add(%n, %y)", with_sign},
      {"sub_negated", "%n = neg(%y)\n%z = sub(%x, %n)", with_sign},
      {"neg_neg", "%n = neg(%x)\n%z = neg(%n)", with_sign},
      {"abs_abs", "%n = abs(%x)\n%z = abs(%n)", numbers},
      {"abs_neg", "%n = neg(%x)\n%z = abs(%n)", with_sign},
      {"abs_relu", "%n = relu(%x)\n%z = abs(%n)", with_sign},
      {"relu_relu", "%n = relu(%x)\n%z = relu(%n)", with_sign},
      {"relu_abs", "%n = abs(%x)\n%z = relu(%n)", kFloatTypes},
      {"max_itself", "%z = max(%x, %x)", numbers},
      {"min_itself", "%z = min(%x, %x)", numbers},
      {"max_again", "%n = max(%x, %y)\n%z = max(%n, %y)", numbers},
      {"min_again", "%n = min(%x, %y)\n%z = min(%x, %n)", numbers},
      {"max_infinity", constant("-inf", "%z = max(%x, %k)"), infinite},
      {"min_infinity", constant("inf", "%z = min(%x, %k)"), infinite},
      {"max_lowest", constant("-128", "%z = max(%x, %k)"), {DType::kI8}},
      {"min_highest", constant("255", "%z = min(%x, %k)"), {DType::kU8}},
      {"add_order", "%a = add(%x, %y)\n%b = add(%y, %x)\n%z = sub(%a, %b)", numbers},
      {"mul_order", "%a = mul(%x, %y)\n%b = mul(%y, %x)\n%z = max(%a, %b)", numbers},
      {"max_order", "%a = max(%x, %y)\n%b = max(%y, %x)\n%z = add(%a, %b)", numbers},
      {"where_same", "%c = less(%x, %y)\n%z = where(%c, %x, %x)", numbers},
      {"where_true", "%c = const bool[] splat(true)\n%z = where(%c, %x, %y)", numbers},
      {"where_false", "%c = const bool[] splat(false)\n%z = where(%c, %x, %y)", numbers},
  };
}

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, KeepEveryBit) {
  const bool binary = GetParam().body.find("%y") != std::string::npos;
  for (const DType t : GetParam().types) {
    const auto [x, y] = pairs(t, binary);
    const int64_t n = static_cast<int64_t>(x.size()) / dtype_size(t);
    std::string body = GetParam().body;
    for (size_t at = 0; (at = body.find("T[", at)) != std::string::npos;) {
      body.replace(at, 1, dtype_name(t));
    }
    const std::string text = fmt::format("graph @r(%x: {0}[{1}], %y: {0}[{1}]) -> (%z) {{\n{2}\n}}",
                                         dtype_name(t), n, body);
    const Outcome plain = run_text(text, optional_passes(), {x, y});
    const Outcome optimized = run_text(text, {}, {x, y});
    ASSERT_EQ(plain.error + optimized.error, "") << text;
    EXPECT_EQ(plain.outputs, optimized.outputs) << text;
    EXPECT_NE(plain.canonical, optimized.canonical) << "the rule did nothing\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rules, testing::ValuesIn(rules()),
                         [](const auto& info) { return info.param.name; });

// All chains of two casts, whether or not a rule takes out the middle.
TEST(CastChains, KeepEveryBit) {
  int shortened = 0;
  for (int a = 0; a < kDTypeCount; ++a) {
    const auto from = static_cast<DType>(a);
    const auto [x, y] = pairs(from, false);
    const int64_t n = static_cast<int64_t>(x.size()) / dtype_size(from);
    std::string outputs;
    std::string body;
    for (int b = 0; b < kDTypeCount; ++b) {
      body += fmt::format("%m{} = cast(%x) {{to={}}}\n", b, dtype_name(static_cast<DType>(b)));
      for (int c = 0; c < kDTypeCount; ++c) {
        outputs += fmt::format("{}%z{}_{}", outputs.empty() ? "" : ", ", b, c);
        body += fmt::format("%z{0}_{1} = cast(%m{0}) {{to={2}}}\n", b, c,
                            dtype_name(static_cast<DType>(c)));
      }
    }
    const std::string text =
        fmt::format("graph @c(%x: {}[{}]) -> ({}) {{\n{}}}", dtype_name(from), n, outputs, body);
    const Outcome plain = run_text(text, optional_passes(), {x});
    const Outcome optimized = run_text(text, {}, {x});
    ASSERT_EQ(plain.error + optimized.error, "");
    for (size_t i = 0; i < plain.outputs.size(); ++i) {
      EXPECT_EQ(plain.outputs[i], optimized.outputs[i])
          << dtype_name(from) << " to " << dtype_name(static_cast<DType>(i / kDTypeCount)) << " to "
          << dtype_name(static_cast<DType>(i % kDTypeCount));
    }
    shortened +=
        static_cast<int>(std::count(plain.canonical.begin(), plain.canonical.end(), '\n') -
                         std::count(optimized.canonical.begin(), optimized.canonical.end(), '\n'));
  }
  EXPECT_GT(shortened, 200);
}

}  // namespace
}  // namespace pyc::passes

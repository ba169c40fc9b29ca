#include "host/strings.h"

#include <cmath>

#include "host/label_map.h"
#include "host/ngrams.h"
#include "host/regex.h"
#include "host/string_cast.h"
#include "host/values.h"

namespace pyc::host {
namespace {

TEST(Strings, ConcatAndEqualStretch) {
  const DynValue a = texts({2, 1}, {"a", "b"});
  const DynValue b = texts({2}, {"x", "b"});
  expect_value(concat_strings(a, b), texts({2, 2}, {"ax", "ab", "bx", "bb"}));
  expect_value(equal_strings(a, b), bools({2, 2}, {0, 0, 0, 1}));
  expect_refused(concat_strings(a, ints({2}, {1, 2})), Code::kDtypeMismatch);
  expect_refused(equal_strings(texts({3}, {"", "", ""}), b), Code::kShapeMismatch);
}

TEST(Strings, SplitAtADelimiter) {
  const auto split = split_strings(texts({2}, {"a,,b", ""}), ",", -1);
  ASSERT_TRUE(split.ok());
  expect_value(split->parts, texts({2, 3}, {"a", "", "b", "", "", ""}));
  expect_value(split->counts, ints({2}, {3, 1}));
}

TEST(Strings, SplitAtWhiteSpace) {
  const auto split = split_strings(texts({2}, {"  a  b c ", " "}), "", 1);
  ASSERT_TRUE(split.ok());
  expect_value(split->parts, texts({2, 2}, {"a", "b c ", "", ""}));
  expect_value(split->counts, ints({2}, {2, 0}));
}

TEST(Strings, NormalizeRemovesStopWordsThenChangesCase) {
  NormalizeSpec spec;
  spec.change = CaseChange::kUpper;
  spec.stop_words = {"Monday"};
  expect_value(normalize_strings(texts({3}, {"monday", "tuesday", "zürich"}), spec),
               texts({2}, {"TUESDAY", "ZÜRICH"}));
  expect_value(normalize_strings(texts({1, 1}, {"MONDAY"}), spec), texts({1, 1}, {""}));
  spec.case_sensitive = true;
  expect_value(normalize_strings(texts({1}, {"monday"}), spec), texts({1}, {"MONDAY"}));
  expect_refused(normalize_strings(texts({2, 1}, {"a", "b"}), spec), Code::kShapeMismatch);
}

TEST(Strings, BytesThatAreNoTextStay) {
  EXPECT_EQ(*change_case("\xFF\xC3", CaseChange::kUpper), "\xFF\xC3");
  EXPECT_EQ(*change_case("a\xE2\x82", CaseChange::kUpper), "A\xE2\x82");
}

TEST(StringCast, NumbersAsTheShortestText) {
  expect_value(numbers_to_strings(floats({7}, {3.14, 1, -0.0, 1e20, 1.5e-5, INFINITY, NAN})),
               texts({7}, {"3.14", "1.0", "-0.0", "1e+20", "1.5e-05", "inf", "nan"}));
  expect_value(numbers_to_strings(floats({4}, {1e-4, 999999, 1e6, 16777216})),
               texts({4}, {"1e-04", "999999.0", "1e+06", "1.6777216e+07"}));
  const std::vector<double> tenth{0.1, 1e16, 123456.0};
  expect_value(numbers_to_strings(*tensor_of(DType::kF64, {3}, tenth)),
               texts({3}, {"0.1", "1e+16", "123456.0"}));
  const std::vector<double> half{0.1};
  expect_value(numbers_to_strings(*tensor_of(DType::kF16, {1}, half)), texts({1}, {"0.1"}));
  expect_value(numbers_to_strings(ints({1}, {-5})), texts({1}, {"-5"}));
  expect_value(numbers_to_strings(bools({2}, {1, 0})), texts({2}, {"True", "False"}));
}

TEST(StringCast, TextAsNumbers) {
  const auto f =
      strings_to_numbers(texts({5}, {" 1.5 ", "+INF", "-inf", "1e40", "1e-60"}), DType::kF32);
  expect_value(f, floats({5}, {1.5, INFINITY, -INFINITY, INFINITY, 0}));
  EXPECT_TRUE(std::isnan(to_doubles(*strings_to_numbers(texts({}, {"NaN"}), DType::kF32))[0]));
  expect_value(strings_to_numbers(texts({2}, {"-7", "100.5"}), DType::kI64), ints({2}, {-7, 100}));
  expect_value(strings_to_numbers(texts({2}, {"True", "0"}), DType::kBool), bools({2}, {1, 0}));
  expect_refused(strings_to_numbers(texts({1}, {"Hello"}), DType::kF32), Code::kInvalidArgument);
  expect_refused(strings_to_numbers(texts({1}, {""}), DType::kI64), Code::kInvalidArgument);
  expect_refused(strings_to_numbers(texts({1}, {"1x"}), DType::kF64), Code::kInvalidArgument);
}

TEST(Regex, MatchesAllOrIsRefusedWithoutRe2) {
  const auto found = match_fully(texts({2}, {"abc", "abcd"}), "a.c");
  if (!found.ok()) {
    EXPECT_EQ(found.status().code(), Code::kUnsupported);
    return;
  }
  expect_value(found, bools({2}, {1, 0}));
  expect_refused(match_fully(texts({1}, {"a"}), "("), Code::kInvalidArgument);
}

NgramSpec bigrams() {
  NgramSpec spec;
  spec.shortest = 1;
  spec.longest = 2;
  spec.pool_ints = {2, 3, 5, 4, 5, 6};  // 2, 3, then (5,4), (5,6)
  spec.starts = {0, 2};
  spec.places = {0, 1, 2, 3};
  return spec;
}

TEST(Ngrams, CountsWithSkips) {
  NgramSpec spec = bigrams();
  const DynValue tokens = ints({6}, {5, 2, 6, 5, 4, 3});
  expect_value(count_ngrams(tokens, spec), floats({4}, {1, 1, 1, 0}));
  spec.most_skips = 1;
  expect_value(count_ngrams(tokens, spec), floats({4}, {1, 1, 1, 1}));
  spec.mode = NgramMode::kTfIdf;
  spec.weights = {2, 1, 1, 0.5};
  expect_value(count_ngrams(tokens, spec), floats({4}, {2, 1, 1, 0.5}));
}

TEST(Ngrams, WrongPoolsAreRefused) {
  NgramSpec spec = bigrams();
  expect_refused(count_ngrams(texts({1}, {"2"}), spec), Code::kDtypeMismatch);
  spec.starts = {0, 3};
  expect_refused(count_ngrams(ints({1}, {2}), spec), Code::kInvalidArgument);
  spec = bigrams();
  spec.places = {0, 1, -2, 3};
  expect_refused(count_ngrams(ints({1}, {2}), spec), Code::kInvalidArgument);
}

TEST(LabelMap, LastOfEqualKeysAndDefault) {
  expect_value(map_labels(texts({3}, {"a", "b", "z"}), texts({3}, {"a", "b", "a"}),
                          ints({3}, {1, 2, 3}), ints({1}, {-1})),
               ints({3}, {3, 2, -1}));
  expect_value(map_labels(floats({2}, {NAN, -0.0}), floats({2}, {NAN, 0}),
                          texts({2}, {"nan", "zero"}), texts({}, {"?"})),
               texts({2}, {"nan", "zero"}));
  expect_refused(map_labels(ints({1}, {1}), texts({1}, {"a"}), ints({1}, {1}), ints({1}, {0})),
                 Code::kDtypeMismatch);
  expect_refused(map_labels(ints({1}, {1}), ints({2}, {1, 2}), ints({1}, {1}), ints({1}, {0})),
                 Code::kShapeMismatch);
}

}  // namespace
}  // namespace pyc::host

#include "ir/types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "base/philox.h"
#include "ir/rules.h"

namespace pyc::ir {
namespace {

TEST(TensorType, SizesAndText) {
  EXPECT_EQ((TensorType{DType::kF32, {2, 3}}.to_string()), "f32[2,3]");
  EXPECT_EQ((TensorType{DType::kBool, {}}.to_string()), "bool[]");
  EXPECT_EQ((TensorType{DType::kF64, {2, 3}}.bytes()), 48);
  EXPECT_EQ((TensorType{DType::kF64, {}}.elements()), 1);
  EXPECT_EQ((TensorType{DType::kF64, {4, 0}}.elements()), 0);
  EXPECT_EQ((TensorType{static_cast<DType>(99), {1}}.to_string()), "dtype#99[1]");
}

TEST(TensorType, Strides) {
  EXPECT_EQ(strides_of({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(strides_of({}), Shape{});
}

TEST(CheckType, Limits) {
  const Shape ones(kMaxRank, 1);
  EXPECT_TRUE(check_type({DType::kF32, ones}).ok());
  EXPECT_TRUE(check_type({DType::kU8, {kMaxElements}}).ok());
  EXPECT_TRUE(check_type({DType::kF32, {0, 3}}).ok());

  const auto message = [](const TensorType& type) { return check_type(type).message(); };
  EXPECT_EQ(message({DType::kF32, Shape(17, 1)}), "[bad_rank] rank 17 is over the limit of 16");
  EXPECT_EQ(message({DType::kF32, {2, -3}}),
            "[bad_dim] f32[2,-3]: expected dims of at least 0, found -3 as dim 1");
  EXPECT_EQ(message({DType::kU16, {kMaxElements}}),
            "[too_large] u16[1099511627776]: over the limit of 1099511627776 bytes");
  // Its product is 0, but its strides would overflow.
  EXPECT_TRUE(message({DType::kU8, {0, INT64_MAX, INT64_MAX}}).starts_with("[too_large]"));
  EXPECT_EQ(message({static_cast<DType>(200), {}}),
            "[bad_dtype] dtype#200 is not one of the 25 dtypes");
  EXPECT_EQ(message({DType::kC64, {2}}),
            "[bad_dtype] c64[2]: graphs compute with real numbers only; the parts of complex ones "
            "are two tensors, or a further dim of 2");
  EXPECT_TRUE(check_value_type({DType::kC64, {2}}).ok());
}

TEST(BroadcastShapes, Rules) {
  EXPECT_EQ(*broadcast_shapes({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(*broadcast_shapes({}, {5}), Shape{5});
  EXPECT_EQ(*broadcast_shapes({0}, {1}), Shape{0});
  const auto bad = broadcast_shapes({2, 3}, {4, 3});
  EXPECT_EQ(bad.status().code(), Code::kShapeMismatch);
  EXPECT_EQ(bad.status().message(),
            "cannot broadcast [2,3] with [4,3]: expected equal dims or a 1, found 2 and 4 in dim "
            "-2");
  EXPECT_FALSE(broadcast_shapes({0}, {2}).ok());
}

TEST(Attr, Text) {
  EXPECT_EQ(attr_to_string(int64_t{-3}), "-3");
  EXPECT_EQ(attr_to_string(2.0), "2.0");
  EXPECT_EQ(attr_to_string(0.1), "0.1");
  EXPECT_EQ(attr_to_string(1e300), "1e+300");
  EXPECT_EQ(attr_to_string(-0.0), "-0.0");
  EXPECT_EQ(attr_to_string(true), "true");
  EXPECT_EQ(attr_to_string(std::string("a\"\x02")), "\"a\\\"\\x02\"");
  EXPECT_EQ(attr_to_string(DType::kBF16), "bf16");
  EXPECT_EQ(attr_to_string(std::vector<int64_t>{1, 2}), "[1, 2]");
  EXPECT_EQ(attr_to_string(std::vector<double>{1, NAN, -INFINITY}), "[1.0, nan, -inf]");
  EXPECT_EQ(attr_kind_name(kind_of(Attr(DType::kF32))), "dtype");
  EXPECT_EQ(attr_kind_name(kind_of(Attr(std::vector<double>{}))), "floats");
}

TEST(ConstData, SplatFillsEveryElement) {
  for (const int64_t n : {0, 1, 2, 7, 64, 1001}) {
    const TensorType type{DType::kF16, {n}};
    const auto data = splat_data(type, 0.5);
    ASSERT_EQ(data->bytes.size(), static_cast<size_t>(2 * n));
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(load_word(&data->bytes[static_cast<size_t>(2 * i)], DType::kF16), 0x3800u);
    }
    EXPECT_TRUE(check_constant(type, data.get()).ok());
  }
}

TEST(ConstData, RandomFollowsItsFormula) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto dtype = static_cast<DType>(t);
    const TensorType type{dtype, {33}};
    const auto data = random_data(type, 42, -2.5, 7.5);
    for (uint64_t i = 0; i < 33; ++i) {
      const double u = philox_uniform01(42, 0, i);
      Word expected = word_from_double(-2.5 + 10.0 * u, dtype);
      if (is_int(dtype)) expected = word_from_double(std::floor(-2.5 + 10.0 * u), dtype);
      if (dtype == DType::kBool) expected = u < 0.5 ? 1 : 0;
      EXPECT_EQ(load_word(&data->bytes[i * static_cast<size_t>(dtype_size(dtype))], dtype),
                expected);
    }
    EXPECT_TRUE(check_constant(type, data.get()).ok());
  }
}

TEST(ConstData, RandomDependsOnTheSeed) {
  const TensorType type{DType::kF32, {100}};
  EXPECT_EQ(random_data(type, 1, 0, 1)->bytes, random_data(type, 1, 0, 1)->bytes);
  EXPECT_NE(random_data(type, 1, 0, 1)->bytes, random_data(type, 2, 0, 1)->bytes);
}

}  // namespace
}  // namespace pyc::ir

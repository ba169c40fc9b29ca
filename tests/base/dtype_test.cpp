#include "base/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace pyc {
namespace {

TEST(DType, SizesAndNamesMatchTheTable) {
  const struct {
    DType type;
    const char* name;
    int64_t size;
  } rows[] = {
      {DType::kBool, "bool", 1},
      {DType::kI8, "i8", 1},
      {DType::kI16, "i16", 2},
      {DType::kI32, "i32", 4},
      {DType::kI64, "i64", 8},
      {DType::kU8, "u8", 1},
      {DType::kU16, "u16", 2},
      {DType::kU32, "u32", 4},
      {DType::kU64, "u64", 8},
      {DType::kF8E4M3FN, "f8e4m3fn", 1},
      {DType::kF8E5M2, "f8e5m2", 1},
      {DType::kF16, "f16", 2},
      {DType::kBF16, "bf16", 2},
      {DType::kF32, "f32", 4},
      {DType::kF64, "f64", 8},
      {DType::kI2, "i2", 1},
      {DType::kI4, "i4", 1},
      {DType::kU2, "u2", 1},
      {DType::kU4, "u4", 1},
      {DType::kF4E2M1, "f4e2m1", 1},
      {DType::kF8E8M0, "f8e8m0", 1},
      {DType::kF8E4M3FNUZ, "f8e4m3fnuz", 1},
      {DType::kF8E5M2FNUZ, "f8e5m2fnuz", 1},
      {DType::kC64, "c64", 8},
      {DType::kC128, "c128", 16},
  };
  ASSERT_EQ(std::size(rows), static_cast<size_t>(kValueDTypeCount));
  for (const auto& row : rows) {
    EXPECT_EQ(dtype_name(row.type), row.name);
    EXPECT_EQ(dtype_size(row.type), row.size) << row.name;
    EXPECT_EQ(dtype_from_name(row.name), row.type);
  }
}

TEST(DType, UnknownNamesAreRefused) {
  for (const char* name : {"", "F32", "f3", "f32 ", "float", "i3"}) {
    EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
  }
}

TEST(DType, ComplexTypesAreOutsideOfGraphs) {
  for (const DType t : {DType::kC64, DType::kC128}) {
    EXPECT_GE(static_cast<int>(t), kDTypeCount);
    EXPECT_TRUE(is_complex(t));
    EXPECT_FALSE(is_float(t) || is_int(t));
    EXPECT_EQ(dtype_size(t), 2 * dtype_size(part_dtype(t)));
  }
  EXPECT_FALSE(is_complex(DType::kF64));
  EXPECT_EQ(part_dtype(DType::kF64), DType::kF64);
}

TEST(DType, EveryTypeIsInOneFamily) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    const int families = (t == DType::kBool) + is_signed_int(t) + is_unsigned_int(t) + is_float(t);
    EXPECT_EQ(families, 1) << dtype_name(t);
    EXPECT_EQ(is_int(t), is_signed_int(t) || is_unsigned_int(t));
    EXPECT_EQ(is_narrow_int(t), is_int(t) && dtype_bits(t) < 8);
    EXPECT_LE(dtype_bits(t), dtype_size(t) * 8);
    const DType wide = compute_dtype(t);
    EXPECT_EQ(wide != t, is_narrow_float(t) || is_narrow_int(t));
    EXPECT_EQ(compute_dtype(wide), wide);
    EXPECT_EQ(is_float(wide), is_float(t));
    EXPECT_EQ(is_signed_int(wide), is_signed_int(t));
  }
}

}  // namespace
}  // namespace pyc

#include "host/complex.h"

#include <gtest/gtest.h>

#include <cstring>

namespace pyc::host {
namespace {

template <class T>
DynValue tensor(DType dtype, std::vector<int64_t> shape, const std::vector<T>& numbers) {
  NewTensor made = new_tensor(dtype, std::move(shape)).value();
  EXPECT_EQ(made.value.bytes.size(), numbers.size() * sizeof(T));
  if (!numbers.empty()) std::memcpy(made.data, numbers.data(), made.value.bytes.size());
  return made.value;
}

TEST(Complex, PartsAreTakenApartAndJoined) {
  const DynValue z = tensor<double>(DType::kC128, {2}, {1, -2, 3, -0.0});
  const auto parts = split_parts(z);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->real.to_string(), "f64[2]");
  EXPECT_EQ(to_doubles(parts->real), (std::vector<double>{1, 3}));
  EXPECT_EQ(to_doubles(parts->imaginary), (std::vector<double>{-2, -0.0}));
  const auto back = join_parts(*parts);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->to_string(), "c128[2]");
  EXPECT_EQ(back->bytes, z.bytes);
}

TEST(Complex, EmptyTensorsHaveEmptyParts) {
  const auto parts = split_parts(tensor<float>(DType::kC64, {2, 0}, {}));
  ASSERT_TRUE(parts.ok());
  const auto back = join_parts(*parts);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->to_string(), "c64[2,0]");
}

TEST(Complex, OnlyPartsOfOneTypeAndShapeAreJoined) {
  const DynValue f = tensor<float>(DType::kF32, {2}, {1, 2});
  const DynValue d = tensor<double>(DType::kF64, {2}, {1, 2});
  const DynValue i = tensor<int32_t>(DType::kI32, {2}, {1, 2});
  const DynValue row = tensor<float>(DType::kF32, {1, 2}, {1, 2});
  EXPECT_EQ(join_parts({f, d}).status().code(), Code::kDtypeMismatch);
  EXPECT_EQ(join_parts({i, i}).status().code(), Code::kDtypeMismatch);
  EXPECT_EQ(join_parts({f, row}).status().code(), Code::kShapeMismatch);
  EXPECT_EQ(join_parts({f, {}}).status().code(), Code::kDtypeMismatch);
  EXPECT_EQ(split_parts(f).status().code(), Code::kDtypeMismatch);
  EXPECT_EQ(nonzero_complex(f).status().code(), Code::kDtypeMismatch);
}

TEST(Complex, NotZeroIsOneWhoseAnyPartIsNot) {
  const auto at = nonzero_complex(tensor<float>(DType::kC64, {4}, {0, 0, 0, 1, 2, 0, -0.0F, 0}));
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(to_ints(*at), (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace pyc::host

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "host/elements.h"

namespace pyc::host {

inline DynValue floats(Ints shape, const std::vector<double>& values) {
  return *tensor_of(DType::kF32, std::move(shape), values);
}
inline DynValue ints(Ints shape, const Ints& values) {
  return *tensor_of(DType::kI64, std::move(shape), values);
}
inline DynValue bools(Ints shape, const Ints& values) {
  return *tensor_of(DType::kBool, std::move(shape), values);
}
inline DynValue texts(Ints shape, std::vector<std::string> values) {
  return DynValue::of_strings(std::move(shape), std::move(values));
}

// A result must be there and be this.
inline void expect_value(const Result<DynValue>& found, const DynValue& expected) {
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->to_string(), expected.to_string());
  if (expected.is_tensor()) {
    EXPECT_EQ(to_doubles(*found), to_doubles(expected));
  } else if (expected.strings != nullptr) {
    EXPECT_EQ(*found->strings, *expected.strings);
  }
}
template <class T>
void expect_refused(const Result<T>& found, Code code) {
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), code) << found.status().to_string();
}

}  // namespace pyc::host

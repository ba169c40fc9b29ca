#pragma once

// What the tests of the C ABI share.

#include <gtest/gtest.h>
#include <pyc/pyc.hpp>
#include <string>

namespace pyc::test {

// A refused call: its status and what the error says, which is destroyed.
struct Refusal {
  pyc_status status = PYC_STATUS_OK;
  std::string message;
  std::string node;
};

template <class Call>
Refusal refusal(Call call) {
  pyc_error* error = nullptr;
  Refusal out;
  out.status = call(&error);
  EXPECT_EQ(error == nullptr, out.status == PYC_STATUS_OK);
  EXPECT_EQ(pyc_error_code(error), out.status);
  out.message = pyc_error_message(error);
  out.node = pyc_error_node(error);
  EXPECT_EQ(*pyc_error_cure(error) == '\0', error == nullptr);
  pyc_error_destroy(error);
  // The error is optional.
  EXPECT_EQ(call(nullptr), out.status);
  return out;
}

inline Graph small_graph() {
  return Graph::parse(
      "graph @small(%x: f32[2,3]) -> (%y) {\n"
      "  %w = const f32[3,2] random(seed=1, lo=-0.5, hi=0.5)\n"
      "  %m = matmul(%x, %w)\n"
      "  %y = relu(%m)\n"
      "}\n");
}

inline Model small_model(const CompileOptions& options = {}) {
  return Model(small_graph(), options);
}

}  // namespace pyc::test

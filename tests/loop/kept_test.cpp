// Stores that put an element back where it was are left out, and nothing else.

#include "loop/kept.h"

#include <gtest/gtest.h>

#include "loop/loop.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::loop {
namespace {

// Data first, then updates over it.
constexpr const char* kScatter = R"(kernel {
buffer b0: f32[24] read
buffer b1: f32[6] read
buffer b2: i64[1] read
buffer b3: f32[24] write in_place b0
parallel v0 < 2
loop v1 < 4 {
  loop v2 < 3 vector {
    b3[v0*3 + v1*6 + v2] = %s
  }
}
loop v3 < 1 ordered {
  loop v4 < 3 vector {
    b3[v0*3 + v4 + min(max(b2[0], 0), 3)*6] = b1[v0*3 + v4]
  }
}
}
)";

constexpr const char* kUpdates = R"(kernel {
buffer b0: f32[24] read
buffer b1: f32[6] read
buffer b2: i64[1] read
buffer b3: f32[24] write in_place b0
parallel v0 < 2
loop v1 < 1 ordered {
  loop v2 < 3 vector {
    b3[v0*3 + v2 + min(max(b2[0], 0), 3)*6] = b1[v0*3 + v2]
  }
}
}
)";

Kernel scatter_of(const std::string& first) {
  std::string text = kScatter;
  text.replace(text.find("%s"), 2, first);
  auto kernel = parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? std::move(*kernel) : Kernel{};
}

TEST(Kept, WhatIsPutBackIsNotStored) {
  Kernel kernel = scatter_of("b0[v0*3 + v1*6 + v2]");
  ASSERT_TRUE(verify_kernel(kernel).ok()) << verify_kernel(kernel).to_string();
  EXPECT_EQ(drop_kept_stores(kernel, {0, 3}, false), 1);
  EXPECT_EQ(print(kernel), kUpdates);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_EQ(kernel.stores.size(), 1u);
  EXPECT_EQ(kernel.loops.size(), 2u);
}

TEST(Kept, ACanonicalNanIsPutBackWhereThereIsNoOther) {
  const std::string canonical =
      "select(b0[v0*3 + v1*6 + v2] != b0[v0*3 + v1*6 + v2], bits(0x7fc00000):f32, "
      "b0[v0*3 + v1*6 + v2])";
  Kernel kernel = scatter_of(canonical);
  const std::string before = print(kernel);
  EXPECT_EQ(drop_kept_stores(kernel, {0, 3}, false), 0);
  EXPECT_EQ(print(kernel), before);
  EXPECT_EQ(drop_kept_stores(kernel, {0, 3}, true), 1);
  EXPECT_EQ(print(kernel), kUpdates);
}

TEST(Kept, AnyOtherStoreStays) {
  for (const char* value :
       {"b0[v0*3 + v1*6 + v2] + 0:f32", "b1[v0*3 + v2]", "b0[v1*3 + v0*12 + v2]",
        "select(b0[v0*3 + v1*6 + v2] != b0[v0*3 + v1*6 + v2], bits(0x7fc00001):f32, "
        "b0[v0*3 + v1*6 + v2])"}) {
    Kernel kernel = scatter_of(value);
    const std::string before = print(kernel);
    EXPECT_EQ(drop_kept_stores(kernel, {0, 3}, true), 0) << value;
    EXPECT_EQ(print(kernel), before);
  }
}

}  // namespace
}  // namespace pyc::loop

#include "loop/rebase.h"

#include <gtest/gtest.h>

#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::loop {
namespace {

Kernel parsed(const std::string& text) {
  auto kernel = parse_kernel("kernel {\n" + text + "}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? std::move(*kernel) : Kernel{};
}

// Columns `from` to `from` + 4 of a matrix of 4 rows and 12 columns.
std::string slice(const std::string& from) {
  return "buffer b0: f32[48] read\n"
         "buffer b1: f32[16] write\n"
         "parallel v0 < 4\n"
         "loop v1 < 4 vector {\n  b1[v0*4 + v1] = b0[v0*12 + v1 + " +
         from + "]\n}\n";
}

TEST(Rebase, SlicesOfOneValueHaveEqualTexts) {
  Kernel first = parsed(slice("0"));
  Kernel last = parsed(slice("8"));
  EXPECT_EQ(rebase(first), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(rebase(last), (std::vector<int64_t>{8, 0}));
  EXPECT_EQ(print(first), print(last));
  EXPECT_EQ(last.buffers[0].elements, 40);
  EXPECT_TRUE(verify_kernel(last).ok());
}

TEST(Rebase, WhatIsReadWholeStaysAsItIs) {
  Kernel kernel = parsed(
      "buffer b0: f32[8] read\n"
      "buffer b1: f32[8] write\n"
      "parallel v0 < 8\n"
      "b1[v0] = b0[7 - v0]\n");
  const std::string before = print(kernel);
  EXPECT_EQ(rebase(kernel), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(print(kernel), before);
}

TEST(Rebase, AllLoadsOfABufferMoveTogether) {
  Kernel kernel = parsed(
      "buffer b0: f32[32] read\n"
      "buffer b1: i64[8] read\n"
      "buffer b2: f32[4] write\n"
      "parallel v0 < 4\n"
      "b2[v0] = b0[v0 + 10] + b0[v0 + 20] + b0[v0 + 12] * f32(b1[v0 + 4])\n");
  EXPECT_EQ(rebase(kernel), (std::vector<int64_t>{10, 4, 0}));
  EXPECT_EQ(kernel.buffers[0].elements, 14);
  EXPECT_EQ(kernel.buffers[1].elements, 4);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_NE(print(kernel).find("b0[v0] + b0[v0 + 10]"), std::string::npos) << print(kernel);
}

// What a guard leaves out is not read: the offset's own range goes beyond the buffer.
TEST(Rebase, GuardedLoadsReachWhatTheirGuardsLeave) {
  Kernel kernel = parsed(
      "buffer b0: f32[8] read\n"
      "buffer b1: f32[4] write\n"
      "parallel v0 < 4\n"
      "b1[v0] = b0[v0 + 2] + (b0[v0 + 6] if v0 < 2 else 0:f32)\n");
  EXPECT_EQ(rebase(kernel), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(kernel.buffers[0].elements, 6);
  EXPECT_TRUE(verify_kernel(kernel).ok());
  EXPECT_NE(print(kernel).find("b0[v0 + 4] if v0 < 2"), std::string::npos) << print(kernel);
}

// Part `part` of a value of four, grown by a column.
std::string grown(int64_t part) {
  return "buffer b0: f32[48] read\n"
         "buffer b1: f32[8] read\n"
         "buffer b2: f32[15] write\n"
         "parallel v0 < 3\n"
         "loop v1 < 5 {\n  b2[v0*5 + v1] = (b0[v0*4 + v1 + " +
         std::to_string(part * 12) + "] if v1 < 4 else 0:f32) + (b1[v1 + " +
         std::to_string(part - 4) + "] if 4 <= v1 else 0:f32)\n}\n";
}

TEST(Rebase, PartsThatGrowAlikeHaveEqualTexts) {
  Kernel first = parsed(grown(0));
  Kernel last = parsed(grown(3));
  EXPECT_EQ(rebase(first), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(rebase(last), (std::vector<int64_t>{36, 3, 0}));
  EXPECT_EQ(print(first), print(last));
  EXPECT_EQ(last.buffers[0].elements, 12);
  EXPECT_EQ(last.buffers[1].elements, 1);
}

// A window over a padded row: the guard is of a sum, so the buffer is reached from end to end.
TEST(Rebase, WhatAGuardDoesNotTellStaysInside) {
  Kernel kernel = parsed(
      "buffer b0: f32[8] read\n"
      "buffer b1: f32[10] write\n"
      "parallel v0 < 10\n"
      "b1[v0] = b0[v0 - 1] if (0 <= v0 - 1) & (v0 - 1 < 8) else 0:f32\n");
  const std::string before = print(kernel);
  EXPECT_EQ(rebase(kernel), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(print(kernel), before);
}

TEST(Rebase, RewritesExpressionsOfNoStatement) {
  Kernel kernel = parsed(slice("4"));
  ExprId value = kernel.stores[0].value;
  ExprId* const others[] = {&value};
  rebase(kernel, others);
  EXPECT_EQ(value, kernel.stores[0].value);
}

}  // namespace
}  // namespace pyc::loop

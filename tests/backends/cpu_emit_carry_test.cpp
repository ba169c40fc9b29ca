// Loops that carry values, and stores that meet: generated code against the interpreter.

#include <gtest/gtest.h>

#include "backends/cpu_emit_support.h"
#include "loop/parse.h"
#include "loop/verify.h"

namespace pyc::cpu_test {
namespace {

void check(const std::string& text) {
  auto kernel = loop::parse_kernel("kernel {\n" + text + "\n}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  const Status status = loop::verify_kernel(*kernel);
  ASSERT_TRUE(status.ok()) << status.to_string();
  Harness(*kernel).check();
}

TEST(EmitCarry, RunningSumAndLastElement) {
  check(R"(
buffer b0: f32[300] read
buffer b1: f32[300] write
buffer b2: f32[3] write
parallel v0 < 3
loop v1 < 100 {
  carry v2: f32 = 0:f32
  carry v3: f32 = b0[v0]
  b1[v0*100 + v1] = v2 + b0[v0*100 + v1]
  next v2 = v2 + b0[v0*100 + v1] then v4
  next v3 = v2 then v5
}
b2[v0] = v4 - v5)");
}

// Values that change places must not overwrite one another.
TEST(EmitCarry, Swap) {
  check(R"(
buffer b0: i32[7] write
loop v1 < 7 {
  carry v2: i32 = 1:i32
  carry v3: i32 = 2:i32
  b0[v1] = v2 * 3:i32 + v3
  next v2 = v3 then v4
  next v3 = v2 then v5
})");
}

TEST(EmitCarry, InsideAVectorBody) {
  check(R"(
buffer b0: f32[407] read
buffer b1: f32[407] write
buffer b2: bool[37] write
loop v1 < 37 vector {
  loop v2 < 11 {
    carry v3: f32 = 0:f32
    carry v4: bool = false
    carry v5: i64 < 12 = 0
    b1[v2*37 + v1] = v3 + f32(v5)
    reduce v6: f32 = chain sum(b0[v2*37 + v1]) segment 4
    next v3 = max(v3, b0[v2*37 + v1]) then v7
    next v4 = v4 | (b0[v2*37 + v1] < 0:f32) then v8
    next v5 = min(v5 + 1, 11) then v9
  }
  b2[v1] = v8 | (v6 < v7)
})");
}

TEST(EmitCarry, NoIteration) {
  check(R"(
buffer b0: f32[4] read
buffer b1: f32[4] write
parallel v0 < 4
loop v1 < 0 {
  carry v2: f32 = b0[v0]
  next v2 = v2 + 1:f32 then v3
}
b1[v0] = v3)");
}

TEST(EmitCarry, NestedLoops) {
  check(R"(
buffer b0: i32[60] read
buffer b1: i32[12] write
loop v1 < 12 {
  carry v2: i32 = 0:i32
  loop v3 < 5 {
    carry v4: i32 = v2
    next v4 = v4 * 3:i32 + b0[v1*5 + v3] then v5
  }
  b1[v1] = v5
  next v2 = v5 ^ v2 then v6
})");
}

TEST(EmitCarry, StoresThatMeet) {
  check(R"(
buffer b0: i64[200] read
buffer b1: f32[200] read
buffer b2: f32[64] write
parallel v0 < 4
loop v1 < 16 vector { b2[v0*16 + v1] = 0:f32 }
loop v2 < 50 ordered {
  b2[v0*16 + min(max(b0[v0*50 + v2], 0), 15)] = b2[v0*16 + min(max(b0[v0*50 + v2], 0), 15)] + b1[v0*50 + v2]
})");
}

// A prefix sum in place, then each element minus the one before it.
TEST(EmitCarry, ReadsWhatItStored) {
  check(R"(
buffer b0: i32[40] read
buffer b1: i32[40] write
buffer b2: i32[40] scratch
loop v1 < 40 {
  carry v2: i32 = 0:i32
  b2[v1] = v2 + b0[v1]
  next v2 = b2[v1] then v3
}
b1[0] = b2[0]
loop v4 < 39 ordered { b1[v4 + 1] = b2[v4 + 1] - b1[v4] })");
}

}  // namespace
}  // namespace pyc::cpu_test

// Copies by strides have the bytes of the interpreter.

#include "eval/movement.h"

#include <gtest/gtest.h>

#include <random>

#include "driver/compile.h"
#include "eval/run_kernel.h"
#include "ir/rules.h"
#include "lower/lower.h"

namespace pyc::eval {
namespace {

std::vector<loop::Kernel> kernels_of(const std::string& body, const std::string& inputs) {
  auto graph = driver::parse_model("graph @g(" + inputs + ") -> (%y) {\n  " + body + "\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status().to_string() << body;
  if (!graph.ok()) return {};
  auto verified = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(verified.ok()) << verified.status().to_string() << body;
  auto lowered = lower::lower_graph(*verified, {.fuse = false});
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string() << body;
  std::vector<loop::Kernel> out;
  for (lower::Group& g : lowered->groups) out.push_back(std::move(g.kernel));
  return out;
}

// Any bits at all: of floats some are NaNs with a payload.
std::vector<Elements> any_inputs(const loop::Kernel& kernel) {
  std::mt19937_64 random(7);
  std::vector<Elements> out;
  for (const loop::Buffer& b : kernel.buffers) {
    if (b.access != loop::Access::kRead) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(b.elements * dtype_size(b.dtype)));
    for (std::byte& x : bytes) x = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    Elements e{b.dtype, {}};
    for (int64_t i = 0; i < b.elements; ++i) {
      e.words.push_back(load_word(&bytes[static_cast<size_t>(i * dtype_size(b.dtype))], b.dtype));
    }
    out.push_back(std::move(e));
  }
  return out;
}

std::vector<std::vector<std::byte>> run_movement(const loop::Kernel& kernel,
                                                 const std::vector<Elements>& inputs) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  size_t input = 0;
  for (const loop::Buffer& b : kernel.buffers) {
    const auto size = static_cast<size_t>(dtype_size(b.dtype) * b.elements);
    memory.push_back(b.access == loop::Access::kRead ? to_bytes(inputs[input++])
                                                     : std::vector<std::byte>(size));
    pointers.push_back(memory.back().data());
  }
  Movement::of(kernel)->run(pointers);
  return memory;
}

struct MovementCase {
  const char* inputs;
  const char* body;
};

constexpr MovementCase kMovements[] = {
    {"%x: f32[3,4,5]", "%y = transpose(%x) {perm=[2,0,1]}"},
    {"%x: f16[3,4,5]", "%y = transpose(%x) {perm=[1,2,0]}"},
    {"%x: f64[7]", "%y = reshape(%x) {shape=[7,1]}"},
    {"%x: f32[3,4,5]", "%y = reshape(%x) {shape=[6,10]}"},
    {"%x: i64[3,4,5]", "%y = slice(%x) {starts=[1,0,2], ends=[3,4,5]}"},
    {"%x: f32[3,9]", "%y = slice(%x) {starts=[2,8], ends=[0,0], steps=[-1,-3]}"},
    {"%x: f32[2,3,4], %z: f32[2,1,4]", "%y = concat(%x, %z, %x) {axis=1}"},
    {"%x: f32[4,3], %z: f32[2,3]", "%y = concat(%z, %x, %z, %x) {axis=0}"},
    {"%x: i8[4,3], %z: i8[4,2]", "%y = concat(%x, %z, %z) {axis=1}"},
    {"%x: f32[3,4,5]", "%y = pad(%x) {pads=[1,0,2,0,3,1], value=2.5}"},
    {"%x: bf16[3,4]", "%y = pad(%x) {pads=[0,-1,1,0]}"},
    {"%x: f32[3,4,5]", "%y = reverse(%x) {axes=[1]}"},
    {"%x: f32[3,1,5]", "%y = expand(%x) {shape=[2,3,4,5]}"},
    {"%x: f32[]", "%y = expand(%x) {shape=[2,3]}"},
    {"%x: u16[40,1000]", "%y = transpose(%x) {perm=[1,0]}"},
    {"%x: f32[300000]", "%y = identity(%x)"},
};

TEST(Movement, HasTheBytesOfTheInterpreter) {
  for (const MovementCase& c : kMovements) {
    for (const loop::Kernel& kernel : kernels_of(c.body, c.inputs)) {
      ASSERT_TRUE(Movement::of(kernel)) << c.body;
      const std::vector<Elements> inputs = any_inputs(kernel);
      const Outcome expected = run_kernel(kernel, inputs);
      const auto found = run_movement(kernel, inputs);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i], to_bytes(expected.buffers[i])) << c.body << " buffer " << i;
      }
    }
  }
}

TEST(Movement, LeavesAloneWhatComputesOrChecks) {
  constexpr MovementCase kOthers[] = {
      {"%x: f32[3,4]", "%y = neg(%x)"},
      {"%x: f32[3,4]", "%y = reduce_sum(%x) {axes=[1], keepdims=true}"},
      {"%x: f32[3,4]", "%y = cast(%x) {to=f16}"},
      {"%x: f32[3,4], %i: i64[2]", "%y = gather(%x, %i) {axis=0}"},
      {"%x: f32[3,4], %z: f32[3,4], %c: bool[3,4]", "%y = where(%c, %x, %z)"},
      {"%x: bool[3,4]", "%y = transpose(%x) {perm=[1,0]}"},
  };
  for (const MovementCase& c : kOthers) {
    bool all = true;
    for (const loop::Kernel& k : kernels_of(c.body, c.inputs)) all = all && Movement::of(k);
    EXPECT_FALSE(all) << c.body;
  }
}

}  // namespace
}  // namespace pyc::eval

#pragma once

// Runs hand-built kernels through the interpreter.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "eval/interpreter.h"
#include "loop/builder.h"

namespace pyc::eval {

// Elements of one buffer, as words.
struct Elements {
  DType dtype = DType::kF32;
  std::vector<Word> words;
};

inline std::vector<std::byte> to_bytes(const Elements& e) {
  const auto size = static_cast<size_t>(dtype_size(e.dtype));
  std::vector<std::byte> bytes(e.words.size() * size);
  for (size_t i = 0; i < e.words.size(); ++i) store_word(&bytes[i * size], e.dtype, e.words[i]);
  return bytes;
}

struct Outcome {
  int32_t fault = 0;
  std::vector<Elements> buffers;  // as the kernel left them; scratch ones are empty
};

// Runs points [begin, end) of the kernel; end < 0: all. `inputs` are the kernel's read buffers in
// their order; the elements of written ones start as zeros.
inline Outcome run_kernel(const loop::Kernel& kernel, const std::vector<Elements>& inputs,
                          int64_t begin = 0, int64_t end = -1) {
  Outcome outcome;
  auto made = Interpreter::create(kernel);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  if (!made.ok()) return outcome;
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  size_t input = 0;
  for (const loop::Buffer& b : kernel.buffers) {
    const auto size = static_cast<size_t>(dtype_size(b.dtype) * b.elements);
    if (b.access == loop::Access::kRead) {
      memory.push_back(to_bytes(inputs[input++]));
      EXPECT_EQ(memory.back().size(), size);
    } else {
      memory.emplace_back(b.access == loop::Access::kWrite ? size : 0);
    }
    pointers.push_back(memory.back().data());
  }
  std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes()));
  pyc_kernel_args args{};
  args.buffers = pointers.data();
  args.scratch = scratch.data();
  args.fault = &outcome.fault;
  args.self = made->get();
  args.threads = 1;
  run_interpreted(&args, begin, end < 0 ? kernel.parallel_size() : end);
  for (size_t i = 0; i < memory.size(); ++i) {
    Elements e{kernel.buffers[i].dtype, {}};
    const auto size = static_cast<size_t>(dtype_size(e.dtype));
    for (size_t at = 0; at < memory[i].size(); at += size) {
      e.words.push_back(load_word(&memory[i][at], e.dtype));
    }
    outcome.buffers.push_back(std::move(e));
  }
  return outcome;
}

inline loop::Loop make_loop(loop::VarId var, int64_t extent, std::vector<loop::Stmt> body = {},
                            std::vector<loop::Reduction> reductions = {}) {
  loop::Loop l;
  l.var = var;
  l.extent = extent;
  l.body = std::move(body);
  l.reductions = std::move(reductions);
  return l;
}

}  // namespace pyc::eval

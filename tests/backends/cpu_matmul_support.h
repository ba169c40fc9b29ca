#pragma once

// Runs a matmul plan's steps and the group's generic kernel over the same inputs.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/cpu/matmul.h"
#include "base/aligned_buffer.h"
#include "base/convert.h"
#include "eval/interpreter.h"
#include "runtime/code_module.h"

namespace pyc::cpu {

// Seed 0 makes all bytes the least i8.
class Buffers {
 public:
  explicit Buffers(const loop::Kernel& kernel, uint32_t seed) {
    for (const loop::Buffer& b : kernel.buffers) {
      const auto bytes = static_cast<size_t>(b.elements * dtype_size(b.dtype));
      data_.push_back(
          std::move(AlignedBuffer::create(bytes, AlignedBuffer::Mode::kGuarded)).value());
      pointers_.push_back(data_.back().data());
      if (b.access != loop::Access::kRead) continue;
      if (dtype_size(b.dtype) == 1) {
        fill_bytes(data_.back(), b.elements, seed);
        continue;
      }
      auto* p = reinterpret_cast<float*>(data_.back().data());
      for (int64_t i = 0; i < b.elements; ++i) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
        if (seed % 97 == 0) p[i] = -0.0f;
        if (seed % 101 == 0) p[i] *= 0x1p-140f;
      }
    }
  }
  std::vector<void*> pointers() const { return pointers_; }
  const AlignedBuffer& operator[](size_t i) const { return data_[i]; }

 private:
  // Many of the largest magnitudes.
  static void fill_bytes(AlignedBuffer& buffer, int64_t elements, uint32_t& seed) {
    if (seed == 0) std::memset(buffer.data(), 0x80, static_cast<size_t>(elements));
    for (int64_t i = 0; seed != 0 && i < elements; ++i) {
      seed = seed * 1664525u + 1013904223u;
      const uint32_t extremes[] = {0x80, 0xff, 0x7f, 0x00};
      const uint32_t x = seed >> 24;
      buffer.data()[i] = std::byte(x < 100 ? extremes[x % 4] : x * 7);
    }
  }

  std::vector<AlignedBuffer> data_;
  std::vector<void*> pointers_;
};

inline void interpret(const loop::Kernel& kernel, const Buffers& buffers) {
  auto program = eval::Interpreter::create(kernel);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  std::vector<void*> table = buffers.pointers();
  int32_t fault = 0;
  pyc_kernel_args args{};
  args.buffers = table.data();
  args.fault = &fault;
  (*program)->run(args, 0, kernel.parallel_size());
  ASSERT_EQ(fault, 0);
}

// Runs the compiled steps as `threads` threads would, in an order that no thread promised.
inline void run_compiled(const lower::Group& group, const MatmulPlan& plan,
                         const CodegenTarget& target, int threads, const Buffers& buffers) {
  const Result<std::string> object = emit_matmul_object(group, plan, target);
  ASSERT_TRUE(object.ok()) << object.status().to_string();
  const auto module = runtime::CodeModule::load(*object);
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  const lower::KernelNeeds needs = matmul_needs(group, plan);
  constexpr auto kGuarded = AlignedBuffer::Mode::kGuarded;
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n); };
  AlignedBuffer workspace =
      std::move(AlignedBuffer::create(bytes(needs.workspace_bytes), kGuarded)).value();
  AlignedBuffer scratch =
      std::move(AlignedBuffer::create(bytes(needs.scratch_bytes), kGuarded)).value();
  std::vector<runtime::Parameter> packed;
  const std::vector<void*> table = buffers.pointers();
  const lower::Contraction& c = *group.contraction;
  if (plan.weights == MatmulPlan::Weights::kPackedAhead) {
    packed.push_back(pack_b(plan, c, table[c.b.buffer]));
  }
  if (plan.rows == MatmulPlan::Rows::kPackedAhead) {
    packed.push_back(pack_a(plan, c, table[c.a.buffer]));
  }
  ASSERT_EQ(needs.packed.size(), packed.size());
  for (size_t i = 0; i < packed.size(); ++i) ASSERT_EQ(packed[i].bytes, needs.packed[i].bytes);
  for (const MatmulStep& step : matmul_steps(group, plan)) {
    std::vector<void*> operands;
    for (const backends::Operand& o : step.operands) {
      switch (o.kind) {
        case backends::Operand::Kind::kValue:
          operands.push_back(table[o.value]);
          break;
        case backends::Operand::Kind::kWorkspace:
          operands.push_back(workspace.data() + o.offset);
          break;
        case backends::Operand::Kind::kPacked:
          operands.push_back(const_cast<void*>(packed[o.packed].data));
          break;
        case backends::Operand::Kind::kScratch:
          operands.push_back(nullptr);
          break;
      }
    }
    pyc_kernel_args args{};
    args.buffers = operands.data();
    args.scratch = scratch.data();
    args.threads = threads;
    const pyc_kernel_fn fn = (*module)->lookup(step.symbol);
    ASSERT_NE(fn, nullptr) << step.symbol;
    for (int t = threads - 1; t >= 0; --t) {
      args.thread = t;
      const int64_t begin = step.parallel * t / threads;
      const int64_t end = step.parallel * (t + 1) / threads;
      if (begin < end) fn(&args, begin, end);
    }
  }
  EXPECT_TRUE(workspace.check_canary());
  EXPECT_TRUE(scratch.check_canary());
}

inline void expect_equal(const loop::Kernel& kernel, const Buffers& found, const Buffers& wanted) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    EXPECT_TRUE(found[i].check_canary()) << "buffer " << i;
    const auto bytes =
        static_cast<size_t>(kernel.buffers[i].elements * dtype_size(kernel.buffers[i].dtype));
    ASSERT_EQ(std::memcmp(found[i].data(), wanted[i].data(), bytes), 0) << "buffer " << i;
  }
}

}  // namespace pyc::cpu

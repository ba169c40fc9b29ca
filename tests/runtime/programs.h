#pragma once

// Programs made of plain functions, and the caller's side of a run.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/host_engine.h"
#include "runtime/model.h"

namespace pyc::runtime {

inline constexpr int64_t kRows = 8;
inline constexpr int64_t kColumns = 64;
inline constexpr int64_t kElements = kRows * kColumns;
inline constexpr int64_t kTensorBytes = kElements * 4;
inline constexpr float kScale = 3.0F;
inline constexpr std::array<int64_t, 2> kShape = {kRows, kColumns};

// buffers: x, parameter (one f32), t; one parallel point per row: t = x · parameter.
inline void scale_rows(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  const float scale = *static_cast<const float*>(args->buffers[1]);
  auto* t = static_cast<float*>(args->buffers[2]);
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) t[i] = x[i] * scale;
}

// buffers: t, y; y = t plus the row's first element, by way of scratch memory.
inline void add_first(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto* t = static_cast<const float*>(args->buffers[0]);
  auto* y = static_cast<float*>(args->buffers[1]);
  auto* row = static_cast<float*>(args->scratch);
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) row[c] = t[r * kColumns];
    for (int64_t c = 0; c < kColumns; ++c) y[r * kColumns + c] = t[r * kColumns + c] + row[c];
  }
}

// The engine of these tests: an object is the bytes of a HostFunction of this process.
class FunctionCode final : public HostCode {
 public:
  explicit FunctionCode(HostFunction function) : function_(function) {}
  HostFunction find(std::string_view symbol) const override {
    return symbol == "f" ? function_ : HostFunction();
  }

 private:
  HostFunction function_;
};

class FunctionLoader final : public HostLoader {
 public:
  std::string_view backend() const override { return "functions"; }

 private:
  Result<std::unique_ptr<const HostCode>> load_object(const std::string& object) const override {
    HostFunction function;
    if (object.size() != sizeof(function)) return Status(Code::kParseError, "no function");
    std::memcpy(&function, object.data(), sizeof(function));
    return std::unique_ptr<const HostCode>(std::make_unique<FunctionCode>(function));
  }
};

inline Step make_step(std::string name, HostFunction function, std::vector<BufferRef> buffers,
                      int64_t parallel) {
  const auto* bytes = reinterpret_cast<const char*>(&function);
  Step step;
  step.name = std::move(name);
  step.kernel() = {.symbol = "f",
                   .object = std::make_shared<const std::string>(bytes, sizeof(function)),
                   .launch = host_launch(parallel),
                   .buffers = std::move(buffers)};
  return step;
}

inline std::shared_ptr<Program> make_empty_program() {
  auto program = std::make_shared<Program>();
  program->places = {{.backend = "functions"}};
  return program;
}

inline Result<std::shared_ptr<const Engine>> load(std::shared_ptr<const Program> program) {
  static const FunctionLoader functions;
  static const Loader* const loaders[] = {&functions};
  return load_engine(std::move(program), loaders);
}

inline IoSpec tensor_spec(std::string name) {
  return {std::move(name), DType::kF32, {kRows, kColumns}, kTensorBytes};
}

// y = add_first(scale_rows(x)).
inline std::shared_ptr<Program> make_two_step_program() {
  auto program = make_empty_program();
  program->inputs = {tensor_spec("x")};
  program->outputs = {tensor_spec("y")};
  const auto scale = std::make_shared<const float>(kScale);
  program->parameters = {{scale, scale.get(), sizeof(float)}};
  program->steps = {
      make_step("g0", {scale_rows, nullptr},
                {{Where::kInput, 0, 0}, {Where::kParameter, 0, 0}, {Where::kArena, 0, 64}}, kRows),
      make_step("g1", {add_first, nullptr},
                {{Where::kArena, 0, 64}, {Where::kOutput, 0, 0}, {Where::kScratch, 0, 0}}, kRows)};
  program->arena_bytes = 64 + kTensorBytes;
  program->scratch_bytes = kColumns * 4;
  return program;
}

inline float two_step_result(const std::vector<float>& x, int64_t i) {
  return x[static_cast<size_t>(i)] * kScale +
         x[static_cast<size_t>(i / kColumns * kColumns)] * kScale;
}

// A program of one step over x and y with `fn` and `self`.
inline std::shared_ptr<Program> make_one_step_program(pyc_kernel_fn fn, const void* self,
                                                      int64_t parallel) {
  auto program = make_empty_program();
  program->inputs = {tensor_spec("x")};
  program->outputs = {tensor_spec("y")};
  program->steps = {
      make_step("g0", {fn, self}, {{Where::kInput, 0, 0}, {Where::kOutput, 0, 0}}, parallel)};
  return program;
}

inline std::shared_ptr<ThreadPool> make_pool(int threads) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.ok()) << pool.status().to_string();
  return std::move(pool).value();
}

// What a plan would say about the program's memory.
inline MemoryReport planned_memory(const Program& program, int threads) {
  MemoryReport memory;
  memory.arena_bytes = (program.arena_bytes + 63) / 64 * 64;
  memory.scratch_bytes = (program.scratch_bytes + 63) / 64 * 64 * threads;
  for (const StateSpec& state : program.states) {
    memory.class_bytes[static_cast<size_t>(BufferClass::kState)] +=
        (state.input.bytes + 63) / 64 * 64;
  }
  return memory;
}

inline std::unique_ptr<Model> make_model(const std::shared_ptr<const Program>& program,
                                         const std::shared_ptr<ThreadPool>& pool,
                                         DecisionLog log = {},
                                         std::shared_ptr<Clock> clock = nullptr,
                                         RunContract contract = {}) {
  auto engine = load(program);
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  Result<std::unique_ptr<Model>> model =
      Model::create(std::move(engine).value(), pool, std::move(log),
                    planned_memory(*program, pool->threads()), std::move(clock), contract);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(model).value();
}

// One input and one output of kRows × kColumns.
struct Tensors {
  std::vector<float> x = std::vector<float>(kElements);
  std::vector<float> y = std::vector<float>(kElements, -1.0F);
  std::vector<TensorView> inputs = {{x.data(), DType::kF32, kShape, kTensorBytes}};
  std::vector<TensorView> outputs = {{y.data(), DType::kF32, kShape, kTensorBytes}};

  explicit Tensors(int seed = 0) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + seed * 13) % 101);
  }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  // Elements of y that are not what the two-step program computes.
  int64_t wrong() const {
    int64_t count = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      if (y[static_cast<size_t>(i)] != two_step_result(x, i)) ++count;
    }
    return count;
  }
};

}  // namespace pyc::runtime

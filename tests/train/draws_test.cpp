// Random numbers in training: dropout draws by Philox counters that go on from step to step.

#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "driver/compile.h"
#include "train/trainer.h"

namespace pyc::train {
namespace {

using runtime::TensorView;

constexpr int64_t kElements = 24;
// The gradient of w is the mask: a step of rate 1 takes it away from w.
constexpr const char* kMasked =
    "graph @masked(%x: f32[24]) -> (%loss) {\n"
    "  %w = const f32[24] splat(0.0)\n"
    "  %half = const f32[] dense(0.5)\n"
    "  %none = const f32[] dense(0.0)\n"
    "  %u = random_uniform() {shape=[24], seed=5, stream=9}\n"
    "  %kept = greater_equal(%u, %half)\n"
    "  %p = mul(%x, %w)\n"
    "  %d = where(%kept, %p, %none)\n"
    "  %loss = reduce_sum(%d) {keepdims=false}\n"
    "}\n";

std::unique_ptr<Trainer> masked_trainer(int64_t accumulate, const std::string& device,
                                        int threads) {
  StepSpec spec;
  spec.schedule.rate = 1.0;
  spec.accumulate = accumulate;
  driver::CompileOptions options;
  options.device = device;
  options.threads = threads;
  options.cache = false;
  auto made = Trainer::create(*driver::parse_model(kMasked), spec, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::move(*made) : nullptr;
}

std::vector<float> weights_of(const Trainer& trainer) {
  for (size_t i = 0; i < trainer.state().size(); ++i) {
    if (trainer.state()[i].name != "w") continue;
    std::vector<float> w(kElements);
    std::memcpy(w.data(), trainer.bytes(i).data(), trainer.bytes(i).size());
    return w;
  }
  return {};
}

void step(Trainer& trainer) {
  static const std::vector<float> ones(kElements, 1.0F);
  static const std::vector<int64_t> shape{kElements};
  const std::vector<TensorView> batch{{.data = const_cast<float*>(ones.data()),
                                       .dtype = DType::kF32,
                                       .shape = shape,
                                       .bytes = kElements * int64_t{sizeof(float)}}};
  const auto done = trainer.step([&](int64_t) { return std::span<const TensorView>(batch); });
  ASSERT_TRUE(done.ok()) << done.status().to_string();
}

// What is left of the weights when `steps` of so many micro-batches are done.
std::vector<float> expected_weights(int64_t steps, int64_t accumulate) {
  std::vector<float> w(kElements, 0.0F);
  for (int64_t draw = 0; draw < steps * accumulate; ++draw) {
    for (int64_t i = 0; i < kElements; ++i) {
      const double u = philox_uniform01(5, 9, static_cast<uint64_t>(draw * kElements + i));
      if (static_cast<float>(u) >= 0.5F) {
        w[static_cast<size_t>(i)] -= 1.0F / static_cast<float>(accumulate);
      }
    }
  }
  return w;
}

TEST(Draws, GoOnFromStepToStep) {
  for (const int64_t accumulate : {1, 2}) {
    for (const char* device : {"reference", "cpu"}) {
      for (const int threads : {1, 2, 7}) {
        const auto trainer = masked_trainer(accumulate, device, threads);
        ASSERT_NE(trainer, nullptr);
        for (int64_t n = 1; n <= 3; ++n) {
          step(*trainer);
          EXPECT_EQ(weights_of(*trainer), expected_weights(n, accumulate))
              << device << " " << threads << " threads, step " << n;
        }
      }
    }
  }
}

TEST(Draws, AreThoseOfTheStepThatStateSays) {
  const auto whole = masked_trainer(1, "cpu", 2);
  const auto resumed = masked_trainer(1, "cpu", 7);
  for (int n = 0; n < 2; ++n) step(*whole);
  for (size_t i = 0; i < whole->state().size(); ++i) {
    ASSERT_TRUE(resumed->set(i, whole->bytes(i)).ok());
  }
  for (int n = 0; n < 3; ++n) {
    step(*whole);
    step(*resumed);
  }
  EXPECT_EQ(weights_of(*resumed), weights_of(*whole));
  EXPECT_EQ(weights_of(*whole), expected_weights(5, 1));
}

}  // namespace
}  // namespace pyc::train

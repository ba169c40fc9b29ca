// Steps of convolutions: products of matrices forward and backward, with the bits of the reference.
// And of steps that run again to stay inside a budget.

#include <gtest/gtest.h>

#include <string>

#include "driver/compile.h"
#include "session/model.h"
#include "train/trainer.h"

namespace pyc::train {
namespace {

using runtime::TensorView;

// A padded convolution, one with a stride, one with groups, and the mean of their squares.
constexpr const char* kConvolutions =
    "graph @convolutions(%x: f32[2,3,9,8]) -> (%loss) {\n"
    "  %w1 = const f32[8,3,3,3] random(seed=1, lo=-0.4, hi=0.4)\n"
    "  %b1 = const f32[8] random(seed=2, lo=-0.1, hi=0.1)\n"
    "  %w2 = const f32[12,8,3,3] random(seed=3, lo=-0.2, hi=0.2)\n"
    "  %w3 = const f32[8,6,2,2] random(seed=4, lo=-0.2, hi=0.2)\n"
    "  %c1 = conv(%x, %w1, %b1) {pads=[1,1,1,1]}\n"
    "  %r1 = relu(%c1)\n"
    "  %c2 = conv(%r1, %w2) {pads=[1,1,1,1], strides=[2,2]}\n"
    "  %r2 = tanh(%c2)\n"
    "  %c3 = conv(%r2, %w3) {group=2, pads=[0,1,1,0], dilations=[2,1]}\n"
    "  %s = mul(%c3, %c3)\n"
    "  %loss = reduce_mean(%s) {axes=[], keepdims=false}\n"
    "}\n";

struct Pictures {
  Pictures() {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 23) / 11.0F - 1.0F;
  }
  TensorView view() {
    return {.data = x.data(),
            .dtype = DType::kF32,
            .shape = shape,
            .bytes = static_cast<int64_t>(x.size() * sizeof(float))};
  }
  std::vector<int64_t> shape = {2, 3, 9, 8};
  std::vector<float> x = std::vector<float>(2 * 3 * 9 * 8);
};

driver::CompileOptions on(const std::string& device, int threads = 1, int64_t budget = 0) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = threads;
  options.memory_budget = budget;
  return options;
}

std::unique_ptr<Trainer> trainer_for(const std::string& model, Loss loss,
                                     const driver::CompileOptions& options) {
  StepSpec spec;
  spec.loss = loss;
  spec.schedule = {.rate = 0.05};
  auto made = Trainer::create(*driver::parse_model(model), spec, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::move(*made) : nullptr;
}

std::vector<std::byte> state_of(const Trainer& trainer) {
  std::vector<std::byte> all;
  for (size_t i = 0; i < trainer.state().size(); ++i) {
    all.insert(all.end(), trainer.bytes(i).begin(), trainer.bytes(i).end());
  }
  return all;
}

std::vector<std::byte> after_steps(Trainer& trainer, TensorView x) {
  for (int i = 0; i < 3; ++i) {
    const auto result = trainer.step({&x, 1});
    EXPECT_TRUE(result.ok()) << result.status().to_string();
  }
  return state_of(trainer);
}

TEST(Convolutions, SkipNoTermsInAStep) {
  const auto trainer = trainer_for(kConvolutions, Loss::kOutput, on("cpu"));
  ASSERT_NE(trainer, nullptr);
  int products = 0;
  for (const Decision& d : trainer->program().decisions()) {
    if (!d.what.starts_with("contraction:")) continue;
    EXPECT_FALSE(d.reason.starts_with("skips_terms")) << d.what << ": " << d.reason;
    ++products;
  }
  EXPECT_GE(products, 8);  // three forward, three of weights, two of inputs
}

TEST(Convolutions, TrainToTheSameBitsOnEveryDeviceAndThreadCount) {
  Pictures images;
  const auto trained = [&](const std::string& device, int threads) {
    return after_steps(*trainer_for(kConvolutions, Loss::kOutput, on(device, threads)),
                       images.view());
  };
  const auto expected = trained("reference", 1);
  for (const int threads : {1, 2, 7}) EXPECT_EQ(trained("cpu", threads), expected) << threads;
}

TEST(Convolutions, HaveTheLossOfTheModelInAStep) {
  Pictures images;
  const TensorView x = images.view();
  float expected = 0.0F;
  const TensorView out{
      .data = &expected, .dtype = DType::kF32, .shape = {}, .bytes = sizeof expected};
  const auto model = session::compile(*driver::parse_model(kConvolutions), on("reference"));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  ASSERT_TRUE((*model)->run({&x, 1}, {&out, 1}).ok());
  const auto trainer = trainer_for(kConvolutions, Loss::kOutput, on("cpu"));
  EXPECT_EQ(static_cast<float>(*trainer->evaluate({&x, 1})), expected);
  EXPECT_EQ(static_cast<float>(trainer->step({&x, 1})->loss), expected);
}

// Eight layers whose results wait for the way back.
std::string layers() {
  std::string text = "graph @layers(%x: f32[64,16]) -> (%loss) {\n";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "  %w" + n + " = const f32[16,16] random(seed=" + n + ", lo=-0.5, hi=0.5)\n";
  }
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    const std::string x = i == 0 ? "x" : "h" + std::to_string(i - 1);
    text += "  %p" + n + " = matmul(%" + x + ", %w" + n + ")\n  %h" + n + " = tanh(%p" + n + ")\n";
  }
  return text + "  %loss = reduce_mean(%h7) {axes=[], keepdims=false}\n}\n";
}

// What arrives is convolved with the weights turned: by a step of its own, not for every picture.
TEST(Convolutions, TurnTheirWeightsOnceForAllPictures) {
  constexpr const char* kTurned =
      "graph @turned(%x: f32[8,16,10,10], %w: f32[16,16,3,3]) -> (%y) {\n"
      "  %r = reverse(%w) {axes=[2,3]}\n"
      "  %t = transpose(%r) {perm=[1,0,2,3]}\n"
      "  %y = conv(%x, %t)\n"
      "}\n";
  for (const std::string target : {"aarch64_neon", "x86_avx512"}) {
    driver::CompileOptions options = on("cpu", 2);
    options.target = target;
    const auto graph = ir::verify_graph(*driver::parse_model(kTurned));
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    const auto shown = driver::dump(*graph, options, "dot");
    ASSERT_TRUE(shown.ok()) << shown.status().to_string();
    EXPECT_NE(shown->find("_rows\""), std::string::npos) << *shown;
  }
}

TEST(Budgets, AreMetByRunningLayersAgainWithTheSameBits) {
  Pictures rows;
  rows.x.resize(64 * 16, 0.25F);
  rows.shape = {64, 16};
  const auto free = trainer_for(layers(), Loss::kOutput, on("cpu"));
  const int64_t peak = free->program().memory().peak_bytes;
  const auto tight = trainer_for(layers(), Loss::kOutput, on("cpu", 1, peak * 3 / 4));
  ASSERT_NE(tight, nullptr);
  EXPECT_LE(tight->program().memory().peak_bytes, peak * 3 / 4);
  int again = 0;
  for (const Decision& d : tight->program().decisions()) again += d.what.starts_with("recompute:");
  EXPECT_GT(again, 0);
  EXPECT_EQ(after_steps(*tight, rows.view()), after_steps(*free, rows.view()));
}

}  // namespace
}  // namespace pyc::train

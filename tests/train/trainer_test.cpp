// What a trainer does with its state: changes it where it lies, adds micro-batches up, scales the
// loss, and leaves everything as it was when a step is not one to take.

#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "driver/compile.h"
#include "train/options.h"

namespace pyc::train {
namespace {

using runtime::TensorView;

// Classes from a row of numbers, by a hidden layer.
constexpr const char* kLayers =
    "graph @mlp(%x: f32[8,6]) -> (%y) {\n"
    "  %w1 = const f32[6,16] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %b1 = const f32[16] splat(0.0)\n"
    "  %w2 = const f32[16,3] random(seed=2, lo=-0.5, hi=0.5)\n"
    "  %h = matmul(%x, %w1)\n  %a = add(%h, %b1)\n  %r = relu(%a)\n  %y = matmul(%r, %w2)\n}\n";

// Eight rows and their classes.
struct Labelled {
  explicit Labelled(int seed = 0) {
    for (int i = 0; i < 48; ++i) x[i] = static_cast<float>((i * 7 + seed * 5) % 11) / 5.0F - 1.0F;
    for (int r = 0; r < 8; ++r) y[r] = (r + seed) % 3;
  }
  std::vector<TensorView> batch() {
    return {{.data = &x[0], .dtype = DType::kF32, .shape = x_shape, .bytes = sizeof x},
            {.data = &y[0], .dtype = DType::kI64, .shape = y_shape, .bytes = sizeof y}};
  }
  float x[48];
  int64_t y[8];
  std::vector<int64_t> x_shape = {8, 6};
  std::vector<int64_t> y_shape = {8};
};

StepSpec layers_spec(Rule rule = Rule::kAdamW) {
  StepSpec spec;
  spec.loss = Loss::kCrossEntropy;
  spec.optimizer = {.rule = rule, .decay = 0.01};
  spec.schedule = {.rate = 0.02};
  return spec;
}

driver::CompileOptions compile_with(int threads = 1, const std::string& device = "cpu") {
  driver::CompileOptions options;
  options.threads = threads;
  options.device = device;
  return options;
}

std::unique_ptr<Trainer> trainer_with(const StepSpec& spec,
                                      const driver::CompileOptions& options = compile_with(),
                                      const std::string& model = kLayers) {
  auto made = Trainer::create(*driver::parse_model(model), spec, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::move(*made) : nullptr;
}

// Everything that goes from step to step.
std::vector<std::byte> all_state(const Trainer& trainer) {
  std::vector<std::byte> all;
  for (size_t i = 0; i < trainer.state().size(); ++i) {
    all.insert(all.end(), trainer.bytes(i).begin(), trainer.bytes(i).end());
  }
  return all;
}

float scale_of(const Trainer& trainer) {
  for (size_t i = 0; i < trainer.state().size(); ++i) {
    if (trainer.state()[i].name != "loss_scale") continue;
    float scale = 0.0F;
    std::memcpy(&scale, trainer.bytes(i).data(), sizeof scale);
    return scale;
  }
  ADD_FAILURE() << "no scale";
  return 0.0F;
}

class EveryRule : public testing::TestWithParam<Rule> {};

TEST_P(EveryRule, ChangesItsStateWhereItLies) {
  const bool decoupled = GetParam() == Rule::kAdamW || GetParam() == Rule::kLion;
  for (const int64_t parts : {1, 2}) {
    StepSpec spec = layers_spec(GetParam());
    spec.optimizer.decay = decoupled ? 0.01 : 0.0;
    spec.clip_norm = 1.0;
    spec.accumulate = parts;
    const auto trainer = trainer_with(spec);
    Labelled rows;
    const std::vector<TensorView> batch = rows.batch();
    const auto result = trainer->step([&](int64_t) { return std::span<const TensorView>(batch); });
    ASSERT_TRUE(result.ok()) << result.status().to_string();
    EXPECT_EQ(result->copied_bytes, 0) << parts;
    int64_t bytes = 0;
    for (size_t i = 0; i < trainer->state().size(); ++i) {
      const StateValue& value = trainer->state()[i];
      bytes += (value.type.bytes() + 63) / 64 * 64;
      // A parameter and what is kept of it are written by one kernel.
      const auto& specs = trainer->program().state_specs();
      if (value.role != StateValue::Role::kOptimizer) continue;
      EXPECT_EQ(specs[i].first_write, specs[i - 1].first_write) << value.name;
    }
    EXPECT_EQ(trainer->program().memory().measured_state_bytes, bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryRule,
                         testing::Values(Rule::kSgd, Rule::kMomentum, Rule::kNesterov, Rule::kAdam,
                                         Rule::kAdamW, Rule::kAdagrad, Rule::kRmsprop,
                                         Rule::kLion));

// A class that there is none of: a check of the forward pass fails.
TEST(FailedSteps, LeaveEverythingAsItWas) {
  const auto trainer = trainer_with(layers_spec());
  Labelled rows;
  ASSERT_TRUE(trainer->step(rows.batch()).ok());
  const auto before = all_state(*trainer);
  Labelled bad(1);
  bad.y[3] = 3;
  const auto failed = trainer->step(bad.batch());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kRuntimeFailed) << failed.status().to_string();
  EXPECT_EQ(all_state(*trainer), before);
  ASSERT_TRUE(trainer->step(rows.batch()).ok());
  EXPECT_EQ(trainer->steps_done(), 2);
  const auto never = trainer_with(layers_spec());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(never->step(rows.batch()).ok());
  EXPECT_EQ(all_state(*trainer), all_state(*never));
}

TEST(Evaluation, ChangesNothingAndAgreesWithTheStep) {
  const auto trainer = trainer_with(layers_spec());
  Labelled rows;
  ASSERT_TRUE(trainer->step(rows.batch()).ok());
  const auto before = all_state(*trainer);
  const auto loss = trainer->evaluate(rows.batch());
  ASSERT_TRUE(loss.ok()) << loss.status().to_string();
  EXPECT_EQ(all_state(*trainer), before);
  EXPECT_EQ(trainer->step(rows.batch())->loss, *loss);
}

TEST(MicroBatches, OfEqualRowsAreTheBatch) {
  Labelled rows;
  const auto whole = trainer_with(layers_spec());
  StepSpec spec = layers_spec();
  spec.accumulate = 2;
  const auto parts = trainer_with(spec);
  auto twice = rows.batch();
  const auto once = rows.batch();
  twice.insert(twice.end(), once.begin(), once.end());
  for (int i = 0; i < 5; ++i) {
    const auto a = whole->step(once);
    const auto b = parts->step(twice);
    ASSERT_TRUE(b.ok()) << b.status().to_string();
    EXPECT_EQ(a->loss, b->loss);
    EXPECT_EQ(a->norm, b->norm);
  }
  // (g + g) / 2 is g.
  EXPECT_EQ(all_state(*whole), all_state(*parts));
}

TEST(MicroBatches, HaveTheSameBitsOnEveryDeviceAndThreadCount) {
  const auto trained = [](const std::string& device, int threads) {
    StepSpec spec = layers_spec();
    spec.accumulate = 3;
    spec.clip_norm = 1.0;
    const auto trainer = trainer_with(spec, compile_with(threads, device));
    Labelled rows[] = {Labelled(0), Labelled(1), Labelled(2)};
    std::vector<TensorView> batch;
    for (Labelled& part : rows) {
      for (const TensorView& view : part.batch()) batch.push_back(view);
    }
    double first = 0;
    double last = 0;
    for (int i = 0; i < 40; ++i) {
      const auto result = trainer->step(batch);
      EXPECT_TRUE(result.ok()) << result.status().to_string();
      last = result->loss;
      if (i == 0) first = last;
    }
    EXPECT_LT(last, first);
    EXPECT_EQ(trainer->steps_done(), 40);
    return all_state(*trainer);
  };
  const auto expected = trained("reference", 1);
  for (const int threads : {1, 2, 7}) EXPECT_EQ(trained("cpu", threads), expected);
}

// Means over both halves are those over all rows, but for the order of sums.
TEST(MicroBatches, AreOneLargeBatchButForRounding) {
  std::string large = kLayers;
  large.replace(large.find("f32[8,6]"), 8, "f32[16,6]");
  const auto whole = trainer_with(layers_spec(Rule::kSgd), compile_with(), large);
  StepSpec spec = layers_spec(Rule::kSgd);
  spec.accumulate = 2;
  const auto parts = trainer_with(spec);
  Labelled rows[] = {Labelled(0), Labelled(1)};
  float x[96];
  int64_t y[16];
  std::vector<TensorView> halves;
  for (int i = 0; i < 2; ++i) {
    std::copy_n(&rows[i].x[0], 48, &x[i * 48]);
    std::copy_n(&rows[i].y[0], 8, &y[i * 8]);
    for (const TensorView& view : rows[i].batch()) halves.push_back(view);
  }
  const std::vector<int64_t> x_shape = {16, 6};
  const std::vector<int64_t> y_shape = {16};
  const std::vector<TensorView> all = {
      {.data = &x[0], .dtype = DType::kF32, .shape = x_shape, .bytes = sizeof x},
      {.data = &y[0], .dtype = DType::kI64, .shape = y_shape, .bytes = sizeof y}};
  for (int i = 0; i < 20; ++i) {
    const auto a = whole->step(all);
    const auto b = parts->step(halves);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_NEAR(a->loss, b->loss, 1e-5);
    EXPECT_NEAR(a->norm, b->norm, 1e-5);
  }
}

TEST(MicroBatches, OfAnotherNumberAreRefused) {
  StepSpec spec = layers_spec();
  spec.accumulate = 2;
  const auto trainer = trainer_with(spec);
  Labelled rows;
  const auto refused = trainer->step(rows.batch());
  EXPECT_EQ(refused.status().to_string(),
            "invalid_argument: batch: expected 4 tensors of 2 micro-batches, found 2");
  spec.accumulate = 0;
  const auto none = Trainer::create(*driver::parse_model(kLayers), spec, {});
  EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
}

// A power of two changes no bit while nothing overflows.
TEST(LossScale, ChangesNoBit) {
  Labelled rows;
  StepSpec spec = layers_spec();
  spec.loss_scale = 1024;
  spec.scale_every = 4;
  for (const int64_t parts : {1, 2}) {
    spec.accumulate = parts;
    const auto scaled = trainer_with(spec);
    auto batch = rows.batch();
    if (parts == 2) batch.insert(batch.end(), {batch[0], batch[1]});
    const auto fresh = trainer_with(layers_spec());
    for (int i = 0; i < 10; ++i) {
      const auto a = fresh->step(rows.batch());
      const auto b = scaled->step(batch);
      ASSERT_TRUE(a.ok() && b.ok()) << b.status().to_string();
      EXPECT_EQ(a->loss, b->loss);
    }
    EXPECT_EQ(fresh->weights_digest(), scaled->weights_digest());
    EXPECT_EQ(scale_of(*scaled), 4096.0F);  // doubled after 4 and 8 steps
  }
}

// Gradients that overflow under the scale and not without it.
TEST(LossScale, HalvesAtAnOverflowAndRecovers) {
  const char* model =
      "graph @line(%x: f32[1]) -> (%y) {\n  %w = const f32[1] dense(0.0)\n  %y = mul(%x, %w)\n}\n";
  StepSpec spec;
  spec.schedule = {.rate = 1e-36};
  spec.loss_scale = 8;
  spec.scale_every = 3;
  const auto trainer = trainer_with(spec, compile_with(), model);
  float x = 1e38F;
  const std::vector<int64_t> shape = {1};
  const std::vector<TensorView> batch = {
      {.data = &x, .dtype = DType::kF32, .shape = shape, .bytes = sizeof x}};
  const auto weights = trainer->weights_digest();
  const auto overflow = trainer->step(batch);  // 8e38 is over f32
  ASSERT_TRUE(overflow.ok()) << overflow.status().to_string();
  EXPECT_TRUE(overflow->skipped);
  EXPECT_EQ(overflow->loss, 0.0);
  EXPECT_EQ(scale_of(*trainer), 4.0F);
  EXPECT_EQ(trainer->weights_digest(), weights);
  EXPECT_EQ(trainer->steps_done(), 1);
  EXPECT_TRUE(trainer->step(batch)->skipped);  // 4e38 too
  EXPECT_EQ(scale_of(*trainer), 2.0F);
  x = 1.0F;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(trainer->step(batch)->skipped);
  EXPECT_EQ(scale_of(*trainer), 4.0F);
  EXPECT_NE(trainer->weights_digest(), weights);
  EXPECT_EQ(trainer->steps_done(), 5);
  // A loss that is no number is not the scale's fault.
  x = NAN;
  const auto before = all_state(*trainer);
  EXPECT_EQ(trainer->step(batch).status().code(), Code::kRuntimeFailed);
  EXPECT_EQ(all_state(*trainer), before);
}

TEST(LossScale, IsAPowerOfTwo) {
  StepSpec spec = layers_spec();
  for (const double bad : {3.0, 0.5, 1e30, -2.0}) {
    spec.loss_scale = bad;
    const auto made = Trainer::create(*driver::parse_model(kLayers), spec, {});
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(MixedPrecision, TrainsWithMasterWeightsOfF32) {
  Labelled rows;
  double f32_loss = 0;
  for (const DType precision : {DType::kF32, DType::kBF16, DType::kF16}) {
    driver::CompileOptions options = compile_with();
    options.precision = precision;
    const auto trainer = trainer_with(layers_spec(), options);
    double loss = 0;
    for (int i = 0; i < 60; ++i) {
      const auto result = trainer->step(rows.batch());
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      loss = result->loss;
    }
    for (const StateValue& value : trainer->state()) {
      if (value.role == StateValue::Role::kParameter) {
        EXPECT_EQ(value.type.dtype, DType::kF32) << value.name;
      }
    }
    const auto& log = trainer->program().decisions();
    const auto narrowed = std::count_if(log.begin(), log.end(), [](const Decision& d) {
      return d.chosen.starts_with("operands in ");
    });
    if (precision == DType::kF32) {
      f32_loss = loss;
      EXPECT_EQ(narrowed, 0);
      continue;
    }
    // Two products forward, two of weights and one of activations backward.
    EXPECT_EQ(narrowed, 5);
    EXPECT_NEAR(loss, f32_loss, 0.05 * (1 + f32_loss));
    EXPECT_NE(loss, f32_loss);
    EXPECT_EQ(trainer->spec().loss_scale, precision == DType::kF16 ? 65536.0 : 0.0);
  }
}

TEST(MixedPrecision, TakesNoScaleInStrictThatNobodySaid) {
  driver::CompileOptions options = compile_with();
  options.precision = DType::kF16;
  options.determinism = driver::Determinism::kStrict;
  StepSpec spec = layers_spec();
  const auto refused = Trainer::create(*driver::parse_model(kLayers), spec, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("set loss_scale"), std::string::npos);
  spec.loss_scale = 65536;
  const auto trainer = trainer_with(spec, options);
  Labelled rows;
  EXPECT_TRUE(trainer->step(rows.batch()).ok());
}

// log of a negative number two layers deep: the message names it.
TEST(NotFinite, NamesTheNodeThatMadeIt) {
  const char* model =
      "graph @g(%x: f32[2]) -> (%loss) {\n"
      "  %w = const f32[2] dense(1.0, 1.0)\n"
      "  %scaled = mul(%x, %w)\n"
      "  %inner = log(%scaled)\n"
      "  %square = mul(%inner, %inner)\n"
      "  %loss = reduce_sum(%square) {keepdims=false}\n}\n";
  float x[2] = {1.0F, 2.0F};
  const std::vector<int64_t> shape = {2};
  const std::vector<TensorView> batch = {
      {.data = &x[0], .dtype = DType::kF32, .shape = shape, .bytes = sizeof x}};
  for (const int64_t parts : {1, 2}) {
    StepSpec spec;
    spec.accumulate = parts;
    const auto trainer = trainer_with(spec, compile_with(), model);
    std::vector<TensorView> batches(static_cast<size_t>(parts), batch[0]);
    x[1] = 2.0F;
    ASSERT_TRUE(trainer->step(batches).ok());
    const auto message = [&](float value) {
      x[1] = value;
      return trainer->step(batches).status().message();
    };
    const auto before = all_state(*trainer);
    const std::string nan = message(-2.0F);
    EXPECT_NE(nan.find("step 2: the loss is nan"), std::string::npos) << nan;
    EXPECT_NE(nan.find("the first NaN is made by op 'log' of %inner"), std::string::npos) << nan;
    EXPECT_EQ(nan.find("micro-batch 1: ") != std::string::npos, parts == 2) << nan;
    const std::string infinite = message(0.0F);
    EXPECT_NE(infinite.find("the first infinity is made by op 'log' of %inner"), std::string::npos)
        << infinite;
    const std::string given = message(NAN);
    EXPECT_NE(given.find("%x, which the step takes, has elements that are not finite"),
              std::string::npos)
        << given;
    EXPECT_EQ(all_state(*trainer), before);
  }
}

}  // namespace
}  // namespace pyc::train

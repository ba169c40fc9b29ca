// Training steps against formulas written out in f64, and between devices.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "driver/compile.h"
#include "train/trainer.h"

namespace pyc::train {
namespace {

// y = x·w + b, one output.
constexpr const char* kLine =
    "graph @line(%x: f32[4,3]) -> (%y) {\n"
    "  %w = const f32[3,1] dense(0.5, -0.25, 0.125)\n"
    "  %b = const f32[1] dense(0.1)\n"
    "  %p = matmul(%x, %w)\n"
    "  %y = add(%p, %b)\n"
    "}\n";
constexpr float kX[4][3] = {{1, 2, 3}, {-1, 0.5F, 2}, {0.25F, -2, 1}, {3, 1, -1}};
constexpr float kY[4] = {1, -1, 0.5F, 2};

ir::Graph parse(const std::string& text) {
  auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return std::move(*graph);
}

Result<std::unique_ptr<Trainer>> trainer_of(const std::string& text, const StepSpec& spec,
                                            const std::string& device = "cpu", int threads = 1) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = threads;
  options.cache = false;
  return Trainer::create(parse(text), spec, options);
}

template <typename T>
runtime::TensorView view(T* data, DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = sizeof(T);
  for (const int64_t d : shape) bytes *= d;
  return {.data = const_cast<std::remove_const_t<T>*>(data),
          .dtype = dtype,
          .shape = shape,
          .bytes = bytes};
}

const std::vector<int64_t> kXShape = {4, 3};
const std::vector<int64_t> kYShape = {4, 1};
std::vector<runtime::TensorView> line_batch() {
  return {view(&kX[0][0], DType::kF32, kXShape), view(&kY[0], DType::kF32, kYShape)};
}

std::vector<float> floats(const Trainer& t, const std::string& name) {
  for (size_t i = 0; i < t.state().size(); ++i) {
    if (t.state()[i].name != name) continue;
    std::vector<float> out(t.bytes(i).size() / sizeof(float));
    std::memcpy(out.data(), t.bytes(i).data(), t.bytes(i).size());
    return out;
  }
  ADD_FAILURE() << "no state " << name;
  return {};
}

// The same in f64, gradients by hand.
struct Line {
  double p[4] = {0.5, -0.25, 0.125, 0.1};
  double first[4] = {};
  double second[4] = {};
  double loss = 0;

  void step(const Optimizer& o, double rate, int t) {
    double g[4] = {};
    loss = 0;
    for (int r = 0; r < 4; ++r) {
      const double d = p[0] * kX[r][0] + p[1] * kX[r][1] + p[2] * kX[r][2] + p[3] - kY[r];
      loss += d * d / 4;
      for (int i = 0; i < 3; ++i) g[i] += 2 * d * kX[r][i] / 4;
      g[3] += 2 * d / 4;
    }
    for (int i = 0; i < 4; ++i) move(o, rate, t, i, g[i]);
  }

  void move(const Optimizer& o, double rate, int t, int i, double g) {
    if (o.rule == Rule::kAdamW || o.rule == Rule::kLion) {
      p[i] -= rate * o.decay * p[i];
    } else {
      g += o.decay * p[i];
    }
    double& m = first[i];
    double& v = second[i];
    switch (o.rule) {
      case Rule::kSgd:
        p[i] -= rate * g;
        return;
      case Rule::kMomentum:
      case Rule::kNesterov:
        m = o.momentum * m + g;
        p[i] -= rate * (o.rule == Rule::kMomentum ? m : g + o.momentum * m);
        return;
      case Rule::kAdam:
      case Rule::kAdamW:
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        p[i] -= rate * (m / (1 - std::pow(o.beta1, t))) /
                (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.epsilon);
        return;
      case Rule::kAdagrad:
        m += g * g;
        p[i] -= rate * g / (std::sqrt(m) + o.epsilon);
        return;
      case Rule::kRmsprop:
        m = o.beta2 * m + (1 - o.beta2) * g * g;
        p[i] -= rate * g / (std::sqrt(m) + o.epsilon);
        return;
      case Rule::kLion: {
        const double along = o.beta1 * m + (1 - o.beta1) * g;
        p[i] -= rate * (along > 0 ? 1 : along < 0 ? -1 : 0);
        m = o.beta2 * m + (1 - o.beta2) * g;
        return;
      }
    }
  }
};

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, FollowTheirFormula) {
  for (const double decay : {0.0, 0.1}) {
    StepSpec spec;
    spec.loss = Loss::kMse;
    spec.optimizer = {.rule = GetParam(), .decay = decay};
    spec.schedule = {.rate = 0.03};
    auto made = trainer_of(kLine, spec);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    Line line;
    for (int t = 1; t <= 20; ++t) {
      const auto result = (*made)->step(line_batch());
      ASSERT_TRUE(result.ok()) << result.status().to_string();
      line.step(spec.optimizer, spec.schedule.rate, t);
      EXPECT_NEAR(result->loss, line.loss, 5e-5 * (1 + line.loss)) << "step " << t;
    }
    const auto w = floats(**made, "w");
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(w[static_cast<size_t>(i)], line.p[i], 5e-5);
    EXPECT_NEAR(floats(**made, "b")[0], line.p[3], 5e-5);
    EXPECT_EQ((*made)->steps_done(), 20);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rules,
                         testing::Values(Rule::kSgd, Rule::kMomentum, Rule::kNesterov, Rule::kAdam,
                                         Rule::kAdamW, Rule::kAdagrad, Rule::kRmsprop,
                                         Rule::kLion));

// The rate alone: the gradient of b·1 is 1 at every step, whatever b is.
TEST(Schedules, GiveTheRateOfEachStep) {
  const char* model =
      "graph @one(%x: f32[1]) -> (%y) {\n  %b = const f32[1] dense(0.0)\n  %y = mul(%x, %b)\n}\n";
  const float one = 1.0F;
  const std::vector<int64_t> shape = {1};
  const Schedule constant{.rate = 0.5, .warmup = 4};
  const Schedule linear{
      .curve = Curve::kLinear, .rate = 0.5, .warmup = 2, .total = 8, .floor = 0.1};
  const Schedule cosine{.curve = Curve::kCosine, .rate = 0.5, .total = 8, .floor = 0.1};
  const Schedule steps{.curve = Curve::kSteps, .rate = 0.5, .every = 3, .factor = 0.5};
  const auto expected = [](const Schedule& s, int i) {
    if (i < s.warmup) return s.rate * (i + 1) / static_cast<double>(s.warmup);
    const double at =
        std::min(1.0, static_cast<double>(i - s.warmup) / static_cast<double>(s.total - s.warmup));
    switch (s.curve) {
      case Curve::kConstant:
        return s.rate;
      case Curve::kLinear:
        return s.floor + (s.rate - s.floor) * (1 - at);
      case Curve::kCosine:
        return s.floor + (s.rate - s.floor) * (1 + std::cos(std::numbers::pi * at)) / 2;
      case Curve::kSteps:
        return s.rate * std::pow(s.factor, i / static_cast<int>(s.every));
    }
    return 0.0;
  };
  for (const Schedule& s : {constant, linear, cosine, steps}) {
    StepSpec spec;
    spec.schedule = s;
    auto made = trainer_of(model, spec);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    float before = 0.0F;
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE((*made)->step(std::vector{view(&one, DType::kF32, shape)}).ok());
      const float b = floats(**made, "b")[0];
      EXPECT_NEAR(before - b, expected(s, i), 1e-6) << "step " << i;
      before = b;
    }
  }
}

TEST(Clipping, BoundsElementsAndNorm) {
  const char* model =
      "graph @two(%x: f32[2]) -> (%y) {\n  %b = const f32[2] dense(0.0, 0.0)\n  %m = mul(%x, %b)\n"
      "  %y = reduce_sum(%m) {keepdims=false}\n}\n";
  const float x[2] = {3.0F, -4.0F};
  const std::vector<int64_t> shape = {2};
  const auto moved = [&](double value, double norm, double& seen) {
    StepSpec spec;
    spec.schedule = {.rate = 1.0};
    spec.clip_value = value;
    spec.clip_norm = norm;
    auto made = trainer_of(model, spec);
    const auto result = (*made)->step(std::vector{view(&x[0], DType::kF32, shape)});
    seen = result->norm;
    return floats(**made, "b");
  };
  double norm = 0;
  EXPECT_EQ(moved(0, 0, norm), (std::vector{-3.0F, 4.0F}));
  EXPECT_EQ(norm, 5.0);
  EXPECT_EQ(moved(3.5, 0, norm), (std::vector{-3.0F, 3.5F}));
  EXPECT_EQ(moved(0, 10, norm), (std::vector{-3.0F, 4.0F}));
  const auto half = moved(0, 2.5, norm);
  EXPECT_EQ(half, (std::vector{-1.5F, 2.0F}));
}

// Classes from a row of numbers, by a hidden layer.
constexpr const char* kClassifier =
    "graph @mlp(%x: f32[8,6]) -> (%y) {\n"
    "  %w1 = const f32[6,16] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %b1 = const f32[16] splat(0.0)\n"
    "  %w2 = const f32[16,3] random(seed=2, lo=-0.5, hi=0.5)\n"
    "  %h = matmul(%x, %w1)\n  %a = add(%h, %b1)\n  %r = relu(%a)\n  %y = matmul(%r, %w2)\n}\n";

struct Rows {
  float x[8][6];
  int64_t y[8];
  std::vector<int64_t> x_shape = {8, 6};
  std::vector<int64_t> y_shape = {8};
  Rows() {
    for (int r = 0; r < 8; ++r) {
      for (int i = 0; i < 6; ++i) x[r][i] = static_cast<float>((r * 7 + i * 5) % 11) / 5.0F - 1.0F;
      y[r] = r % 3;
    }
  }
  std::vector<runtime::TensorView> batch() {
    return {view(&x[0][0], DType::kF32, x_shape), view(&y[0], DType::kI64, y_shape)};
  }
};

std::vector<std::byte> trained_bits(const std::string& device, int threads, int steps) {
  StepSpec spec;
  spec.loss = Loss::kCrossEntropy;
  spec.optimizer = {.rule = Rule::kAdamW, .decay = 0.01};
  spec.schedule = {.curve = Curve::kCosine, .rate = 0.05, .warmup = 3, .total = 60};
  spec.clip_norm = 1.0;
  auto made = trainer_of(kClassifier, spec, device, threads);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  Rows rows;
  double first = 0;
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    const auto result = (*made)->step(rows.batch());
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    last = result->loss;
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first / 10);
  std::vector<std::byte> all;
  for (size_t i = 0; i < (*made)->state().size(); ++i) {
    all.insert(all.end(), (*made)->bytes(i).begin(), (*made)->bytes(i).end());
  }
  return all;
}

TEST(Training, HasTheSameBitsOnEveryDeviceAndThreadCount) {
  const auto expected = trained_bits("reference", 1, 60);
  EXPECT_EQ(trained_bits("cpu", 1, 60), expected);
  EXPECT_EQ(trained_bits("cpu", 2, 60), expected);
  EXPECT_EQ(trained_bits("cpu", 7, 60), expected);
}

TEST(Training, GivesAModelThatAgreesWithItsLoss) {
  StepSpec spec;
  spec.loss = Loss::kMse;
  spec.schedule = {.rate = 0.05};
  auto made = trainer_of(kLine, spec);
  ASSERT_TRUE(made.ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((*made)->step(line_batch()).ok());
  const auto graph = (*made)->trained();
  ASSERT_TRUE(graph.ok());
  const auto again = Trainer::create(*graph, spec, {});
  ASSERT_TRUE(again.ok());
  const auto loss = (*made)->evaluate(line_batch());
  EXPECT_EQ(*loss, *(*again)->evaluate(line_batch()));
  EXPECT_EQ((*made)->steps_done(), 5);
  EXPECT_EQ((*again)->steps_done(), 0);
  EXPECT_EQ(floats(**made, "w"), floats(**again, "w"));
}

// A step that is not finite: refused with everything as it was, or passed over.
TEST(Training, KeepsTheStateWhenTheLossIsNotFinite) {
  StepSpec spec;
  spec.loss = Loss::kMse;
  spec.optimizer.rule = Rule::kMomentum;
  auto made = trainer_of(kLine, spec);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->step(line_batch()).ok());
  const auto before = floats(**made, "w");
  const float bad[4] = {1, NAN, 0, 0};
  auto batch = line_batch();
  batch[1] = view(&bad[0], DType::kF32, kYShape);
  const auto stopped = (*made)->step(batch);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.status().code(), Code::kRuntimeFailed);
  EXPECT_NE(stopped.status().message().find("step 2"), std::string::npos);
  EXPECT_EQ((*made)->steps_done(), 1);
  EXPECT_EQ(floats(**made, "w"), before);
  spec.on_nan = OnNan::kSkip;
  made = trainer_of(kLine, spec);
  ASSERT_TRUE((*made)->step(line_batch()).ok());
  const auto skipped = (*made)->step(batch);
  ASSERT_TRUE(skipped.ok());
  EXPECT_TRUE(skipped->skipped);
  EXPECT_EQ((*made)->steps_done(), 2);
  EXPECT_EQ(floats(**made, "w"), before);
  ASSERT_TRUE((*made)->step(line_batch()).ok());
  EXPECT_NE(floats(**made, "w"), before);
}

void expect_refused(const std::string& model, const StepSpec& spec, Code code,
                    const std::string& words) {
  const auto made = trainer_of(model, spec);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), code) << made.status().to_string();
  EXPECT_NE(made.status().message().find(words), std::string::npos) << made.status().to_string();
}

// Averages of what was seen are none (Traits::learnt_inputs).
TEST(Parameters, AreNoStatistics) {
  for (const std::string norm : {"%y = batch_norm", "%y, %m, %v = batch_norm_training"}) {
    StepSpec spec;
    spec.loss = Loss::kMse;
    const auto made = trainer_of(
        "graph @g(%x: f32[4,2]) -> (%y) {\n  %gamma = const f32[2] splat(1.0)\n  %beta = const "
        "f32[2] "
        "splat(0.0)\n  %mean = const f32[2] splat(0.5)\n  %var = const f32[2] splat(2.0)\n  " +
            norm + "(%x, %gamma, %beta, %mean, %var)\n}\n",
        spec);
    ASSERT_TRUE(made.ok()) << norm << ": " << made.status().to_string();
    std::vector<std::string> names;
    for (const auto& state : (*made)->state()) {
      if (state.role == StateValue::Role::kParameter) names.push_back(state.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"gamma", "beta"})) << norm;
  }
}

TEST(BadSteps, AreRefusedByName) {
  StepSpec spec;
  expect_refused(kLine, spec, Code::kInvalidArgument, "output 'y' is f32[4,1]");
  spec.loss = Loss::kCrossEntropy;
  expect_refused(
      "graph @g(%x: f32[3]) -> (%y) {\n  %w = const f32[3] splat(1.0)\n  %y = mul(%x, %w)\n}\n",
      spec, Code::kInvalidArgument, "classes in axis 1");
  spec.loss = Loss::kMse;
  spec.frozen = {"w", "nothing"};
  expect_refused(kLine, spec, Code::kInvalidArgument, "'nothing'");
  spec.frozen = {"*"};
  expect_refused(kLine, spec, Code::kInvalidArgument, "nothing to train");
  spec.frozen = {};
  spec.optimizer.beta1 = 1.0;
  expect_refused(kLine, spec, Code::kInvalidArgument, "beta1");
  spec.optimizer = {};
  spec.schedule = {.curve = Curve::kCosine, .total = 0};
  expect_refused(kLine, spec, Code::kInvalidArgument, "total");
  spec.schedule = {};
  // Rounded to integers and back: nothing of w reaches the loss.
  const char* cut =
      "graph @g(%x: f32[3]) -> (%y) {\n  %w = const f32[3] splat(1.0)\n  %v = const f32[3] "
      "splat(1.0)\n  %i = cast(%w) {to=i32}\n  %f = cast(%i) {to=f32}\n  %a = mul(%x, %v)\n  %y = "
      "mul(%a, %f)\n}\n";
  expect_refused(cut, spec, Code::kInvalidArgument, "%w");
  spec.allow_unused = true;
  auto made = trainer_of(cut, spec);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
}

}  // namespace
}  // namespace pyc::train

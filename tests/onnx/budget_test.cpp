// A memory budget holds over all that a model in stages keeps and a run holds: the run is within it
// to the byte, or refused by name. And compiling is bounded however the shapes change.

#include <cstdlib>
#include <random>
#include <string_view>

#include "onnx/run_model.h"

namespace pyc::onnx::test {
namespace {

constexpr int64_t kColumns = 16;

// Models of matrix products with breaks between them: rows that are picked by what they hold,
// branches, loops. Every value is f32[rows, 16].
class ModelMaker {
 public:
  explicit ModelMaker(uint32_t seed) : random_(seed) {}

  Bytes make() {
    const int pieces = 3 + static_cast<int>(random_() % 4);
    for (int i = 0; i < pieces; ++i) add_piece();
    nodes_.push_back(node("Identity", {last_}, {"y"}));
    return model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(kColumns)}))},
                  .outputs = {unshaped("y", kF32)},
                  .initializers = weights_,
                  .nodes = nodes_});
  }

 private:
  std::string name(const std::string& of) { return of + std::to_string(count_++); }

  std::string weight() {
    std::vector<float> values(kColumns * kColumns);
    for (float& v : values) v = static_cast<float>(random_() % 1000) / 4000.0F - 0.1F;
    weights_.push_back(floats(name("w"), {kColumns, kColumns}, values));
    return "w" + std::to_string(count_ - 1);
  }

  void product() {
    const std::string p = name("p");
    const std::string y = name("r");
    nodes_.push_back(node("MatMul", {last_, weight()}, {p}, {}, p));
    nodes_.push_back(node("Abs", {p}, {y}, {}, y));
    last_ = y;
  }

  // The rows whose first element is not zero: how many there are is known when they are there.
  void pick_rows() {
    const std::string column = name("c");
    const std::string found = name("f");
    const std::string at = name("i");
    const std::string y = name("g");
    weights_.push_back(ints(column + "zero", {0}));
    weights_.push_back(ints(column + "axis", {1}));
    weights_.push_back(ints(column + "row", {0}));
    nodes_.push_back(
        node("Gather", {last_, column + "zero"}, {column + "s"}, {attr_int("axis", 1)}));
    nodes_.push_back(node("Squeeze", {column + "s", column + "axis"}, {column}));
    nodes_.push_back(node("NonZero", {column}, {found}, {}, found));
    nodes_.push_back(node("Squeeze", {found, column + "row"}, {at}));
    nodes_.push_back(node("Gather", {last_, at}, {y}, {attr_int("axis", 0)}, y));
    last_ = y;
  }

  void branch() {
    const std::string sum = name("s");
    const std::string y = name("b");
    weights_.push_back(floats(sum + "zero", {}, {0}));
    nodes_.push_back(node("ReduceSum", {last_}, {sum}, {attr_int("keepdims", 0)}));
    nodes_.push_back(node("Greater", {sum, sum + "zero"}, {sum + "c"}));
    const auto graph_of = [&](const std::string& op) {
      return graph({.outputs = {unshaped("r" + y, kF32)},
                    .nodes = {node(op, {last_, last_}, {"r" + y}, {}, op + y)}});
    };
    nodes_.push_back(node(
        "If", {sum + "c"}, {y},
        {attr_graph("then_branch", graph_of("Add")), attr_graph("else_branch", graph_of("Mul"))},
        y));
    last_ = y;
  }

  void repeat() {
    const std::string y = name("l");
    const Bytes body =
        graph({.inputs = {value("i", kI64, {}), value("go", kBool, {}), unshaped("v", kF32)},
               .outputs = {unshaped("go", kBool), unshaped("t", kF32)},
               .nodes = {node("MatMul", {"v", weight()}, {"m"}, {}, "m" + y),
                         node("Abs", {"m"}, {"t"})}});
    weights_.push_back(raw_tensor(y + "n", kI64, {}, raw_of(Ints{2})));
    nodes_.push_back(node("Loop", {y + "n", "", last_}, {y}, {attr_graph("body", body)}, y));
    last_ = y;
  }

  void add_piece() {
    switch (random_() % 4) {
      case 0:
        return product();
      case 1:
        return pick_rows();
      case 2:
        return branch();
      default:
        return repeat();
    }
  }

  std::mt19937 random_;
  int count_ = 0;
  std::string last_ = "x";
  std::vector<Bytes> nodes_;
  std::vector<Bytes> weights_;
};

DynValue rows(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count * kColumns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2.0F;
  return f32({count, kColumns}, values);
}

Result<std::unique_ptr<session::Session>> budgeted(const Bytes& bytes, int64_t budget,
                                                   const std::string& device = "reference") {
  PYC_ASSIGN(const Imported imported, read(bytes));
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.memory_budget = budget;
  return session::Session::create(imported.graph, options);
}

struct Outcome {
  std::vector<std::vector<double>> results;
  Status refused;
  int64_t peak = 0;
};

// Two sizes, and the first again: programs of both are kept where there is room.
Outcome run_sizes(const Bytes& bytes, int64_t budget) {
  Outcome out;
  const auto made = budgeted(bytes, budget);
  if (!made.ok()) {
    out.refused = made.status();
    return out;
  }
  for (const int64_t count : {9, 6, 9}) {
    const auto y = (*made)->run(std::vector<DynValue>{rows(count)});
    if (!y.ok()) out.refused = y.status();
    out.results.push_back(numbers_of(y));
  }
  out.peak = (*made)->memory().peak_bytes;
  return out;
}

TEST(Budget, OpenModelsKeepItToTheByteOrAreRefused) {
  int kept = 0;
  int refused = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Bytes bytes = ModelMaker(seed).make();
    const Outcome free = run_sizes(bytes, 0);
    ASSERT_TRUE(free.refused.ok()) << free.refused.to_string();
    ASSERT_GT(free.peak, 0);
    for (const int64_t percent : {100, 75, 50}) {
      SCOPED_TRACE(percent);
      const int64_t budget = free.peak * percent / 100;
      const Outcome found = run_sizes(bytes, budget);
      EXPECT_LE(found.peak, budget);
      if (found.refused.ok()) {
        EXPECT_EQ(found.results, free.results);
        ++kept;
        continue;
      }
      EXPECT_LT(percent, 100) << found.refused.to_string();
      EXPECT_EQ(found.refused.code(), Code::kBudgetExceeded) << found.refused.to_string();
      EXPECT_NE(found.refused.message().find("budget"), std::string::npos)
          << found.refused.to_string();
      ++refused;
    }
  }
  EXPECT_GT(kept, 200);
  EXPECT_GT(refused, 20);
}

// Kept programs make room: the first size is dropped for the second and compiled again.
TEST(Budget, TheOldestProgramsAreDroppedFirst) {
  const Bytes bytes = ModelMaker(3).make();
  const auto one = [&](int64_t count) {
    const auto made = budgeted(bytes, 0);
    EXPECT_TRUE((*made)->run(std::vector<DynValue>{rows(count)}).ok());
    return (*made)->memory().peak_bytes;
  };
  const int64_t needed = std::max(one(9), one(6));
  ASSERT_LT(needed, run_sizes(bytes, 0).peak);
  const Outcome tight = run_sizes(bytes, needed);
  ASSERT_TRUE(tight.refused.ok()) << tight.refused.to_string();
  EXPECT_LE(tight.peak, needed);
  const auto made = budgeted(bytes, needed);
  for (const int64_t count : {9, 6, 9}) {
    EXPECT_TRUE((*made)->run(std::vector<DynValue>{rows(count)}).ok());
  }
  int dropped = 0;
  for (const Decision& d : (*made)->decisions()) {
    dropped += d.what == "kept_program" && d.reason == "memory_budget" ? 1 : 0;
  }
  EXPECT_GT(dropped, 0);
}

TEST(Budget, ARefusalNamesTheSegmentAndItsBytes) {
  const Bytes bytes = ModelMaker(3).make();
  const int64_t peak = run_sizes(bytes, 0).peak;
  const auto made = budgeted(bytes, peak / 8);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto y = (*made)->run(std::vector<DynValue>{rows(9)});
  expect_refused(y, Code::kBudgetExceeded, "at most " + std::to_string(peak / 8) + " bytes");
  EXPECT_FALSE(y.status().node().empty()) << y.status().to_string();
}

// Shapes that never come back, each with a number in its code: a bounded number of compiles, the
// same results. The number is folded; where it is not, one code serves all shapes.
TEST(Storm, CompilingIsBounded) {
  const char* config = std::getenv("PYC_TEST_CONFIG");
  if (config != nullptr &&
      std::string_view(config).find("fold_constants") != std::string_view::npos) {
    GTEST_SKIP() << "constants are not folded here";
  }
  const Bytes bytes =
      model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(4)}))},
             .outputs = {unshaped("y", kF32)},
             .nodes = {node("Size", {"x"}, {"size"}, {}, "size"),
                       node("Cast", {"size"}, {"count"}, {attr_int("to", kF32)}, "cast"),
                       node("Mul", {"x", "count"}, {"y"}, {}, "scale")}});
  const auto made = budgeted(bytes, 0, "cpu");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  constexpr int64_t kShapes = 400;
  for (int64_t count = 1; count <= kShapes; ++count) {
    std::vector<float> values(static_cast<size_t>(count * 4), 1.5F);
    const auto y = (*made)->run(std::vector<DynValue>{f32({count, 4}, values)});
    ASSERT_TRUE(y.ok()) << y.status().to_string();
    const double scaled = 1.5 * static_cast<double>(values.size());
    ASSERT_EQ(numbers_of(y), std::vector<double>(values.size(), scaled));
  }
  int compiled = 0;
  int storms = 0;
  for (const Decision& d : (*made)->decisions()) {
    compiled += d.what == "kernel:g0" && d.chosen != "interpret" ? 1 : 0;
    storms += d.what == "respecialize" && d.chosen == "interpret" && d.reason == "storm" ? 1 : 0;
  }
  EXPECT_EQ(storms, 1);
  EXPECT_GE(compiled, exec::Executor::kStormLimit);
  EXPECT_LE(compiled, exec::Executor::kStormLimit + kShapes / 8);
}

}  // namespace
}  // namespace pyc::onnx::test

#pragma once

// Open models that are drawn, and what becomes of them within a memory budget.

#include <cstdlib>
#include <random>
#include <string>

#include "base/allocation_meter.h"
#include "onnx/run_model.h"

namespace pyc::onnx::test {

constexpr uint32_t kBudgetModels = 200;

// Models of matrix products with breaks between them: rows that are picked by what they hold,
// branches, loops, shapes that are computed with. Every value is f32[rows, columns].
class ModelMaker {
 public:
  explicit ModelMaker(uint32_t seed) : random_(seed), columns_(columns_of(seed)) {}

  static int64_t columns_of(uint32_t seed) {
    constexpr int64_t kColumns[] = {16, 7, 12, 33};
    return kColumns[seed % 4];
  }

  Bytes make() {
    const int pieces = 3 + static_cast<int>(random_() % 4);
    for (int i = 0; i < pieces; ++i) add_piece();
    nodes_.push_back(node("Identity", {last_}, {"y"}));
    return model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(columns_)}))},
                  .outputs = {unshaped("y", kF32)},
                  .initializers = weights_,
                  .nodes = nodes_});
  }

 private:
  std::string name(const std::string& of) { return of + std::to_string(count_++); }

  std::string weight() {
    std::vector<float> values(static_cast<size_t>(columns_ * columns_));
    for (float& v : values) v = static_cast<float>(random_() % 1000) / 4000.0F - 0.1F;
    weights_.push_back(floats(name("w"), {columns_, columns_}, values));
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

  // Ones of the value's own shape: a constant once the shape is known.
  void add_ones() {
    const std::string shape = name("h");
    const std::string y = name("a");
    nodes_.push_back(node("Shape", {last_}, {shape}));
    nodes_.push_back(node("ConstantOfShape", {shape}, {shape + "o"}, {}, shape + "o"));
    nodes_.push_back(node("Exp", {shape + "o"}, {shape + "e"}));
    nodes_.push_back(node("Add", {last_, shape + "e"}, {y}, {}, y));
    last_ = y;
  }

  void add_piece() {
    switch (random_() % 5) {
      case 0:
        return product();
      case 1:
        return pick_rows();
      case 2:
        return branch();
      case 3:
        return add_ones();
      default:
        return repeat();
    }
  }

  std::mt19937 random_;
  const int64_t columns_;
  int count_ = 0;
  std::string last_ = "x";
  std::vector<Bytes> nodes_;
  std::vector<Bytes> weights_;
};

inline DynValue rows(int64_t count, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(count * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2.0F;
  return f32({count, columns}, values);
}

inline Result<std::unique_ptr<session::Session>> budgeted(const Bytes& bytes, int64_t budget,
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
  int64_t handed_out = 0;  // by the allocator and held at a time, at most; and the inputs
};

// Two sizes, and the first again: programs of both are kept where there is room.
inline Outcome run_sizes(uint32_t seed, int64_t budget, const std::string& device = "reference") {
  Outcome out;
  const Bytes bytes = ModelMaker(seed).make();
  const int64_t before = allocated_now();
  (void)take_allocated_peak();
  const auto made = budgeted(bytes, budget, device);
  if (!made.ok()) {
    out.refused = made.status();
    return out;
  }
  for (const int64_t count : {9, 6, 9}) {
    const DynValue x = rows(count, ModelMaker::columns_of(seed));
    const auto y = (*made)->run(std::vector<DynValue>{x});
    if (!y.ok()) out.refused = y.status();
    out.results.push_back(numbers_of(y));
    const int64_t held = take_allocated_peak() - before + static_cast<int64_t>(x.bytes.size());
    out.handed_out = std::max(out.handed_out, held);
  }
  out.peak = (*made)->memory().peak_bytes;
  return out;
}

struct Tally {
  int64_t models = 0;
  int64_t kept = 0;
  int64_t refused = 0;
  int64_t overruns = 0;  // more was handed out than the budget allows
};

// Whether a model has the same results within the budget, or is refused by name.
inline void expect_kept_or_refused(const Outcome& found, const Outcome& free, int64_t budget,
                                   Tally& tally) {
  EXPECT_LE(found.peak, budget);
  EXPECT_LE(found.handed_out, budget) << found.refused.to_string();
  if (found.handed_out > budget) ++tally.overruns;
  if (found.refused.ok()) {
    EXPECT_EQ(found.results, free.results);
    ++tally.kept;
    return;
  }
  EXPECT_LT(budget, free.peak) << found.refused.to_string();
  EXPECT_EQ(found.refused.code(), Code::kBudgetExceeded) << found.refused.to_string();
  EXPECT_NE(found.refused.message().find("memory budget"), std::string::npos)
      << found.refused.to_string();
  EXPECT_FALSE(found.refused.node().empty()) << found.refused.to_string();
  ++tally.refused;
}

// Each `step`-th model from the `first` on, at 100 %, 75 % and 50 % of what it takes without a
// budget.
inline Tally run_budgets(const std::string& device, uint32_t first, uint32_t step) {
  Tally tally;
  for (uint32_t seed = first; seed < kBudgetModels; seed += step) {
    SCOPED_TRACE(testing::Message() << device << " " << seed);
    const Outcome free = run_sizes(seed, 0, device);
    EXPECT_TRUE(free.refused.ok()) << free.refused.to_string();
    EXPECT_GT(free.handed_out, 0);
    EXPECT_LE(free.handed_out, free.peak);
    for (const int64_t percent : {100, 75, 50}) {
      SCOPED_TRACE(percent);
      const int64_t budget = free.peak * percent / 100;
      expect_kept_or_refused(run_sizes(seed, budget, device), free, budget, tally);
    }
    ++tally.models;
  }
  return tally;
}

}  // namespace pyc::onnx::test

// Random graphs: leaving out any bit-preserving pass, or all of them, changes no bit of any output,
// -0, infinities and NaN included. PYC_RANDOM_GRAPHS sets how many, PYC_RANDOM_SEED where to start.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/convert.h"
#include "ops/registry.h"
#include "passes/run_text.h"

namespace pyc::passes {
namespace {

// Graphs full of what passes look for: neutral constants, chains of casts, transposes around
// elementwise ops, equal nodes, nodes over constants.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_(ops::all_ops(), "random") {}

  ir::Graph make() {
    static constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kI32};
    const DType t = kTypes[pick(0, 3)];
    for (int i = 0; i < 2; ++i) keep(builder_.input(fmt::format("x{}", i), {t, shape_}));
    const int nodes = pick(4, 24);
    for (int made = 0, tries = 0; made < nodes && tries < 400; ++tries) made += add_node() ? 1 : 0;
    for (int i = pick(1, 3); i > 0; --i) {
      EXPECT_TRUE(builder_.output(i == 1 ? values_.back() : any()).ok());
    }
    return std::move(builder_).take();
  }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  ir::ValueId any() { return values_[static_cast<size_t>(pick(0, int(values_.size()) - 1))]; }
  ir::ValueId recent() { return pick(0, 3) > 0 ? values_.back() : any(); }

  bool keep(Result<ir::ValueId> value) {
    if (!value.ok()) return false;
    values_.push_back(*value);
    return true;
  }

  bool op(std::string_view name, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {}) {
    return keep(builder_.op(name, std::move(inputs), std::move(attrs)));
  }

  ir::ValueId constant(const ir::TensorType& like) {
    ir::TensorType type{like.dtype, {}};
    if (pick(0, 1) == 1) type.shape = like.shape;
    for (int64_t& d : type.shape) {
      if (pick(0, 2) == 0) d = 1;
    }
    static constexpr double kValues[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, HUGE_VAL, -HUGE_VAL, 3.0};
    auto data = pick(0, 3) > 0 ? ir::splat_data(type, kValues[pick(0, 8)])
                               : ir::random_data(type, random_(), -2.0, 2.0);
    const ir::ValueId v = builder_.constant(type, std::move(data)).value();
    if (pick(0, 3) == 0) values_.push_back(v);
    return v;
  }

  std::vector<int64_t> permutation(int64_t rank) {
    std::vector<int64_t> perm;
    for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    if (pick(0, 2) == 0) perm = {1, 0, 2};
    if (rank != 3) perm = rank == 2 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{};
    return perm;
  }

  bool add_node() {
    static constexpr std::string_view kUnary[] = {"neg", "abs", "relu", "neg", "exp", "sqrt"};
    static constexpr std::string_view kBinary[] = {"add", "sub", "mul", "div", "min", "max"};
    const ir::ValueId x = recent();
    const ir::TensorType type = builder_.type(x);
    switch (pick(0, 13)) {
      case 0:
      case 1:
        return op(kUnary[pick(0, 5)], {x});
      case 2:
        return op(kBinary[pick(0, 5)], {x, any()});
      case 3:
        return op(kBinary[pick(0, 5)], {any(), x});
      case 4:
      case 5:
        return op(kBinary[pick(0, 5)], {x, constant(type)});
      case 6:
      case 7:
        return op("transpose", {x}, {{"perm", permutation(type.rank())}});
      case 8: {
        static constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64,
                                           DType::kI32, DType::kI8,   DType::kU8};
        return op("cast", {x}, {{"to", kTypes[pick(0, 6)]}});
      }
      case 9:
        return op("reshape", {x}, {{"shape", pick(0, 1) ? shape_ : ir::Shape{-1}}});
      case 10: {
        if (builder_.type(x).dtype != builder_.type(any()).dtype) return false;
        const auto condition = builder_.op("less", {x, constant(type)});
        return condition.ok() && op("where", {*condition, x, any()});
      }
      case 11:
        return op("identity", {x});
      case 12:
        return op("reduce_max", {x}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", true}});
      default: {
        const ir::ValueId k = constant(type);
        return op(kBinary[pick(0, 5)], {k, constant(builder_.type(k))});
      }
    }
  }

  const ir::Shape shape_ = {2, 1, 3};
  std::mt19937_64 random_;
  ir::GraphBuilder builder_;
  std::vector<ir::ValueId> values_;
};

// Elements with all the special ones among them.
Bytes tensor(const ir::TensorType& type, uint64_t seed) {
  std::mt19937_64 random(seed);
  static constexpr double kValues[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 1e-41, 1.0, -2.5};
  Bytes bytes(static_cast<size_t>(type.bytes()));
  for (int64_t i = 0; i < type.elements(); ++i) {
    const bool special = random() % 2 == 0;
    const double x = special ? kValues[random() % 8] : static_cast<double>(random() % 1000) / 100;
    store_word(bytes.data() + i * dtype_size(type.dtype), type.dtype,
               word_from_double(x, type.dtype));
  }
  return bytes;
}

int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

TEST(RandomGraphs, PassesKeepEveryBit) {
  std::vector<std::string> value_changing;
  std::vector<std::vector<std::string>> settings;
  for (const Pass& pass : pipeline()) {
    if (pass.value_changing) value_changing.emplace_back(pass.name);
  }
  for (const Pass& pass : pipeline()) {
    if (pass.required || pass.value_changing) continue;
    settings.push_back(value_changing);
    settings.back().emplace_back(pass.name);
  }
  settings.push_back(value_changing);
  const int first = setting("PYC_RANDOM_SEED", 1);
  size_t changed = 0;
  for (int seed = first; seed < first + setting("PYC_RANDOM_GRAPHS", 150); ++seed) {
    const ir::Graph graph = Generator(static_cast<uint64_t>(seed)).make();
    std::vector<Bytes> inputs;
    for (const ir::ValueId v : graph.inputs) {
      inputs.push_back(tensor(graph.type(v), static_cast<uint64_t>(seed) + v));
    }
    const Outcome plain = run_graph(graph, optional_passes(), inputs);
    ASSERT_EQ(plain.error, "") << ir::print(graph);
    for (const std::vector<std::string>& off : settings) {
      const Outcome optimized = run_graph(graph, off, inputs);
      ASSERT_EQ(optimized.error, "") << ir::print(graph);
      ASSERT_EQ(plain.outputs, optimized.outputs)
          << "seed " << seed << ", without " << off.back() << "\n"
          << ir::print(graph) << plain.canonical << optimized.canonical;
      changed += optimized.canonical != plain.canonical ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 0u);
}

}  // namespace
}  // namespace pyc::passes

// Random graphs over the op table: whatever is fused, tiled, vectorized and cut among threads, the
// CPU must give the bits of the plain reference (one group per node). PYC_RANDOM_GRAPHS sets how
// many, PYC_RANDOM_SEED where to start.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "driver/compile.h"
#include "driver/seeded_run.h"
#include "ops/registry.h"

namespace pyc::driver {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_(ops::all_ops(), "random") {}

  ir::Graph make() {
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      keep(builder_.input(fmt::format("x{}", i), {DType::kF32, random_shape()}));
    }
    const int nodes = pick(3, 18);
    for (int made = 0, tries = 0; made < nodes && tries < 400; ++tries) made += add_node() ? 1 : 0;
    const int outputs = pick(1, 3);
    EXPECT_TRUE(builder_.output(values_.back()).ok());
    for (int i = 1; i < outputs; ++i) EXPECT_TRUE(builder_.output(any()).ok());
    return std::move(builder_).take();
  }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  ir::ValueId any() { return values_[static_cast<size_t>(pick(0, int(values_.size()) - 1))]; }
  // Often the newest value, so that chains grow.
  ir::ValueId recent() { return pick(0, 2) > 0 ? values_.back() : any(); }

  bool keep(Result<ir::ValueId> value) {
    if (!value.ok()) return false;
    if (builder_.type(*value).elements() > 4000) return true;  // a node, but nothing builds on it
    values_.push_back(*value);
    return true;
  }

  ir::Shape random_shape() {
    static constexpr int64_t kDims[] = {1, 2, 3, 4, 5, 7, 8, 16, 33, 65};
    ir::Shape shape;
    int64_t elements = 1;
    for (int r = pick(0, 4); r > 0; --r) {
      const int64_t d = kDims[pick(0, 9)];
      if (elements * d > 3000) break;
      shape.push_back(d);
      elements *= d;
    }
    return shape;
  }

  ir::ValueId constant(ir::Shape shape, DType t = DType::kF32) {
    const ir::TensorType type{t, std::move(shape)};
    return builder_.constant(type, ir::random_data(type, random_(), -1.0, 1.0)).value();
  }

  bool op(std::string_view name, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {}) {
    return keep(builder_.op(name, std::move(inputs), std::move(attrs)));
  }

  // A shape that broadcasts against `shape`.
  ir::Shape broadcastable(const ir::Shape& shape) {
    const int drop = pick(0, int(shape.size()));
    ir::Shape out(shape.begin() + drop, shape.end());
    for (int64_t& d : out) {
      if (pick(0, 2) == 0) d = 1;
    }
    return out;
  }

  // All that take one value and need no attribute; what refuses the value's type is not drawn.
  static std::vector<std::string_view> unary_ops() {
    std::vector<std::string_view> names;
    for (const ir::OpDef* op : ops::all_ops().all()) {
      const auto needed = [](const ir::AttrDef& a) { return a.required; };
      if (op->min_inputs != 1 || op->max_inputs != 1) continue;
      if (std::none_of(op->attrs.begin(), op->attrs.end(), needed)) names.push_back(op->name);
    }
    return names;
  }

  bool add_node() {
    static const std::vector<std::string_view> kUnary = unary_ops();
    static constexpr std::string_view kBinary[] = {
        "add", "sub", "mul", "div", "min",   "max",           "pow",         "prelu",
        "add", "sub", "mul", "div", "equal", "greater_equal", "bitwise_xor", "shift_right"};
    static constexpr std::string_view kReduce[] = {"reduce_sum", "reduce_max", "reduce_mean"};
    const ir::ValueId x = recent();
    const ir::TensorType type = builder_.type(x);
    const int rank = static_cast<int>(type.rank());
    switch (pick(0, 15)) {
      case 0:
      case 1:
        return op(kUnary[static_cast<size_t>(pick(0, int(kUnary.size()) - 1))], {x});
      case 2:
        return op(kBinary[pick(0, 15)], {x, any()});
      case 3:
      case 4:
        return op(kBinary[pick(0, 15)], {x, constant(broadcastable(type.shape), type.dtype)});
      case 5: {
        if (rank == 0) return false;
        std::vector<int64_t> axes;
        for (int i = pick(0, rank - 1); i < rank; ++i) axes.push_back(i);
        if (pick(0, 2) == 0) axes = {pick(0, rank - 1)};
        return op(kReduce[pick(0, 2)], {x}, {{"axes", axes}, {"keepdims", pick(0, 1) == 1}});
      }
      case 6:
        return rank > 0 && op("softmax", {x}, {{"axis", int64_t{pick(0, 3) ? -1 : 0}}});
      case 7: {
        if (rank == 0) return false;
        const ir::Shape last = {type.shape.back()};
        return op("layer_norm", {x, constant(last, type.dtype), constant(last, type.dtype)});
      }
      case 8: {
        std::vector<int64_t> perm(static_cast<size_t>(rank));
        for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = i;
        std::shuffle(perm.begin(), perm.end(), random_);
        return op("transpose", {x}, {{"perm", perm}});
      }
      case 9: {
        ir::Shape shape = {-1};
        if (pick(0, 1) == 1) shape = {pick(1, 4), -1};
        if (pick(0, 1) == 1) shape.push_back(pick(1, 3));
        return op("reshape", {x}, {{"shape", shape}});
      }
      case 10: {
        if (rank == 0) return false;
        const int64_t axis = pick(0, rank - 1);
        const int64_t step = pick(0, 3) == 0 ? -1 : pick(1, 2);
        const std::vector<int64_t> starts = {step < 0 ? int64_t{-1} : pick(0, 2)};
        const std::vector<int64_t> ends = {step < 0 ? int64_t{-100000} : int64_t{100000}};
        return op("slice", {x},
                  {{"starts", starts},
                   {"ends", ends},
                   {"axes", std::vector<int64_t>{axis}},
                   {"steps", std::vector<int64_t>{step}}});
      }
      case 11:
        return rank > 0 && op("concat", {x, x, recent()}, {{"axis", int64_t{pick(0, rank - 1)}}});
      case 12: {
        std::vector<int64_t> pads(static_cast<size_t>(2 * rank));
        for (int64_t& p : pads) p = pick(0, 2);
        return op("pad", {x}, {{"pads", pads}, {"value", 0.5}});
      }
      case 13:
      case 14: {
        if (rank == 0) return false;
        const ir::ValueId w = constant({type.shape.back(), pick(1, 40)}, type.dtype);
        return op("matmul", {x, w});
      }
      default: {
        static constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64,
                                           DType::kI32};
        return op("cast", {x}, {{"to", kTypes[pick(0, 4)]}});
      }
    }
  }

  std::mt19937_64 random_;
  ir::GraphBuilder builder_;
  std::vector<ir::ValueId> values_;
};

// The digests of all outputs, or the message of what went wrong.
std::string outcome(const ir::Graph& graph, const CompileOptions& options) {
  auto model = compile(graph, options);
  if (!model.ok()) return model.status().to_string();
  auto data = SeededRun::create(**model, 7, AlignedBuffer::Mode::kGuarded);
  if (!data.ok()) return data.status().to_string();
  const Status status = (*model)->run(data->inputs(), data->outputs());
  if (!status.ok()) return status.to_string();
  if (!data->intact()) return "memory around an output was written";
  std::string digests = "ok";
  for (size_t i = 0; i < (*model)->outputs().size(); ++i) digests += " " + data->digest(i).hex();
  return digests;
}

TEST(RandomGraphs, CpuGivesTheBitsOfTheUnfusedReference) {
  const char* count_text = std::getenv("PYC_RANDOM_GRAPHS");
  const char* seed_text = std::getenv("PYC_RANDOM_SEED");
  const int count = count_text != nullptr ? std::atoi(count_text) : 60;
  const int first = seed_text != nullptr ? std::atoi(seed_text) : 1;
  for (int seed = first; seed < first + count; ++seed) {
    const ir::Graph graph = Generator(static_cast<uint64_t>(seed)).make();
    CompileOptions plain;
    plain.device = "reference";
    plain.fuse = false;
    plain.reuse = false;
    plain.threads = 1;
    plain.cache = false;
    const std::string expected = outcome(graph, plain);
    ASSERT_TRUE(expected.starts_with("ok")) << "seed " << seed << "\n"
                                            << expected << "\n"
                                            << ir::print(graph);
    CompileOptions fused;
    fused.device = "reference";
    fused.threads = 2;
    fused.cache = false;
    EXPECT_EQ(outcome(graph, fused), expected) << "fused reference, seed " << seed << "\n"
                                               << ir::print(graph);
    constexpr int kLanes[] = {4, 8, 16};
    CompileOptions cpu;
    cpu.cache = false;
    cpu.lanes = kLanes[seed % 3];
    cpu.threads = 1 + seed % 4;
    if (seed % 5 == 0) cpu.kernels = {"f32_matmul"};
    EXPECT_EQ(outcome(graph, cpu), expected)
        << "cpu, seed " << seed << " lanes " << cpu.lanes << "\n"
        << ir::print(graph);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace pyc::driver

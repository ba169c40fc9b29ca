#pragma once

// Random graphs that are valid by construction, over every op of the table and every dtype an op
// takes. How its operands and attributes are drawn, each op says itself (ir::Drawing).

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/draw.h"

namespace pyc::test {

using ir::Attrs;
using ir::Shape;
using ir::ValueId;
using ops::Ints;

// An op with the dtype it is asked for: that of its first operand, or of its result where it has
// none.
struct Pair {
  const ir::OpDef* op = nullptr;
  DType dtype = DType::kF32;
  auto operator<=>(const Pair&) const = default;
};

enum class Values : uint8_t {
  kWild,  // infinities, NaN, -0, the smallest and largest among others
  kTame,  // moderate ones inside of each op's domain; what jumps reads exact values only
};

struct DrawOptions {
  Values values = Values::kWild;
  std::vector<Pair> pairs = {};  // to draw from; none: all there are
  int max_nodes = 4;             // not counting what adapts operands
};

struct DrawnGraph {
  ir::Graph graph;
  std::vector<std::vector<std::byte>> inputs;  // the bytes of each input
  std::vector<Pair> pairs;                     // what it was made of
};

// The same seed and options give the same graph on every machine.
DrawnGraph draw_graph(uint64_t seed, const DrawOptions& options = {});
// One node of `pair`, and what makes its operands.
Result<DrawnGraph> draw_node(uint64_t seed, const Pair& pair, Values values);
// Every op with every dtype that its type rule takes. A draw that is refused for another reason
// than its dtype is named in `faults`.
const std::vector<Pair>& all_pairs(std::vector<std::string>* faults = nullptr);

// What draws a graph, node by node.
class Draw : public ops::Draw {
 public:
  Draw(uint64_t seed, Values values);

  // A node of the pair. Its results may become operands of others.
  Result<ValueId> node(const Pair& pair);
  DrawnGraph finish() &&;

  uint64_t bits() override { return random_(); }
  ValueId tensor(DType t, const Shape& shape) override;
  ValueId fresh(DType t, const Shape& shape, double lo, double hi) override;
  Result<ValueId> op(std::vector<ValueId> inputs, Attrs attrs = {}) override;

 private:
  const ir::TensorType& type(ValueId v) const { return builder_.type(v); }
  Result<ValueId> elementwise(DType t);
  ValueId adapted(ValueId v, DType t, const Shape& shape);
  ValueId must(std::string_view name, std::vector<ValueId> inputs, Attrs attrs);
  void note(ValueId first, std::span<const ValueId> inputs);
  std::vector<std::byte> data(const ir::TensorType& type, double lo, double hi, bool wild);
  ValueId neutral(const ir::TensorType& type);
  ValueId source(const ir::TensorType& type, std::vector<std::byte> bytes);

  std::mt19937_64 random_;
  ir::GraphBuilder builder_;
  const ir::OpDef* op_ = nullptr;  // of the node being drawn
  std::vector<ValueId> values_there_;
  std::vector<bool> exact_;  // by value: no rounding lies behind it
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<Pair> pairs_;
};

}  // namespace pyc::test

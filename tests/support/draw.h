#pragma once

// Random graphs that are valid by construction, over every op of the table and
// every dtype an op takes. One recipe per op says how its operands and
// attributes are drawn (recipes_*.cpp); ops without one are drawn as
// elementwise ones.

#include <cstddef>
#include <initializer_list>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace pyc::test {

using ir::Attrs;
using ir::Shape;
using ir::ValueId;
using Ints = std::vector<int64_t>;

// An op with the dtype it is asked for: that of its first operand, or of its
// result where it has none.
struct Pair {
  const ir::OpDef* op = nullptr;
  DType dtype = DType::kF32;
  auto operator<=>(const Pair&) const = default;
};

enum class Values : uint8_t {
  kWild,  // infinities, NaN, -0, the smallest and largest among others
  kTame,  // moderate ones inside of each op's domain; what jumps reads exact
          // values only
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
// Every op with every dtype that its type rule takes. A recipe that is refused
// for another reason than its dtype is named in `faults`.
const std::vector<Pair>& all_pairs(std::vector<std::string>* faults = nullptr);

// What a recipe draws with.
class Draw {
 public:
  Draw(uint64_t seed, Values values);

  bool tame() const { return values_ == Values::kTame; }
  int64_t pick(int64_t lo, int64_t hi);  // both included
  bool chance(int64_t n) { return pick(1, n) == 1; }
  bool flip() { return chance(2); }
  double real(double lo, double hi);
  template <class T>
  T choose(std::initializer_list<T> list) {
    return *(list.begin() + pick(0, static_cast<int64_t>(list.size()) - 1));
  }
  std::string word(std::initializer_list<const char*> list) { return choose(list); }

  // Sizes. Dims may be 0 where `least` is.
  int64_t dim(int64_t least = 1);
  Shape shape(int64_t min_rank = 0, int64_t max_rank = 8, int64_t least = 0);
  Shape broadcastable(const Shape& shape);
  int64_t axis(int64_t rank);  // counted from the front or the back; requires a rank
  Ints axes(int64_t rank);     // some of them, or none
  Ints permutation(int64_t rank);

  // Operands: values that are there, seen through reshapes, slices, transposes
  // and casts, or new inputs and constants.
  ValueId tensor(DType t, const Shape& shape);
  ValueId tensor_in(DType t, const Shape& shape, double lo,
                    double hi);  // when tame
  ValueId fresh(DType t, const Shape& shape, double lo,
                double hi);                                     // always within
  ValueId indices(const Shape& shape, int64_t lo, int64_t hi);  // i32 or i64
  DType float_dtype();
  DType any_dtype();

  // The node. Its results may become operands of others.
  Result<ValueId> op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {});

  const ir::TensorType& type(ValueId v) const { return builder_.type(v); }

  // For draw_graph.
  Result<ValueId> node(const Pair& pair);
  DrawnGraph finish() &&;

 private:
  ValueId adapted(ValueId v, DType t, const Shape& shape);
  ValueId must(std::string_view name, std::vector<ValueId> inputs, Attrs attrs);
  void note(ValueId first, std::span<const ValueId> inputs);
  std::vector<std::byte> data(const ir::TensorType& type, double lo, double hi, bool wild);
  ValueId neutral(const ir::TensorType& type);
  ValueId source(const ir::TensorType& type, std::vector<std::byte> bytes);

  Values values_;
  std::mt19937_64 random_;
  ir::GraphBuilder builder_;
  std::vector<ValueId> values_there_;
  std::vector<bool> exact_;  // by value: no rounding lies behind it
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<Pair> pairs_;
  bool sharp_ = false;  // the node being drawn jumps
};

// How an op is drawn for a dtype; without `draw` as an elementwise op. A sharp
// one jumps: what is near before it need not be after it. Tame operands of
// elementwise ops lie in [lo, hi).
struct Recipe {
  std::string_view op;
  Result<ValueId> (*draw)(Draw& d, DType t) = nullptr;
  bool sharp = false;
  double lo = 0.25;
  double hi = 1.75;
};
using Recipes = std::span<const Recipe>;
Recipes elementwise_recipes();
Recipes shape_recipes();
Recipes index_recipes();
Recipes window_recipes();
Recipes reduce_recipes();
Recipes model_recipes();
const Recipe* find_recipe(std::string_view op);

}  // namespace pyc::test

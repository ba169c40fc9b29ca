#pragma once

// For ops defined by other ops, so that a decomposition reads like its formula. The first call that
// is refused makes all later ones do nothing; `outputs` then gives that refusal.

#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace pyc::ops {

using ir::ValueId;

class Compose {
 public:
  Compose(ir::GraphBuilder& builder, const ir::Node& node) : builder_(builder), node_(node) {}

  ValueId op(std::string_view name, std::vector<ValueId> inputs, ir::Attrs attrs = {});
  // A constant of the same dtype as `other`.
  ValueId scalar_like(ValueId other, double value);
  // Rounded like the result of any op: what is too large becomes inf or NaN.
  ValueId cast(ValueId x, DType to);
  ValueId add(ValueId a, ValueId b) { return op("add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op("sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op("mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op("div", {a, b}); }
  // Multiplied by, or plus, a constant of its dtype.
  ValueId scale(ValueId x, double factor) { return mul(x, scalar_like(x, factor)); }
  ValueId shift(ValueId x, double by) { return add(x, scalar_like(x, by)); }
  ValueId reshape(ValueId x, ir::Shape shape);
  ValueId expand(ValueId x, ir::Shape shape);
  ValueId transpose(ValueId x, std::vector<int64_t> perm);
  // Elements [begin, end) along an axis; the axis stays.
  ValueId slice(ValueId x, int64_t axis, int64_t begin, int64_t end);
  ValueId concat(std::vector<ValueId> parts, int64_t axis);
  // A constant of these elements, each converted to `t`.
  ValueId constant(DType t, ir::Shape shape, const std::vector<double>& values);
  // 0, 1, 2 … along `axis` of a tensor of `rank` dims, the others of extent 1; i64.
  ValueId positions(int64_t rank, int64_t axis, int64_t count);
  // Input i, as f32 if it is a narrow float.
  ValueId wide_input(size_t i);
  // By value: the builder's types move when it grows. After a refusal: any type of that value's.
  ir::TensorType type(ValueId x) const {
    return x == ir::kNoId ? ir::TensorType() : builder_.type(x);
  }
  ir::TensorType input_type(size_t i) const { return builder_.type(node_.inputs[i]); }
  size_t inputs() const { return node_.inputs.size(); }
  ValueId input(size_t i) const { return node_.inputs[i]; }
  // The node's attributes.
  ir::InferArgs attrs() const { return {.inputs = {}, .attrs = node_.attrs}; }

  Result<std::vector<ValueId>> outputs(std::vector<ValueId> values);

 protected:
  ValueId take(Result<ValueId> result);

  ir::GraphBuilder& builder_;
  const ir::Node& node_;
  Status status_;
};

// Input 0 as f32 or f64: narrow floats as f32, integers as f64.
ValueId real_input(Compose& c);

// 1 / sqrt(var + epsilon): what norms multiply their elements by.
ValueId inverse_deviation(Compose& c, ValueId var, double epsilon);

// (x * inverse_deviation) * gamma (+ beta): the end of every norm, x being centred already.
ValueId normalize(Compose& c, ValueId centred, ValueId var, double epsilon, ValueId gamma,
                  ValueId beta = ir::kNoId);

}  // namespace pyc::ops

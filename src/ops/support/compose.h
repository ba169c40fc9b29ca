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
  // Input i, as f32 if it is a narrow float.
  ValueId wide_input(size_t i);
  // By value: the builder's types move when it grows.
  ir::TensorType input_type(size_t i) const { return builder_.type(node_.inputs[i]); }

  Result<std::vector<ValueId>> outputs(std::vector<ValueId> values);

 private:
  ValueId take(Result<ValueId> result);

  ir::GraphBuilder& builder_;
  const ir::Node& node_;
  Status status_;
};

// (x / sqrt(var + eps)) * gamma (+ beta): the end of every normalisation, x being centred already.
ValueId normalize(Compose& c, ValueId centred, ValueId var, double epsilon, ValueId gamma,
                  ValueId beta = ir::kNoId);

}  // namespace pyc::ops

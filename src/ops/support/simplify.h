#pragma once

// What the `simplify` rules of ops share. A rule may use only what holds for every bit of every
// input: -0 and infinities included, any NaN being as good as another (docs/NUMERICS.md).

#include "ir/patch.h"
#include "ops/support/infer.h"

namespace pyc::ops {

using ir::kNoId;
using ir::NodeView;
using ir::Patch;
using ir::ValueId;

// Input i, if it is what the node would give: the same type, nothing broadcast.
inline ValueId input_if_same(const NodeView& node, size_t i) {
  return node.input_type(i) == node.type() ? node.input(i) : kNoId;
}

// The other input, where input 0 or 1 is a constant with all elements equal to `x`.
inline ValueId drop_neutral(const Patch& patch, const NodeView& node, double x) {
  for (size_t i = 0; i < 2; ++i) {
    if (patch.is_uniform(node.input(1 - i), x)) {
      if (const ValueId other = input_if_same(node, i); other != kNoId) return other;
    }
  }
  return kNoId;
}

// A tensor of zeros like the node's output, without its memory.
inline ValueId zeros_like(Patch& patch, const NodeView& node) {
  const ir::TensorType scalar{node.type().dtype, {}};
  return patch.op("expand", {patch.constant(scalar, ir::splat_data(scalar, 0.0))},
                  {{"shape", node.type().shape}});
}

// op(x, x) and op(x, op(x, y)) for an op that keeps one of its operands.
ValueId simplify_idempotent(const NodeView& node, Patch& patch);

// `axis` and `axes` counted from the front of input 0, axes sorted; no axes become all axes.
ir::Attrs canonical_axis(const InferArgs& args);
ir::Attrs canonical_axes(const InferArgs& args);

}  // namespace pyc::ops

#include "ops/support/simplify.h"

#include <algorithm>
#include <numeric>

namespace pyc::ops {

ValueId simplify_idempotent(const NodeView& node, Patch& patch) {
  if (node.input(0) == node.input(1)) {
    return patch.by("idempotent_itself", input_if_same(node, 0));
  }
  for (size_t i = 0; i < 2; ++i) {
    const NodeView inner = patch.producer(node.input(i));
    if (!inner || &inner.op() != &node.op()) continue;
    const ValueId other = node.input(1 - i);
    if (inner.input(0) != other && inner.input(1) != other) continue;
    return patch.by("idempotent_again", input_if_same(node, i));
  }
  return kNoId;
}

ir::Attrs canonical_axis(const InferArgs& args) {
  ir::Attrs attrs = args.attrs;
  attrs["axis"] = from_front(args.attr_int("axis"), args.inputs[0].rank());
  return attrs;
}

ir::Attrs canonical_axes(const InferArgs& args) {
  ir::Attrs attrs = args.attrs;
  const int64_t rank = args.inputs[0].rank();
  Ints axes = args.attr_ints("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = from_front(axis, rank);
  std::sort(axes.begin(), axes.end());
  attrs["axes"] = std::move(axes);
  return attrs;
}

}  // namespace pyc::ops

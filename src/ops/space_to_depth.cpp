#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

constexpr int64_t kMaxSpaceBlock = 1 << 20;

Types infer_space_to_depth(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_rank("input (NCHW)", x, 4));
  const int64_t block = args.attr_int("block");
  PYC_TRY(require_ints("block", {block}, 1, 1, kMaxSpaceBlock));
  const std::string& mode = args.attr_string("mode");
  if (mode != "DCR" && mode != "CRD") {
    return refuse(Code::kInvalidArgument, "mode must be \"DCR\" or \"CRD\", found \"", mode, "\"");
  }
  if (x.shape[2] % block != 0 || x.shape[3] % block != 0) {
    return refuse(Code::kShapeMismatch, "block ", block, " does not divide the plane of ", x);
  }
  PYC_ASSIGN(Shape shape, scaled_shape(x, {1, block * block, 1, 1}));
  shape[2] /= block;
  shape[3] /= block;
  return one(x.dtype, std::move(shape));
}

Expr lower_space_to_depth(LowerContext& context, int, std::span<const Expr> index) {
  const int64_t size = context.attr_int("block");
  const Expr block = context.index(size);
  const bool depth_first = context.attr_string("mode") == "DCR";
  const Expr parts = context.index(
      depth_first ? std::max<int64_t>(context.input_type(0).shape[1], 1) : size * size);
  const Expr slow = floor_div(index[1], parts);
  const Expr fast = floor_mod(index[1], parts);
  const Expr place = depth_first ? slow : fast;
  return context.input(
      0, Index{index[0], depth_first ? fast : slow, index[2] * block + floor_div(place, block),
               index[3] * block + floor_mod(place, block)});
}

ValueId gradient_space_to_depth(Backward& b) {
  return b.op("depth_to_space", {b.g()}, b.node_attrs());
}

Result<ValueId> draw_space_to_depth(Draw& d, DType t) {
  const int64_t block = d.pick(1, 3);
  const Shape shape{d.pick(1, 2), d.pick(0, 3), d.pick(1, 4) * block, d.pick(1, 5) * block};
  return d.op({d.tensor(t, shape)}, {{"block", block}, {"mode", d.word({"DCR", "CRD"})}});
}

}  // namespace

const ir::OpDef& op_space_to_depth() {
  static const ir::OpDef def{
      .name = "space_to_depth",
      .summary =
          "Blocks of pixels of x (NCHW) as channels; the place in a block is the slower part "
          "of the channel number (mode DCR) or the faster one (CRD).",
      .attrs = {required("block", ir::AttrKind::kInt), optional("mode", std::string("DCR"))},
      .infer = infer_space_to_depth,
      .lower = lower_space_to_depth,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_space_to_depth>,
      .onnx = {.name = "SpaceToDepth", .attrs = "blocksize=block mode"},
      .draw = {.node = draw_space_to_depth},
  };
  return def;
}

}  // namespace pyc::ops

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

constexpr int64_t kMaxBlock = 1 << 20;

Types infer_depth_to_space(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_rank("input (NCHW)", x, 4));
  const int64_t block = args.attr_int("block");
  PYC_TRY(require_ints("block", {block}, 1, 1, kMaxBlock));
  const std::string& mode = args.attr_string("mode");
  if (mode != "DCR" && mode != "CRD") {
    return refuse(Code::kInvalidArgument, "mode must be \"DCR\" or \"CRD\", found \"", mode, "\"");
  }
  if (x.shape[1] % (block * block) != 0) {
    return refuse(Code::kShapeMismatch, "block ", block,
                  " squared does not divide the channels of ", x);
  }
  PYC_ASSIGN(Shape shape, scaled_shape(x, {1, 1, block, block}));
  shape[1] /= block * block;
  return one(x.dtype, std::move(shape));
}

Expr lower_depth_to_space(LowerContext& context, int, std::span<const Expr> index) {
  const Expr block = context.index(context.attr_int("block"));
  const Expr place = floor_mod(index[2], block) * block + floor_mod(index[3], block);
  const bool depth_first = context.attr_string("mode") == "DCR";
  const Expr channel = depth_first
                           ? place * context.index(context.output_type(0).shape[1]) + index[1]
                           : index[1] * block * block + place;
  return context.input(
      0, Index{index[0], channel, floor_div(index[2], block), floor_div(index[3], block)});
}

ValueId gradient_depth_to_space(Backward& b) {
  return b.op("space_to_depth", {b.g()}, b.node_attrs());
}

Result<ValueId> draw_depth_to_space(Draw& d, DType t) {
  const int64_t block = d.pick(1, 3);
  const Shape shape{d.pick(1, 2), d.pick(1, 2) * block * block, d.pick(1, 4), d.pick(1, 9)};
  return d.op({d.tensor(t, shape)}, {{"block", block}, {"mode", d.word({"DCR", "CRD"})}});
}

}  // namespace

const ir::OpDef& op_depth_to_space() {
  static const ir::OpDef def{
      .name = "depth_to_space",
      .summary =
          "Channels of x (NCHW) spread over blocks of pixels; the place in a block is the "
          "slower part of the channel number (mode DCR) or the faster one (CRD).",
      .attrs = {required("block", ir::AttrKind::kInt), optional("mode", std::string("DCR"))},
      .infer = infer_depth_to_space,
      .lower = lower_depth_to_space,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_depth_to_space>,
      .onnx = {.name = "DepthToSpace", .attrs = "blocksize=block mode"},
      .draw = {.node = draw_depth_to_space},
  };
  return def;
}

}  // namespace pyc::ops

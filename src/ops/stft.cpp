#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

// As given, else that of the window, else of the signal.
int64_t frame_length(const InferArgs& args, std::span<const TensorType> inputs) {
  const int64_t given = args.attr_int("frame_length");
  if (given != 0) return given;
  return inputs.size() > 1 && inputs[1].rank() == 1 ? inputs[1].shape[0] : inputs[0].shape[1];
}

Types infer_stft(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_rank("x", x, 3));
  const int64_t step = args.attr_int("frame_step");
  const int64_t length = frame_length(args, args.inputs);
  if (step < 1 || length < 1 || length > x.shape[1]) {
    return refuse(Code::kInvalidArgument, "frames of ", length, " every ", step,
                  " do not fit the signal ", x);
  }
  const bool onesided = args.attr_bool("onesided");
  if (x.shape[2] < 1 || x.shape[2] > (onesided ? 1 : 2)) {
    return refuse(Code::kShapeMismatch, "the last dim of x must be 1", onesided ? "" : " or 2",
                  ", found ", x);
  }
  if (args.inputs.size() > 1) {
    PYC_TRY(require_same_dtype(x, args.inputs[1]));
    if (args.inputs[1].shape != Shape{length}) {
      return refuse(Code::kShapeMismatch, "window must have shape [", length, "], found ",
                    args.inputs[1]);
    }
  }
  const int64_t frames = (x.shape[1] - length) / step + 1;
  return one(x.dtype, {x.shape[0], frames, onesided ? length / 2 + 1 : length, 2});
}

Result<std::vector<ValueId>> decompose_stft(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const int64_t step = c.attrs().attr_int("frame_step");
  std::vector<TensorType> types{type};
  if (c.inputs() > 1) types.push_back(c.input_type(1));
  const int64_t length = frame_length(c.attrs(), types);
  ValueId framed =
      c.op("frames", {c.wide_input(0)}, {{"axis", int64_t{1}}, {"length", length}, {"step", step}});
  if (c.inputs() > 1) framed = c.mul(framed, c.reshape(c.wide_input(1), {length, 1}));
  const ValueId y = c.op("dft", {framed}, {{"onesided", c.attrs().attr_bool("onesided")}});
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_stft(Draw& d, DType t) {
  const bool onesided = d.flip();
  const int64_t length = d.pick(1, 8);
  const Shape shape{d.pick(1, 2), length + d.pick(0, 9), onesided ? 1 : d.pick(1, 2)};
  std::vector<ValueId> inputs{d.tensor(t, shape)};
  if (d.flip()) inputs.push_back(d.tensor(t, {length}));
  return d.op(std::move(inputs),
              {{"frame_step", d.pick(1, 4)}, {"frame_length", length}, {"onesided", onesided}});
}

}  // namespace

const ir::OpDef& op_stft() {
  static const ir::OpDef def{
      .name = "stft",
      .summary =
          "dft of each frame of a signal [B,T,1 or 2], times a window if given: [B,frames,bins,2].",
      .min_inputs = 1,
      .max_inputs = 2,
      .attrs = {required("frame_step", ir::AttrKind::kInt), optional("frame_length", int64_t{0}),
                optional("onesided", true)},
      .infer = infer_stft,
      .decompose = decompose_stft,
      .draw = {.node = draw_stft},
  };
  return def;
}

}  // namespace pyc::ops

#include <algorithm>
#include <array>
#include <functional>

#include "ops/draw.h"
#include "ops/kernel.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_tensor_scatter(const InferArgs& args) {
  const TensorType& past = args.inputs[0];
  const TensorType& update = args.inputs[1];
  const std::string& mode = args.attr_string("mode");
  if (mode != "linear" && mode != "circular") {
    return refuse(Code::kInvalidArgument, "mode must be linear or circular, found '", mode, "'");
  }
  PYC_TRY(require_same_dtype(past, update));
  PYC_TRY(require_axis(args.attr_int("axis"), past));
  const int64_t axis = from_front(args.attr_int("axis"), past.rank());
  if (axis == 0) return refuse(Code::kInvalidArgument, "axis 0 is the batch, not the sequence");
  Shape expected = past.shape;
  const auto at = static_cast<size_t>(axis);
  if (update.rank() == past.rank()) expected[at] = update.shape[at];
  if (update.shape != expected || update.shape[at] > past.shape[at]) {
    return refuse(Code::kShapeMismatch, "update ", update, " does not fit ", past, " along axis ",
                  axis);
  }
  if (args.inputs.size() == 3) {
    const TensorType& begin = args.inputs[2];
    PYC_TRY(require_dtype("write_indices", begin, kIndices));
    if (begin.shape != Shape{past.shape[0]}) {
      return refuse(Code::kShapeMismatch, "write_indices must have one entry per batch of ", past,
                    ", found ", begin);
    }
  }
  return one(past.dtype, past.shape);
}

// Where the update begins in the sequence of a batch, as it is given. The run fails if it does not
// fit.
Expr given_place(KernelContext& context, Expr batch, int64_t room) {
  if (context.inputs() < 3) return context.index(0);
  const Expr begin = convert(context.input(2, std::array{batch}), DType::kI64);
  if (context.attr_string("mode") == "circular") return begin;
  context.check_input(2, between(context, begin, 0, room + 1), {.last = room}, "write index");
  return begin;
}

// Past first, then the update over it: where both are one memory, the update is all there is to do.
// Every dim is parallel but the sequence and the last one.
void kernel_tensor_scatter(KernelContext& context) {
  const Shape& past = context.input_type(0).shape;
  const Shape& update = context.input_type(1).shape;
  const auto axis =
      static_cast<size_t>(from_front(context.attr_int("axis"), static_cast<int64_t>(past.size())));
  const size_t last = past.size() - 1;
  const int64_t length = past[axis];
  const int64_t count = update[axis];
  Index point;
  for (size_t d = 0; d < past.size(); ++d) {
    point.push_back(d == axis || d == last ? context.index(0) : context.parallel(past[d]));
  }
  // The elements at one place of the sequence.
  const auto each_at = [&](Expr place, const std::function<void(const Index&)>& body) {
    Index at = point;
    at[axis] = place;
    if (axis == last) return body(at);
    context.each(past[last], Order::kVector, [&](Expr i) {
      at[last] = i;
      body(at);
    });
  };
  const uint32_t out = context.output(0);
  context.each(length, axis == last ? Order::kVector : Order::kSerial, [&](Expr place) {
    each_at(place, [&](const Index& at) {
      context.store(out, position(context, at, past), context.input(0, at));
    });
  });
  if (context.input_type(1).elements() == 0) return;
  const bool circular = context.attr_string("mode") == "circular";
  const Expr begin = given_place(context, point[0], length - count);
  const Expr size = context.index(length);
  context.each(count, Order::kOrdered, [&](Expr i) {
    // In the sequence, whatever was given. One index for the proofs: the sum of two reaches
    // further.
    const Expr row = count == 1 ? context.index(0) : i;
    const Expr place = circular ? floor_mod(floor_mod(begin, size) + row, size)
                                : min(max(begin + row, context.index(0)), size - context.index(1));
    each_at(i, [&](const Index& from) {
      Index to = from;
      to[axis] = place;
      context.store(out, position(context, to, past), context.input(1, from));
    });
  });
}

Grads gradient_tensor_scatter(ir::GraphBuilder& builder, const ir::Node& node,
                              std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Where each element of the update went.
  const Shape past = b.input_type(0).shape;
  const Shape update = b.input_type(1).shape;
  const auto rank = static_cast<int64_t>(past.size());
  const int64_t axis = from_front(b.attrs().attr_int("axis"), rank);
  const auto at = static_cast<size_t>(axis);
  ValueId place = b.positions(rank, axis, update[at]);
  if (b.inputs() == 3) {
    Shape per_batch(past.size(), 1);
    per_batch[0] = past[0];
    place = b.add(place, b.reshape(b.cast(b.input(2), DType::kI64), per_batch));
  }
  if (b.attrs().attr_string("mode") == "circular") {
    place = b.op(
        "mod", {place, b.scalar_like(place, static_cast<double>(std::max<int64_t>(past[at], 1)))});
  }
  const ValueId indices = b.expand(place, update);
  const ValueId none = b.zeros(b.type(b.g()).dtype, update);
  const ValueId kept = b.op("scatter_elements", {b.g(), indices, none}, {{"axis", axis}});
  const ValueId written = b.op("gather_elements", {b.g(), indices}, {{"axis", axis}});
  std::vector<ValueId> result{b.stored(kept, 0), b.stored(written, 1)};
  if (b.inputs() == 3) result.push_back(ir::kNoId);
  return b.outputs(result);
}

Result<ValueId> draw_tensor_scatter(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  const int64_t axis = d.pick(1, std::ssize(shape) - 1);
  Shape update = shape;
  int64_t& n = update[static_cast<size_t>(axis)];
  n = d.pick(1, n);
  const int64_t last = shape[static_cast<size_t>(axis)] - n;
  std::vector<ValueId> inputs{d.tensor(t, shape), d.tensor(t, update)};
  if (d.flip()) inputs.push_back(d.indices({shape[0]}, 0, last));
  return d.op(std::move(inputs), {{"axis", axis - (d.flip() ? std::ssize(shape) : 0)},
                                  {"mode", d.word({"linear", "circular"})}});
}

}  // namespace

const ir::OpDef& op_tensor_scatter() {
  static const ir::OpDef def{
      .name = "tensor_scatter",
      .summary =
          "past with update written along axis from write_indices (one per batch; none: 0) "
          "on; circular: wrapping around the end.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("axis", int64_t{-2}), optional("mode", std::string("linear"))},
      .infer = infer_tensor_scatter,
      .kernel = kernel_tensor_scatter,
      .traits = {.moves_data = true},
      .gradient = gradient_tensor_scatter,
      .onnx = {.name = "TensorScatter", .attrs = "axis mode", .since = 24},
      .draw = {.node = draw_tensor_scatter},
  };
  return def;
}

}  // namespace pyc::ops

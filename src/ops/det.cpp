#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

// Each row becomes some twenty nodes.
constexpr int64_t kMaxRows = 128;

Types infer_det(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  const size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2]) {
    return refuse(Code::kShapeMismatch, "x must be square in its last dims, found ", x);
  }
  if (x.shape.back() > kMaxRows) {
    return refuse(Code::kUnsupported, "matrices of more than ", kMaxRows, " rows, found ", x);
  }
  return one(x.dtype, {x.shape.begin(), x.shape.end() - 2});
}

// The first column's entry of largest size, and what remains to be eliminated.
struct Elimination {
  ValueId pivot;  // [B,1,1], negated when rows were exchanged
  ValueId rest;   // [B,m-1,m-1]
};

Elimination eliminate(Compose& c, ValueId a, int64_t m) {
  const ir::Attrs rows{{"axes", Ints{1}}};
  const ValueId zero = c.scalar_like(a, 0.0);
  const ValueId size = c.op("abs", {c.slice(a, 2, 0, 1)});
  const ValueId at = c.positions(3, 1, m);
  const ValueId largest = c.op("equal", {size, c.op("reduce_max", {size}, rows)});
  const ValueId last = c.scalar_like(at, static_cast<double>(m - 1));
  const ValueId first = c.op("reduce_min", {c.op("where", {largest, at, last})}, rows);
  const ValueId chosen = c.op("equal", {at, first});

  const ValueId row = c.op("reduce_sum", {c.op("where", {chosen, a, zero})}, rows);
  const ValueId pivot = c.slice(row, 2, 0, 1);
  const ValueId in_place = c.op("equal", {first, c.scalar_like(first, 0.0)});
  Elimination result{c.op("where", {in_place, pivot, c.op("neg", {pivot})}), ir::kNoId};
  if (m == 1) return result;

  // The first row goes where the chosen one was.
  const ValueId exchanged = c.op("where", {chosen, c.slice(a, 1, 0, 1), a});
  const ValueId below = c.slice(exchanged, 1, 1, m);
  const ValueId ratio = c.div(c.slice(below, 2, 0, 1), pivot);
  const ValueId factor = c.op("where", {c.op("equal", {pivot, zero}), zero, ratio});
  result.rest = c.sub(c.slice(below, 2, 1, m), c.mul(factor, c.slice(row, 2, 1, m)));
  return result;
}

Result<std::vector<ValueId>> decompose_det(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const int64_t n = type.shape.back();
  const Shape batch(type.shape.begin(), type.shape.end() - 2);
  const int64_t matrices = TensorType{type.dtype, batch}.elements();
  ValueId a = c.reshape(c.wide_input(0), {matrices, n, n});
  ValueId det = c.expand(c.scalar_like(a, 1.0), {matrices, 1, 1});
  for (int64_t m = n; m > 0; --m) {
    const Elimination step = eliminate(c, a, m);
    det = c.mul(det, step.pivot);
    a = step.rest;
  }
  return c.outputs({c.cast(c.reshape(det, batch), type.dtype)});
}

Result<ValueId> draw_det(Draw& d, DType t) {
  Shape shape = d.shape(0, 2, 1);
  for (int64_t& n : shape) n = std::min<int64_t>(n, 3);
  const int64_t n = d.pick(0, 3);
  shape.insert(shape.end(), {n, n});
  return d.op({d.tensor(t, shape)});
}

}  // namespace

const ir::OpDef& op_det() {
  static const ir::OpDef def{
      .name = "det",
      .summary =
          "Determinants of square matrices by elimination with row exchanges; 1 for an empty "
          "matrix.",
      .infer = infer_det,
      .decompose = decompose_det,
      .onnx = {.name = "Det"},
      .draw = {.node = draw_det},
  };
  return def;
}

}  // namespace pyc::ops

#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/equation.h"
#include "ops/support/onnx.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

Types infer_einsum(const InferArgs& args) {
  PYC_TRY(require_dtype("the first operand", args.inputs[0], kNumbers));
  for (const TensorType& other : args.inputs.subspan(1)) {
    PYC_TRY(require_same_dtype(args.inputs[0], other));
  }
  PYC_ASSIGN(const Equation e, parse_einsum(args.attr_string("equation"), args.inputs));
  PYC_ASSIGN(Shape shape, extents_of(e, args.inputs, e.result + e.summed()));
  shape.resize(e.result.size());
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

// Those letters of a and b, each once, that the rest of the equation still needs.
std::string still_needed(const std::string& letters, const std::string& rest) {
  std::string kept;
  for (char letter : letters) {
    if (rest.find(letter) != std::string::npos && kept.find(letter) == std::string::npos) {
      kept += letter;
    }
  }
  return kept;
}

Result<std::vector<ValueId>> decompose_einsum(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  std::vector<TensorType> types;
  for (size_t i = 0; i < c.inputs(); ++i) types.push_back(c.input_type(i));
  PYC_ASSIGN(const Equation e, parse_einsum(c.attrs().attr_string("equation"), types));
  // What is joined first is an operand of the next contraction, and rounded as such.
  const auto contract = [&](std::vector<ValueId> inputs, const Equation& step, bool last) {
    ir::Attrs attrs{{"equation", step.text()}};
    if (last && c.attrs().has("to")) attrs["to"] = c.attrs().attr_dtype("to");
    return c.op("contract", std::move(inputs), std::move(attrs));
  };
  ValueId joined = c.input(0);
  std::string letters = e.operands[0];
  if (c.inputs() == 1) return c.outputs({contract({joined}, e, true)});
  for (size_t i = 1; i < c.inputs(); ++i) {
    std::string rest = e.result;
    for (size_t j = i + 1; j < c.inputs(); ++j) rest += e.operands[j];
    const bool last = i + 1 == c.inputs();
    const std::string next = last ? e.result : still_needed(letters + e.operands[i], rest);
    joined = contract({joined, c.input(i)}, {{letters, e.operands[i]}, next}, last);
    letters = next;
  }
  return c.outputs({joined});
}

Result<ValueId> draw_einsum(Draw& d, DType t) {
  if (!d.chance(3)) return draw_equation(d, t);
  const int64_t i = d.pick(1, 4);
  const int64_t j = d.pick(1, 4);
  return d.op({d.tensor(t, {2, i, j}), d.tensor(t, {j, 3}), d.tensor(t, {3})},
              {{"equation", std::string("...ij,jk,k->...i")}});
}

}  // namespace

const ir::OpDef& op_einsum() {
  static const ir::OpDef def{
      .name = "einsum",
      .summary =
          "Numpy's einsum: operands are joined from left to right, each pair by one contraction.",
      .min_inputs = 1,
      .max_inputs = ir::kVariadic,
      .attrs = {required("equation", ir::AttrKind::kString), wide_result_attr()},
      .infer = infer_einsum,
      .decompose = decompose_einsum,
      .traits = {.product = true, .factors = ir::kVariadic},
      .onnx = {.name = "Einsum", .attrs = "equation", .dtypes = kOnnxNumbersButBf16},
      .draw = {.node = draw_einsum},
  };
  return def;
}

}  // namespace pyc::ops

#include <map>

#include "ops/support/elementwise.h"
#include "ops/support/equation.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

Types infer_contract(const InferArgs& args) {
  PYC_ASSIGN(const Equation e, parse_equation(args.attr_string("equation")));
  if (e.operands.size() != args.inputs.size()) {
    return refuse(Code::kInvalidArgument, "equation \"", e.text(), "\" has ",
                  static_cast<int64_t>(e.operands.size()), " operands, found ",
                  static_cast<int64_t>(args.inputs.size()));
  }
  PYC_TRY(require_dtype("lhs", args.inputs[0], kNumbers));
  PYC_TRY(require_same_dtype(args.inputs[0], args.inputs.back()));
  PYC_ASSIGN(Shape shape, extents_of(e, args.inputs, e.result + e.summed()));
  shape.resize(e.result.size());
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

// Element of operand i where each letter has the index given.
Expr element(LowerContext& context, int i, const std::string& letters,
             const std::map<char, Expr>& place) {
  const Shape& shape = context.input_type(i).shape;
  Index at;
  for (size_t d = 0; d < letters.size(); ++d) {
    at.push_back(shape[d] == 1 ? context.index(0) : place.at(letters[d]));
  }
  return context.input_compute(i, at);
}

Expr lower_contract(LowerContext& context, int, std::span<const Expr> index) {
  const Equation e = *parse_equation(context.attr_string("equation"));
  std::map<char, Expr> place;
  for (size_t d = 0; d < index.size(); ++d) place[e.result[d]] = index[d];
  const bool pair = context.inputs() == 2;
  const std::string summed = e.summed();
  if (summed.empty()) {
    const Expr a = element(context, 0, e.operands[0], place);
    return rounded(context, pair ? a * element(context, 1, e.operands[1], place) : a);
  }
  std::vector<TensorType> types{context.input_type(0)};
  if (pair) types.push_back(context.input_type(1));
  const Shape extents = *extents_of(e, types, summed);
  const auto term = [&](std::span<const Expr> inner) {
    for (size_t d = 0; d < inner.size(); ++d) place[summed[d]] = inner[d];
    ReduceTerm t{.value = element(context, 0, e.operands[0], place)};
    if (pair) t.value2 = element(context, 1, e.operands[1], place);
    return t;
  };
  using loop::ReduceKind;
  const ReduceKind alone =
      is_float(context.input_type(0).dtype) ? ReduceKind::kTree : ReduceKind::kExact;
  return rounded(context, context.reduce(pair ? ReduceKind::kChain : alone, loop::ReduceOp::kSum,
                                         extents, term, pair ? kChainSegment : 0));
}

}  // namespace

const ir::OpDef& op_contract() {
  static const ir::OpDef def{
      .name = "contract",
      .summary =
          "The sum over shared index letters of the product of one or two tensors, as in "
          "bij,bjk->bik.",
      .min_inputs = 1,
      .max_inputs = 2,
      .attrs = {required("equation", ir::AttrKind::kString), wide_result_attr()},
      .infer = infer_contract,
      .lower = lower_contract,
      .traits = {.product = true},
  };
  return def;
}

}  // namespace pyc::ops

#include <map>
#include <utility>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
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

// One operand, or no letter to sum over: no sum of products.
bool sums_products(const InferArgs& args) {
  const auto e = parse_equation(args.attr_string("equation"));
  return e.ok() && args.inputs.size() == 2 && !e->summed().empty();
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

// The dims of `letters` that have the extent their letter has in the whole equation; dims of 1 that
// give way to others were broadcast.
bool is_full(const Equation& e, const std::vector<TensorType>& types, char letter, int64_t dim) {
  return dim == extents_of(e, types, std::string(1, letter)).value()[0];
}

// `v` with one dim per letter of `once`, as operand i has its dims: of a letter that is repeated
// only the diagonal, dims of 1 where the operand has them.
ValueId on_diagonals(Backward& b, const Equation& e, const TensorType& type, size_t i, ValueId v,
                     const std::string& once) {
  const std::string& letters = e.operands[i];
  const Shape extents = b.type(v).shape;
  const auto rank = static_cast<int64_t>(letters.size());
  std::vector<bool> placed(once.size(), false);
  Ints order;   // of the letters, as the operand first has them
  Shape shape;  // with 1 for what is broadcast or repeated
  std::vector<std::pair<size_t, size_t>> diagonals;
  std::map<char, size_t> first;
  for (size_t d = 0; d < letters.size(); ++d) {
    const size_t at = once.find(letters[d]);
    const bool full = at != std::string::npos && type.shape[d] == extents[at];
    if (full && !placed[at]) {
      placed[at] = true;
      first[letters[d]] = d;
      order.push_back(static_cast<int64_t>(at));
      shape.push_back(extents[at]);
      continue;
    }
    if (full) diagonals.emplace_back(first[letters[d]], d);
    shape.push_back(1);
  }
  v = b.reshape(b.transpose(v, order), shape);
  for (const auto& [a, d] : diagonals) {
    const int64_t n = type.shape[d];
    const ValueId same = b.equal(b.positions(rank, static_cast<int64_t>(a), n),
                                 b.positions(rank, static_cast<int64_t>(d), n));
    v = b.only(same, v);
  }
  return v;
}

// The gradient of operand i: the product of what arrives and the other operand, summed over what
// operand i does not have, repeated along what it alone has, on the diagonals of repeated letters.
ValueId operand_gradient(Backward& b, const Equation& e, size_t i) {
  std::vector<TensorType> types;
  for (size_t k = 0; k < b.inputs(); ++k) types.push_back(b.input_type(k));
  const std::string& letters = e.operands[i];
  const Shape shape = types[i].shape;
  std::string once;  // letters of full dims, each once
  for (size_t d = 0; d < letters.size(); ++d) {
    const bool seen = once.find(letters[d]) != std::string::npos;
    if (!seen && is_full(e, types, letters[d], shape[d])) once += letters[d];
  }
  const std::string other = b.inputs() == 2 ? e.operands[1 - i] : "";
  std::string found;
  for (char letter : once) {
    if ((e.result + other).find(letter) != std::string::npos) found += letter;
  }
  std::vector<ValueId> factors{b.stored(b.g(), i)};
  Equation step{{e.result}, found};
  if (b.inputs() == 2) {
    factors.push_back(b.input(1 - i));
    step.operands.push_back(other);
  }
  const ValueId product = b.op("contract", factors, {{"equation", step.text()}});
  // Letters that nothing else has were summed over: every index gets the same.
  const Shape made = b.type(product).shape;
  Shape with_ones;
  size_t next = 0;
  for (char letter : once) {
    const bool kept = found.find(letter) != std::string::npos;
    with_ones.push_back(kept && next < made.size() ? made[next++] : 1);
  }
  const ValueId whole = b.expand(b.reshape(product, with_ones), extents_of(e, types, once).value());
  return on_diagonals(b, e, types[i], i, whole, once);
}

Grads gradient_contract(ir::GraphBuilder& builder, const ir::Node& node,
                        std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const Equation e = *parse_equation(b.attrs().attr_string("equation"));
  std::vector<ValueId> result;
  for (size_t i = 0; i < b.inputs(); ++i) result.push_back(operand_gradient(b, e, i));
  return b.outputs(result);
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
      .traits = {.product = true, .factors = 2},
      .on_unit = sums_products,
      .gradient = gradient_contract,
      .draw = {.node = draw_equation},
  };
  return def;
}

}  // namespace pyc::ops

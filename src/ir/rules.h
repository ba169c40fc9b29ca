#pragma once

// The rules about one node or one constant alone, shared by the builder, the parser and the
// verifier. Unless said otherwise, refusals are kInvalidArgument and start with a reason in
// brackets.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/convert.h"
#include "ir/op_def.h"
#include "ir/types.h"

namespace pyc::ir {

// The refusal with `where` in front, after the reason in brackets where there is one.
Status placed(const Status& status, Code code, std::string_view where);

// [too_few_inputs], [too_many_inputs]
Status check_arity(const OpDef& op, size_t inputs);

// Whether `attrs` are complete and exact: [unknown_attr], [missing_attr], [bad_attr_kind],
// [bad_attr_value].
Status check_attrs(const OpDef& op, const Attrs& attrs);
// [unknown_attr], naming the closest attribute there is.
Status unknown_attr(const OpDef& op, std::string_view name);

// Whether they are the same, doubles by their bits: NaN equals itself and -0.0 is not 0.0.
bool same_attrs(const Attrs& a, const Attrs& b);

// The output types by the op's type rule, which may refuse with its own code and no reason in
// brackets; [too_large] and the like when it gives a type that is not accepted. Requires accepted
// input types, the right number of them, and complete attributes.
Result<std::vector<TensorType>> infer_outputs(const OpDef& op, std::span<const TensorType> inputs,
                                              const Attrs& attrs);

// Whether `data` is a constant of the type (an accepted one): [bad_constant].
Status check_constant(const TensorType& type, const ConstData* data);
// [bad_constant] unless lo and hi are finite, in order and not too far apart.
Status check_random_range(double lo, double hi);

// `value`, an element of the type's dtype, for every element.
std::shared_ptr<const ConstData> splat_word(const TensorType& type, Word value);
// Element i of a random constant.
Word random_word(DType dtype, uint64_t seed, double lo, double hi, uint64_t i);

// The candidate closest to `name` (letter case aside), the first of equals; "" when none is near.
std::string_view closest_name(std::string_view name, std::span<const std::string_view> candidates);
// ", did you mean 'x'?", or "".
std::string did_you_mean(std::string_view closest);

}  // namespace pyc::ir

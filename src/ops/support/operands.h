#pragma once

// Ops with optional inputs of which any may be left out: attribute `with` names those that are
// given, separated by commas, in the order of the op's own list. They follow the required ones.

#include <initializer_list>
#include <string_view>

#include "ops/support/infer.h"

namespace pyc::ops {

inline ir::AttrDef with_attr() { return optional("with", std::string()); }

// Refuses names that `known` does not have in this order, and another number of inputs.
Status require_operands(const InferArgs& args, size_t required,
                        std::initializer_list<std::string_view> known);

// The number of the input of that name, or -1 when it is not given.
int operand_at(const ir::Attrs& attrs, size_t required, std::string_view name);

}  // namespace pyc::ops

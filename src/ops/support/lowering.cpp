#include "ops/lowering.h"

namespace pyc::ops {
namespace {

ir::InferArgs attrs_of(const LowerContext& context) {
  return {.inputs = {}, .attrs = context.node().attrs};
}

}  // namespace

Expr LowerContext::input_compute(int i, std::span<const Expr> index) {
  return convert(input(i, index), compute_dtype(input_type(i).dtype));
}

int64_t LowerContext::attr_int(std::string_view name) const {
  return attrs_of(*this).attr_int(name);
}

double LowerContext::attr_float(std::string_view name) const {
  return attrs_of(*this).attr_float(name);
}

bool LowerContext::attr_bool(std::string_view name) const {
  return attrs_of(*this).attr_bool(name);
}

DType LowerContext::attr_dtype(std::string_view name) const {
  return attrs_of(*this).attr_dtype(name);
}

const std::string& LowerContext::attr_string(std::string_view name) const {
  return attrs_of(*this).attr_string(name);
}

const std::vector<int64_t>& LowerContext::attr_ints(std::string_view name) const {
  return attrs_of(*this).attr_ints(name);
}

}  // namespace pyc::ops

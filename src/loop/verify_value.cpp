#include "loop/verify_value.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "loop/function.h"
#include "loop/functions.h"

namespace pyc::loop {
namespace {

bool has_operation(Op op, DType t) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kNeg:
    case Op::kAbs:
      return is_real(t) || is_whole(t);
    case Op::kRem:
    case Op::kShl:
    case Op::kShr:
      return is_whole(t);
    case Op::kFloorDiv:
    case Op::kFloorMod:
      return t == DType::kI64;
    case Op::kMin:
    case Op::kMax:
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
      return is_real(t) || is_whole(t) || t == DType::kBool;
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
      return is_whole(t) || t == DType::kBool;
    case Op::kSqrt:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRoundEven:
    case Op::kFma:
      return is_real(t);
    default:
      return true;
  }
}

Status verify_call(const std::string& where, const Pool& pool, const ExprNode& n) {
  if (static_cast<size_t>(n.imm) >= pool.functions().size()) {
    return refuse(where, "a call of a function that does not exist");
  }
  const Function& f = callee(pool, n);
  const ExprId args[kMaxParams] = {n.a, n.b, n.c};
  for (size_t i = 0; i < kMaxParams; ++i) {
    if ((args[i] != kNone) != (i < f.params.size())) {
      return refuse(where, "a call of " + f.name + " with another number of arguments");
    }
    if (args[i] != kNone && pool.dtype(args[i]) != f.pool.var_info(f.params[i]).dtype) {
      return refuse(where, "a call of " + f.name + " with an argument of type " +
                               name_of(pool.dtype(args[i])));
    }
  }
  if (n.dtype == f.result().dtype) return {};
  return refuse(where, "a call of another type than its function");
}

// One definition: an expression over its parameters that reads nothing but tables.
Status verify_definition(const Function& f) {
  const std::string where = "function " + f.name;
  for (ExprId id = 0; id < f.pool.size(); ++id) {
    const ExprNode& n = f.pool.node(id);
    if (n.op == Op::kLoad) return refuse(where, "a function reads no buffer");
    const bool is_param =
        n.op != Op::kVar ||
        std::find(f.params.begin(), f.params.end(), static_cast<VarId>(n.imm)) != f.params.end();
    if (!is_param) return refuse(where, "a variable that is no parameter");
    if (n.op != Op::kVar) PYC_TRY(verify_operation(where, f.pool, n));
  }
  for (VarId v : f.params) {
    if (f.pool.var_info(v).extent != kResult) return refuse(where, "a parameter with an extent");
  }
  const bool has_range = !(std::isinf(f.lo) && f.lo < 0 && std::isinf(f.hi) && f.hi > 0);
  if (!has_range || is_elementary(f)) return {};
  return refuse(where, "a range that nothing proves: only elementary functions have one");
}

bool same_params(const Function& a, const Function& b) {
  return std::equal(
      a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
      [&](VarId x, VarId y) { return a.pool.var_info(x).dtype == b.pool.var_info(y).dtype; });
}

Status verify_with_callees(const Function& f, std::vector<const Function*>& done) {
  for (const Function* g : done) {
    if (same_function(*g, f)) return {};
    if (g->name == f.name && same_params(*g, f)) {
      return refuse("function " + f.name, "two definitions for the same types");
    }
  }
  for (const auto& inner : f.pool.functions()) PYC_TRY(verify_with_callees(*inner, done));
  PYC_TRY(verify_definition(f));
  done.push_back(&f);
  return {};
}

}  // namespace

Status verify_offset(const std::string& where, const std::string& what, const ExprNode& n,
                     int64_t elements) {
  if (n.lo >= 0 && n.hi < elements) return {};
  return refuse(where, "offset in [" + std::to_string(n.lo) + ", " + std::to_string(n.hi) +
                           "] of " + what + ", which has " + std::to_string(elements) +
                           " elements");
}

Status verify_operation(const std::string& where, const Pool& pool, const ExprNode& n) {
  switch (n.op) {
    case Op::kConst:
      return {};
    case Op::kCall:
      return verify_call(where, pool, n);
    case Op::kTable: {
      if (static_cast<size_t>(n.imm) >= pool.tables().size() || pool.dtype(n.a) != DType::kI64) {
        return refuse(where, "a table load needs a table and an i64");
      }
      const auto& words = pool.tables()[static_cast<size_t>(n.imm)].words;
      return verify_offset(where, "table " + std::to_string(n.imm), pool.node(n.a),
                           static_cast<int64_t>(words.size()));
    }
    case Op::kConvert:
      return {};
    case Op::kBitcast:
      if (dtype_bits(n.dtype) == dtype_bits(pool.dtype(n.a))) return {};
      return refuse(where, "a bitcast between types of different size");
    case Op::kSelect:
      if (pool.dtype(n.a) == DType::kBool && pool.dtype(n.b) == n.dtype &&
          pool.dtype(n.c) == n.dtype) {
        return {};
      }
      return refuse(where, "a select needs a bool and two values of its type");
    default:
      break;
  }
  const DType t = pool.dtype(n.a);
  if (!has_operation(n.op, t)) {
    return refuse(where, "an operation that " + name_of(t) + " does not have");
  }
  for (ExprId o : {n.b, n.c}) {
    if (o != kNone && pool.dtype(o) != t) return refuse(where, "operands of different types");
  }
  if (n.dtype != (is_comparison(n.op) ? DType::kBool : t)) {
    return refuse(where, "an operation of another type than its operands");
  }
  return {};
}

Status verify_functions(const Pool& pool) {
  std::vector<const Function*> done;
  for (const auto& f : pool.functions()) PYC_TRY(verify_with_callees(*f, done));
  if (inlined_operations(pool) <= kMaxInlined) return {};
  return refuse("kernel", "calls of more than " + std::to_string(kMaxInlined) + " operations");
}

}  // namespace pyc::loop

#pragma once

// Functions of Loop IR: how they are made, compared and written out. functions.h has the elementary
// ones.

#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"

namespace pyc::loop {

// What a definition is made of: the result is `value` of `pool`, in [lo, hi] or NaN.
struct Definition {
  std::string name;
  Pool pool;
  std::vector<VarId> params;
  ExprId value = kNone;
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
};
std::shared_ptr<const Function> make_function(Definition definition);

// Whether two definitions are the same: name, types, range, every operation, every function called.
bool same_function(const Function& a, const Function& b);

// More operations than this a kernel's calls may not have when they are written out.
inline constexpr int64_t kMaxInlined = int64_t{1} << 22;
// Operations of all calls of the pool, written out; no more than kMaxInlined + 1.
int64_t inlined_operations(const Pool& pool);

// Writes the calls of a pool out: appends their definitions with the arguments in place of the
// parameters. Returns for each node of the pool the one without a call that has its value; nodes
// from before keep their ids and operands. Requires inlined_operations(pool) <= kMaxInlined.
std::vector<ExprId> inline_calls(Pool& pool);
// The same kernel without calls. Same requirement.
Kernel without_calls(Kernel kernel);

// Calls f(pool, node) for each operation a call stands for, once per call inside the definition.
template <class F>
void each_operation(const Function& function, F&& f) {
  std::vector<bool> used(function.pool.size(), false);
  used[function.value] = true;
  for (ExprId id = function.value + 1; id-- > 0;) {  // operands are older than what they make
    if (!used[id]) continue;
    const ExprNode& n = function.pool.node(id);
    for (ExprId o : {n.a, n.b, n.c}) {
      if (o != kNone) used[o] = true;
    }
    if (n.op == Op::kConst || n.op == Op::kVar) continue;
    if (n.op == Op::kCall) {
      each_operation(*function.pool.functions()[static_cast<size_t>(n.imm)], f);
    } else {
      f(function.pool, n);
    }
  }
}

// The function a call node names.
inline const Function& callee(const Pool& pool, const ExprNode& call) {
  return *pool.functions()[static_cast<size_t>(call.imm)];
}

// Operations a node stands for: those of its function for a call, else one.
inline int operations_of(const Pool& pool, const ExprNode& n) {
  return n.op == Op::kCall ? static_cast<int>(callee(pool, n).operations) : 1;
}

// The definition as it stands in a kernel's text, and the functions it calls in the order of that
// text.
struct FunctionText {
  std::string text;
  std::vector<std::shared_ptr<const Function>> calls;
};
FunctionText print_function(const Function& function);

}  // namespace pyc::loop

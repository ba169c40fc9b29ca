#include "loop/function.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/status.h"

namespace pyc::loop {
namespace {

int64_t add_up(int64_t a, int64_t b) { return std::min(a + b, kMaxInlined + 1); }

int64_t operations_of(const Function& f) {
  std::vector<bool> used(f.pool.size(), false);
  used[f.value] = true;
  int64_t count = 0;
  for (ExprId id = f.value + 1; id-- > 0;) {
    if (!used[id]) continue;
    const ExprNode& n = f.pool.node(id);
    for (ExprId o : {n.a, n.b, n.c}) {
      if (o != kNone) used[o] = true;
    }
    if (n.op == Op::kConst || n.op == Op::kVar) continue;
    count = add_up(count, n.op == Op::kCall ? callee(f.pool, n).operations : 1);
  }
  return count;
}

// Writes one call out. Calls in the definition stay calls.
class Inliner {
 public:
  Inliner(const Function& function, const ExprNode& call, Pool& to)
      : from_(function.pool), to_(to), made_(function.pool.size(), kNone) {
    const ExprId args[kMaxParams] = {call.a, call.b, call.c};
    for (size_t i = 0; i < function.params.size(); ++i) {
      args_.emplace_back(function.params[i], args[i]);
    }
  }

  ExprId operator()(ExprId id) {
    if (id == kNone) return kNone;
    if (made_[id] == kNone) made_[id] = make(from_.node(id));
    return made_[id];
  }

 private:
  ExprId make(const ExprNode& n) {
    if (n.op == Op::kConst) return to_.constant(n.dtype, n.word);
    if (n.op == Op::kVar) return argument(static_cast<VarId>(n.imm));
    const ExprId a = (*this)(n.a);
    const ExprId b = (*this)(n.b);
    const ExprId c = (*this)(n.c);
    switch (n.op) {
      case Op::kTable: {
        const Table& t = from_.tables()[static_cast<size_t>(n.imm)];
        return to_.table_load(to_.table(t.dtype, t.words), a);
      }
      case Op::kCall:
        return to_.call(to_.function(from_.functions()[static_cast<size_t>(n.imm)]), a, b, c);
      default:
        PYC_CHECK(n.op != Op::kLoad, "a function that reads memory");
        return to_.like(n, a, b, c);
    }
  }

  ExprId argument(VarId param) const {
    for (const auto& [var, value] : args_) {
      if (var == param) return value;
    }
    PYC_CHECK(false, "a variable that is no parameter");
    return kNone;
  }

  const Pool& from_;
  Pool& to_;
  std::vector<ExprId> made_;
  std::vector<std::pair<VarId, ExprId>> args_;
};

}  // namespace

std::shared_ptr<const Function> make_function(Definition d) {
  PYC_CHECK(!d.params.empty() && d.params.size() <= kMaxParams, "a function has 1 to 3 parameters");
  auto f = std::make_shared<Function>();
  f->name = std::move(d.name);
  f->pool = std::move(d.pool);
  f->params = std::move(d.params);
  f->value = d.value;
  f->lo = d.lo;
  f->hi = d.hi;
  FunctionText printed = print_function(*f);
  f->text = std::move(printed.text);
  f->calls = std::move(printed.calls);
  f->operations = operations_of(*f);
  return f;
}

bool same_function(const Function& a, const Function& b) {
  if (&a == &b) return true;
  const auto same = [](const auto& x, const auto& y) { return same_function(*x, *y); };
  return a.text == b.text &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), same);
}

int64_t inlined_operations(const Pool& pool) {
  int64_t count = 0;
  for (ExprId id = 0; id < pool.size(); ++id) {
    const ExprNode& n = pool.node(id);
    if (n.op == Op::kCall) count = add_up(count, callee(pool, n).operations);
  }
  return count;
}

std::vector<ExprId> inline_calls(Pool& pool) {
  std::vector<ExprId> whole;
  for (ExprId id = 0; id < pool.size(); ++id) {
    const ExprNode n = pool.node(id);
    if (n.op != Op::kCall) {
      whole.push_back(id);
      continue;
    }
    const std::shared_ptr<const Function> function = pool.functions()[static_cast<size_t>(n.imm)];
    whole.push_back(Inliner(*function, n, pool)(function->value));
  }
  // What a call became may be a call: of the node's own function's callees, so this ends.
  for (ExprId& id : whole) {
    while (whole[id] != id) id = whole[id];
  }
  return whole;
}

namespace {

// Expressions with what calls became in place of them.
class Written {
 public:
  explicit Written(Pool& pool) : pool_(pool), whole_(inline_calls(pool)) {}

  ExprId operator()(ExprId id) {
    if (id == kNone) return kNone;
    if (const auto it = known_.find(id); it != known_.end()) return it->second;
    const ExprId inlined = id < whole_.size() ? whole_[id] : id;
    const ExprNode n = pool_.node(inlined);  // making others moves it
    const ExprId a = (*this)(n.a);
    const ExprId b = (*this)(n.b);
    const ExprId c = (*this)(n.c);
    const bool same = a == n.a && b == n.b && c == n.c;
    const ExprId made = same ? inlined : pool_.like(n, a, b, c);
    known_[id] = made;
    return made;
  }

 private:
  Pool& pool_;
  const std::vector<ExprId> whole_;
  std::unordered_map<ExprId, ExprId> known_;
};

}  // namespace

Kernel without_calls(Kernel kernel) {
  if (kernel.pool.functions().empty()) return kernel;
  Written written(kernel.pool);
  const auto replace = [&](ExprId& e) { e = written(e); };
  for (Store& s : kernel.stores) {
    replace(s.offset);
    replace(s.value);
  }
  for (Check& c : kernel.checks) replace(c.ok);
  for (Loop& l : kernel.loops) {
    for (Reduction& r : l.reductions) {
      for (ExprId* e : {&r.value, &r.value2, &r.guard}) replace(*e);
    }
    for (Carry& c : l.carries) {
      replace(c.init);
      replace(c.next);
    }
  }
  return kernel;
}

}  // namespace pyc::loop

#include "loop/rebase.h"

#include <algorithm>
#include <vector>

#include "loop/renamed.h"

namespace pyc::loop {
namespace {

// Every place of the kernel that names an expression.
std::vector<ExprId*> roots_of(Kernel& kernel, std::span<ExprId* const> others) {
  std::vector<ExprId*> roots(others.begin(), others.end());
  for (Store& s : kernel.stores) {
    roots.push_back(&s.offset);
    roots.push_back(&s.value);
  }
  for (Check& c : kernel.checks) roots.push_back(&c.ok);
  for (Loop& l : kernel.loops) {
    for (Reduction& r : l.reductions) {
      for (ExprId* e : {&r.value, &r.value2, &r.guard}) roots.push_back(e);
    }
    for (Carry& c : l.carries) {
      for (ExprId* e : {&c.init, &c.next}) roots.push_back(e);
    }
  }
  std::erase_if(roots, [](const ExprId* e) { return *e == kNone; });
  return roots;
}

// The elements of a buffer that loads can reach.
struct Reach {
  bool loaded = false;
  bool fixed = false;  // some load is guarded or not within the buffer
  int64_t lo = 0;
  int64_t hi = 0;
};

class Survey {
 public:
  explicit Survey(const Kernel& kernel)
      : kernel_(kernel), seen_(kernel.pool.size()), reach(kernel.buffers.size()) {}

  void visit(ExprId e) {
    if (e == kNone || seen_[e]) return;
    seen_[e] = true;
    const ExprNode& n = kernel_.pool.node(e);
    if (n.op == Op::kLoad) take(n);
    for (const ExprId part : {n.a, n.b, n.c}) visit(part);
  }

 private:
  void take(const ExprNode& load) {
    const auto buffer = static_cast<size_t>(load.imm);
    const ExprNode& offset = kernel_.pool.node(load.a);
    Reach& r = reach[buffer];
    r.fixed = r.fixed || load.b != kNone || offset.lo < 0 || offset.lo > offset.hi ||
              offset.hi >= kernel_.buffers[buffer].elements;
    r.lo = r.loaded ? std::min(r.lo, offset.lo) : offset.lo;
    r.hi = r.loaded ? std::max(r.hi, offset.hi) : offset.hi;
    r.loaded = true;
  }

  const Kernel& kernel_;
  std::vector<bool> seen_;  // by expression

 public:
  std::vector<Reach> reach;
};

}  // namespace

std::vector<int64_t> rebase(Kernel& kernel, std::span<ExprId* const> others) {
  std::vector<int64_t> begins(kernel.buffers.size(), 0);
  const std::vector<ExprId*> roots = roots_of(kernel, others);
  Survey survey(kernel);
  for (const ExprId* root : roots) survey.visit(*root);
  for (size_t i = 0; i < begins.size(); ++i) {
    const Reach& r = survey.reach[i];
    Buffer& b = kernel.buffers[i];
    if (b.access != Access::kRead || !r.loaded || r.fixed) continue;
    begins[i] = r.lo;
    b.elements = r.hi - r.lo + 1;
  }
  if (std::all_of(begins.begin(), begins.end(), [](int64_t begin) { return begin == 0; })) {
    return begins;
  }
  Renamed renamed(kernel.pool);
  for (size_t i = 0; i < begins.size(); ++i) {
    if (begins[i] != 0) renamed.set_begin(static_cast<uint32_t>(i), begins[i]);
  }
  for (ExprId* root : roots) *root = renamed(*root);
  return begins;
}

}  // namespace pyc::loop

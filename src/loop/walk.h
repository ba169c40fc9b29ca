#pragma once

#include <type_traits>
#include <vector>

#include "loop/loop.h"

namespace pyc::loop {

// Goes through what expressions of a pool are made of: each node once over all calls, a node before
// its operands and those in their order.
class Walk {
 public:
  explicit Walk(const Pool& pool) : pool_(pool) {}

  // visit(id, node) for `from` and what it is made of. Where it answers false, the node's operands
  // are not gone into; one that answers nothing goes into all.
  template <class Visit>
  void operator()(ExprId from, const Visit& visit) {
    seen_.resize(pool_.size());
    open_.push_back(from);
    while (!open_.empty()) {
      const ExprId id = open_.back();
      open_.pop_back();
      if (id == kNone || seen_[id]) continue;
      seen_[id] = true;
      const ExprNode& n = pool_.node(id);
      if constexpr (std::is_void_v<decltype(visit(id, n))>) {
        visit(id, n);
      } else {
        if (!visit(id, n)) continue;
      }
      open_.insert(open_.end(), {n.c, n.b, n.a});
    }
  }

 private:
  const Pool& pool_;
  std::vector<bool> seen_;
  std::vector<ExprId> open_;
};

}  // namespace pyc::loop

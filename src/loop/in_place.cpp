#include "loop/in_place.h"

#include <algorithm>

#include "loop/apart.h"
#include "loop/loop.h"

namespace pyc::loop {
namespace {

struct Event : Place {
  size_t when = 0;  // its statement's place in the order of one point
};

// Where each buffer is loaded and stored, in the order of the kernel's text.
class Accesses {
 public:
  explicit Accesses(const Kernel& kernel)
      : kernel_(kernel),
        loads_(kernel.buffers.size()),
        stores_(kernel.buffers.size()),
        seen_(kernel.pool.size(), 0) {
    walk(kernel.body);
  }

  const std::vector<Event>& loads(uint32_t buffer) const { return loads_[buffer]; }
  const std::vector<Event>& stores(uint32_t buffer) const { return stores_[buffer]; }

 private:
  void walk(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      switch (s.kind) {
        case StmtKind::kStore: {
          const Store& store = kernel_.stores[s.index];
          ++now_;
          visit(store.offset);
          visit(store.value);
          stores_[store.buffer].push_back({{store.offset, loops_}, now_});
          break;
        }
        case StmtKind::kCheck:
          ++now_;
          visit(kernel_.checks[s.index].ok);
          break;
        case StmtKind::kLoop:
          walk_loop(s.index);
          break;
      }
    }
  }

  void walk_loop(uint32_t index) {
    const Loop& l = kernel_.loops[index];
    ++now_;
    for (const Carry& c : l.carries) visit(c.init);
    loops_.push_back(index);
    walk(l.body);
    ++now_;
    for (const Reduction& r : l.reductions) {
      visit(r.value);
      visit(r.value2);
      visit(r.guard);
    }
    for (const Carry& c : l.carries) visit(c.next);
    loops_.pop_back();
  }

  // All loads of the expression, each once per statement.
  void visit(ExprId e) {
    if (e == kNone || seen_[e] == now_) return;
    seen_[e] = now_;
    const ExprNode& n = kernel_.pool.node(e);
    if (n.op == Op::kLoad) {
      loads_[static_cast<size_t>(n.imm)].push_back({{n.a, loops_}, now_});
    }
    visit(n.a);
    visit(n.b);
    visit(n.c);
  }

  const Kernel& kernel_;
  std::vector<std::vector<Event>> loads_;   // per buffer
  std::vector<std::vector<Event>> stores_;  // per buffer
  std::vector<size_t> seen_;                // per expression: the statement it was last part of
  std::vector<uint32_t> loops_;
  size_t now_ = 0;
};

// Whether the store can never change what the load has yet to read.
bool reads_first(const Kernel& kernel, const Event& load, const Event& store) {
  if (load.when > store.when) return false;
  std::vector<VarId> points;
  for (const VarId v : kernel.parallel) {
    if (kernel.pool.var_info(v).extent > 1) points.push_back(v);
  }
  if (!apart(kernel, load, store, points)) return false;
  std::vector<VarId> fixed = kernel.parallel;
  for (size_t i = 0; i < std::min(load.loops.size(), store.loops.size()); ++i) {
    if (load.loops[i] != store.loops[i]) break;
    const Loop& l = kernel.loops[load.loops[i]];
    if (l.extent > 1 && !apart(kernel, load, store, {l.var}, fixed)) return false;
    fixed.push_back(l.var);
  }
  return true;
}

bool same_elements(const Kernel& kernel, const InPlacePair& pair) {
  if (pair.read >= kernel.buffers.size() || pair.written >= kernel.buffers.size()) return false;
  const Buffer& r = kernel.buffers[pair.read];
  const Buffer& w = kernel.buffers[pair.written];
  return r.access == Access::kRead && w.access == Access::kWrite && r.dtype == w.dtype &&
         r.elements == w.elements;
}

bool in_order(const Kernel& kernel, const Accesses& accesses, const InPlacePair& pair) {
  const auto& stores = accesses.stores(pair.written);
  const auto& loads = accesses.loads(pair.read);
  return std::all_of(loads.begin(), loads.end(), [&](const Event& load) {
    return std::all_of(stores.begin(), stores.end(),
                       [&](const Event& store) { return reads_first(kernel, load, store); });
  });
}

bool pointwise(const Accesses& accesses, const InPlacePair& pair) {
  const auto& stores = accesses.stores(pair.written);
  const auto& loads = accesses.loads(pair.read);
  return stores.size() == 1 && std::all_of(loads.begin(), loads.end(), [&](const Event& load) {
           return load.when == stores[0].when && load.offset == stores[0].offset;
         });
}

template <class Allowed>
std::vector<InPlacePair> pairs_of(const Kernel& kernel, const Allowed& allowed) {
  std::vector<InPlacePair> candidates;
  for (uint32_t w = 0; w < kernel.buffers.size(); ++w) {
    for (uint32_t r = 0; r < kernel.buffers.size(); ++r) {
      if (same_elements(kernel, {r, w})) candidates.push_back({r, w});
    }
  }
  if (candidates.empty()) return {};
  const Accesses accesses(kernel);
  std::erase_if(candidates, [&](const InPlacePair& p) {
    return !in_order(kernel, accesses, p) || !allowed(accesses, p);
  });
  return candidates;
}

}  // namespace

bool may_be_in_place(const Kernel& kernel, const InPlacePair& pair) {
  return same_elements(kernel, pair) && in_order(kernel, Accesses(kernel), pair);
}

std::vector<InPlacePair> in_place_pairs(const Kernel& kernel) {
  return pairs_of(kernel, [](const Accesses&, const InPlacePair&) { return true; });
}

std::vector<InPlacePair> pointwise_pairs(const Kernel& kernel) {
  return pairs_of(kernel, pointwise);
}

}  // namespace pyc::loop

#pragma once

#include <unordered_map>

#include "loop/loop.h"

namespace pyc::loop {

// Expressions with other variables and buffers in them.
class Renamed {
 public:
  explicit Renamed(Pool& pool) : pool_(pool) {}

  void set_var(VarId var, ExprId value) { vars_[var] = value; }
  void set_buffer(uint32_t buffer, uint32_t other) { buffers_[buffer] = other; }
  uint32_t buffer(uint32_t b) const {
    const auto it = buffers_.find(b);
    return it == buffers_.end() ? b : it->second;
  }

  ExprId operator()(ExprId id) {
    if (id == kNone) return kNone;
    if (const auto it = known_.find(id); it != known_.end()) return it->second;
    const ExprId made = make(id);
    known_[id] = made;
    return made;
  }

 private:
  ExprId make(ExprId id) {
    const ExprNode n = pool_.node(id);  // making others moves it
    if (n.op == Op::kConst) return id;
    if (n.op == Op::kVar) {
      const auto it = vars_.find(static_cast<VarId>(n.imm));
      return it == vars_.end() ? id : it->second;
    }
    const ExprId a = (*this)(n.a);
    const ExprId b = (*this)(n.b);
    const ExprId c = (*this)(n.c);
    if (n.op == Op::kLoad) {
      return pool_.load(buffer(static_cast<uint32_t>(n.imm)), n.dtype, a, b, c);
    }
    return pool_.like(n, a, b, c);
  }

  Pool& pool_;
  std::unordered_map<VarId, ExprId> vars_;
  std::unordered_map<uint32_t, uint32_t> buffers_;
  std::unordered_map<ExprId, ExprId> known_;
};

}  // namespace pyc::loop

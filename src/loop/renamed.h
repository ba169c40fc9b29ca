#pragma once

#include <unordered_map>

#include "loop/loop.h"

namespace pyc::loop {

// Expressions with other variables and buffers in them, or with loads from elsewhere in these.
class Renamed {
 public:
  explicit Renamed(Pool& pool) : pool_(pool) {}

  void set_var(VarId var, ExprId value) { vars_[var] = value; }
  // What was the expression `id` is `value`.
  void set_value(ExprId id, ExprId value) { known_[id] = value; }
  void set_buffer(uint32_t buffer, uint32_t other) { buffers_[buffer] = other; }
  // What was element `begin` of the buffer is its first.
  void set_begin(uint32_t buffer, int64_t begin) { begins_[buffer] = begin; }
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
      const auto from = static_cast<uint32_t>(n.imm);
      const auto begin = begins_.find(from);
      const ExprId at =
          begin == begins_.end() ? a : pool_.binary(Op::kSub, a, pool_.integer(begin->second));
      return pool_.load(buffer(from), n.dtype, at, b, c);
    }
    if (a == n.a && b == n.b && c == n.c) return id;
    return pool_.like(n, a, b, c);
  }

  Pool& pool_;
  std::unordered_map<VarId, ExprId> vars_;
  std::unordered_map<uint32_t, uint32_t> buffers_;
  std::unordered_map<uint32_t, int64_t> begins_;
  std::unordered_map<ExprId, ExprId> known_;
};

}  // namespace pyc::loop

#pragma once

#include <cstdint>
#include <unordered_set>

#include "loop/loop.h"

namespace pyc::cpu {

// Whether one of the expressions reads the buffer; those that were asked about before do not.
class Reads {
 public:
  Reads(const loop::Pool& pool, uint32_t buffer) : pool_(pool), buffer_(buffer) {}

  bool in(loop::ExprId id) {
    if (id == loop::kNone || !seen_.insert(id).second) return false;
    const loop::ExprNode& n = pool_.node(id);
    if (n.op == loop::Op::kLoad && static_cast<uint32_t>(n.imm) == buffer_) return true;
    return in(n.a) || in(n.b) || in(n.c);
  }

 private:
  const loop::Pool& pool_;
  uint32_t buffer_;
  std::unordered_set<loop::ExprId> seen_;
};

}  // namespace pyc::cpu

#pragma once

#include <cstdint>

#include "loop/walk.h"

namespace pyc::cpu {

// Whether one of the expressions reads the buffer; those that were asked about before do not.
class Reads {
 public:
  Reads(const loop::Pool& pool, uint32_t buffer) : walk_(pool), buffer_(buffer) {}

  bool in(loop::ExprId id) {
    bool found = false;
    walk_(id, [&](loop::ExprId, const loop::ExprNode& n) {
      found = found || (n.op == loop::Op::kLoad && static_cast<uint32_t>(n.imm) == buffer_);
    });
    return found;
  }

 private:
  loop::Walk walk_;
  uint32_t buffer_;
};

}  // namespace pyc::cpu

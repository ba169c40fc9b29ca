#pragma once

// Points of a window's kernel all of whose taps lie inside: there no guard is needed, and the taps
// can be written out one after the other with their places folded into addresses.

#include <optional>
#include <vector>

#include "loop/loop.h"

namespace pyc::cpu {

// A result that sums products of bytes: x, less the same zero everywhere, by weights that no point
// differs in.
struct ByteSum {
  struct Tap {
    loop::ExprId x;  // i8 or u8
    loop::ExprId weight;
  };
  loop::ExprId total = loop::kNone;  // the result as it is computed otherwise
  std::vector<Tap> taps;
  int64_t zero = 0;
};

struct Interior {
  loop::Kernel kernel;  // the given one, with the loop below added but not run
  // Of the parallel variables: whether the point is one; kNone: all are.
  loop::ExprId condition = loop::kNone;
  uint32_t loop = 0;  // runs in place of the kernel's one loop: stores alone
  // What the stores need, in an order that keeps few values alive: tap by tap.
  std::vector<loop::ExprId> order;
  int results = 1;  // chains that run side by side
  // All results, where each is such a sum and all have the same weights; else none.
  std::vector<ByteSum> byte_sums;
};

// Null for kernels of another form (is_window_kernel), or with guards that depend on the lanes.
std::optional<Interior> interior_of(const loop::Kernel& kernel);

}  // namespace pyc::cpu

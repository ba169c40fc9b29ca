#pragma once

// How ops of a family are drawn: what their `draw.node` functions share.

#include <string>
#include <string_view>
#include <vector>

#include "ops/draw.h"
#include "ops/support/infer.h"

namespace pyc::ops {

// Whole nodes, for ops that need nothing of their own.
Result<ValueId> draw_along(Draw& d, DType t);     // one axis
Result<ValueId> draw_arg(Draw& d, DType t);       // argmax, argmin
Result<ValueId> draw_divided(Draw& d, DType t);   // by what is not 0 when tame
Result<ValueId> draw_equation(Draw& d, DType t);  // products of one or two operands
Result<ValueId> draw_loss(Draw& d, DType t);
Result<ValueId> draw_planes(Draw& d, DType t);  // global pooling
Result<ValueId> draw_pool(Draw& d, DType t);
Result<ValueId> draw_reduce(Draw& d, DType t);
Result<ValueId> draw_scan(Draw& d, DType t);

// The same for ops with more attributes.
Result<ValueId> drawn_along(Draw& d, DType t, Attrs attrs);
Result<ValueId> drawn_divided(Draw& d, DType t, Attrs attrs);
Result<ValueId> drawn_planes(Draw& d, DType t, Attrs attrs);
Result<ValueId> drawn_pool(Draw& d, DType t, Attrs attrs);
// How often each dim is repeated is the attribute `attr`, from `least` on.
Result<ValueId> drawn_repeats(Draw& d, DType t, const char* attr, int64_t least);
// Rate, step, x, gradient and states.
Result<ValueId> drawn_optimizer(Draw& d, DType t, int states, Attrs attrs);
struct DrawnCell {
  int64_t gates;
  int functions;  // of one direction
  bool has_memory = false;
};
Result<ValueId> drawn_recurrent(Draw& d, DType t, const DrawnCell& cell, Attrs attrs);

// Operands of which some are left out: their names go into attribute `with`.
struct DrawnOperands {
  std::vector<ValueId> inputs;
  std::string with;

  void add(std::string_view name, ValueId v);
};

// A window and planes it fits into.
struct DrawnWindow {
  Shape planes;
  Ints kernel;
  Ints counts;  // places for it
  Attrs attrs;

  Shape shape(int64_t batch, int64_t channels) const;
};
DrawnWindow drawn_window(Draw& d, int64_t dims);
// Channels per group in and out, and the groups.
struct DrawnGroups {
  int64_t groups;
  int64_t in;
  int64_t out;
};
DrawnGroups drawn_groups(Draw& d);
Shape drawn_weights(int64_t first, int64_t second, const Ints& kernel);

// Shapes of a and b with a common inner dim; ranks from 1.
struct DrawnProduct {
  Shape a;
  Shape b;
};
DrawnProduct drawn_product(Draw& d);
// ONNX Runtime does not fill an empty integer product, and leaves out beta of an empty gemm.
int64_t least_inner(const Draw& d);

// The shape of scales for a shape: one, one per index of an axis, or one per block.
struct DrawnScales {
  Shape shape;
  Shape scale;
  int64_t axis = 1;
  int64_t block = 0;
};
DrawnScales drawn_scales(Draw& d);

// x and `count` parameters per channel. The last one is a variance, which tame values keep
// positive.
std::vector<ValueId> drawn_channels(Draw& d, DType t, int count, int64_t channels,
                                    int64_t min_rank = 2);
// x, targets and perhaps weights.
std::vector<ValueId> drawn_loss_inputs(Draw& d, DType t);
// A shape within `shape` along all axes but one.
Shape drawn_within(Draw& d, Shape shape, size_t free);
// Of a scatter.
std::string drawn_reduction(Draw& d, DType t);
// The dims of `shape` from an axis on.
Shape dims_from(const Shape& shape, int64_t axis);

}  // namespace pyc::ops

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/infer.h"
#include "ops/support/rows.h"

namespace pyc::ops {
namespace {

Types infer_sort(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  return std::vector<TensorType>{x, {DType::kI64, x.shape}};
}

// Whether x comes before y, wherever they stand. NaN is greatest.
Expr precedes(Expr x, Expr y, bool descending) {
  if (descending) std::swap(x, y);
  const Expr less = lt(x, y);
  return is_float(x.dtype()) ? less | (ne(y, y) & eq(x, x)) : less;
}

// Keys and the positions they come from: two buffers that passes read and write in turn.
struct Pairs {
  uint32_t keys = 0;
  uint32_t positions = 0;
};

// Merge sort from the bottom up. A pass merges neighbouring runs of `width` elements; while it
// writes the elements in order it carries where it stands in the left and the right run.
class Merge {
 public:
  Merge(KernelContext& context, const Row& row)
      : context_(context), row_(row), x_(context.input_type(0)) {}

  void run() {
    const int64_t n = row_.length;
    Pairs from;
    Pairs to;
    if (n > 2) from = scratch();
    if (n > 4) to = scratch();
    if (n < 2) return single();
    for (int64_t width = 1; width < n; width *= 2) {
      pass(width, from, to);
      if (width > 1) std::swap(from, to);
    }
  }

 private:
  Pairs scratch() {
    const DType key = compute_dtype(x_.dtype);
    return {context_.scratch(key, row_.length), context_.scratch(DType::kI64, row_.length)};
  }

  void single() {
    context_.each(row_.length, Order::kSerial,
                  [&](Expr k) { put(k, context_.input_compute(0, row_.at(k)), k); });
  }

  void put(Expr k, Expr key, Expr position_in_row) {
    const Expr offset = position(context_, row_.at(k), x_.shape);
    context_.store(context_.output(0), offset, convert(key, x_.dtype));
    context_.store(context_.output(1), offset, position_in_row);
  }

  // The first pass reads the input and writes `from`; the last one writes the outputs.
  void pass(int64_t width, const Pairs& from, const Pairs& to) {
    const int64_t n = row_.length;
    const bool first = width == 1;
    const auto index = [&](int64_t v) { return context_.index(v); };
    const auto key_at = [&](Expr i) {
      return first ? context_.input_compute(0, row_.at(i)) : context_.load(from.keys, i);
    };
    const auto position_at = [&](Expr i) { return first ? i : context_.load(from.positions, i); };
    const KernelContext::Carried carried[] = {{index(0), n + 1}, {index(0), n + 1}};
    context_.loop(n, Order::kSerial, carried, [&](Expr k, std::span<const Expr> c) {
      const Expr begin = floor_div(k, index(2 * width)) * index(2 * width);
      const Expr middle = min(begin + index(width), index(n));
      const Expr end = min(begin + index(2 * width), index(n));
      const Expr starts = eq(k, begin);
      const Expr left = select(starts, begin, c[0]);
      const Expr right = select(starts, middle, c[1]);
      const Expr l = min(left, index(n - 1));
      const Expr r = min(right, index(n - 1));
      const Expr left_key = key_at(l);
      const Expr right_key = key_at(r);
      const Expr right_first = precedes(right_key, left_key, context_.attr_bool("descending"));
      const Expr takes_left = lt(left, middle) & (le(end, right) | ~right_first);
      const Expr key = select(takes_left, left_key, right_key);
      const Expr where = select(takes_left, position_at(l), position_at(r));
      if (2 * width >= n) {
        put(k, key, where);
      } else {
        const Pairs& out = first ? from : to;
        context_.store(out.keys, k, key);
        context_.store(out.positions, k, where);
      }
      return std::vector<Expr>{select(takes_left, min(left + index(1), index(n)), left),
                               select(takes_left, right, min(right + index(1), index(n)))};
    });
  }

  KernelContext& context_;
  const Row& row_;
  const TensorType& x_;
};

void kernel_sort(KernelContext& context) {
  each_row(context, context.input_type(0).shape, context.attr_int("axis"), false,
           [&](const Row& row) { Merge(context, row).run(); });
}

ValueId gradient_sort(Backward& b) {
  return b.op("scatter_elements",
              {b.zeros(b.type(b.g()).dtype, b.input_type(0).shape), b.output(1), b.g()},
              {{"axis", b.attrs().attr_int("axis")}});
}

Result<ValueId> draw_sort(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  return d.op({d.tensor(t, shape)},
              {{"axis", d.axis(std::ssize(shape))}, {"descending", d.flip()}});
}

}  // namespace

const ir::OpDef& op_sort() {
  static const ir::OpDef def{
      .name = "sort",
      .summary = "x ordered along an axis, and where each element was. Stable; NaN is greatest.",
      .outputs = 2,
      .attrs = {optional("axis", int64_t{-1}), optional("descending", false)},
      .infer = infer_sort,
      .kernel = kernel_sort,
      .gradient = gradient_of_one<gradient_sort>,
      .draw = {.node = draw_sort, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops

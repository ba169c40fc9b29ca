#include "ops/support/draws.h"

#include <algorithm>

namespace pyc::ops {

Result<ValueId> drawn_along(Draw& d, DType t, Attrs attrs) {
  const Shape shape = d.shape(1);
  attrs["axis"] = d.axis(std::ssize(shape));
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

Result<ValueId> draw_along(Draw& d, DType t) { return drawn_along(d, t, {}); }

Result<ValueId> draw_scan(Draw& d, DType t) {
  return drawn_along(d, t, {{"exclusive", d.flip()}, {"reverse", d.flip()}});
}

Result<ValueId> draw_reduce(Draw& d, DType t) {
  const Shape shape = d.shape();
  Attrs attrs{{"keepdims", d.flip()}};
  if (!d.chance(5)) attrs["axes"] = d.axes(std::ssize(shape));
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

Result<ValueId> draw_arg(Draw& d, DType t) {
  const Shape shape = d.shape(1, 8, 1);
  return d.op(
      {d.tensor(t, shape)},
      {{"axis", d.axis(std::ssize(shape))}, {"keepdims", d.flip()}, {"select_last", d.flip()}});
}

Result<ValueId> drawn_divided(Draw& d, DType t, Attrs attrs) {
  const Shape shape = d.shape();
  const ValueId a = d.tensor(t, shape);
  return d.op({a, d.tensor_in(t, d.broadcastable(shape), 1.0, 3.9)}, std::move(attrs));
}

Result<ValueId> draw_divided(Draw& d, DType t) { return drawn_divided(d, t, {}); }

Result<ValueId> draw_equation(Draw& d, DType t) {
  const int64_t b = d.pick(1, 3);
  const int64_t i = d.pick(1, 5);
  const int64_t j = d.dim(0);
  const int64_t k = d.pick(1, 9);
  switch (d.pick(0, 4)) {
    case 0:
      return d.op({d.tensor(t, {i, j})}, {{"equation", std::string("ij->ji")}});
    case 1:
      return d.op({d.tensor(t, {j, j})}, {{"equation", std::string("ii->i")}});
    case 2:
      return d.op({d.tensor(t, {i, j}), d.tensor(t, {i, j})},
                  {{"equation", std::string("ij,ij->")}});
    case 3:
      return d.op({d.tensor(t, {b, i, j}), d.tensor(t, {j, k})},
                  {{"equation", std::string("bij,jk->bki")}});
    default:
      return d.op({d.tensor(t, {b, i, j}), d.tensor(t, {b, j, k})},
                  {{"equation", std::string("bij,bjk->bik")}});
  }
}

std::vector<ValueId> drawn_loss_inputs(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  Shape target = shape;
  target.erase(target.begin() + 1);
  std::vector<ValueId> inputs{d.tensor(t, shape), d.indices(target, 0, shape[1] - 1)};
  if (d.flip()) inputs.push_back(d.tensor(t, {shape[1]}));
  return inputs;
}

Result<ValueId> draw_loss(Draw& d, DType t) {
  Attrs attrs{{"reduction", d.word({"none", "sum", "mean"})}};
  if (d.chance(3)) attrs["ignore_index"] = d.pick(0, 2);
  return d.op(drawn_loss_inputs(d, t), std::move(attrs));
}

Result<ValueId> drawn_planes(Draw& d, DType t, Attrs attrs) {
  return d.op({d.tensor(t, d.shape(3, 5, 1))}, std::move(attrs));
}

Result<ValueId> draw_planes(Draw& d, DType t) { return drawn_planes(d, t, {}); }

Shape DrawnWindow::shape(int64_t batch, int64_t channels) const {
  Shape out{batch, channels};
  out.insert(out.end(), planes.begin(), planes.end());
  return out;
}

DrawnWindow drawn_window(Draw& d, int64_t dims) {
  DrawnWindow w;
  Ints strides;
  Ints dilations;
  Ints begin;
  Ints end;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t kernel = d.pick(1, 3);
    const int64_t dilation = d.chance(3) ? 2 : 1;
    const int64_t reach = (kernel - 1) * dilation + 1;
    const int64_t plane = reach + d.pick(0, dims > 2 ? 2 : 5);
    const int64_t stride = d.pick(1, 3);
    begin.push_back(d.flip() ? 0 : d.pick(0, kernel - 1));
    end.push_back(d.flip() ? 0 : d.pick(0, kernel - 1));
    w.kernel.push_back(kernel);
    strides.push_back(stride);
    dilations.push_back(dilation);
    w.planes.push_back(plane);
    w.counts.push_back((plane + begin.back() + end.back() - reach) / stride + 1);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  w.attrs = {{"strides", strides}, {"dilations", dilations}, {"pads", begin}};
  return w;
}

Result<ValueId> drawn_pool(Draw& d, DType t, Attrs attrs) {
  DrawnWindow w = drawn_window(d, d.pick(1, 3));
  const ValueId x = d.tensor(t, w.shape(d.pick(1, 2), d.pick(1, 3)));
  attrs.merge(w.attrs);
  attrs["kernel"] = w.kernel;
  return d.op({x}, std::move(attrs));
}

Result<ValueId> draw_pool(Draw& d, DType t) { return drawn_pool(d, t, {}); }

DrawnGroups drawn_groups(Draw& d) {
  return {d.choose<int64_t>({1, 1, 2, 3}), d.pick(1, 3), d.pick(1, 3)};
}

Shape drawn_weights(int64_t first, int64_t second, const Ints& kernel) {
  Shape out{first, second};
  out.insert(out.end(), kernel.begin(), kernel.end());
  return out;
}

Result<ValueId> drawn_repeats(Draw& d, DType t, const char* attr, int64_t least) {
  const Shape shape = d.shape();
  Ints times;
  int64_t room = 3;
  for (size_t i = 0; i < shape.size(); ++i) {
    times.push_back(room > 0 ? d.pick(d.chance(8) ? least : 1, 3) : 1);
    room -= times.back() > 1 ? 1 : 0;
  }
  return d.op({d.tensor(t, shape)}, {{attr, times}});
}

Result<ValueId> drawn_optimizer(Draw& d, DType t, int states, Attrs attrs) {
  const Shape shape = d.shape();
  std::vector<ValueId> inputs{d.tensor(d.float_dtype(), {}), d.indices({}, 0, 3)};
  for (int i = 0; i < 2 + states; ++i) inputs.push_back(d.tensor(t, shape));
  if (d.flip()) attrs["norm_coefficient"] = 0.125;
  return d.op(std::move(inputs), std::move(attrs));
}

void DrawnOperands::add(std::string_view name, ValueId v) {
  with += (with.empty() ? "" : ",") + std::string(name);
  inputs.push_back(v);
}

Result<ValueId> drawn_recurrent(Draw& d, DType t, const DrawnCell& cell, Attrs attrs) {
  const int64_t steps = d.pick(1, 3);
  const int64_t b = d.pick(1, 2);
  const int64_t in = d.pick(1, 4);
  const int64_t hidden = d.pick(1, 4);
  const std::string direction = d.word({"forward", "reverse", "bidirectional"});
  const int64_t dirs = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = d.chance(3);
  const Shape state = batch_first ? Shape{b, dirs, hidden} : Shape{dirs, b, hidden};
  const int64_t width = cell.gates * hidden;
  DrawnOperands o{{d.tensor(t, batch_first ? Shape{b, steps, in} : Shape{steps, b, in}),
                   d.tensor(t, {dirs, width, in}), d.tensor(t, {dirs, width, hidden})},
                  ""};
  if (d.flip()) o.add("b", d.tensor(t, {dirs, 2 * width}));
  if (d.chance(3))
    o.add("sequence_lens", d.fresh(DType::kI32, {b}, 1.0, static_cast<double>(steps) + 0.5));
  if (d.flip()) o.add("initial_h", d.tensor(t, state));
  if (cell.has_memory && d.flip()) o.add("initial_c", d.tensor(t, state));
  if (cell.has_memory && d.chance(3)) o.add("p", d.tensor(t, {dirs, 3 * hidden}));
  attrs["with"] = o.with;
  attrs["direction"] = direction;
  attrs["layout"] = int64_t{batch_first ? 1 : 0};
  if (d.chance(3)) attrs["clip"] = 1.5;
  if (d.chance(3)) {
    std::string names;
    for (int64_t i = 0; i < dirs * cell.functions; ++i) {
      names += (i == 0 ? "" : ",") + d.word({"Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign"});
    }
    attrs["activations"] = names;
  }
  return d.op(std::move(o.inputs), std::move(attrs));
}

int64_t least_inner(const Draw& d) { return d.tame() ? 1 : 0; }

DrawnProduct drawn_product(Draw& d) {
  const int64_t k = d.chance(8) ? d.pick(257, 300) : d.dim(least_inner(d));
  const Shape batch = d.chance(3) ? d.shape(1, 2, 1) : Shape{};
  DrawnProduct p{{d.pick(1, 5), k}, {k, d.choose<int64_t>({1, 2, 3, 5, 8, 17})}};
  if (batch.empty() && d.chance(6)) p.a = {k};
  if (batch.empty() && d.chance(6)) p.b = {k};
  if (!batch.empty() && k <= 67) {
    Shape small = batch;
    for (int64_t& n : small) n = std::min<int64_t>(n, 3);
    p.a.insert(p.a.begin(), small.begin(), small.end());
    if (d.flip()) p.b.insert(p.b.begin(), small.begin(), small.end());
  }
  return p;
}

DrawnScales drawn_scales(Draw& d) {
  DrawnScales s{d.shape(2, 4, 1), {}, 1, 0};
  s.axis = d.pick(0, std::ssize(s.shape) - 1);
  const int64_t n = s.shape[static_cast<size_t>(s.axis)];
  if (d.chance(3)) return s;
  s.scale = {n};
  if (d.flip()) return s;
  s.block = d.pick(1, n);
  s.scale = s.shape;
  s.scale[static_cast<size_t>(s.axis)] = (n + s.block - 1) / s.block;
  return s;
}

std::vector<ValueId> drawn_channels(Draw& d, DType t, int count, int64_t channels,
                                    int64_t min_rank) {
  Shape shape = d.shape(min_rank, 5, 1);
  shape[1] = channels;
  std::vector<ValueId> inputs{d.tensor(t, shape)};
  for (int i = 1; i <= count; ++i) {
    inputs.push_back(i == count ? d.tensor_in(t, {channels}, 0.5, 1.5) : d.tensor(t, {channels}));
  }
  return inputs;
}

Shape drawn_within(Draw& d, Shape shape, size_t free) {
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] = i == free ? d.pick(1, 5) : d.pick(1, shape[i]);
  return shape;
}

std::string drawn_reduction(Draw& d, DType t) {
  return t == DType::kBool ? "none" : d.word({"none", "add", "mul", "max", "min"});
}

Shape dims_from(const Shape& shape, int64_t axis) {
  return {shape.begin() + from_front(axis, std::ssize(shape)), shape.end()};
}

}  // namespace pyc::ops

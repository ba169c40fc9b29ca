// Ops that read or write at places, and those that find places.

#include "support/draw.h"

namespace pyc::test {
namespace {

size_t front(int64_t axis, const Shape& shape) {
  return static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
}

Result<ValueId> gather(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[front(axis, shape)];
  const ValueId x = d.tensor(t, shape);
  return d.op("gather", {x, d.indices(d.shape(0, 2), -n, n - 1)}, {{"axis", axis}});
}

// A shape within `shape` along all axes but one.
Shape within(Draw& d, Shape shape, size_t free) {
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] = i == free ? d.pick(1, 5) : d.pick(1, shape[i]);
  return shape;
}

Result<ValueId> gather_elements(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[front(axis, shape)];
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(within(d, shape, front(axis, shape)), -n, n - 1);
  return d.op("gather_elements", {x, at}, {{"axis", axis}});
}

Result<ValueId> gather_nd(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t rank = std::ssize(shape);
  const int64_t batch = d.pick(0, rank - 1);
  const int64_t depth = d.pick(1, rank - batch);
  Shape places(shape.begin(), shape.begin() + batch);
  if (d.flip()) places.push_back(d.pick(1, 4));
  places.push_back(depth);
  int64_t least = shape[static_cast<size_t>(batch)];
  for (int64_t i = 0; i < depth; ++i) {
    least = std::min(least, shape[static_cast<size_t>(batch + i)]);
  }
  const ValueId x = d.tensor(t, shape);
  return d.op("gather_nd", {x, d.indices(places, -least, least - 1)}, {{"batch_dims", batch}});
}

std::string reduction(Draw& d, DType t) {
  return t == DType::kBool ? "none" : d.word({"none", "add", "mul", "max", "min"});
}

Result<ValueId> scatter_elements(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[front(axis, shape)];
  const Shape places = within(d, shape, front(axis, shape));
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(places, -n, n - 1);
  return d.op("scatter_elements", {x, at, d.tensor(t, places)},
              {{"axis", axis}, {"reduction", reduction(d, t)}});
}

Result<ValueId> scatter_nd(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t depth = d.pick(1, std::ssize(shape));
  int64_t least = shape[0];
  for (int64_t i = 0; i < depth; ++i) least = std::min(least, shape[static_cast<size_t>(i)]);
  Shape updates = d.shape(0, 2, 1);
  for (int64_t& n : updates) n = std::min<int64_t>(n, 4);
  Shape places = updates;
  places.push_back(depth);
  updates.insert(updates.end(), shape.begin() + depth, shape.end());
  const ValueId x = d.tensor(t, shape);
  const ValueId at = d.indices(places, -least, least - 1);
  return d.op("scatter_nd", {x, at, d.tensor(t, updates)}, {{"reduction", reduction(d, t)}});
}

Result<ValueId> tensor_scatter(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  const int64_t axis = d.pick(1, std::ssize(shape) - 1);
  Shape update = shape;
  int64_t& n = update[static_cast<size_t>(axis)];
  n = d.pick(1, n);
  const int64_t last = shape[static_cast<size_t>(axis)] - n;
  std::vector<ValueId> inputs{d.tensor(t, shape), d.tensor(t, update)};
  if (d.flip()) inputs.push_back(d.indices({shape[0]}, 0, last));
  return d.op("tensor_scatter", std::move(inputs),
              {{"axis", axis - (d.flip() ? std::ssize(shape) : 0)},
               {"mode", d.word({"linear", "circular"})}});
}

Result<ValueId> one_hot(Draw& d, DType t) {
  const Shape shape = d.shape(0, 3);
  const int64_t depth = d.pick(0, 6);
  const DType index = d.choose({DType::kI64, DType::kI32, DType::kF32, DType::kU8});
  const ValueId at = d.fresh(index, shape, -7.0, 7.0);
  return d.op("one_hot", {at, d.tensor(t, {2})},
              {{"axis", d.pick(-std::ssize(shape) - 1, std::ssize(shape))}, {"depth", depth}});
}

Result<ValueId> top_k(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  return d.op("top_k", {d.tensor(t, shape)},
              {{"axis", axis},
               {"k", d.pick(0, shape[front(axis, shape)])},
               {"largest", d.flip()},
               {"sorted", d.flip()}});
}

Result<ValueId> sort(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  return d.op("sort", {d.tensor(t, shape)},
              {{"axis", d.axis(std::ssize(shape))}, {"descending", d.flip()}});
}

Result<ValueId> arg(Draw& d, DType t, std::string_view op) {
  const Shape shape = d.shape(1, 8, 1);
  return d.op(
      op, {d.tensor(t, shape)},
      {{"axis", d.axis(std::ssize(shape))}, {"keepdims", d.flip()}, {"select_last", d.flip()}});
}
Result<ValueId> argmax(Draw& d, DType t) { return arg(d, t, "argmax"); }
Result<ValueId> argmin(Draw& d, DType t) { return arg(d, t, "argmin"); }

Result<ValueId> reverse_sequence(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  const int64_t batch = d.pick(0, 1);
  const ValueId x = d.tensor(t, shape);
  const ValueId lengths =
      d.indices({shape[static_cast<size_t>(batch)]}, 1, shape[static_cast<size_t>(1 - batch)]);
  return d.op("reverse_sequence", {x, lengths}, {{"batch_axis", batch}, {"time_axis", 1 - batch}});
}

Result<ValueId> max_unpool(Draw& d, DType t) {
  const Shape shape{d.pick(1, 2), d.pick(1, 2), d.pick(1, 4), d.pick(1, 5)};
  Shape to = shape;
  to[2] += d.pick(0, 3);
  to[3] += d.pick(0, 3);
  const ValueId x = d.tensor(t, shape);
  const ValueId at =
      d.fresh(DType::kI64, shape, 0.0, static_cast<double>(to[0] * to[1] * to[2] * to[3]));
  return d.op("max_unpool", {x, at}, {{"shape", to}});
}

Result<ValueId> resample(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const bool weighted = is_float(t) && d.flip();
  const Shape table{d.pick(0, 6), weighted ? d.pick(1, 3) : 1};
  const ValueId x = d.tensor(t, shape);
  std::vector<ValueId> inputs{x, d.indices(table, 0, shape[front(axis, shape)] - 1)};
  if (weighted) inputs.push_back(d.tensor(t, table));
  return d.op("resample", std::move(inputs), {{"axis", axis}});
}

Result<ValueId> roi_align(Draw& d, DType t) {
  const Shape shape{d.pick(1, 2), d.pick(1, 2), d.pick(2, 6), d.pick(2, 6)};
  const int64_t rois = d.pick(0, 3);
  const ValueId x = d.tensor(t, shape);
  const ValueId boxes = d.fresh(t, {rois, 4}, 0.0, 5.0);
  return d.op("roi_align", {x, boxes, d.indices({rois}, 0, shape[0] - 1)},
              {{"size", Ints{d.pick(1, 3), d.pick(1, 3)}},
               {"mode", d.word({"avg", "max"})},
               {"sampling_ratio", d.pick(0, 2)},
               {"spatial_scale", d.choose({1.0, 0.5})},
               {"half_pixel", d.flip()}});
}

Result<ValueId> grid_sample(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 3);
  Shape shape{d.pick(1, 2), d.pick(1, 2)};
  Shape grid{shape[0]};
  for (int64_t i = 0; i < dims; ++i) {
    shape.push_back(d.pick(1, 5));
    grid.push_back(d.pick(1, 4));
  }
  grid.push_back(dims);
  const ValueId x = d.tensor(t, shape);
  return d.op("grid_sample", {x, d.fresh(t, grid, -1.5, 1.5)},
              {{"mode", d.word({"linear", "nearest", "cubic"})},
               {"padding", d.word({"zeros", "border", "reflection"})},
               {"align_corners", d.flip()}});
}

Result<ValueId> affine_grid(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 3);
  Shape size{d.pick(1, 3), d.pick(1, 3)};
  for (int64_t i = 0; i < dims; ++i) size.push_back(d.pick(1, 5));
  return d.op("affine_grid", {d.tensor(t, {size[0], dims, dims + 1})},
              {{"size", size}, {"align_corners", d.flip()}});
}

// x, targets and perhaps weights.
std::vector<ValueId> loss_inputs(Draw& d, DType t) {
  const Shape shape = d.shape(2, 4, 1);
  Shape target = shape;
  target.erase(target.begin() + 1);
  std::vector<ValueId> inputs{d.tensor(t, shape), d.indices(target, 0, shape[1] - 1)};
  if (d.flip()) inputs.push_back(d.tensor(t, {shape[1]}));
  return inputs;
}
Result<ValueId> loss(Draw& d, DType t, std::string_view op) {
  Attrs attrs{{"reduction", d.word({"none", "sum", "mean"})}};
  if (d.chance(3)) attrs["ignore_index"] = d.pick(0, 2);
  return d.op(op, loss_inputs(d, t), std::move(attrs));
}
Result<ValueId> nll_loss(Draw& d, DType t) { return loss(d, t, "nll_loss"); }
Result<ValueId> cross_entropy(Draw& d, DType t) { return loss(d, t, "softmax_cross_entropy_loss"); }
Result<ValueId> nll_terms(Draw& d, DType t) { return d.op("nll_terms", loss_inputs(d, t)); }

Result<ValueId> multinomial(Draw& d, DType t) {
  return d.op("multinomial", {d.tensor(t, {d.pick(1, 3), d.pick(1, 9)})},
              {{"sample_size", d.pick(0, 4)},
               {"dtype", d.choose({DType::kI32, DType::kI64})},
               {"seed", d.pick(0, 99)}});
}

constexpr Recipe kIndexRecipes[] = {
    {"affine_grid", affine_grid},
    {"argmax", argmax, true},
    {"argmin", argmin, true},
    {"gather", gather},
    {"gather_elements", gather_elements},
    {"gather_nd", gather_nd},
    {"grid_sample", grid_sample},
    {"max_unpool", max_unpool},
    {"multinomial", multinomial, true},
    {"nll_loss", nll_loss},
    {"nll_terms", nll_terms},
    {"one_hot", one_hot, true},
    {"resample", resample},
    {"reverse_sequence", reverse_sequence},
    {"roi_align", roi_align},
    {"scatter_elements", scatter_elements},
    {"scatter_nd", scatter_nd},
    {"softmax_cross_entropy_loss", cross_entropy},
    {"sort", sort, true},
    {"tensor_scatter", tensor_scatter},
    {"top_k", top_k, true},
};

}  // namespace

Recipes index_recipes() { return kIndexRecipes; }

}  // namespace pyc::test

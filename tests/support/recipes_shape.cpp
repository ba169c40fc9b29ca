// Ops that move elements.

#include "support/draw.h"

namespace pyc::test {
namespace {

Result<ValueId> concat(Draw& d, DType t) {
  Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  const size_t at = static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
  std::vector<ValueId> inputs;
  for (int64_t i = d.pick(1, 4); i > 0; --i) {
    shape[at] = d.pick(0, 5);
    inputs.push_back(d.tensor(t, shape));
  }
  return d.op("concat", std::move(inputs), {{"axis", axis}});
}

Result<ValueId> expand(Draw& d, DType t) {
  const Shape to = d.shape();
  return d.op("expand", {d.tensor(t, d.broadcastable(to))}, {{"shape", to}});
}

Result<ValueId> flatten(Draw& d, DType t) {
  const Shape shape = d.shape();
  const int64_t rank = std::ssize(shape);
  return d.op("flatten", {d.tensor(t, shape)}, {{"axis", d.pick(-rank, rank)}});
}

// The dims of another shape with as many elements, sometimes with a -1.
Result<ValueId> reshape(Draw& d, DType t) {
  Shape to = d.shape();
  const ir::TensorType type{t, to};
  Shape from{type.elements()};
  if (d.flip()) from.insert(from.begin() + d.pick(0, 1), 1);
  if (type.elements() % 2 == 0 && d.flip()) from = {2, type.elements() / 2};
  const ValueId x = d.tensor(t, from);
  if (type.elements() > 0 && !to.empty() && d.chance(3)) {
    to[static_cast<size_t>(d.pick(0, std::ssize(to) - 1))] = -1;
  }
  return d.op("reshape", {x}, {{"shape", to}});
}

Result<ValueId> transpose(Draw& d, DType t) {
  const Shape shape = d.shape();
  Attrs attrs;
  if (!d.chance(5)) attrs["perm"] = d.permutation(std::ssize(shape));
  return d.op("transpose", {d.tensor(t, shape)}, std::move(attrs));
}

Result<ValueId> slice(Draw& d, DType t) {
  const Shape shape = d.shape();
  const Ints axes = d.axes(std::ssize(shape));
  Ints starts;
  Ints ends;
  Ints steps;
  for (size_t i = 0; i < axes.size(); ++i) {
    starts.push_back(d.pick(-4, 4));
    ends.push_back(d.choose<int64_t>({-3, -1, 2, 5, INT64_MAX, INT64_MIN}));
    steps.push_back(d.choose<int64_t>({1, 1, 2, 3, -1, -2}));
  }
  if (axes.empty())
    return d.op("slice", {d.tensor(t, shape)}, {{"starts", Ints{}}, {"ends", Ints{}}});
  return d.op("slice", {d.tensor(t, shape)},
              {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
}

Result<ValueId> split(Draw& d, DType t) {
  Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  const size_t at = static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
  Ints sizes;
  shape[at] = 0;
  for (int64_t i = d.pick(1, 4); i > 0; --i) {
    sizes.push_back(d.pick(d.chance(5) ? 0 : 1, 4));
    shape[at] += sizes.back();
  }
  return d.op("split", {d.tensor(t, shape)}, {{"axis", axis}, {"sizes", sizes}});
}

Result<ValueId> squeeze(Draw& d, DType t) {
  Shape shape = d.shape();
  Ints axes = d.axes(std::ssize(shape));
  for (const int64_t a : axes) shape[static_cast<size_t>(a < 0 ? a + std::ssize(shape) : a)] = 1;
  return d.op("squeeze", {d.tensor(t, shape)}, {{"axes", axes}});
}

Result<ValueId> unsqueeze(Draw& d, DType t) {
  const Shape shape = d.shape(0, 5);
  const int64_t added = d.pick(0, 3);
  Ints axes = d.permutation(std::ssize(shape) + added);
  axes.resize(static_cast<size_t>(added));
  return d.op("unsqueeze", {d.tensor(t, shape)}, {{"axes", axes}});
}

Result<ValueId> pad(Draw& d, DType t) {
  const std::string mode = d.word({"constant", "constant", "reflect", "edge", "wrap"});
  const bool copies = mode != "constant";
  const Shape shape = d.shape(0, 4, copies ? 3 : 0);
  Ints pads;
  for (size_t i = 0; i < 2 * shape.size(); ++i) {
    const int64_t most = shape[i % shape.size()] / 2;
    pads.push_back(d.chance(5) ? -d.pick(0, copies ? most / 2 : most) : d.pick(0, copies ? 2 : 3));
  }
  Attrs attrs{{"mode", mode}, {"pads", pads}};
  if (!copies && d.flip()) attrs["value"] = static_cast<double>(d.pick(0, 3));
  return d.op("pad", {d.tensor(t, shape)}, std::move(attrs));
}

Result<ValueId> repeated(Draw& d, DType t, std::string_view op, const char* attr, int64_t least) {
  const Shape shape = d.shape();
  Ints times;
  int64_t room = 3;
  for (size_t i = 0; i < shape.size(); ++i) {
    times.push_back(room > 0 ? d.pick(d.chance(8) ? least : 1, 3) : 1);
    room -= times.back() > 1 ? 1 : 0;
  }
  return d.op(op, {d.tensor(t, shape)}, {{attr, times}});
}
Result<ValueId> tile(Draw& d, DType t) { return repeated(d, t, "tile", "repeats", 0); }
Result<ValueId> repeat(Draw& d, DType t) { return repeated(d, t, "repeat", "times", 1); }

Result<ValueId> reverse(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op("reverse", {d.tensor(t, shape)}, {{"axes", d.axes(std::ssize(shape))}});
}

Result<ValueId> depth_to_space(Draw& d, DType t) {
  const int64_t block = d.pick(1, 3);
  const Shape shape{d.pick(1, 2), d.pick(1, 2) * block * block, d.pick(1, 4), d.pick(1, 9)};
  return d.op("depth_to_space", {d.tensor(t, shape)},
              {{"block", block}, {"mode", d.word({"DCR", "CRD"})}});
}

Result<ValueId> space_to_depth(Draw& d, DType t) {
  const int64_t block = d.pick(1, 3);
  const Shape shape{d.pick(1, 2), d.pick(0, 3), d.pick(1, 4) * block, d.pick(1, 5) * block};
  return d.op("space_to_depth", {d.tensor(t, shape)},
              {{"block", block}, {"mode", d.word({"DCR", "CRD"})}});
}

Result<ValueId> frames(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  const int64_t n = shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis)];
  return d.op("frames", {d.tensor(t, shape)},
              {{"axis", axis}, {"length", d.pick(1, n)}, {"step", d.pick(1, 4)}});
}

Result<ValueId> tri(Draw& d, DType t) {
  return d.op("tri", {d.tensor(t, d.shape(2))}, {{"k", d.pick(-3, 3)}, {"upper", d.flip()}});
}

constexpr Recipe kShapeRecipes[] = {
    {"concat", concat},
    {"depth_to_space", depth_to_space},
    {"expand", expand},
    {"flatten", flatten},
    {"frames", frames},
    {"pad", pad},
    {"repeat", repeat},
    {"reshape", reshape},
    {"reverse", reverse},
    {"slice", slice},
    {"space_to_depth", space_to_depth},
    {"split", split},
    {"squeeze", squeeze},
    {"tile", tile},
    {"transpose", transpose},
    {"tri", tri},
    {"unsqueeze", unsqueeze},
};

}  // namespace

Recipes shape_recipes() { return kShapeRecipes; }

}  // namespace pyc::test

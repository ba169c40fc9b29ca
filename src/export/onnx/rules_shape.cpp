#include <cmath>
#include <numeric>

#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

// A dim of 0 is meant as such.
std::string reshaped(Emitter& e, const std::string& x, const ir::Shape& shape) {
  return e.make("Reshape", {x, e.int_list(shape)}, {{"allowzero", int64_t{1}}});
}

void reshape(Emitter& e) {
  e.emit("Reshape", {e.in(0), e.int_list(e.out_type().shape)}, {{"allowzero", int64_t{1}}});
}

void squeeze(Emitter& e) {
  Names in{e.in(0)};
  if (!e.ints("axes").empty()) in.push_back(e.int_list(e.ints("axes")));
  e.emit("Squeeze", in);
}

void unsqueeze(Emitter& e) { e.emit("Unsqueeze", {e.in(0), e.int_list(e.ints("axes"))}); }

void split(Emitter& e) { e.emit("Split", {e.in(0), e.int_list(e.ints("sizes"))}, e.attrs("axis")); }

void slice(Emitter& e) {
  const Ints& starts = e.ints("starts");
  if (starts.empty()) return e.emit("Identity", {e.in(0)});
  Ints axes = e.ints("axes");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Ints steps = e.ints("steps");
  if (steps.empty()) steps.assign(starts.size(), 1);
  e.emit("Slice", {e.in(0), e.int_list(starts), e.int_list(e.ints("ends")), e.int_list(axes),
                   e.int_list(steps)});
}

void reverse(Emitter& e) {
  const Ints& axes = e.ints("axes");
  const size_t n = axes.size();
  if (n == 0) return e.emit("Identity", {e.in(0)});
  e.emit("Slice", {e.in(0), e.int_list(Ints(n, -1)), e.int_list(Ints(n, INT64_MIN)),
                   e.int_list(axes), e.int_list(Ints(n, -1))});
}

void expand(Emitter& e) { e.emit("Expand", {e.in(0), e.int_list(e.out_type().shape)}); }
void tile(Emitter& e) { e.emit("Tile", {e.in(0), e.int_list(e.ints("repeats"))}); }

// A new dim behind each one is stretched and then joined with it.
void repeat(Emitter& e) {
  const ir::Shape& from = e.in_type(0).shape;
  ir::Shape thin;
  ir::Shape wide;
  for (size_t d = 0; d < from.size(); ++d) {
    thin.insert(thin.end(), {from[d], 1});
    wide.insert(wide.end(), {from[d], e.ints("times")[d]});
  }
  const std::string stretched = e.make("Expand", {reshaped(e, e.in(0), thin), e.int_list(wide)});
  e.emit("Reshape", {stretched, e.int_list(e.out_type().shape)}, {{"allowzero", int64_t{1}}});
}

void pad(Emitter& e) {
  Names in{e.in(0), e.int_list(e.ints("pads"))};
  if (e.text("mode") == "constant") in.push_back(e.scalar(e.in_type(0).dtype, e.real("value")));
  e.emit("Pad", in, e.attrs("mode"));
}

// Indices as ONNX takes them: i64, or i32 too where that is allowed.
std::string index_input(Emitter& e, size_t i, bool also_i32) {
  const DType t = e.in_type(i).dtype;
  return also_i32 && t == DType::kI32 ? e.in(i) : e.cast(e.in(i), t, DType::kI64);
}

void gather(Emitter& e) { e.emit("Gather", {e.in(0), index_input(e, 1, true)}, e.attrs("axis")); }
void gather_elements(Emitter& e) {
  e.emit("GatherElements", {e.in(0), index_input(e, 1, true)}, e.attrs("axis"));
}
void gather_nd(Emitter& e) {
  e.emit("GatherND", {e.in(0), index_input(e, 1, false)}, e.attrs("batch_dims"));
}
void scatter_elements(Emitter& e) {
  e.emit("ScatterElements", {e.in(0), index_input(e, 1, true), e.in(2)}, e.attrs("axis reduction"));
}
void scatter_nd(Emitter& e) {
  e.emit("ScatterND", {e.in(0), index_input(e, 1, false), e.in(2)}, e.attrs("reduction"));
}
void reverse_sequence(Emitter& e) {
  e.emit("ReverseSequence", {e.in(0), index_input(e, 1, false)}, e.attrs("batch_axis time_axis"));
}
void tensor_scatter(Emitter& e) {
  Names in = e.all_inputs();
  if (in.size() > 2) in[2] = index_input(e, 2, false);
  e.emit("TensorScatter", in, e.attrs("axis mode"));
}

// Each frame's places along the axis are gathered.
void frames(Emitter& e) {
  const int64_t axis = e.axis("axis", e.in_type(0).rank());
  const int64_t count = e.out_type().shape[static_cast<size_t>(axis)];
  const int64_t length = e.integer("length");
  Ints places;
  for (int64_t f = 0; f < count; ++f) {
    for (int64_t i = 0; i < length; ++i) places.push_back(f * e.integer("step") + i);
  }
  const std::string at = reshaped(e, e.int_list(places), {count, length});
  e.emit("Gather", {e.in(0), at}, {{"axis", axis}});
}

// The taps are gathered into a new dim behind the axis, weighted and added.
void resample(Emitter& e) {
  const ir::TensorType& x = e.in_type(0);
  const int64_t axis = e.axis("axis", x.rank());
  const auto at = static_cast<size_t>(axis);
  const std::string last = e.int_scalar(x.shape[at] - 1);
  const std::string places = e.make("Clip", {index_input(e, 1, false), e.int_scalar(0), last});
  const ir::Shape& taps = e.in_type(1).shape;
  if (e.inputs() == 2) {
    e.emit("Gather", {e.in(0), reshaped(e, places, {taps[0]})}, {{"axis", axis}});
    return;
  }
  const std::string picked = e.make("Gather", {e.wide_in(0), places}, {{"axis", axis}});
  ir::Shape shape = taps;
  shape.resize(2 + x.shape.size() - at - 1, 1);
  const std::string weighted = e.make("Mul", {picked, reshaped(e, e.wide_in(2), shape)});
  e.emit_rounded("ReduceSum", {weighted, e.int_list({axis + 1})}, {{"keepdims", int64_t{0}}});
}

// Indices beyond the dim match none: those that no i64 holds either.
std::string one_hot_indices(Emitter& e) {
  if (e.in_type(0).dtype != DType::kU64) return index_input(e, 0, false);
  const std::string depth = e.scalar(DType::kU64, static_cast<double>(e.integer("depth")));
  return e.cast(e.make("Min", {e.in(0), depth}), DType::kU64, DType::kI64);
}

void one_hot(Emitter& e) {
  if (e.out_type().dtype == DType::kBF16) return e.refuse("ONNX does not have it for bf16");
  const std::string depth = e.int_scalar(e.integer("depth"));
  if (e.in_type(0).rank() > 0) {
    return e.emit("OneHot", {one_hot_indices(e), depth, e.in(1)}, e.attrs("axis"));
  }
  // ONNX has no rank 0 here.
  const std::string one = e.int_list({1});
  const std::string indices = e.make("Reshape", {one_hot_indices(e), one});
  const std::string y = e.make("OneHot", {indices, depth, e.in(1)}, {{"axis", int64_t{-1}}});
  e.emit("Squeeze", {y, e.int_list({0})});
}

void tri(Emitter& e) { e.emit("Trilu", {e.in(0), e.int_scalar(e.integer("k"))}, e.attrs("upper")); }

void resize(Emitter& e) {
  const ir::TensorType& y = e.out_type();
  if (y.rank() == 0) return e.emit("Identity", {e.in(0)});
  if (y.elements() == 0) return e.emit("Identity", {e.splat(y, 0.0)});
  NodeAttrs attrs = e.attrs(
      "mode coordinate_transformation_mode=coordinates cubic_coeff_a exclude_outside antialias "
      "extrapolation_value");
  if (e.text("mode") == "nearest") attrs.emplace_back("nearest_mode", e.text("nearest"));
  const auto& roi = e.attr<std::vector<double>>("roi");
  const auto& scales = e.attr<std::vector<double>>("scales");
  const ir::Shape& from = e.in_type(0).shape;
  bool by_scales = !scales.empty();
  for (size_t d = 0; d < scales.size(); ++d) {
    const double size = std::floor(static_cast<double>(from[d]) *
                                   static_cast<double>(static_cast<float>(scales[d])));
    by_scales = by_scales && size == static_cast<double>(e.ints("sizes")[d]);
  }
  const std::string region = roi.empty() ? std::string() : e.floats(roi, true);
  if (by_scales) {
    e.emit("Resize", {e.in(0), region, e.floats(scales)}, attrs);
  } else {
    e.emit("Resize", {e.in(0), region, "", e.int_list(e.ints("sizes"))}, attrs);
  }
}

// The other mode came with opset 28.
void space_to_depth(Emitter& e) {
  if (e.text("mode") == "DCR") return e.emit("SpaceToDepth", {e.in(0)}, e.attrs("blocksize=block"));
  e.need(28);
  e.emit("SpaceToDepth", {e.in(0)}, e.attrs("blocksize=block mode"));
}

constexpr Rule kShapeRules[] = {
    {"expand", expand},
    {"frames", frames},
    {"gather", gather},
    {"gather_elements", gather_elements},
    {"gather_nd", gather_nd},
    {"one_hot", one_hot},
    {"pad", pad, {.small = true}},
    {"repeat", repeat},
    {"resample", resample},
    {"reshape", reshape, {.small = true}},
    {"resize", resize},
    {"reverse", reverse},
    {"reverse_sequence", reverse_sequence},
    {"scatter_elements", scatter_elements},
    {"scatter_nd", scatter_nd},
    {"slice", slice},
    {"space_to_depth", space_to_depth},
    {"split", split},
    {"squeeze", squeeze, {.small = true}},
    {"tensor_scatter", tensor_scatter},
    {"tile", tile},
    {"tri", tri},
    {"unsqueeze", unsqueeze, {.small = true}},
};

}  // namespace

Rules shape_rules() { return kShapeRules; }

}  // namespace pyc::onnx::exporting

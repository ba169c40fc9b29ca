#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/draw.h"
#include "ops/support/choice.h"
#include "ops/support/compose.h"
#include "ops/support/infer.h"
#include "ops/support/resize_table.h"

namespace pyc::ops {
namespace {

using Floats = std::vector<double>;

const std::string& text(const ir::Attrs& attrs, std::string_view name) {
  return std::get<std::string>(attrs.find(name)->second);
}

const Floats& floats(const ir::Attrs& attrs, std::string_view name) {
  return std::get<Floats>(attrs.find(name)->second);
}

bool flag(const ir::Attrs& attrs, std::string_view name) {
  return std::get<bool>(attrs.find(name)->second);
}

ResizeRule rule_of(const ir::Attrs& attrs) {
  return {.mode = text(attrs, "mode"),
          .coordinates = text(attrs, "coordinates"),
          .nearest = text(attrs, "nearest"),
          .cubic_a = std::get<double>(attrs.find("cubic_coeff_a")->second),
          .exclude_outside = flag(attrs, "exclude_outside"),
          .antialias = flag(attrs, "antialias")};
}

Status check_modes(const ir::Attrs& attrs, const TensorType& x) {
  const ResizeRule rule = rule_of(attrs);
  PYC_TRY(require_choice("mode", rule.mode, kResizeModes));
  PYC_TRY(require_choice("coordinates", rule.coordinates, kResizeCoordinates));
  PYC_TRY(require_choice("nearest", rule.nearest, kNearestModes));
  if (rule.mode == "nearest") {
    if (!rule.antialias) return {};
    return refuse(Code::kInvalidArgument, "antialias needs mode \"linear\" or \"cubic\"");
  }
  return require_dtype("input", x, kNumbers);
}

Status check_scales(const ir::Attrs& attrs, const TensorType& x) {
  const Floats& scales = floats(attrs, "scales");
  if (!scales.empty() && scales.size() != x.shape.size()) {
    return refuse(Code::kInvalidArgument, "scales must have ", x.rank(), " entries, found ",
                  static_cast<int64_t>(scales.size()));
  }
  for (size_t d = 0; d < scales.size(); ++d) {
    if (!(scales[d] > 0) || !std::isfinite(scales[d])) {
      return refuse(Code::kInvalidArgument, "scales must be positive and finite");
    }
    // The taps of one element grow with 1 / scale.
    if (flag(attrs, "antialias") && scales[d] * static_cast<double>(x.shape[d]) < 0.5) {
      return refuse(Code::kInvalidArgument, "the scale of dim ", static_cast<int64_t>(d),
                    " makes nothing of ", x);
    }
  }
  for (double v : floats(attrs, "roi")) {
    if (!std::isfinite(v)) return refuse(Code::kInvalidArgument, "roi must be finite");
  }
  const size_t roi = floats(attrs, "roi").size();
  const bool crops = rule_of(attrs).coordinates == "tf_crop_and_resize";
  if (roi == 2 * x.shape.size() || (roi == 0 && !crops)) return {};
  return refuse(Code::kInvalidArgument, "roi must have ", 2 * x.rank(), " entries, found ",
                static_cast<int64_t>(roi));
}

Types infer_resize(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& sizes = args.attr_ints("sizes");
  PYC_TRY(require_ints("sizes", sizes, x.shape.size(), 0, ir::kMaxElements));
  PYC_TRY(check_modes(args.attrs, x));
  PYC_TRY(check_scales(args.attrs, x));
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (x.shape[d] > 0 || sizes[d] == 0) continue;
    return refuse(Code::kShapeMismatch, "dim ", static_cast<int64_t>(d), " of ", x,
                  " is empty, there is nothing to interpolate");
  }
  return one(x.dtype, sizes);
}

ResizeDim dim_of(const ir::Attrs& attrs, const Shape& shape, size_t d) {
  const int64_t out = std::get<Ints>(attrs.find("sizes")->second)[d];
  ResizeDim dim{.in = shape[d], .out = out};
  const Floats& scales = floats(attrs, "scales");
  dim.scale = scales.empty() ? static_cast<double>(out) / static_cast<double>(dim.in) : scales[d];
  if (text(attrs, "coordinates") == "tf_crop_and_resize") {
    dim.roi_begin = floats(attrs, "roi")[d];
    dim.roi_end = floats(attrs, "roi")[d + shape.size()];
  }
  return dim;
}

bool changes_nothing(const ResizeDim& dim) {
  return dim.in == dim.out &&
         (dim.in == 0 || (dim.scale == 1.0 && dim.roi_begin == 0.0 && dim.roi_end == 1.0));
}

template <class T>
std::shared_ptr<const ir::ConstData> data_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return ir::dense_data(std::move(bytes));
}

// How often each element of a dim appears if the table only repeats them, else 0.
int64_t times_repeated(const ResizeTable& table, int64_t in) {
  const auto out = static_cast<int64_t>(table.indices.size());
  if (!table.weights.empty() || out == 0 || out % in != 0) return 0;
  for (int64_t o = 0; o < out; ++o) {
    if (table.indices[static_cast<size_t>(o)] != o / (out / in)) return 0;
  }
  return out / in;
}

// One dim of `x` resized by its table.
Result<ValueId> resize_dim(ir::GraphBuilder& builder, Compose& c, ValueId x, size_t axis,
                           const ResizeTable& table) {
  const TensorType type = c.type(x);
  const Shape shape{static_cast<int64_t>(table.outside.size()), table.taps};
  const ir::Attrs attrs{{"axis", static_cast<int64_t>(axis)}};
  PYC_ASSIGN(const ValueId indices, builder.constant({DType::kI64, shape}, data_of(table.indices)));
  const bool nearest = table.taps == 1;
  if (nearest) return c.op("resample", {x, indices}, attrs);
  const std::vector<float> rounded(table.weights.begin(), table.weights.end());
  const bool wide = type.dtype == DType::kF64;
  PYC_ASSIGN(
      const ValueId weights,
      builder.constant({type.dtype, shape}, wide ? data_of(table.weights) : data_of(rounded)));
  return c.op("resample", {x, indices, weights}, attrs);
}

// `y` with `value` where the place of the result lies outside along `axis`.
Result<ValueId> extrapolate(ir::GraphBuilder& builder, Compose& c, ValueId y, size_t axis,
                            const std::vector<bool>& outside, double value) {
  const bool any = std::find(outside.begin(), outside.end(), true) != outside.end();
  if (!any || y == ir::kNoId) return y;
  Shape shape(c.type(y).shape.size(), 1);
  shape[axis] = static_cast<int64_t>(outside.size());
  const std::vector<uint8_t> bytes(outside.begin(), outside.end());
  PYC_ASSIGN(const ValueId mask, builder.constant({DType::kBool, shape}, data_of(bytes)));
  return c.op("where", {mask, c.scalar_like(y, value), y});
}

Result<std::vector<ValueId>> decompose_resize(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const ir::Attrs& attrs = node.attrs;
  const TensorType type = c.input_type(0);
  const ResizeRule rule = rule_of(attrs);
  const double value = std::get<double>(attrs.find("extrapolation_value")->second);
  DType wide = type.dtype;
  if (rule.mode != "nearest") {
    wide = is_float(type.dtype) ? compute_dtype(type.dtype) : DType::kF64;
  }
  ValueId y = c.cast(node.inputs[0], wide);
  std::vector<std::vector<bool>> outside(type.shape.size());
  Ints times(type.shape.size(), 1);
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const ResizeDim dim = dim_of(attrs, type.shape, d);
    if (changes_nothing(dim)) continue;
    const ResizeTable table = resize_table(rule, dim);
    outside[d] = table.outside;
    if (const int64_t n = times_repeated(table, dim.in); n > 0) {
      times[d] = n;
    } else {
      PYC_ASSIGN(y, resize_dim(builder, c, y, d, table));
    }
  }
  const bool repeats = std::any_of(times.begin(), times.end(), [](int64_t n) { return n != 1; });
  if (repeats) y = c.op("repeat", {y}, {{"times", times}});
  for (size_t d = 0; d < outside.size(); ++d) {
    PYC_ASSIGN(y, extrapolate(builder, c, y, d, outside[d], value));
  }
  return c.outputs({c.cast(y, type.dtype)});
}

Result<ValueId> draw_resize(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const std::string mode = d.word({"nearest", "linear", "cubic"});
  const std::string coordinates =
      d.word({"half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners",
              "pytorch_half_pixel", "tf_crop_and_resize"});
  Ints sizes;
  std::vector<double> roi(2 * shape.size(), 0.0);
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool moves = shape[i] <= 9 && d.flip();
    sizes.push_back(moves ? d.pick(1, 2 * shape[i]) : shape[i]);
    roi[i] = moves ? 0.125 : 0.0;
    roi[shape.size() + i] = moves ? 0.75 : 1.0;
  }
  Attrs attrs{{"sizes", sizes}, {"mode", mode}, {"coordinates", coordinates}};
  if (coordinates == "tf_crop_and_resize") attrs["roi"] = roi;
  if (mode == "nearest") {
    attrs["nearest"] = d.word({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  } else if (coordinates != "tf_crop_and_resize") {
    attrs["antialias"] = d.chance(3);
    if (mode == "cubic") attrs["exclude_outside"] = d.flip();
  }
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

}  // namespace

const ir::OpDef& op_resize() {
  static const ir::OpDef def{
      .name = "resize",
      .summary =
          "x interpolated to sizes, one dim after the other; scales (sizes / dims of x if "
          "left out) enter the coordinates. Integers are interpolated in f64.",
      .attrs = {required("sizes", ir::AttrKind::kInts), optional("scales", Floats{}),
                optional("mode", std::string("nearest")),
                optional("coordinates", std::string("half_pixel")),
                optional("nearest", std::string("round_prefer_floor")),
                optional("cubic_coeff_a", -0.75), optional("exclude_outside", false),
                optional("antialias", false), optional("roi", Floats{}),
                optional("extrapolation_value", 0.0)},
      .infer = infer_resize,
      .decompose = decompose_resize,
      .draw = {.node = draw_resize},
  };
  return def;
}

}  // namespace pyc::ops

#include <fmt/format.h>

#include <cmath>

#include "host/elements.h"
#include "host/image.h"
#include "host/label_map.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr std::string_view kMlDomain = "ai.onnx.ml";

Status array_feature_extractor(CloseContext& c) {
  ValueId x = c.input(0);
  if (c.rank(x) == 1) x = c.reshape(x, {1, c.type(x).elements()});
  const ValueId at = c.reshape(c.input(1), {c.type(c.input(1)).elements()});
  return c.give(c.op("gather", {x, at}, {{"axis", std::max<int64_t>(c.rank(x) - 1, 0)}}));
}

Status array_feature_extractor_host(HostCall& call) {
  DynValue x = input_of(call, 0);
  PYC_TRY(host::check_array(x, "input"));
  PYC_TRY(host::check_numbers(input_of(call, 1), "indices"));
  if (x.shape.size() < 2) x.shape = {1, x.elements()};
  return give(call, host::take(x, x.shape.size() - 1, to_ints(call.input(1))));
}

Status binarizer(CloseContext& c) {
  const ValueId x = c.input(0);
  const ValueId threshold = c.scalar_like(x, c.attr_float("threshold", 0.0));
  return c.give(c.cast(c.op("less", {threshold, x}), c.dtype(x)));
}

// A list attribute as a row, or as a scalar when it has one entry.
ValueId row(CloseContext& c, std::string_view name) {
  const std::vector<double> list = c.attr_floats(name);
  if (list.size() == 1) return c.scalar(DType::kF32, list[0]);
  const auto made = host::tensor_of(DType::kF32, {static_cast<int64_t>(list.size())}, list);
  if (!made.ok()) c.refuse(made.status().code(), made.status().message());
  return made.ok() ? c.constant(*made) : ir::kNoId;
}

Status scaler(CloseContext& c) {
  ValueId x = c.cast(c.input(0), DType::kF32);
  if (c.has_attr("offset")) x = c.op("sub", {x, row(c, "offset")});
  if (c.has_attr("scale")) x = c.op("mul", {x, row(c, "scale")});
  return c.give(x);
}

Status imputer(CloseContext& c) {
  const ValueId x = c.input(0);
  const bool floats = c.has_attr("imputed_value_floats");
  const ValueId missing =
      c.scalar_like(x, floats ? c.attr_float("replaced_value_float", 0.0)
                              : static_cast<double>(c.attr_int("replaced_value_int64", 0)));
  const ValueId instead =
      floats ? c.cast(row(c, "imputed_value_floats"), c.dtype(x))
             : c.cast(c.int_vector(c.attr_ints("imputed_value_int64s")), c.dtype(x));
  const bool nan = floats && std::isnan(c.attr_float("replaced_value_float", 0.0));
  // Only a NaN is not equal to itself.
  if (nan) return c.give(c.op("where", {c.op("equal", {x, x}), x, instead}));
  return c.give(c.op("where", {c.op("equal", {x, missing}), instead, x}));
}

Status normalizer(CloseContext& c) {
  const ValueId x = c.cast(c.input(0), DType::kF32);
  const std::string norm = c.attr_string("norm", "MAX");
  const Attrs last{{"axes", Ints{-1}}, {"keepdims", true}};
  ValueId size = ir::kNoId;
  if (norm == "MAX") {
    size = c.op("reduce_max", {x}, last);
  } else if (norm == "L1") {
    size = c.op("reduce_sum", {c.op("abs", {x})}, last);
  } else if (norm == "L2") {
    size = c.op("sqrt", {c.op("reduce_sum", {c.op("mul", {x, x})}, last)});
  } else {
    return c.refused(Code::kInvalidArgument, fmt::format("norm '{}' is not known", norm));
  }
  const ValueId none = c.op("equal", {size, c.scalar_like(size, 0.0)});
  return c.give(c.op("where", {none, x, c.op("div", {x, size})}));
}

// The list of keys or values that is there, and what stands for a missing value.
struct Labels {
  DynValue list;
  DynValue fallback;
};

DynValue one_number(DType dtype, double value) {
  auto made = host::tensor_of(dtype, {1}, std::span(&value, 1));
  return made.ok() ? std::move(*made) : DynValue();
}

Result<Labels> labels_of(HostCall& call, const std::string& prefix) {
  if (const auto* strings = call.attr<std::vector<std::string>>(prefix + "strings")) {
    return Labels{DynValue::of_strings({static_cast<int64_t>(strings->size())}, *strings),
                  DynValue::of_strings({1}, {call.attr_string("default_string", "_Unused")})};
  }
  if (const auto* ints = call.attr<Ints>(prefix + "int64s")) {
    return Labels{DynValue::of_ints(*ints),
                  DynValue::of_ints({call.attr_int("default_int64", -1)})};
  }
  if (const auto* floats = call.attr<std::vector<double>>(prefix + "floats")) {
    PYC_ASSIGN(DynValue list,
               host::tensor_of(DType::kF32, {static_cast<int64_t>(floats->size())}, *floats));
    return Labels{std::move(list), one_number(DType::kF32, call.attr_float("default_float", -0.0))};
  }
  if (const auto* tensor = call.attr<DynValue>(prefix + "tensor")) {
    const auto* given = call.attr<DynValue>("default_tensor");
    if (given != nullptr) return Labels{*tensor, *given};
    if (!tensor->is_tensor()) return Labels{*tensor, DynValue::of_strings({1}, {"_Unused"})};
    return Labels{*tensor, one_number(tensor->dtype, is_float(tensor->dtype) ? -0.0 : -1.0)};
  }
  return Status(Code::kInvalidArgument, fmt::format("there is no attribute '{}…'", prefix));
}

// Version 1: between strings and their places in one list.
Status label_encoder1(HostCall& call) {
  const DynValue& x = input_of(call, 0);
  const std::vector<std::string> classes = attr_strings(call, "classes_strings");
  const auto count = static_cast<int64_t>(classes.size());
  Ints places;
  for (int64_t i = 0; i < count; ++i) places.push_back(i);
  const DynValue numbers = DynValue::of_ints(places);
  const DynValue strings = DynValue::of_strings({count}, classes);
  if (x.is_tensor()) {
    return give(call, host::map_labels(x, numbers, strings,
                                       DynValue::of_strings(
                                           {1}, {call.attr_string("default_string", "_Unused")})));
  }
  return give(call, host::map_labels(x, strings, numbers,
                                     DynValue::of_ints({call.attr_int("default_int64", -1)})));
}

Status label_encoder(HostCall& call) {
  if (call.node().version < 2) return label_encoder1(call);
  PYC_ASSIGN(const Labels keys, labels_of(call, "keys_"));
  PYC_ASSIGN(const Labels values, labels_of(call, "values_"));
  return give(call, host::map_labels(input_of(call, 0), keys.list, values.list, values.fallback));
}

// One row of zeros with a one per element; an element of no category is refused unless `zeros`.
Status one_hot_encoder(HostCall& call) {
  const DynValue& x = input_of(call, 0);
  PYC_TRY(host::check_array(x, "input"));
  const Ints ints = attr_ints(call, "cats_int64s");
  const std::vector<std::string> strings = attr_strings(call, "cats_strings");
  const bool number = !ints.empty();
  const auto count = static_cast<int64_t>(number ? ints.size() : strings.size());
  DynValue keys = DynValue::of_strings({count}, number ? std::vector<std::string>() : strings);
  if (number && x.is_tensor() && is_float(x.dtype)) {
    PYC_ASSIGN(keys, host::tensor_of(x.dtype, {count}, ints));
  } else if (number) {
    keys = DynValue::of_ints(ints);
  }
  Ints places;
  for (int64_t i = 0; i < count; ++i) places.push_back(i);
  PYC_ASSIGN(const DynValue found,
             host::map_labels(x, keys, DynValue::of_ints(places), DynValue::of_ints({-1})));
  Ints shape = x.shape;
  shape.push_back(count);
  PYC_ASSIGN([[maybe_unused]] const int64_t cells, host::element_count(shape));
  std::vector<double> out(static_cast<size_t>(x.elements() * count));
  const Ints at = to_ints(found);
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] >= 0) {
      out[i * static_cast<size_t>(count) + static_cast<size_t>(at[i])] = 1.0;
    } else if (call.attr_int("zeros", 1) == 0) {
      return {Code::kInvalidArgument, fmt::format("element {} is of no category", i)};
    }
  }
  return give(call, host::tensor_of(DType::kF32, shape, out));
}

Status image_decoder(HostCall& call) {
  const std::string format = call.attr_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    return {Code::kInvalidArgument, fmt::format("pixel_format '{}' is not known", format)};
  }
  return give(call,
              host::decode_image(input_of(call, 0), format == "RGB"   ? host::PixelFormat::kRgb
                                                    : format == "BGR" ? host::PixelFormat::kBgr
                                                                      : host::PixelFormat::kGray));
}

constexpr Rule kMlRules[] = {
    {"ArrayFeatureExtractor", array_feature_extractor, array_feature_extractor_host, 1, kMlDomain},
    {"Binarizer", binarizer, nullptr, 1, kMlDomain},
    {"ImageDecoder", nullptr, image_decoder},
    {"Imputer", imputer, nullptr, 1, kMlDomain},
    {"LabelEncoder", nullptr, label_encoder, 1, kMlDomain},
    {"Normalizer", normalizer, nullptr, 1, kMlDomain},
    {"OneHotEncoder", nullptr, one_hot_encoder, 1, kMlDomain},
    {"Scaler", scaler, nullptr, 1, kMlDomain},
};

}  // namespace

Rules ml_rules() { return kMlRules; }

}  // namespace pyc::onnx

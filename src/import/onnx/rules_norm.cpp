#include <fmt/format.h>

#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

Status batch_norm(CloseContext& c) {
  const double epsilon = c.attr_float("epsilon", 1e-5);
  std::vector<ValueId> in = c.all_inputs();
  if (c.version() >= 14 && c.attr_int("training_mode", 0) != 0) {
    const ValueId y = c.op("batch_norm_training", in,
                           {{"epsilon", epsilon}, {"momentum", c.attr_float("momentum", 0.9)}});
    for (size_t i = 0; i < c.outputs() && i < 3 && c.ok(); ++i) c.set(i, c.result(y, i));
    return c.status();
  }
  if (c.version() < 14 && c.wants(1)) {
    return c.refused(Code::kUnsupported, "training form of opsets before 14");
  }
  const DType t = c.dtype(c.input(0));
  for (ValueId& v : in) v = c.cast(v, t);
  return c.give(c.op("batch_norm", in, {{"epsilon", epsilon}}));
}

Status layer_norm(CloseContext& c) {
  const Attrs attrs{{"axis", c.attr_int("axis", -1)}, {"epsilon", c.attr_float("epsilon", 1e-5)}};
  c.set(0, c.op("layer_norm", c.all_inputs(), attrs));
  if (c.wants(1) || c.wants(2)) {
    const ValueId mean = c.op("layer_norm_stats", {c.input(0)}, attrs);
    if (c.ok()) {
      c.set(1, mean);
      c.set(2, c.result(mean, 1));
    }
  }
  return c.status();
}

// Before opset 21 scale and bias belonged to the groups, since then to the channels.
Status group_norm(CloseContext& c) {
  const int64_t groups = c.attr_int("num_groups");
  std::vector<ValueId> in = c.all_inputs();
  if (!c.ok() || in.size() != 3) return c.refused(Code::kInvalidArgument, "expected three inputs");
  const Shape x = c.shape(in[0]);
  if (c.version() < 21 && groups > 0 && x.size() > 1) {
    for (size_t i = 1; i < 3; ++i) {
      const ValueId rows = c.reshape(in[i], {groups, 1});
      in[i] = c.reshape(c.op("expand", {rows}, {{"shape", Ints{groups, x[1] / groups}}}), {x[1]});
    }
  }
  return c.give(
      c.op("group_norm", in, {{"num_groups", groups}, {"epsilon", c.attr_float("epsilon", 1e-5)}}));
}

// Inference passes the input through; training draws with PyC's own generator.
Status dropout(CloseContext& c) {
  const ValueId x = c.input(0);
  const bool training = c.version() >= 12 && c.has(2) && c.int_value(c.input(2)) != 0;
  const double ratio = c.version() < 12 ? c.attr_float("ratio", 0.5)
                       : c.has(1)       ? c.float_value(c.input(1))
                                        : 0.5;
  if (!c.ok()) return c.status();
  const TensorType mask_type{c.version() < 10 ? c.dtype(x) : DType::kBool, c.shape(x)};
  if (!training || ratio == 0.0) {
    c.set(0, x);
    if (c.wants(1)) c.set(1, c.splat(mask_type, 1.0));
    return c.status();
  }
  const ValueId u =
      c.op("random_uniform", {},
           {{"shape", c.shape(x)}, {"seed", c.attr_int("seed", 0)}, {"stream", stream_of(c)}});
  const ValueId kept = c.op("greater_equal", {u, c.scalar(DType::kF32, ratio)});
  const ValueId scaled = c.op("div", {x, c.scalar_like(x, 1.0 - ratio)});
  c.set(0, c.op("where", {kept, scaled, c.scalar_like(x, 0.0)}));
  if (c.wants(1)) c.set(1, kept);
  return c.status();
}

constexpr Rule kNormRules[] = {
    {"BatchNormalization", batch_norm},
    {.op = "Dropout", .close = dropout, .random = true},
    {"GroupNormalization", group_norm},
    {"LayerNormalization", layer_norm},
};

}  // namespace

Rules norm_rules() { return kNormRules; }

}  // namespace pyc::onnx

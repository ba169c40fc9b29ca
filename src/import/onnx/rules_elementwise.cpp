#include <fmt/format.h>

#include "host/string_cast.h"
#include "host/strings.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"
#include "import/onnx/tensor.h"

namespace pyc::onnx {

DType dtype_attr(CloseContext& c, std::string_view name, DType fallback) {
  if (!c.has_attr(name)) return fallback;
  const auto number = static_cast<int32_t>(c.attr_int(name));
  const auto t = real_dtype_of(number);
  if (!t)
    c.refuse(Code::kUnsupported, "element type " + onnx_type_name(number) + " is not supported");
  return t.value_or(fallback);
}

namespace {

// Before opset 7, where all of these end, the second operand was stretched along the first one's
// dims from `axis` on.
std::vector<ValueId> operands(CloseContext& c) {
  std::vector<ValueId> in = c.all_inputs();
  if (c.version() >= 7 || in.size() != 2 || c.attr_int("broadcast", 0) == 0) return in;
  const int64_t rank = c.rank(in[0]);
  Shape b = c.shape(in[1]);
  const auto mine = static_cast<int64_t>(b.size());
  const int64_t axis = c.has_attr("axis") ? axis_of(c, c.attr_int("axis"), rank) : rank - mine;
  for (int64_t i = axis + mine; i < rank; ++i) b.push_back(1);
  return {in[0], c.reshape(in[1], b)};
}

template <Name Op>
Status binary(CloseContext& c) {
  return c.give(c.op(Op.text, operands(c)));
}

// Any number of operands, joined from the left.
template <Name Op>
ValueId joined(CloseContext& c) {
  ValueId sum = c.input(0);
  for (size_t i = 1; i < c.inputs(); ++i) sum = c.op(Op.text, {sum, c.input(i)});
  return sum;
}

template <Name Op>
Status variadic(CloseContext& c) {
  return c.give(joined<Op>(c));
}

Status mean(CloseContext& c) {
  const ValueId sum = joined<"add">(c);
  return c.give(c.op("div", {sum, c.scalar_like(sum, static_cast<double>(c.inputs()))}));
}

Status mod(CloseContext& c) {
  const bool fmod = c.attr_int("fmod", 0) != 0;
  if (!fmod && c.version() < 28 && is_float(c.dtype(c.input(0)))) {
    return c.refused(Code::kInvalidArgument, "fmod must be 1 for floats before opset 28");
  }
  return c.give(c.op("mod", c.all_inputs(), {{"fmod", fmod}}));
}

// A gate: swish of the first input times the second.
Status swiglu(CloseContext& c) {
  if (c.shape(c.input(0)) != c.shape(c.input(1))) {
    return c.refused(Code::kShapeMismatch, "both inputs must have one shape");
  }
  const ValueId gate = c.op("swish", {c.input(0)}, {{"alpha", c.attr_float("alpha", 1.0)}});
  return c.give(c.op("mul", {gate, c.input(1)}));
}

Status bit_shift(CloseContext& c) {
  const bool left = c.attr_string("direction", "LEFT") == "LEFT";
  return c.give(c.op(left ? "shift_left" : "shift_right", c.all_inputs()));
}

Status clip(CloseContext& c) {
  ValueId x = c.input(0);
  if (c.version() < 11) {
    if (c.has_attr("min")) x = c.op("max", {x, c.scalar_like(x, c.attr_float("min", 0))});
    if (c.has_attr("max")) x = c.op("min", {x, c.scalar_like(x, c.attr_float("max", 0))});
    return c.give(x);
  }
  if (c.has(1)) x = c.op("max", {x, c.reshape(c.input(1), {})});
  if (c.has(2)) x = c.op("min", {x, c.reshape(c.input(2), {})});
  return c.give(x);
}

Status prelu(CloseContext& c) {
  ValueId slope = c.input(1);
  // Before opset 7 a slope of rank 1 belonged to the channels.
  if (c.version() < 7 && c.rank(slope) == 1 && c.rank(c.input(0)) > 2) {
    Shape s(static_cast<size_t>(c.rank(c.input(0))) - 1, 1);
    s[0] = c.shape(slope)[0];
    slope = c.reshape(slope, s);
  }
  return c.give(c.op("prelu", {c.input(0), slope}));
}

bool is_sub_byte_int(DType t) {
  return t == DType::kI2 || t == DType::kI4 || t == DType::kU2 || t == DType::kU4;
}

Status cast_to(CloseContext& c, DType to) {
  ValueId x = c.input(0);
  if (c.ok() && c.dtype(x) == to) return c.give(x);
  if (c.ok() && is_float(c.dtype(x))) {
    // ONNX keeps the low bits where PyC's own cast saturates, and makes -0 of what f4e2m1 has not.
    if (is_sub_byte_int(to)) x = c.cast(x, DType::kI32);
    if (to == DType::kF4E2M1) {
      x = c.op("where", {c.op("is_nan", {x}), c.scalar_like(x, -0.0), x});
    }
  }
  Attrs attrs{{"to", to}};
  if (c.attr_int("saturate", 1) == 0) attrs["saturate"] = false;
  const std::string mode = c.attr_string("round_mode", "up");
  if (to == DType::kF8E8M0) attrs["round_mode"] = mode;
  return c.give(c.op("cast", {x}, std::move(attrs)));
}

Status cast(CloseContext& c) {
  if (c.attr_int("to") == kOnnxString) return c.use_host();
  return cast_to(c, dtype_attr(c, "to", DType::kF32));
}

Status cast_like(CloseContext& c) { return cast_to(c, c.dtype(c.input(1))); }

// Whenever one side is strings.
Status cast_host(HostCall& call) {
  const auto number = static_cast<int32_t>(call.attr_int("to", 0));
  const DynValue& x = input_of(call, 0);
  if (number == kOnnxString) {
    return give(call, x.kind == DynValue::Kind::kStrings ? x : host::numbers_to_strings(x));
  }
  const auto to = real_dtype_of(number);
  if (!to) {
    return {Code::kUnsupported, "element type " + onnx_type_name(number) + " is not supported"};
  }
  return give(call, host::strings_to_numbers(x, *to));
}

Status cast_like_host(HostCall& call) {
  const DynValue& x = input_of(call, 0);
  const DynValue& like = input_of(call, 1);
  if (like.is_tensor()) return give(call, host::strings_to_numbers(x, like.dtype));
  return give(call, x.kind == DynValue::Kind::kStrings ? x : host::numbers_to_strings(x));
}

Status equal_host(HostCall& call) {
  return give(call, host::equal_strings(input_of(call, 0), input_of(call, 1)));
}

Status identity(CloseContext& c) { return c.give(c.input(0)); }

Status identity_host(HostCall& call) {
  call.set_output(0, call.input(0));
  return {};
}

constexpr Rule kElementwiseRules[] = {
    {"Add", binary<"add">},
    {"And", binary<"logical_and">},
    {"BitShift", bit_shift},
    {"Cast", cast, cast_host},
    {"CastLike", cast_like, cast_like_host},
    {"Clip", clip},
    {"Div", binary<"div">},
    {"Equal", binary<"equal">, equal_host},
    {"Greater", binary<"greater">},
    {"Identity", identity, identity_host},
    {"Less", binary<"less">},
    {"Max", variadic<"max">},
    {"Mean", mean},
    {"Min", variadic<"min">},
    {"Mod", mod},
    {"Mul", binary<"mul">},
    {"Or", binary<"logical_or">},
    {"PRelu", prelu},
    {"Pow", binary<"pow">},
    {"Sub", binary<"sub">},
    {"Sum", variadic<"add">},
    {"SwiGLU", swiglu},
    {"Xor", binary<"logical_xor">},
};

}  // namespace

Rules elementwise_rules() { return kElementwiseRules; }

}  // namespace pyc::onnx

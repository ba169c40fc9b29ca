#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

void not_equal(Emitter& e) { e.emit("Not", {e.make("Equal", {e.in(0), e.in(1)})}); }

// ONNX shifts unsigned integers only.
void shift(Emitter& e, const char* direction) {
  if (!is_unsigned_int(e.out_type().dtype)) return e.refuse("shifts of signed integers");
  e.emit("BitShift", {e.in(0), e.in(1)}, {{"direction", std::string(direction)}});
}
void shift_left(Emitter& e) { shift(e, "LEFT"); }
void shift_right(Emitter& e) { shift(e, "RIGHT"); }

// PyC saturates where ONNX keeps the low bits, and makes 6 of what f4e2m1 has not.
void cast(Emitter& e) {
  const DType from = e.in_type(0).dtype;
  const DType to = e.dtype("to");
  if (is_float(from) && is_narrow_int(to)) return e.refuse("casts of floats to sub-byte integers");
  NodeAttrs attrs{{"to", onnx_type(to)}};
  const bool to_byte = is_float(to) && dtype_bits(to) == 8;
  if (to_byte && !e.flag("saturate")) attrs.emplace_back("saturate", int64_t{0});
  if (to == DType::kF8E8M0) attrs.emplace_back("round_mode", e.text("round_mode"));
  std::string x = e.in(0);
  if (to == DType::kF4E2M1 && is_float(from)) {
    x = e.wide_in(0);
    x = e.make("Where", {e.make("IsNaN", {x}), e.scalar(compute_dtype(from), 6.0), x});
  }
  e.emit("Cast", {x}, attrs);
}

// Floats with the divisor's sign came with opset 28.
void mod(Emitter& e) {
  if (is_float(e.out_type().dtype) && !e.flag("fmod")) e.need(28);
  e.emit("Mod", {e.in(0), e.in(1)}, e.attrs("fmod"));
}

// Keeps -0 and NaN; integers have no fraction.
void trunc(Emitter& e) {
  const DType t = e.out_type().dtype;
  if (!is_float(t)) return e.emit("Identity", {e.in(0)});
  const std::string below = e.make("Less", {e.in(0), e.scalar(t, 0.0)});
  e.emit("Where", {below, e.make("Ceil", {e.in(0)}), e.make("Floor", {e.in(0)})});
}

void exp2(Emitter& e) {
  e.emit_rounded("Pow", {e.scalar(compute_dtype(e.out_type().dtype), 2.0), e.wide_in(0)});
}

void log2(Emitter& e) {
  const double ln2 = 0.69314718055994530942;
  const std::string log = e.make("Log", {e.wide_in(0)});
  e.emit_rounded("Div", {log, e.scalar(compute_dtype(e.out_type().dtype), ln2)});
}

// 2t / (1-t) with t = tanh(x/2) is exact near 0, where exp(x) - 1 is not.
void expm1(Emitter& e) {
  const DType t = compute_dtype(e.out_type().dtype);
  const std::string x = e.wide_in(0);
  const std::string one = e.scalar(t, 1.0);
  const std::string tanh = e.make("Tanh", {e.make("Mul", {x, e.scalar(t, 0.5)})});
  const std::string near = e.make("Div", {e.make("Add", {tanh, tanh}), e.make("Sub", {one, tanh})});
  const std::string far = e.make("Sub", {e.make("Exp", {x}), one});
  e.emit_rounded("Where", {e.make("Less", {e.make("Abs", {x}), one}), near, far});
}

// 2·atanh(x / (2+x)) is exact near 0, where log(1+x) is not.
void log1p(Emitter& e) {
  const DType t = compute_dtype(e.out_type().dtype);
  const std::string x = e.wide_in(0);
  const std::string half =
      e.make("Atanh", {e.make("Div", {x, e.make("Add", {x, e.scalar(t, 2.0)})})});
  const std::string near = e.make("Add", {half, half});
  const std::string far = e.make("Log", {e.make("Add", {x, e.scalar(t, 1.0)})});
  const std::string is_near = e.make("Less", {e.make("Abs", {x}), e.scalar(t, 0.5)});
  e.emit_rounded("Where", {is_near, near, far});
}

constexpr Rule kElementwiseRules[] = {
    {"cast", cast, {.small = true}},
    {"exp2", exp2},
    {"expm1", expm1},
    {"log1p", log1p},
    {"log2", log2},
    {"mod", mod},
    {"not_equal", not_equal},
    {"shift_left", shift_left},
    {"shift_right", shift_right},
    {"trunc", trunc},
};

}  // namespace

Rules elementwise_rules() { return kElementwiseRules; }

}  // namespace pyc::onnx::exporting

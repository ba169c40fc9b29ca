#include <cmath>

#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

// The dtype a Range is computed in, for one that ends as `t`.
DType range_dtype(DType t) {
  if (t == DType::kF64) return t;
  return is_float(t) ? DType::kF32 : DType::kI64;
}

bool is_whole(double x) { return std::floor(x) == x && std::fabs(x) < 9e15; }

// A Range along the axis, spread over the others.
void iota(Emitter& e) {
  const ir::TensorType& type = e.out_type();
  const DType t = range_dtype(type.dtype);
  const double start = e.real("start");
  const double step = e.real("step");
  if (step == 0.0) return e.refuse("a step of 0");
  if (!is_float(t) && !(is_whole(start) && is_whole(step))) {
    return e.refuse("integers with a fraction as start or step");
  }
  const auto axis = static_cast<size_t>(e.axis("axis", type.rank()));
  const int64_t count = type.shape[axis];
  // In the middle of a step, so that no rounding adds or drops an element.
  const double whole = static_cast<double>(count) - (is_float(t) && count > 0 ? 0.5 : 0.0);
  const std::string line =
      e.make("Range", {e.scalar(t, start), e.scalar(t, start + whole * step), e.scalar(t, step)});
  ir::Shape along(type.shape.size(), 1);
  along[axis] = count;
  const std::string shaped = e.make("Reshape", {e.cast(line, t, type.dtype), e.int_list(along)},
                                    {{"allowzero", int64_t{1}}});
  e.emit("Expand", {shaped, e.int_list(type.shape)});
}

void eye(Emitter& e) {
  const std::string zeros =
      e.make("ConstantOfShape", {e.int_list({e.integer("rows"), e.integer("cols")})});
  e.emit("EyeLike", {zeros}, e.attrs("k dtype"));
}

void window_function(Emitter& e) {
  if (e.integer("size") == 0) return e.emit("Identity", {e.splat(e.out_type(), 0.0)});
  const std::string& kind = e.text("kind");
  const char* op = kind == "hann"      ? "HannWindow"
                   : kind == "hamming" ? "HammingWindow"
                                       : "BlackmanWindow";
  e.emit(op, {e.int_scalar(e.integer("size"))}, e.attrs("periodic output_datatype=dtype"));
}

void mel_weight_matrix(Emitter& e) {
  e.emit("MelWeightMatrix",
         {e.int_scalar(e.integer("num_mel_bins")), e.int_scalar(e.integer("dft_length")),
          e.int_scalar(e.integer("sample_rate")), e.scalar(DType::kF32, e.real("lower_edge_hertz")),
          e.scalar(DType::kF32, e.real("upper_edge_hertz"))},
         e.attrs("output_datatype=dtype"));
}

// The numbers that ONNX draws are not PyC's.
void drawn(Emitter& e) { e.refuse("ONNX fixes no random numbers"); }

constexpr Rule kSourceRules[] = {
    {"bernoulli", drawn},
    {"eye", eye},
    {"iota", iota},
    {"mel_weight_matrix", mel_weight_matrix},
    {"multinomial", drawn},
    {"random_normal", drawn},
    {"random_uniform", drawn},
    {"window_function", window_function},
};

}  // namespace

Rules source_rules() { return kSourceRules; }

}  // namespace pyc::onnx::exporting

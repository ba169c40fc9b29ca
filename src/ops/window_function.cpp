#include <array>
#include <numbers>

#include "loop/functions.h"
#include "ops/draw.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

struct Shares {
  std::string_view kind;
  double a0;
  double a1;
  double a2;
};

constexpr std::array<Shares, 3> kKinds = {{
    {"hann", 0.5, 0.5, 0.0},
    {"hamming", 25.0 / 46.0, 1.0 - 25.0 / 46.0, 0.0},
    {"blackman", 0.42, 0.5, 0.08},
}};

const Shares* find_kind(std::string_view kind) {
  for (const Shares& s : kKinds) {
    if (s.kind == kind) return &s;
  }
  return nullptr;
}

Types infer_window_function(const InferArgs& args) {
  const TensorType y{args.attr_dtype("dtype"), {args.attr_int("size")}};
  if (find_kind(args.attr_string("kind")) == nullptr) {
    return refuse(Code::kInvalidArgument,
                  "kind must be \"hann\", \"hamming\" or \"blackman\", found \"",
                  args.attr_string("kind"), "\"");
  }
  PYC_TRY(ir::check_type(y));
  return one(y.dtype, y.shape);
}

Expr lower_window_function(LowerContext& context, int, std::span<const Expr> index) {
  const Shares& s = *find_kind(context.attr_string("kind"));
  const int64_t size = context.attr_int("size");
  // N; a symmetric window of one point has its middle there.
  const int64_t period = context.attr_bool("periodic") ? size : size - 1;
  const DType dtype = context.output_type(0).dtype;
  if (period == 0) return loop::constant(context.pool(), dtype, s.a0 + s.a1 + s.a2);
  const Expr n = convert(index[0], DType::kF64);
  const auto wave = [&](double turns) {
    return loop::cos(n * (turns * 2.0 * std::numbers::pi) / static_cast<double>(period));
  };
  Expr y = like(n, s.a0) - wave(1.0) * s.a1;
  if (s.a2 != 0.0) y = y + wave(2.0) * s.a2;
  return convert(y, dtype);
}

Result<ValueId> draw_window_function(Draw& d, DType t) {
  return d.op({}, {{"kind", d.word({"hann", "hamming", "blackman"})},
                   {"size", d.dim(0)},
                   {"periodic", d.flip()},
                   {"dtype", t}});
}

}  // namespace

const ir::OpDef& op_window_function() {
  static const ir::OpDef def{
      .name = "window_function",
      .summary =
          "A hann, hamming or blackman window: a0 - a1*cos(2πn/N) + a2*cos(4πn/N) in f64, rounded "
          "once.",
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {required("kind", ir::AttrKind::kString), required("size", ir::AttrKind::kInt),
                optional("periodic", true), optional("dtype", DType::kF32)},
      .infer = infer_window_function,
      .lower = lower_window_function,
      .no_gradient = "it has no input",
      .draw = {.node = draw_window_function},
  };
  return def;
}

}  // namespace pyc::ops

#include <cmath>
#include <numbers>

#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

constexpr double kMelScale = 2595.0;
constexpr double kMelBreak = 700.0;

double mel_of(double hertz) {
  return kMelScale * std::log1p(hertz / kMelBreak) / std::numbers::ln10;
}
double hertz_of(double mel) { return kMelBreak * std::expm1(mel / kMelScale * std::numbers::ln10); }

int64_t spectrum_bins(const InferArgs& args) { return args.attr_int("dft_length") / 2 + 1; }

// The bins at which the bands begin, have their peak and end: num_mel_bins + 2 of them.
std::vector<int64_t> band_edges(const InferArgs& args) {
  const int64_t count = args.attr_int("num_mel_bins") + 2;
  const double lo = mel_of(args.attr_float("lower_edge_hertz"));
  const double step =
      (mel_of(args.attr_float("upper_edge_hertz")) - lo) / static_cast<double>(count);
  const auto length = static_cast<double>(args.attr_int("dft_length") + 1);
  const auto rate = static_cast<double>(args.attr_int("sample_rate"));
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < count; ++i) {
    const double hertz = hertz_of(static_cast<double>(i) * step + lo);
    edges.push_back(static_cast<int64_t>(std::floor(length * hertz / rate)));
  }
  return edges;
}

Types infer_mel_weight_matrix(const InferArgs& args) {
  for (std::string_view name : {"num_mel_bins", "dft_length", "sample_rate"}) {
    const int64_t value = args.attr_int(name);
    if (value >= 1 && value <= ir::kMaxElements) continue;
    return refuse(Code::kInvalidArgument, "", name, " must be positive, found ", value);
  }
  const double lo = args.attr_float("lower_edge_hertz");
  const double hi = args.attr_float("upper_edge_hertz");
  if (!(lo >= 0.0 && hi > lo && std::isfinite(hi))) {
    return refuse(Code::kInvalidArgument, "edges must be ascending and not negative, found ",
                  ir::attr_to_string(lo), " and ", ir::attr_to_string(hi));
  }
  const TensorType y{args.attr_dtype("dtype"),
                     {spectrum_bins(args), args.attr_int("num_mel_bins")}};
  PYC_TRY(ir::check_type(y));
  if (band_edges(args).back() > spectrum_bins(args)) {
    return refuse(Code::kInvalidArgument, "upper_edge_hertz ", ir::attr_to_string(hi),
                  " lies beyond the last of ", spectrum_bins(args), " bins");
  }
  return one(y.dtype, y.shape);
}

Result<std::vector<ValueId>> decompose_mel_weight_matrix(ir::GraphBuilder& builder,
                                                         const ir::Node& node) {
  Compose c(builder, node);
  const InferArgs attrs = c.attrs();
  const int64_t bands = attrs.attr_int("num_mel_bins");
  const int64_t bins = spectrum_bins(attrs);
  const std::vector<int64_t> edges = band_edges(attrs);
  std::vector<double> matrix(static_cast<size_t>(bins * bands), 0.0);
  for (int64_t band = 0; band < bands; ++band) {
    const auto at = static_cast<size_t>(band);
    const int64_t begin = edges[at];
    const int64_t peak = edges[at + 1];
    const int64_t end = edges[at + 2];
    const auto set = [&](int64_t bin, double value) {
      if (bin < bins) matrix[static_cast<size_t>(bin * bands + band)] = value;
    };
    if (begin == peak) set(peak, 1.0);
    for (int64_t bin = begin; bin < peak; ++bin) {
      set(bin, static_cast<double>(bin - begin) / static_cast<double>(peak - begin));
    }
    if (peak > begin) set(peak, 1.0);
    for (int64_t bin = peak; bin < end; ++bin) {
      set(bin, static_cast<double>(end - bin) / static_cast<double>(end - peak));
    }
  }
  return c.outputs({c.constant(attrs.attr_dtype("dtype"), {bins, bands}, matrix)});
}

Result<ValueId> draw_mel_weight_matrix(Draw& d, DType t) {
  return d.op({}, {{"num_mel_bins", d.pick(1, 6)},
                   {"dft_length", d.pick(8, 40)},
                   {"sample_rate", int64_t{8000}},
                   {"lower_edge_hertz", static_cast<double>(d.pick(0, 500))},
                   {"upper_edge_hertz", static_cast<double>(d.pick(1000, 3500))},
                   {"dtype", t}});
}

}  // namespace

const ir::OpDef& op_mel_weight_matrix() {
  static const ir::OpDef def{
      .name = "mel_weight_matrix",
      .summary =
          "Triangles that map dft_length/2+1 spectrum bins to num_mel_bins bands, evenly spaced in "
          "mel.",
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {required("num_mel_bins", ir::AttrKind::kInt),
                required("dft_length", ir::AttrKind::kInt),
                required("sample_rate", ir::AttrKind::kInt),
                required("lower_edge_hertz", ir::AttrKind::kFloat),
                required("upper_edge_hertz", ir::AttrKind::kFloat), optional("dtype", DType::kF32)},
      .infer = infer_mel_weight_matrix,
      .decompose = decompose_mel_weight_matrix,
      .no_gradient = "it has no input",
      .draw = {.node = draw_mel_weight_matrix},
  };
  return def;
}

}  // namespace pyc::ops

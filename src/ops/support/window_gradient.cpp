#include "ops/support/window_gradient.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace pyc::ops {

namespace {

// A letter of an equation for each dim of the planes, different for each `first`.
char plane_letter(char first, size_t d) { return static_cast<char>(first + static_cast<char>(d)); }

bool is_empty(const TensorType& type) { return type.elements() == 0; }

// `v` [N, C, planes], `before` and `behind` more zeros in each dim of the planes, or fewer
// elements.
ValueId with_zeros(Backward& b, ValueId v, const Ints& before, const Ints& behind) {
  Ints pads{0, 0};
  pads.insert(pads.end(), before.begin(), before.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), behind.begin(), behind.end());
  const bool none = std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
  return none ? v : b.op("pad", {v}, {{"pads", pads}});
}

// Elements begin, begin + step, … of a dim.
ValueId every(Backward& b, ValueId v, int64_t axis, int64_t begin, int64_t step) {
  if (begin == 0 && step == 1) return v;
  return b.op("slice", {v},
              {{"starts", Ints{begin}},
               {"ends", Ints{b.type(v).shape[static_cast<size_t>(axis)]}},
               {"axes", Ints{axis}},
               {"steps", Ints{step}}});
}

ValueId moved(Backward& b, ValueId v, const Move& move) {
  return b.reshape(b.transpose(b.reshape(v, move.apart), move.order), move.whole);
}

// The gradient of the elements of one phase in each dim: a convolution with the taps that meet
// them, reversed.
ValueId phase_gradient(Backward& b, ValueId g, ValueId w, std::span<const Phase> phases,
                       int64_t group) {
  Ints before;
  Ints behind;
  Ints dilations;
  for (size_t d = 0; d < phases.size(); ++d) {
    const auto axis = static_cast<int64_t>(d) + 2;
    w = every(b, w, axis, phases[d].first, phases[d].step);
    before.push_back(phases[d].before);
    behind.push_back(phases[d].behind);
    dilations.push_back(phases[d].dilation);
  }
  const ValueId taps =
      b.op("reverse", {w}, {{"axes", int_range(2, static_cast<int64_t>(phases.size()) + 2)}});
  return b.op(
      "conv",
      {with_zeros(b, g, before, behind), moved(b, taps, turned_weights(b.type(taps).shape, group))},
      {{"dilations", dilations}, {"group", group}});
}

// [N, C, phases, counts] as [N, C, planes].
ValueId interleaved(Backward& b, ValueId v, const Window& window, const Ints& counts,
                    const Shape& planes) {
  const Shape shape = b.type(v).shape;
  if (shape.empty()) return v;  // refused before
  const Move move = interleaved_phases(shape[0], shape[1], window, counts);
  v = moved(b, v, move);
  for (size_t d = 2; d < move.whole.size(); ++d) {
    const int64_t size = planes[d - 2];
    if (size != move.whole[d]) v = b.slice(v, static_cast<int64_t>(d), 0, size);
  }
  return v;
}

}  // namespace

Move turned_weights(const Shape& weights, int64_t group) {
  if (weights.empty()) return {};  // of a value refused before
  Move move;
  move.whole = weights;
  move.whole[0] /= group;
  move.apart = {group};
  move.apart.insert(move.apart.end(), move.whole.begin(), move.whole.end());
  move.order = int_range(0, static_cast<int64_t>(weights.size()) + 1);
  std::swap(move.order[1], move.order[2]);
  std::swap(move.whole[0], move.whole[1]);
  move.whole[0] *= group;
  return move;
}

Move interleaved_phases(int64_t batch, int64_t channels, const Window& window, const Ints& counts) {
  Move move;
  move.apart = {batch, channels};
  move.order = {0, 1};
  move.apart.insert(move.apart.end(), window.strides.begin(), window.strides.end());
  move.apart.insert(move.apart.end(), counts.begin(), counts.end());
  const auto dims = static_cast<int64_t>(counts.size());
  Shape planes;
  for (size_t d = 0; d < counts.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    move.order.insert(move.order.end(), {2 + dims + at, 2 + at});
    planes.push_back(counts[d] * window.strides[d]);
  }
  move.whole = with_planes(batch, channels, planes);
  return move;
}

Phase phase_of(const Window& window, size_t d, int64_t offset, int64_t count, int64_t places) {
  const int64_t stride = window.strides[d];
  const int64_t dilation = window.dilations[d];
  const int64_t common = std::gcd(stride, dilation);
  Phase p{.step = stride / common, .dilation = dilation / common};
  const int64_t at = offset + window.begin[d];
  while (p.first < p.step && (at - p.first * dilation) % stride != 0) ++p.first;
  if (p.first >= std::min(p.step, window.kernel[d])) return p;
  p.taps = (window.kernel[d] - 1 - p.first) / p.step + 1;
  const int64_t reach = (p.taps - 1) * p.dilation;
  const int64_t lowest = (at - p.first * dilation) / stride - reach;
  p.before = -lowest;
  p.behind = lowest + reach + count - places;
  return p;
}

ValueId padded_conv(Backward& b, ValueId x, ValueId w, const Window& window, int64_t group) {
  return b.op("conv", {with_zeros(b, x, window.begin, window.end), w},
              {{"strides", window.strides}, {"dilations", window.dilations}, {"group", group}});
}

ValueId conv_input_gradient(Backward& b, ValueId g, ValueId w, const Window& window, int64_t group,
                            const Shape& planes) {
  const TensorType type = b.type(g);
  const Shape places = planes_of(type);
  int64_t phases = 1;
  bool empty = is_empty(type) || is_empty(b.type(w));
  Ints counts;
  for (size_t d = 0; d < planes.size(); ++d) {
    phases = std::min(phases, kMostPhases) * std::min(window.strides[d], kMostPhases + 1);
    counts.push_back((planes[d] + window.strides[d] - 1) / window.strides[d]);
    empty = empty || planes[d] == 0;
  }
  if (empty || phases > kMostPhases) {
    return b.op("conv_transpose", {g, w},
                {{"output_shape", planes},
                 {"strides", window.strides},
                 {"pads", window.begin},
                 {"dilations", window.dilations},
                 {"group", group}});
  }
  const Shape part = with_planes(type.shape[0], b.type(w).shape[1] * group, counts);
  Shape one = part;
  one.insert(one.begin() + 2, 1);
  std::vector<ValueId> parts;
  for (int64_t number = 0; number < phases; ++number) {
    std::vector<Phase> each(planes.size());
    bool met = true;
    int64_t rest = number;
    for (size_t d = planes.size(); d-- > 0; rest /= window.strides[d]) {
      each[d] = phase_of(window, d, rest % window.strides[d], counts[d], places[d]);
      met = met && each[d].taps > 0;
    }
    const ValueId sums = met ? phase_gradient(b, g, w, each, group) : b.zeros(type.dtype, part);
    parts.push_back(phases == 1 ? sums : b.reshape(sums, one));
  }
  return phases == 1 ? parts[0] : interleaved(b, b.concat(parts, 2), window, counts, planes);
}

ValueId conv_weight_gradient(Backward& b, ValueId x, ValueId g, const Window& window,
                             int64_t group) {
  const TensorType type = b.type(g);
  const Shape shape = b.type(x).shape;
  const int64_t out = type.shape[1] / group;
  const int64_t in = shape[1] / group;
  if (is_empty(type)) return b.zeros(type.dtype, with_planes(type.shape[1], in, window.kernel));
  // [N, group, O/group, places] with [N, group, I/group, place and tap of each dim].
  Shape split{shape[0], group, out};
  for (const int64_t places : planes_of(type)) split.push_back(places);
  ValueId windows = with_zeros(b, x, window.begin, window.end);
  Shape windows_split{shape[0], group, in};
  std::string equation = "ngo";
  std::string of_windows = "ngi";
  std::string result = "goi";
  for (size_t d = 0; d < window.dims(); ++d) {
    const auto axis = static_cast<int64_t>(2 * d) + 2;
    windows = b.op("frames", {windows},
                   {{"axis", axis}, {"length", window.reach(d)}, {"step", window.strides[d]}});
    windows = every(b, windows, axis + 1, 0, window.dilations[d]);
    windows_split.insert(windows_split.end(), {type.shape[d + 2], window.kernel[d]});
    equation += plane_letter('A', d);
    of_windows += {plane_letter('A', d), plane_letter('P', d)};
    result += plane_letter('P', d);
  }
  const ValueId sums = b.op("contract", {b.reshape(g, split), b.reshape(windows, windows_split)},
                            {{"equation", equation + "," + of_windows + "->" + result}});
  return b.reshape(sums, with_planes(type.shape[1], in, window.kernel));
}

ValueId sum_over_windows(Backward& b, ValueId v, const Window& window) {
  const TensorType x = b.input_type(0);
  const Shape places = planes_of(b.type(v));
  const ValueId each = b.reshape(v, with_planes(x.shape[0] * x.shape[1], 1, places));
  const ValueId ones = b.expand(b.scalar_like(v, 1.0), with_planes(1, 1, window.kernel));
  const ValueId sums = b.op("conv_transpose", {each, ones},
                            {{"output_shape", planes_of(x)},
                             {"strides", window.strides},
                             {"pads", window.begin},
                             {"dilations", window.dilations}});
  return b.reshape(sums, x.shape);
}

}  // namespace pyc::ops

#include "ops/support/transposed_phases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/support/window_gradient.h"

namespace pyc::ops {
namespace {

class Phases {
 public:
  Phases(Patch& patch, const NodeView& node, const Window& window, int64_t group)
      : patch_(patch),
        node_(node),
        window_(window),
        group_(group),
        planes_(planes_of(node.type())),
        places_(planes_of(node.input_type(0))),
        axes_(int_range(2, node.type().rank())) {
    for (size_t d = 0; d < planes_.size(); ++d) {
      counts_.push_back((planes_[d] + window.strides[d] - 1) / window.strides[d]);
      phases_ = std::min(phases_, kMostPhases) * std::min(window.strides[d], kMostPhases + 1);
    }
  }

  ValueId run() {
    if (phases_ > kMostPhases) return kNoId;
    std::vector<std::vector<Phase>> all;
    for (int64_t number = 0; number < phases_; ++number) {
      all.push_back(phase(number));
      for (size_t d = 0; d < planes_.size(); ++d) {
        const Phase& p = all.back()[d];
        if (p.taps == 0 || cut(p.behind) + cut(p.before) >= places_[d]) return kNoId;
      }
    }
    const ValueId reversed = patch_.op("reverse", {node_.input(0)}, {{"axes", axes_}});
    const ValueId weights =
        moved(node_.input(1), turned_weights(node_.input_type(1).shape, group_));
    const Shape& shape = node_.type().shape;
    Shape one = with_planes(shape[0], shape[1], counts_);
    one.insert(one.begin() + 2, 1);
    std::vector<ValueId> parts;
    for (const std::vector<Phase>& each : all) {
      const ValueId sums =
          patch_.op("reverse", {convolved(reversed, weights, each)}, {{"axes", axes_}});
      parts.push_back(phases_ == 1 ? sums : patch_.op("reshape", {sums}, {{"shape", one}}));
    }
    if (phases_ == 1) return parts[0];
    return interleaved(patch_.op("concat", parts, {{"axis", int64_t{2}}}));
  }

 private:
  // Elements that no tap of the phase meets.
  static int64_t cut(int64_t pad) { return std::max<int64_t>(-pad, 0); }

  std::vector<Phase> phase(int64_t number) const {
    std::vector<Phase> each(planes_.size());
    for (size_t d = planes_.size(); d-- > 0; number /= window_.strides[d]) {
      each[d] = phase_of(window_, d, number % window_.strides[d], counts_[d], places_[d]);
    }
    return each;
  }

  // The phase's elements in reverse. In the reversed input what was behind comes first.
  ValueId convolved(ValueId reversed, ValueId weights, const std::vector<Phase>& each) {
    Ints from;
    Ints to;
    Ints first;
    Ints steps;
    Ints dilations;
    Ints pads(2 * each.size(), 0);
    for (size_t d = 0; d < each.size(); ++d) {
      from.push_back(cut(each[d].behind));
      to.push_back(places_[d] - cut(each[d].before));
      first.push_back(each[d].first);
      steps.push_back(each[d].step);
      dilations.push_back(each[d].dilation);
      pads[d] = std::max<int64_t>(each[d].behind, 0);
      pads[d + each.size()] = std::max<int64_t>(each[d].before, 0);
    }
    const ValueId x =
        patch_.op("slice", {reversed}, {{"starts", from}, {"ends", to}, {"axes", axes_}});
    const ValueId w =
        patch_.op("slice", {weights},
                  {{"starts", first}, {"ends", window_.kernel}, {"axes", axes_}, {"steps", steps}});
    std::vector<ValueId> inputs{x, w};
    if (node_.inputs() > 2) inputs.push_back(node_.input(2));
    return patch_.op("conv", std::move(inputs),
                     {{"pads", pads}, {"dilations", dilations}, {"group", group_}});
  }

  ValueId moved(ValueId v, const Move& move) {
    v = patch_.op("reshape", {v}, {{"shape", move.apart}});
    v = patch_.op("transpose", {v}, {{"perm", move.order}});
    return patch_.op("reshape", {v}, {{"shape", move.whole}});
  }

  // [N, C, phases, counts] as [N, C, planes].
  ValueId interleaved(ValueId v) {
    const Shape& shape = node_.type().shape;
    const Move move = interleaved_phases(shape[0], shape[1], window_, counts_);
    v = moved(v, move);
    if (move.whole == shape) return v;
    return patch_.op("slice", {v},
                     {{"starts", Ints(counts_.size(), 0)}, {"ends", planes_}, {"axes", axes_}});
  }

  Patch& patch_;
  const NodeView& node_;
  const Window& window_;
  int64_t group_;
  Shape planes_;
  Shape places_;
  Ints axes_;
  Ints counts_;
  int64_t phases_ = 1;
};

}  // namespace

ValueId transposed_phases(Patch& patch, const NodeView& node, const Window& window, int64_t group) {
  if (node.type().dtype != DType::kF32 || node.input_type(0).dtype != DType::kF32) return kNoId;
  if (patch.constant(node.input(1)) == nullptr) return kNoId;
  if (node.type().elements() == 0 || node.input_type(0).elements() == 0) return kNoId;
  return Phases(patch, node, window, group).run();
}

}  // namespace pyc::ops

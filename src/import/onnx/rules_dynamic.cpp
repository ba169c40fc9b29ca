#include "host/elements.h"
#include "host/select.h"
#include "host/suppression.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

Status nonzero_close(CloseContext& c) {
  const ValueId x = c.input(0);
  if (!c.is_known(x)) return c.use_host();
  const auto content = host::tensor_of(DType::kF64, c.shape(x), c.floats(x));
  if (!content.ok()) return c.refused(content.status().code(), content.status().message());
  const auto indices = host::nonzero(*content);
  if (!indices.ok()) return c.refused(indices.status().code(), indices.status().message());
  return c.give(c.constant(*indices));
}

Status nonzero(HostCall& call) { return give(call, host::nonzero(input_of(call, 0))); }

// With a known condition it is a gather of known entries.
Status compress_close(CloseContext& c) {
  ValueId x = c.input(0);
  if (!c.is_known(c.input(1))) return c.use_host();
  const bool flat = !c.has_attr("axis");
  if (flat) x = c.reshape(x, {c.type(x).elements()});
  const int64_t axis = axis_of(c, c.attr_int("axis", 0), c.rank(x));
  const Ints condition = c.ints(c.input(1));
  if (!c.ok()) return c.status();
  const int64_t dim = c.shape(x)[static_cast<size_t>(axis)];
  Ints at;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) continue;
    if (static_cast<int64_t>(i) >= dim) {
      return c.refused(Code::kInvalidArgument, "the condition is longer than the axis");
    }
    at.push_back(static_cast<int64_t>(i));
  }
  return c.give(c.op("gather", {x, c.int_vector(at)}, {{"axis", axis}}));
}

Status compress(HostCall& call) {
  return give(call, host::compress(input_of(call, 0), input_of(call, 1), attr_if(call, "axis")));
}

Status unique(HostCall& call) {
  PYC_ASSIGN(host::UniqueResult found, host::unique(input_of(call, 0), attr_if(call, "axis"),
                                                    call.attr_int("sorted", 1) != 0));
  call.set_output(0, std::move(found.values));
  call.set_output(1, std::move(found.first));
  call.set_output(2, std::move(found.inverse));
  call.set_output(3, std::move(found.counts));
  return {};
}

Status non_max_suppression(HostCall& call) {
  host::SuppressionSpec spec;
  spec.boxes = input_of(call, 0);
  spec.scores = input_of(call, 1);
  if (call.has(2)) {
    PYC_ASSIGN(spec.most, host::one_int(call.input(2), "max_output_boxes_per_class"));
  }
  if (call.has(3)) {
    PYC_ASSIGN(spec.overlap, host::one_double(call.input(3), "iou_threshold"));
  }
  if (call.has(4)) {
    PYC_ASSIGN(spec.score, host::one_double(call.input(4), "score_threshold"));
  }
  spec.centered = call.attr_int("center_point_box", 0) != 0;
  return give(call, host::suppress_overlaps(spec));
}

constexpr Rule kDynamicRules[] = {
    {"Compress", compress_close, compress},
    {"NonMaxSuppression", nullptr, non_max_suppression},
    {"NonZero", nonzero_close, nonzero},
    {"Unique", nullptr, unique},
};

}  // namespace

Rules dynamic_rules() { return kDynamicRules; }

}  // namespace pyc::onnx

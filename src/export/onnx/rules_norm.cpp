#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

void batch_norm_training(Emitter& e) {
  NodeAttrs attrs = e.attrs("epsilon momentum");
  attrs.emplace_back("training_mode", int64_t{1});
  e.emit("BatchNormalization", e.all_inputs(), attrs);
}

// What LayerNormalization gives beside its result, which nobody reads here.
void layer_norm_stats(Emitter& e) {
  const ir::TensorType& x = e.in_type(0);
  if (x.dtype == DType::kF64) return e.refuse("ONNX has these in f32 only");
  const auto first = x.shape.begin() + e.axis("axis", x.rank());
  const std::string gamma = e.splat({x.dtype, {first, x.shape.end()}}, 1.0);
  e.write("LayerNormalization", {e.in(0), gamma}, {e.fresh(), e.out(0), e.out(1)},
          e.attrs("axis epsilon"));
}

// ONNX computes the statistics in f32 unless it is told otherwise.
void with_stash_type(Emitter& e, const char* op, NodeAttrs attrs) {
  if (e.out_type().dtype == DType::kF64) attrs.emplace_back("stash_type", onnx_type(DType::kF64));
  e.emit(op, e.all_inputs(), attrs);
}
void group_norm(Emitter& e) {
  with_stash_type(e, "GroupNormalization", e.attrs("epsilon num_groups"));
}
void rms_norm(Emitter& e) { with_stash_type(e, "RMSNormalization", e.attrs("axis epsilon")); }

// An empty list of axes cannot be said: left out, it means others.
void mean_variance_normalization(Emitter& e) {
  if (e.ints("axes").empty()) return e.refuse("normalising over no axes");
  e.emit("MeanVarianceNormalization", {e.in(0)}, e.attrs("axes"));
}

constexpr const char* kTraining = "ai.onnx.preview.training";

void optimizer(Emitter& e, const char* op, const char* attrs) {
  const DType t = e.out_type().dtype;
  if (t != DType::kF32 && t != DType::kF64) return e.refuse("ONNX has it for f32 and f64 only");
  e.write(op, e.all_inputs(), e.all_outputs(), e.attrs(attrs), kTraining);
}
void adagrad(Emitter& e) { optimizer(e, "Adagrad", "decay_factor epsilon norm_coefficient"); }
void adam(Emitter& e) {
  optimizer(e, "Adam", "alpha beta epsilon norm_coefficient norm_coefficient_post");
}
void momentum(Emitter& e) { optimizer(e, "Momentum", "alpha beta mode norm_coefficient"); }

void loss(Emitter& e, const char* op) {
  constexpr int64_t kNone = INT64_MIN;  // nothing is ignored
  NodeAttrs attrs = e.attrs("reduction");
  if (e.integer("ignore_index") != kNone) {
    attrs.emplace_back("ignore_index", e.integer("ignore_index"));
  }
  e.write(op, e.all_inputs(), e.read_outputs(), attrs);
}
void nll_loss(Emitter& e) { loss(e, "NegativeLogLikelihoodLoss"); }
void softmax_cross_entropy_loss(Emitter& e) { loss(e, "SoftmaxCrossEntropyLoss"); }

constexpr Rule kNormRules[] = {
    {"adagrad", adagrad, {.dtypes = kFloats}},
    {"adam", adam, {.dtypes = kFloats}},
    {"batch_norm_training", batch_norm_training},
    {"group_norm", group_norm},
    {"layer_norm_stats", layer_norm_stats},
    {"mean_variance_normalization", mean_variance_normalization},
    {"momentum", momentum, {.dtypes = kFloats}},
    {"nll_loss", nll_loss},
    {"rms_norm", rms_norm},
    {"softmax_cross_entropy_loss", softmax_cross_entropy_loss},
};

}  // namespace

Rules norm_rules() { return kNormRules; }

}  // namespace pyc::onnx::exporting

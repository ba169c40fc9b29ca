#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

// Axes are an input; none: all.
void reduce(Emitter& e, const char* op) {
  Names in{e.in(0)};
  if (!e.ints("axes").empty()) in.push_back(e.int_list(e.ints("axes")));
  e.emit(op, in, e.attrs("keepdims"));
}
void reduce_l1(Emitter& e) { reduce(e, "ReduceL1"); }
void reduce_l2(Emitter& e) { reduce(e, "ReduceL2"); }
void reduce_log_sum(Emitter& e) { reduce(e, "ReduceLogSum"); }
void reduce_log_sum_exp(Emitter& e) { reduce(e, "ReduceLogSumExp"); }
void reduce_max(Emitter& e) { reduce(e, "ReduceMax"); }
void reduce_mean(Emitter& e) { reduce(e, "ReduceMean"); }
void reduce_min(Emitter& e) { reduce(e, "ReduceMin"); }
void reduce_prod(Emitter& e) { reduce(e, "ReduceProd"); }
void reduce_sum(Emitter& e) { reduce(e, "ReduceSum"); }
void reduce_sum_square(Emitter& e) { reduce(e, "ReduceSumSquare"); }

void cumulate(Emitter& e, const char* op) {
  e.emit(op, {e.in(0), e.int_scalar(e.integer("axis"))}, e.attrs("exclusive reverse"));
}
void cumsum(Emitter& e) { cumulate(e, "CumSum"); }
void cumprod(Emitter& e) { cumulate(e, "CumProd"); }

// Always in order, which is ONNX's default.
void top_k(Emitter& e) {
  e.write("TopK", {e.in(0), e.int_list({e.integer("k")})}, e.all_outputs(),
          e.attrs("axis largest"));
}

// All of an axis, in order.
void sort(Emitter& e) {
  const ir::TensorType& x = e.in_type(0);
  const auto axis = static_cast<size_t>(e.axis("axis", x.rank()));
  e.write("TopK", {e.in(0), e.int_list({x.shape[axis]})}, e.all_outputs(),
          e.attrs("axis largest=descending"));
}

constexpr std::string_view kExtremes = "bool f16 bf16 f32 f64 i8 i32 i64 u8 u32 u64";

constexpr Rule kReduceRules[] = {
    {"cumprod", cumprod, {.since = 26, .dtypes = kFloatsAndWideInts}},
    {"cumsum", cumsum, {.dtypes = kFloatsAndWideInts}},
    {"reduce_l1", reduce_l1, {.dtypes = kFloatsAndWideInts}},
    {"reduce_l2", reduce_l2, {.dtypes = kFloatsAndWideInts}},
    {"reduce_log_sum", reduce_log_sum, {.dtypes = kFloatsAndWideInts}},
    {"reduce_log_sum_exp", reduce_log_sum_exp, {.dtypes = kFloatsAndWideInts}},
    {"reduce_max", reduce_max, {.dtypes = kExtremes}},
    {"reduce_mean", reduce_mean, {.dtypes = kFloatsAndWideInts}},
    {"reduce_min", reduce_min, {.dtypes = kExtremes}},
    {"reduce_prod", reduce_prod, {.dtypes = kFloatsAndWideInts}},
    {"reduce_sum", reduce_sum, {.dtypes = kFloatsAndWideInts}},
    {"reduce_sum_square", reduce_sum_square, {.dtypes = kFloatsAndWideInts}},
    {"sort", sort, {.dtypes = kNumbersButBf16}},
    {"top_k", top_k, {.dtypes = kNumbersButBf16}},
};

}  // namespace

Rules reduce_rules() { return kReduceRules; }

}  // namespace pyc::onnx::exporting

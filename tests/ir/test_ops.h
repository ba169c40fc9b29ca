#pragma once

// A few small ops for testing the IR without the real ones: together they have every kind of
// attribute, several outputs and a variable number of inputs.

#include <fmt/format.h>

#include "ir/graph.h"

namespace pyc::ir::testing {

using Types = std::vector<TensorType>;

inline Result<Types> infer_same(const InferArgs& args) { return Types{args.inputs[0]}; }

inline Result<Types> infer_add(const InferArgs& args) {
  const TensorType& a = args.inputs[0];
  const TensorType& b = args.inputs[1];
  if (a.dtype != b.dtype) {
    return Status(Code::kDtypeMismatch, fmt::format("expected equal dtypes, found {} and {}",
                                                    dtype_name(a.dtype), dtype_name(b.dtype)));
  }
  PYC_ASSIGN(Shape shape, broadcast_shapes(a.shape, b.shape));
  return Types{{a.dtype, std::move(shape)}};
}

inline Result<Types> infer_matmul(const InferArgs& args) {
  const TensorType& a = args.inputs[0];
  const TensorType& b = args.inputs[1];
  if (a.rank() != 2 || b.rank() != 2) {
    return Status(Code::kRankMismatch, "expected two matrices");
  }
  if (a.dtype != b.dtype) return Status(Code::kDtypeMismatch, "expected equal dtypes");
  if (a.shape[1] != b.shape[0]) {
    return Status(Code::kShapeMismatch, fmt::format("expected equal inner dims, found {} and {}",
                                                    a.shape[1], b.shape[0]));
  }
  return Types{{a.dtype, {a.shape[0], b.shape[1]}}};
}

// Two halves along the axis, the first one larger when the dim is odd.
inline Result<Types> infer_split(const InferArgs& args) {
  TensorType first = args.inputs[0];
  const int64_t given = args.attr_int("axis");
  const int64_t axis = given < 0 ? given + first.rank() : given;
  if (axis < 0 || axis >= first.rank()) {
    return Status(Code::kInvalidArgument, fmt::format("axis {} is out of range", given));
  }
  TensorType second = first;
  const int64_t dim = first.shape[static_cast<size_t>(axis)];
  first.shape[static_cast<size_t>(axis)] = dim - dim / 2;
  second.shape[static_cast<size_t>(axis)] = args.attr_bool("keep") ? dim - dim / 2 : dim / 2;
  return Types{first, second};
}

inline Result<Types> infer_cast(const InferArgs& args) {
  return Types{{args.attr_dtype("to"), args.inputs[0].shape}};
}

// Stacks equal types along a new first dim.
inline Result<Types> infer_stack(const InferArgs& args) {
  for (const TensorType& type : args.inputs) {
    if (type != args.inputs[0]) return Status(Code::kShapeMismatch, "expected equal types");
  }
  TensorType result = args.inputs[0];
  result.shape.insert(result.shape.begin(), static_cast<int64_t>(args.inputs.size()));
  return Types{result};
}

inline const OpSet& test_ops() {
  static const OpDef add{
      .name = "add", .summary = "", .min_inputs = 2, .max_inputs = 2, .infer = infer_add};
  static const OpDef mul{
      .name = "mul", .summary = "", .min_inputs = 2, .max_inputs = 2, .infer = infer_add};
  static const OpDef matmul{
      .name = "matmul", .summary = "", .min_inputs = 2, .max_inputs = 2, .infer = infer_matmul};
  static const OpDef relu{.name = "relu", .summary = "", .infer = infer_same};
  static const OpDef cast{
      .name = "cast", .summary = "", .attrs = {{"to", AttrKind::kDType}}, .infer = infer_cast};
  static const OpDef split{.name = "split",
                           .summary = "",
                           .outputs = 2,
                           .attrs = {{"axis", int64_t{-1}}, {"keep", false}},
                           .infer = infer_split};
  static const OpDef stack{
      .name = "stack", .summary = "", .max_inputs = kVariadic, .infer = infer_stack};
  static const OpDef tag{.name = "tag",
                         .summary = "",
                         .attrs = {{"alpha", 1.0},
                                   {"note", std::string("none")},
                                   {"sizes", std::vector<int64_t>{}},
                                   {"weights", std::vector<double>{}}},
                         .infer = infer_same};
  static const OpSet ops({&tag, &stack, &split, &cast, &relu, &matmul, &mul, &add});
  return ops;
}

inline TensorType f32(Shape shape) { return {DType::kF32, std::move(shape)}; }

// The value of a Result in a test that cannot go on without it.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().to_string());
  return std::move(result).value();
}

// Uses every kind of value, attribute and constant once.
inline constexpr std::string_view kSample =
    R"(graph @"a sample"(%x: f32[4,6], %"in/2:0": f32[6]) -> (%z, %y, %x) {
  %w = const f32[6,6] random(seed=7, lo=-0.5, hi=0.5)
  %half = const f32[] splat(0.5)
  %d = const i64[3] dense(-1, 0, 9223372036854775807)
  %m = const bool[2] dense(true, false)
  %n = const f16[4] dense(nan, -inf, 0.1, 65504.0)
  %h = matmul(%x, %w) : f32[4,6]
  %b = add(%h, %"in/2:0") : f32[4,6]
  %y = tag(%b) {alpha=0.25, note="a \"b\"\n", sizes=[1, 2], weights=[0.5, nan]} : f32[4,6]
  %s.1, %s.2 = split(%y) {axis=1, keep=true} : f32[4,3], f32[4,3]
  %k = stack(%s.1, %s.2, %s.1) : f32[3,4,3]
  %c = cast(%k) {to=bf16} : bf16[3,4,3]
  %q = cast(%c) {to=f32} : f32[3,4,3]
  %z = mul(%q, %half) : f32[3,4,3]
  %r = relu(%d) : i64[3]
}
)";

inline Graph sample_graph() { return must(parse(kSample, test_ops())); }

}  // namespace pyc::ir::testing

#pragma once

// What the type rules of ops share. Messages do not name the op: whoever calls the rule does.

#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "ops/support/refuse.h"

namespace pyc::ops {

using ir::InferArgs;
using ir::Shape;
using ir::TensorType;
using Types = Result<std::vector<TensorType>>;

// The dtypes an op takes, and how a message calls them.
struct DTypeClass {
  bool (*has)(DType);
  std::string_view words;
};
inline constexpr DTypeClass kAnyDType{[](DType) { return true; }, "any dtype"};
inline constexpr DTypeClass kFloats{is_float, "a float dtype"};
inline constexpr DTypeClass kNumbers{[](DType t) { return t != DType::kBool; },
                                     "a float or integer dtype"};
inline constexpr DTypeClass kIntegers{is_int, "an integer dtype"};
inline constexpr DTypeClass kBools{[](DType t) { return t == DType::kBool; }, "dtype bool"};
inline constexpr DTypeClass kSigned{[](DType t) { return is_float(t) || is_signed_int(t); },
                                    "a float or signed integer dtype"};
inline constexpr DTypeClass kIndices{[](DType t) { return t == DType::kI32 || t == DType::kI64; },
                                     "i32 or i64"};

// An attribute that must be given, and one that may be left out.
ir::AttrDef required(std::string_view name, ir::AttrKind kind);
template <class T>  // one of the types that ir::Attr holds
ir::AttrDef optional(std::string_view name, T fallback);
using Ints = std::vector<int64_t>;

// The outputs of an op that has one.
inline Types one(DType dtype, Shape shape) {
  std::vector<TensorType> types(1);  // a list in braces would be copied
  types[0] = {dtype, std::move(shape)};
  return types;
}

Status require_dtype(std::string_view what, const TensorType& type, const DTypeClass& accepted);
Status require_same_dtype(const TensorType& a, const TensorType& b);
Status require_rank(std::string_view what, const TensorType& type, int64_t rank);
// An attribute with `count` entries, each in [lo, hi].
Status require_ints(std::string_view attr, const Ints& values, size_t count, int64_t lo,
                    int64_t hi);
// That `axis` lies in [-rank, rank).
Status require_axis(int64_t axis, const TensorType& type);

// The same for each of `axes`, and that none is named twice.
Status require_axes(const Ints& axes, const TensorType& type);

// The axis counted from the front. Requires that require_axis accepts it.
inline int64_t from_front(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// The shape with each dim times its factor (not negative); refuses what is too large.
Result<Shape> scaled_shape(const TensorType& x, const Ints& factors);

// Type rule of ops that work along attribute `axis` and keep the type.
Types infer_along_axis(const InferArgs& args, const DTypeClass& accepted);

// Type rules of elementwise ops: inputs of one accepted dtype, broadcast against one another. The
// output has their dtype (or bool, for a comparison).
Types infer_elementwise(const InferArgs& args, const DTypeClass& accepted);
Types infer_comparison(const InferArgs& args, const DTypeClass& accepted);

}  // namespace pyc::ops

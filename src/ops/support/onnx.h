#pragma once

// Lists of dtypes that ONNX has several nodes for (OnnxNode::dtypes).

#include <string_view>

namespace pyc::ops {

inline constexpr std::string_view kOnnxFloats = "f16 bf16 f32 f64";
inline constexpr std::string_view kOnnxSigned = "f16 bf16 f32 f64 i8 i16 i32 i64";
inline constexpr std::string_view kOnnxFloatsAndWideInts = "f16 bf16 f32 f64 i32 i64 u32 u64";
inline constexpr std::string_view kOnnxNumbersButBf16 = "f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64";

}  // namespace pyc::ops

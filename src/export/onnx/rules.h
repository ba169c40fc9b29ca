#pragma once

// How ONNX says what a Graph IR op means. The rules stand in files by family: rules_<family>.cpp.

#include <span>
#include <string_view>

#include "export/onnx/emitter.h"

namespace pyc::onnx::exporting {

// One node of the ONNX op with the same inputs and outputs and the attributes `attrs` names
// (Emitter::attrs), or what `emit` writes. `since` is the opset that brought the op or the form.
// `dtypes` are those ONNX has the op for, names of the first input's with blanks; "": all but
// floats of a byte and what is smaller (export.cpp).
struct Rule {
  std::string_view op;
  std::string_view onnx;
  std::string_view attrs = "";
  void (*emit)(Emitter& e) = nullptr;
  int since = 1;
  std::string_view domain = "";
  std::string_view dtypes = "";
};
using Rules = std::span<const Rule>;

// Lists of dtypes that several rules have.
inline constexpr std::string_view kFloats = "f16 bf16 f32 f64";
inline constexpr std::string_view kFloatsAndWideInts = "f16 bf16 f32 f64 i32 i64 u32 u64";
inline constexpr std::string_view kNumbersButBf16 = "f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64";

// Null when there is none.
const Rule* find_rule(std::string_view op);

// The families.
Rules elementwise_rules();
Rules norm_rules();
Rules product_rules();
Rules recurrent_rules();
Rules reduce_rules();
Rules shape_rules();
Rules source_rules();
Rules window_rules();

}  // namespace pyc::onnx::exporting

#pragma once

// How ONNX says what a Graph IR op means. An op that is one node of ONNX says so itself
// (ir::OnnxNode) and needs no rule; a rule goes before. The rules stand in files by family:
// rules_<family>.cpp.

#include <span>
#include <string_view>

#include "export/onnx/emitter.h"

namespace pyc::onnx::exporting {

// `emit` writes what a node of the op is. What ONNX has it for, and since when, stands in `limits`,
// or in the OnnxNode of an op that has one.
struct Rule {
  std::string_view op;
  void (*emit)(Emitter& e) = nullptr;
  ir::OnnxNode limits = {};
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

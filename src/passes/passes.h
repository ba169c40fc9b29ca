#pragma once

// The passes, one function each, in passes/<name>.cpp. A pass rewrites the graph and says whether
// it changed anything; it never prints, times or verifies (pipeline.cpp does). All but `decompose`
// and `isolate_outputs` rewrite through ir::Patch.

#include <map>
#include <string>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::eval {
class Evaluators;
}

namespace pyc::passes {

// By name of a rule: how often it was applied.
using Rewrites = std::map<std::string, int64_t, std::less<>>;

// What a pass is given besides the graph.
struct PassContext {
  const ir::OpSet& ops;
  DecisionLog& log;
  Rewrites& rewrites;
  eval::Evaluators& evaluators;
  DType precision = DType::kF32;  // of the operands of products: f32 as given, f16 or bf16
  bool join_products = true;      // whether the device gains by it

  // Writes down a single choice; `subject` is the value it is about.
  void decide(std::string_view pass, const std::string& subject, std::string chosen,
              std::string reason, std::string detail = "") const;
  void count(std::string_view rule) const;
};

// Value-changing. A conv that only a batch_norm reads, all parameters constant and finite, f32 or
// f64: becomes one conv with w' = w·s and b' = (b−mean)·s + beta, where s = gamma·r and
// r = 1/sqrt(var+eps).
Result<bool> fold_batch_norm(ir::Graph& graph, const PassContext& context);

// Value-changing. softmax(q·kᵀ·scale + mask)·v, as exporters write it, becomes the op `attention`:
// the scale a constant on the scores, on q or on k, the mask added or chosen by `where`, keys and
// values repeated for the heads that share them or not. A row without a key gives 0 instead of NaN.
Result<bool> raise_attention(ir::Graph& graph, const PassContext& context);

// Value-changing. conv, matmul and gemm of dequantized 8-bit integers become integer products,
// exact in i32, and one factor. What only moves dequantized elements, or keeps their order, before
// they are quantized by the same scale is done on the integers.
Result<bool> integerize_qdq(ir::Graph& graph, const PassContext& context);

// Value-changing. With context.precision f16 or bf16: products of f32 read operands of that type
// and leave their f32 sums as they are; everything else stays f32. Constants are rounded here.
Result<bool> narrow_products(ir::Graph& graph, const PassContext& context);

// Value-changing. Products of f16 or bf16 and the elementwise ops and data movement behind them
// compute in f32 as long as each value has one reader (a node or a model output); what leaves the
// chain is rounded there and nothing before.
Result<bool> widen_half_chains(ir::Graph& graph, const PassContext& context);

// Replaces every node whose op is a composite by the ops it is made of, until none is left.
// Names of replaced values stay with what replaces them. Bits: this is the composite's definition.
Result<bool> decompose(ir::Graph& graph, const PassContext& context);

// One form for what can be written in several: attributes, operands of commutative ops (constants
// last), operands that broadcast by themselves (not expanded first), data movement that moves
// nothing or could be one movement (the `simplify` rules of ops that move data).
Result<bool> canonicalize(ir::Graph& graph, const PassContext& context);

// The `simplify` rules of all other ops: algebra that is exact on every bit, -0 included.
Result<bool> simplify(ir::Graph& graph, const PassContext& context);

// Nodes whose inputs are all constants become constants, evaluated as the reference backend would,
// within budgets for bytes and work; a refusal is logged.
Result<bool> fold_constants(ir::Graph& graph, const PassContext& context);

// Elementwise regions compute in the order of dims that needs the fewest transposes around them.
Result<bool> move_transposes(ir::Graph& graph, const PassContext& context);

// Nodes with equal op, attributes and inputs (in any order, if the op commutes) become one, and so
// do constants with equal bytes. Random nodes stay apart.
Result<bool> cse(ir::Graph& graph, const PassContext& context);

// Products of one value with constant weights whose results attention reads (q, k and v) become one
// product, of which attention reads slices. Columns of a product do not depend on each other, so no
// bit changes. Rows of attention that are only read rounded to halves are stored so.
Result<bool> join_products(ir::Graph& graph, const PassContext& context);

// Gives every model output a node result of its own: inputs, constants and values that are an
// output already are copied with `identity`.
Result<bool> isolate_outputs(ir::Graph& graph, const PassContext& context);

// Removes nodes and constants that no output depends on. Inputs stay.
Result<bool> eliminate_dead(ir::Graph& graph, const PassContext& context);

}  // namespace pyc::passes

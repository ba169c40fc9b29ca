#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/types.h"

namespace pyc::loop {
struct Expr;
}
namespace pyc::ops {
class Draw;
class KernelContext;
class LowerContext;
}  // namespace pyc::ops

namespace pyc::ir {

class GraphBuilder;
class NodeView;
class Patch;
struct Graph;
struct Node;
using ValueId = uint32_t;

// Made, copied and destroyed in op_def.cpp: every op has a list of these, and code for a variant
// takes a compiler longer than the rest of most ops.
struct AttrDef {
  AttrDef(std::string_view name, AttrKind kind);         // required
  AttrDef(std::string_view name, const Attr& fallback);  // of the fallback's kind
  // One that has no value unless it is given.
  static AttrDef or_absent(std::string_view name, AttrKind kind);
  ~AttrDef();
  AttrDef(const AttrDef& other);
  AttrDef& operator=(const AttrDef& other);

  std::string_view name;
  AttrKind kind;
  bool required;
  bool may_be_absent;
  Attr fallback;  // the value when the attribute is not given, if it is neither of these
};

// What an op's type rule sees. Attributes are complete: defaults are filled in. Those that may be
// absent are asked for with `has`.
struct InferArgs {
  std::span<const TensorType> inputs;
  const Attrs& attrs;

  bool has(std::string_view name) const { return attrs.find(name) != attrs.end(); }
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name) const;
  bool attr_bool(std::string_view name) const;
  DType attr_dtype(std::string_view name) const;
  const std::string& attr_string(std::string_view name) const;
  const std::vector<int64_t>& attr_ints(std::string_view name) const;
};

inline constexpr int kVariadic = 1 << 20;

// What rewrites may rely on. Left false where in doubt: then a rewrite is missed.
struct Traits {
  // Each element of the output is a function of the inputs' elements at the same index, broadcast.
  bool elementwise = false;
  // Of two inputs, in any order: the same bits, whichever NaN comes out of two.
  bool commutative = false;
  // Every element of the output is an element of an input or an attribute, bit for bit.
  bool moves_data = false;
  // Of an op with a kernel: it computes so much from each element that an input which only moves
  // data is better read where it lies than copied first.
  bool reads_strided = false;
  // Draws random numbers, named by its attributes `seed` and `stream` and the element's index.
  // Copies of a node keep both and so draw the same; cse joins no two nodes.
  bool random = false;
  // A sum of products that has the attribute `to`: to=f32 leaves its first output as the f32 that
  // f16 or bf16 operands were summed in, so that what reads it decides where it is rounded.
  bool product = false;
  // How many of a product's inputs, from the first, are multiplied; with one alone there is no
  // product. The option precision narrows them. 0: it leaves the op alone.
  int factors = 0;
  // Of a product: the input after the factors is added to the sum, times the attribute `beta` of
  // an op that has it, else as one number for each channel (dim 1). It stays as wide as it is.
  bool adds_input = false;
  // How many inputs, from the first, training may learn. Those behind are averages of what was
  // seen: nothing descends along them.
  int learnt_inputs = kVariadic;
};

// The node of ONNX that a node of the op is, where the two map one to one: it has the same inputs
// in the same order and the same outputs. Import and export read it, so that an op with a name here
// needs no rule of theirs; a rule they have for it goes before, each in its own direction.
struct OnnxNode {
  std::string_view name = {};  // empty: there is none
  // The attributes both have, with blanks between: "axis", or "transA=trans_a" where ONNX calls
  // `trans_a` so. A bool is an integer there and a dtype a number; defaults are the same.
  std::string_view attrs = {};
  // The opset from which on this is what the node means. What it was before is a rule of import/.
  int since = 1;
  std::string_view domain = {};
  // The dtypes of the first input that ONNX has the node for, with blanks between; empty: all but
  // floats of a byte and what is smaller, which `small` ones take too.
  std::string_view dtypes = {};
  bool small = false;
  // Of an op with the attribute `with`: its names in ONNX's order, with blanks between.
  std::string_view optional = {};
};

// The words of a list in an OnnxNode. Of `transA=trans_a` the two names differ.
struct OnnxWord {
  std::string_view onnx;
  std::string_view own;
};
std::vector<OnnxWord> onnx_words(std::string_view list);

// How random graphs draw a node of the op (ops/draw.h). An elementwise op needs nothing here.
struct Drawing {
  // Draws operands and attributes for a dtype: that of the first operand, or of the result of an op
  // without. Null: operands that broadcast, flags and numbers near their defaults.
  Result<ValueId> (*node)(ops::Draw& d, DType t) = nullptr;
  // It jumps: what is near before it need not be after it.
  bool sharp = false;
  // Without `node`: operands of [lo, hi) are inside of the op's domain; both 0: all are.
  double lo = 0.0;
  double hi = 0.0;
};

// Everything PyC knows about one op. No other place names the op.
//
// `infer` gives the output types or refuses the inputs with a message that says what was expected
// and found. Exactly one of `decompose`, `lower` and `kernel` is its meaning:
//   decompose  builds the op out of others: returns the values that replace the node's outputs.
//              The node's inputs are values of the given builder.
//   lower      gives, as a Loop IR expression, the element of output `output` at `index` (one i64
//              expression per output dim, in range). See ops/lowering.h.
//   kernel     writes a whole Loop IR kernel that stores all outputs; it is never fused. For what
//              is no expression of one element: scans, scatters, sorting. See ops/kernel.h.
// For lowering, optional:
//   on_unit  whether a matrix unit may compute the products of such a node in an order of its own
//            (docs/NUMERICS.md, named orders); a unit's row decides about the type of the first
//            input, which all factors have. Null: its sums are canonical everywhere.
//   at_most_zero  whether every element of the first output is known to be 0, less or NaN, by this
//                 node and those just before it. Asked for floats that have NaN; see ir/facts.h.
//                 Null: it is not.
// For the passes, all optional:
//   canonical_attrs  the attributes in their one form, where several mean the same
//   simplify         a value that equals the only output bit for bit (any NaN being equal to any
//                    other) and may be made with the patch, or kNoId. Every rule is proven by
//                    tests/passes/rules_test.cpp.
// For autograd/, at most one of:
//   gradient       builds, from the gradients of the outputs (kNoId: none arrives), those of the
//                  inputs, each of its input's type; kNoId for an input the op has no derivative
//                  in, which integers and bools always are. The node's inputs and outputs are
//                  values of the builder. What nobody asked for is left out afterwards.
//   gradient_form  builds the op out of others as `decompose` does; only the gradients of those
//                  are used, never their results.
//   no_gradient    why there is none: reaching such an op is an error that says so.
// An op with none of them follows from its decomposition.
// For import/ and export/: `onnx`. For whoever tests with random graphs: `draw`.
struct OpDef {
  std::string_view name;
  std::string_view summary;  // one line for docs/ops.md
  int min_inputs = 1;
  int max_inputs = 1;  // kVariadic: no limit
  int outputs = 1;     // kVariadic: as many as the type rule gives
  std::vector<AttrDef> attrs = {};
  Result<std::vector<TensorType>> (*infer)(const InferArgs& args) = nullptr;
  Result<std::vector<ValueId>> (*decompose)(GraphBuilder& builder, const Node& node) = nullptr;
  loop::Expr (*lower)(ops::LowerContext& context, int output,
                      std::span<const loop::Expr> index) = nullptr;
  void (*kernel)(ops::KernelContext& context) = nullptr;
  Traits traits = {};
  bool (*on_unit)(const InferArgs& args) = nullptr;
  bool (*at_most_zero)(const Graph& graph, const Node& node) = nullptr;
  Attrs (*canonical_attrs)(const InferArgs& args) = nullptr;
  ValueId (*simplify)(Patch& patch, const NodeView& node) = nullptr;
  Result<std::vector<ValueId>> (*gradient)(GraphBuilder& builder, const Node& node,
                                           std::span<const ValueId> grads) = nullptr;
  Result<std::vector<ValueId>> (*gradient_form)(GraphBuilder& builder, const Node& node) = nullptr;
  std::string_view no_gradient = {};
  OnnxNode onnx = {};
  Drawing draw = {};
};

// The ops a graph may use, sorted by name.
class OpSet {
 public:
  explicit OpSet(std::vector<const OpDef*> ops);
  const OpDef* find(std::string_view name) const;  // null when there is none
  // The known name closest to `name`, or "" when none is near: for messages.
  std::string_view suggest(std::string_view name) const;
  std::span<const OpDef* const> all() const { return ops_; }

 private:
  std::vector<const OpDef*> ops_;
};

// Checks names and kinds of `attrs` against the definition and adds the defaults.
Result<Attrs> complete_attrs(const OpDef& op, Attrs attrs);

// Gives the random nodes of a graph the numbers that tell their draws apart, when they are made: no
// later change to the graph changes them.
class StreamNumbers {
 public:
  // Adds `stream` to what is given to a random node, if it is not among it: one more than the
  // largest so far, from 0.
  void number(const OpDef& op, Attrs& attrs);

 private:
  int64_t next_ = 0;
};

}  // namespace pyc::ir

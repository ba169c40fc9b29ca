#pragma once

// What every ONNX op means. A rule builds Graph IR from one node whose input types are known
// (close), or computes it on the host (host), or has both: then the host takes over where the node
// cannot be closed. A rule covers all versions of its op from `since` on and asks context.version()
// where they differ. The rules stand in files by family: rules_<family>.cpp; the two meanings of
// one op may stand in two. An ONNX op that an op of PyC names as its own (ir::OnnxNode) needs no
// rule: close_same reads what the op says. A rule of that name means the versions before
// OnnxNode::since, or all if that is 1.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "open/close.h"
#include "open/open_graph.h"
#include "open/text.h"

namespace pyc::onnx {

using ir::Attrs;
using ir::Shape;
using ir::TensorType;
using ir::ValueId;
using open::CloseContext;
using open::HostCall;
using Ints = std::vector<int64_t>;

struct Rule {
  std::string_view op;
  Status (*close)(CloseContext& c) = nullptr;
  Status (*host)(HostCall& call) = nullptr;
  int since = 1;
  std::string_view domain = "";
  bool random = false;                          // open::OpenOp::random
  Status (*foresee)(HostCall& call) = nullptr;  // open::OpenOp::foresee
};
using Rules = std::span<const Rule>;

// Closes a node as the op of Graph IR that names it: node().op->same.
Status close_same(CloseContext& c);

// What ops do to complex tensors, which no graph holds: for all versions of an op.
struct ComplexRule {
  std::string_view op;
  Status (*host)(HostCall& call) = nullptr;  // null: what the host does to others
};
std::span<const ComplexRule> complex_rules();

// Null when there is none. The newest rule whose `since` is not over `version`.
const open::OpenOp* find_rule(std::string_view domain, std::string_view op, int64_t version);
// The first version of the op in `domain` that has a rule; 0: none has.
int first_version(std::string_view domain, std::string_view op);
// The newest version of a domain's operators that PyC knows the meaning of; nothing for a domain
// that it knows nothing of.
std::optional<int64_t> newest_opset(std::string_view domain);
// The rules by the names ops have in the text of open graphs: onnx.Relu, ai.onnx.ml.Scaler.
const open::OpenOps& open_ops();
// The operators of `domain` that have a rule, sorted.
std::vector<std::string_view> rule_names(std::string_view domain);
// The known op whose name is nearest, or "".
std::string_view suggest_op(std::string_view op);

// The families.
Rules elementwise_rules();
Rules microsoft_rules();
Rules norm_rules();
Rules product_rules();
Rules recurrent_rules();
Rules reduce_rules();
Rules resize_rules();
Rules shape_rules();
Rules window_rules();
Rules control_rules();
Rules dynamic_rules();
Rules sequence_rules();
Rules string_rules();
Rules ml_rules();
Rules linear_rules();
Rules tree_rules();
Rules training_rules();

// A string as a template argument.
template <size_t N>
struct Name {
  char text[N] = {};
  constexpr Name(const char (&from)[N]) {  // NOLINT: a literal is a name
    for (size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

// The inputs of an op some of whose optional ones may be left out: those that are there, and the
// names of the optional ones among them for the op's attribute `with`. `names` has blanks between.
struct Operands {
  std::vector<ValueId> inputs;
  std::string with;
};
Operands operands_of(CloseContext& c, size_t required, std::string_view names);
// What tells the random numbers of this node from those of others.
int64_t stream_of(CloseContext& c);

// Axes given as an attribute before opset `version` and as an input from then on; none: empty.
Ints axes_of(CloseContext& c, int version, size_t input);
// Counted from the front; refused when out of [-rank, rank).
int64_t axis_of(CloseContext& c, int64_t axis, int64_t rank);
// A float as an integer, towards 0; refused when it is none or too large to compute with.
int64_t int_of(CloseContext& c, double value);
// The dtype an attribute like `to` names by number; refused when PyC has none such.
DType dtype_attr(CloseContext& c, std::string_view name, DType fallback);

}  // namespace pyc::onnx

#pragma once

// Graph IR: a model as tensor operations in SSA form.
//
// A Graph has values and nodes. A value is a model input, a constant, or a result of exactly one
// node; it has a unique name and a type (dtype and shape, row-major, no holes). Nodes stand in
// topological order: a node reads only inputs, constants and results of earlier nodes. Outputs name
// values; a value may be named twice, and an input or a constant may be an output.
//
// Meaning. Every node computes its outputs from its inputs alone; nothing is modified in place and
// no value aliases another as far as a model can see. Arithmetic is by docs/NUMERICS.md: integers
// wrap; floats round to nearest even once per op; narrow floats (f16, bf16, fp8) are widened to f32
// and rounded once at every value; the order of every sum is fixed. NaNs of float outputs come out
// as the one canonical NaN. The order in which nodes run cannot change a result.
// Nothing in a graph names a device.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "ir/op_def.h"
#include "ir/types.h"

namespace pyc::ir {

using NodeId = uint32_t;
inline constexpr uint32_t kNoId = UINT32_MAX;

enum class ValueKind : uint8_t { kInput, kConstant, kResult };

struct Value {
  std::string name;  // without the %
  TensorType type;
  ValueKind kind = ValueKind::kResult;
  NodeId producer = kNoId;                    // kResult only
  std::shared_ptr<const ConstData> constant;  // kConstant only
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attrs attrs;      // complete: defaults are filled in
  std::string loc;  // where it came from, for messages: an ONNX node name, a text line
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;

  const Value& value(ValueId id) const { return values[id]; }
  const TensorType& type(ValueId id) const { return values[id].type; }
  // Null where no node makes it.
  const Node* producer(ValueId id) const {
    return values[id].kind == ValueKind::kResult ? &nodes[values[id].producer] : nullptr;
  }
};

// Makes valid graphs step by step; every call checks what it is given.
class GraphBuilder {
 public:
  explicit GraphBuilder(const OpSet& ops, std::string name = "main");
  // Goes on with a graph that verify_graph or parse accepted.
  GraphBuilder(const OpSet& ops, Graph graph);

  Result<ValueId> input(std::string name, TensorType type);
  Result<ValueId> constant(TensorType type, std::shared_ptr<const ConstData> data,
                           std::string name = "");
  Result<ValueId> scalar(DType dtype, double value);
  // One node; `name` names its first output ("" makes one up). Gives the first output; the
  // others follow it consecutively.
  Result<ValueId> op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {},
                     std::string name = "", std::string loc = "");
  Status output(ValueId value);

  const TensorType& type(ValueId id) const { return graph_.type(id); }
  const Graph& graph() const { return graph_; }
  Graph take() && { return std::move(graph_); }

 private:
  std::string fresh_name(std::string_view wanted);

  const OpSet& ops_;
  Graph graph_;
  std::unordered_map<std::string, ValueId, NameHash, std::equal_to<>> names_;
  int next_name_ = 0;
  StreamNumbers streams_;
};

// A graph that verify_graph accepted. Later stages take only this, so that nothing unverified can
// reach them.
class VerifiedGraph {
 public:
  const Graph& operator*() const { return *graph_; }
  const Graph* operator->() const { return graph_.get(); }

 private:
  friend Result<VerifiedGraph> verify_graph(Graph graph, const VerifiedGraph* before);
  explicit VerifiedGraph(std::shared_ptr<const Graph> g) : graph_(std::move(g)) {}
  std::shared_ptr<const Graph> graph_;
};

// Accepts a graph that keeps every rule above, or refuses it with kVerifyFailed (or the code of the
// op's type rule) and a message that starts with a reason in brackets, e.g. "[forward_reference]",
// and names the node. The data of constants that `before` shares is not looked at again.
Result<VerifiedGraph> verify_graph(Graph graph, const VerifiedGraph* before = nullptr);

// Text form: see docs/IR.md. print(parse(print(g))) == print(g).
std::string print(const Graph& graph);
// Refuses malformed text with kParseError, unknown ops with kUnknownOp and wrong inputs with the
// code of the op's type rule, always as "line:column: …"; types are inferred and compared with
// those written down. Takes memory in proportion to the text, plus at most `max_generated_bytes`
// for all splat and random constants together (more: kBudgetExceeded).
inline constexpr int64_t kMaxGeneratedBytes = int64_t{1} << 31;
Result<Graph> parse(std::string_view text, const OpSet& ops,
                    int64_t max_generated_bytes = kMaxGeneratedBytes);

// Covers everything that can change results: ops, attributes, types, edges, constants, the order
// and names of inputs and outputs; not the names of inner values.
Digest fingerprint(const Graph& graph);
// What the fingerprint is the hash of, constants by their own hash: equal keys mean equal graphs.
// For a cache to compare after its hashes agree.
std::string fingerprint_key(const Graph& graph);

}  // namespace pyc::ir

#pragma once

// What a rule sees: the Graph IR node it is for, and where it writes ONNX nodes and initializers.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/never_held.h"
#include "ir/graph.h"

namespace pyc::onnx::exporting {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;
// An attribute of an ONNX node.
using NodeAttr =
    std::variant<int64_t, float, std::string, Ints, std::vector<float>, Names, NeverHeld>;
using NodeAttrs = std::vector<std::pair<std::string, NodeAttr>>;

// TensorProto.DataType of a dtype.
int64_t onnx_type(DType t);

class Emitter {
 public:
  explicit Emitter(const ir::Graph& graph);

  // The graph's inputs, constants and outputs; nodes come in between. What the rule sees of the
  // node's inputs may be a conversion of them.
  void begin(const ir::Node& node);
  std::string finish();

  // The node.
  const ir::Node& node() const { return *node_; }
  size_t inputs() const { return node_->inputs.size(); }
  const ir::TensorType& in_type(size_t i) const { return in_[i].type; }
  const ir::TensorType& out_type(size_t i = 0) const { return graph_.type(node_->outputs[i]); }
  const std::string& in(size_t i) const { return in_[i].name; }
  const std::string& out(size_t i = 0) const { return graph_.value(node_->outputs[i]).name; }
  Names all_inputs() const;
  Names all_outputs() const;
  // The outputs that something reads; "" for the others, none at the end.
  Names read_outputs() const;
  // Required inputs, then those of `names` that the attribute `with` says are there, "" for the
  // others.
  Names optional_inputs(size_t required, std::string_view names) const;
  // The inputs as the op's OnnxNode has them.
  Names onnx_inputs() const;

  // Its attributes.
  template <class T>
  const T& attr(std::string_view name) const {
    return std::get<T>(node_->attrs.find(name)->second);
  }
  int64_t integer(std::string_view name) const { return attr<int64_t>(name); }
  double real(std::string_view name) const { return attr<double>(name); }
  bool flag(std::string_view name) const { return attr<bool>(name); }
  const std::string& text(std::string_view name) const { return attr<std::string>(name); }
  const Ints& ints(std::string_view name) const { return attr<Ints>(name); }
  DType dtype(std::string_view name) const { return attr<DType>(name); }
  // An axis attribute counted from the front.
  int64_t axis(std::string_view name, int64_t rank) const;
  // Those that `spec` names, as ONNX has them: "axis transA=trans_a" is axis as it is called, and
  // trans_a as transA. Empty lists and texts are left out.
  NodeAttrs attrs(std::string_view spec) const;

  // What is written. `emit` names the outputs of the Graph IR node, `make` makes one up.
  void emit(std::string_view op, const Names& inputs, const NodeAttrs& attrs = {});
  void write(std::string_view op, const Names& inputs, const Names& outputs,
             const NodeAttrs& attrs = {}, std::string_view domain = "");
  std::string make(std::string_view op, const Names& inputs, const NodeAttrs& attrs = {});
  std::string fresh();
  std::string int_list(const Ints& values);  // i64[n]
  std::string int_scalar(int64_t value);     // i64[]
  std::string scalar(DType t, double value);
  // f32[n], or `exact` f64[n] where an f32 cannot hold a value.
  std::string floats(const std::vector<double>& values, bool exact = false);
  std::string splat(const ir::TensorType& type, double value);
  // For what takes several ops: input i in the dtype that PyC computes in, and `emit` from there.
  std::string wide_in(size_t i);
  void emit_rounded(std::string_view op, const Names& inputs, const NodeAttrs& attrs = {});
  // x as another dtype, or itself.
  std::string cast(const std::string& x, DType from, DType to);

  // Notes that the model needs this opset of the domain at least.
  void need(int64_t opset, std::string_view domain = "");
  // Why this node cannot be exported.
  void refuse(std::string_view reason);
  const std::vector<std::string>& refused() const { return refused_; }

 private:
  void add_initializer(const std::string& name, const ir::TensorType& type,
                       std::span<const std::byte> bytes);
  void need_dtype(DType t);
  void add_value_info(int field, const std::string& name, const ir::TensorType& type);
  void add_outputs();

  struct Input {
    std::string name;
    ir::TensorType type;
  };

  const ir::Graph& graph_;
  const ir::Node* node_ = nullptr;
  std::vector<Input> in_;  // of the node
  std::set<std::string, std::less<>> names_;
  std::vector<bool> read_;                                           // by value
  std::map<std::string, int64_t, std::less<>> opsets_ = {{"", 21}};  // of each domain
  std::vector<std::string> refused_;
  int next_name_ = 0;
  int next_node_ = 0;
  std::string body_;  // of the GraphProto
};

}  // namespace pyc::onnx::exporting

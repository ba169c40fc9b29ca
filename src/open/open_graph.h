#pragma once

// Open graph: a model as it was written, before anything about shapes is known. Nodes may need the
// contents of their inputs to know what they give (Reshape), give values whose shape depends on
// data (NonZero), hold regions (If, Loop) and pass sequences, optionals and strings.
//
// An open graph is not compiled as it is. When the types of its inputs are known, its nodes are
// *closed*: each node's op builds plain Graph IR (open/close.h). Nodes that cannot be closed yet
// wait for the run to produce what they need; nodes that are no tensor computation run on the host.
// Values are in SSA form and nodes in topological order, as in a Graph. A region sees values of the
// graphs around it through `captures`.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"
#include "ir/types.h"

namespace pyc::ir {
struct OpDef;
}

namespace pyc::open {

struct OpenGraph;
class CloseContext;
class HostCall;

using OpenId = uint32_t;
inline constexpr OpenId kAbsentId = UINT32_MAX;

// What the model says about a value; nothing of it need be known.
struct OpenType {
  enum class Kind : uint8_t { kUnknown, kTensor, kStrings, kSequence, kOptional };
  struct Dim {
    int64_t value = -1;  // -1: not fixed
    std::string symbol;  // of a dim that is not fixed; may be empty
  };
  Kind kind = Kind::kUnknown;
  std::optional<DType> dtype;               // kTensor
  std::optional<std::vector<Dim>> shape;    // kTensor, kStrings
  std::shared_ptr<const OpenType> element;  // kSequence, kOptional

  std::string to_string() const;  // "f32[N,3]", "sequence(f32[?])"
  // Whether this is a tensor with every dim fixed.
  bool is_static() const;
};

using OpenAttr =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, DynValue, std::shared_ptr<const OpenGraph>, OpenType>;
using OpenAttrs = std::map<std::string, OpenAttr, std::less<>>;

// One of the first two meanings is there, or both: then `close` is tried first.
struct OpenOp {
  std::string name;  // "onnx.Reshape"
  // Builds the node out of Graph IR ops, all input types being known.
  Status (*close)(CloseContext& context) = nullptr;
  // Computes the node's outputs on the host.
  Status (*host)(HostCall& call) = nullptr;
  // It draws random numbers, which differ between implementations.
  bool random = false;
  // The host meaning when an input is a complex tensor; null: it takes none.
  Status (*complex)(HostCall& call) = nullptr;
  // Ahead of any run, of an op with regions: inputs have types and no contents. Calls run_region
  // for each that a run may enter, with the types it would give it, and sets the outputs whose
  // types follow. Null: what the host gives is not known before it runs.
  Status (*foresee)(HostCall& call) = nullptr;
  // The op of Graph IR that `close` makes one node of, where it is the same for many ops.
  const ir::OpDef* same = nullptr;
};

struct OpenNode {
  const OpenOp* op = nullptr;
  std::string name;             // as messages call it
  int version = 0;              // of the op's set
  std::vector<OpenId> inputs;   // kAbsentId: left out
  std::vector<OpenId> outputs;  // kAbsentId: not wanted
  OpenAttrs attrs;
};

struct OpenValue {
  std::string name;
  OpenType type;
  std::optional<DynValue> constant;
};

struct OpenGraph {
  std::string name;
  std::vector<OpenValue> values;
  std::vector<OpenNode> nodes;
  std::vector<OpenId> inputs;
  std::vector<OpenId> outputs;
  struct Capture {
    OpenId outer;  // a value of the graph whose node holds this region
    OpenId inner;
  };
  std::vector<Capture> captures;
};

// Whether `value` may be what the model declares: kDtypeMismatch, kRankMismatch, kShapeMismatch
// with the value's name, what was expected and found.
Status check_accepts(const OpenValue& declared, const DynValue& value);

// The sizes that dims with a name turned out to have. Exporters write "None" and "?" for dims
// without a name: these are not the same dim everywhere.
class SymbolSizes {
 public:
  // `where` is what messages call the one who chose it.
  void set(const std::string& symbol, int64_t size, const std::string& where);
  // The sizes that the dims of `value` give to those of `declared`, whose rank is known to fit.
  // kShapeMismatch, with both places named, when a dim has another size already.
  Status take(const OpenValue& declared, const DynValue& value);
  std::optional<int64_t> find(const std::string& symbol) const;

 private:
  struct Size {
    int64_t size;
    std::string where;
  };
  std::map<std::string, Size> sizes_;
};

// The regions among a node's attributes, in the order of their names.
std::vector<const OpenGraph*> regions_of(const OpenNode& node);
// Everything a node reads: its inputs, then what its regions capture. No absent ones.
std::vector<OpenId> reads_of(const OpenNode& node);

// A host function's view of its node.
class HostCall {
 public:
  virtual ~HostCall() = default;
  virtual const OpenNode& node() const = 0;
  size_t inputs() const { return node().inputs.size(); }
  // kAbsent when it was left out.
  virtual const DynValue& input(size_t i) const = 0;
  bool has(size_t i) const { return i < inputs() && !input(i).absent(); }
  virtual void set_output(size_t i, DynValue value) = 0;
  // Runs the region held by the attribute on these inputs.
  virtual Result<std::vector<DynValue>> run_region(std::string_view attr,
                                                   std::vector<DynValue> inputs) = 0;
  // Runs the node itself on other inputs, which its op must be able to close. As many outputs as
  // the node has, nothing for those not wanted.
  virtual Result<std::vector<DynValue>> run_node(std::vector<DynValue> inputs) = 0;

  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  // Null when the attribute is absent or of another kind.
  template <class T>
  const T* attr(std::string_view name) const {
    const auto it = node().attrs.find(name);
    return it == node().attrs.end() ? nullptr : std::get_if<T>(&it->second);
  }
};

}  // namespace pyc::open

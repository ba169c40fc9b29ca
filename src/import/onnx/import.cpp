#include "import/onnx/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/mapped_file.h"
#include "import/onnx/differentiated.h"
#include "import/onnx/proto.h"
#include "import/onnx/rules.h"
#include "import/onnx/tensor.h"
#include "ir/rules.h"

namespace pyc::onnx {
namespace {

using open::kAbsentId;
using open::OpenGraph;
using open::OpenId;

constexpr int kMaxFunctionDepth = 32;
constexpr int kMaxRegionDepth = 64;
constexpr int64_t kMaxOpset = 1 << 20;
constexpr size_t kMaxNodes = size_t{1} << 20;  // after functions are written out

using Opsets = std::map<std::string, int64_t, std::less<>>;

Result<Opsets> opsets_of(std::span<const OpsetId> list) {
  Opsets opsets;
  for (const OpsetId& o : list) {
    if (o.version < 1 || o.version > kMaxOpset) {
      return Status(Code::kVerifyFailed,
                    fmt::format("opset {} of domain '{}' does not exist", o.version, o.domain));
    }
    const std::string domain(o.domain == "ai.onnx" ? "" : o.domain);
    const auto [it, fresh] = opsets.emplace(domain, o.version);
    if (!fresh && it->second != o.version) {
      return Status(Code::kVerifyFailed,
                    fmt::format("domain '{}' is imported in two versions", o.domain));
    }
  }
  return opsets;
}

// What a version after the newest known means by its names cannot be known. Versions that a model
// lists and does not use are no matter.
Status check_opset(std::string_view domain, int64_t version) {
  const std::optional<int64_t> newest = newest_opset(domain);
  if (!newest || version <= *newest) return {};
  return {Code::kUnsupported,
          fmt::format("opset {} of domain {} is newer than the newest known, {}: export the model "
                      "with that or an older one",
                      version, domain.empty() ? "ai.onnx" : domain, *newest)};
}

// Names as one graph or function body sees them.
struct Scope {
  OpenGraph* graph = nullptr;
  Scope* outer = nullptr;  // of the graph around a region; null in a function body
  const Opsets* opsets = nullptr;
  std::unordered_map<std::string_view, OpenId> names = {};
  // Attributes given to the function being written out.
  const std::map<std::string_view, const AttributeProto*>* given = nullptr;
  int depth = 0;    // of functions in functions
  int regions = 0;  // around it
};

class Importer {
 public:
  Importer(const ModelProto& model, Source source) : model_(model), source_(std::move(source)) {
    source_.files = &files_;
  }

  Result<std::shared_ptr<const OpenGraph>> run();
  ModelInfo& info() { return info_; }

 private:
  Status describe_model();
  Status list_functions();
  Status charge(size_t bytes);
  Result<OpenId> new_value(OpenGraph& graph, std::string_view name);
  Status fill(const GraphProto& proto, Scope& scope, bool main);
  Status add_constants(const GraphProto& proto, Scope& scope);
  Status add_inputs(const GraphProto& proto, Scope& scope, bool main);
  Status add_node(const NodeProto& node, Scope& scope);
  Status add_op(const NodeProto& node, Scope& scope);
  Status add_differentiated(const NodeProto& node, open::OpenNode& made, Scope& scope);
  Status charge_copy(const open::OpenNode& node);
  Status add_unsupported(const NodeProto& node, const std::string& name, int64_t opset);
  Status add_constant(const NodeProto& node, Scope& scope);
  Status add_function(const NodeProto& node, const FunctionProto& function, Scope& scope);
  Result<open::OpenAttr> convert(const AttributeProto& attr, Scope& scope);
  Result<OpenId> define(Scope& scope, std::string_view name);
  Result<OpenId> find(Scope& scope, std::string_view name);
  Result<std::vector<OpenId>> read(Scope& scope, std::span<const std::string_view> names,
                                   const std::string& who);
  const FunctionProto* function_of(const NodeProto& node) const;
  std::string describe(const NodeProto& node) const;
  // For nodes that draw random numbers by their name, which a function called twice repeats: with
  // its count from the second on.
  std::string own_name(std::string name);

  const ModelProto& model_;
  Source source_;
  ExternalFiles files_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*>
      functions_;  // by domain, name and overload
  Opsets opsets_;
  std::vector<Opsets> function_opsets_;
  ModelInfo info_;
  std::map<std::string, std::string, std::less<>> nearest_;  // by op without a rule
  std::map<std::string, int> drawing_;                       // how many nodes that draw have a name
  size_t nodes_ = 0;
};

Status Importer::charge(size_t bytes) {
  if (source_.budget == nullptr || source_.budget->take(bytes)) return {};
  return {Code::kBudgetExceeded, "the model takes too much memory for the size of its file"};
}

Result<OpenId> Importer::new_value(OpenGraph& graph, std::string_view name) {
  // Lists grow by doubling; the name is known by a map too.
  PYC_TRY(charge(2 * sizeof(open::OpenValue) + name.size() + 64));
  graph.values.push_back({.name = std::string(name), .type = {}, .constant = std::nullopt});
  return static_cast<OpenId>(graph.values.size() - 1);
}

template <class T>
DynValue number_tensor(DType dtype, Shape shape, std::span<const T> values) {
  std::vector<std::byte> bytes(values.size_bytes());
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes.size(), bytes.data());
  DynValue v;
  v.kind = DynValue::Kind::kTensor;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.bytes = std::move(bytes);
  return v;
}

// The value of a Constant node's attribute: value, value_int, value_floats, …
Result<DynValue> constant_value(const open::OpenAttr& attr) {
  if (const auto* t = std::get_if<DynValue>(&attr)) return *t;
  if (const auto* i = std::get_if<int64_t>(&attr)) return DynValue::of_int(*i);
  if (const auto* is = std::get_if<std::vector<int64_t>>(&attr)) return DynValue::of_ints(*is);
  if (const auto* f = std::get_if<double>(&attr)) {
    const auto value = static_cast<float>(*f);
    return number_tensor<float>(DType::kF32, {}, std::span(&value, 1));
  }
  if (const auto* fs = std::get_if<std::vector<double>>(&attr)) {
    const std::vector<float> values(fs->begin(), fs->end());
    return number_tensor<float>(DType::kF32, {static_cast<int64_t>(values.size())}, values);
  }
  if (const auto* s = std::get_if<std::string>(&attr)) return DynValue::of_strings({}, {*s});
  if (const auto* ss = std::get_if<std::vector<std::string>>(&attr)) {
    return DynValue::of_strings({static_cast<int64_t>(ss->size())}, *ss);
  }
  return Status(Code::kUnsupported, "a constant of this kind is not supported");
}

bool is_gradient(const NodeProto& node) {
  return node.op == "Gradient" && node.domain == "ai.onnx.preview.training";
}

// What a node and the graphs inside of it read by name.
void collect_reads(const NodeProto& node, std::vector<std::string_view>& reads) {
  reads.insert(reads.end(), node.inputs.begin(), node.inputs.end());
  for (const AttributeProto& a : node.attributes) {
    if (is_gradient(node) && a.name == "y") reads.push_back(a.s);
    for (const GraphProto& g : a.g) {
      for (const NodeProto& inner : g.nodes) collect_reads(inner, reads);
      for (const ValueInfo& output : g.outputs) reads.push_back(output.name);
    }
  }
}

// The nodes, each after those it reads from. The standard asks for that order, exporters do not
// always keep it; nodes that need not move stay. Refuses circles.
Result<std::vector<const NodeProto*>> sorted_nodes(const GraphProto& graph) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::string_view name : graph.nodes[n].outputs) producer.emplace(name, n);
  }
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(graph.nodes.size(), Mark::kNew);
  std::vector<const NodeProto*> order;
  struct Visit {
    size_t node;
    std::vector<std::string_view> reads;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  const auto open = [&](size_t n) {
    marks[n] = Mark::kOpen;
    stack.push_back({n, {}});
    collect_reads(graph.nodes[n], stack.back().reads);
  };
  for (size_t start = 0; start < graph.nodes.size(); ++start) {
    if (marks[start] == Mark::kNew) open(start);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      if (visit.next == visit.reads.size()) {
        marks[visit.node] = Mark::kDone;
        order.push_back(&graph.nodes[visit.node]);
        stack.pop_back();
        continue;
      }
      const auto it = producer.find(visit.reads[visit.next++]);
      if (it == producer.end() || marks[it->second] == Mark::kDone) continue;
      if (it->second == visit.node || marks[it->second] == Mark::kOpen) {
        // A region may define a name of its own that a later node has, too.
        if (it->second == visit.node && !graph.nodes[visit.node].attributes.empty()) continue;
        return Status(
            Code::kVerifyFailed,
            fmt::format("node '{}' needs value '{}' of node '{}', which needs it in turn",
                        graph.nodes[visit.node].name, it->first, graph.nodes[it->second].name));
      }
      open(it->second);
    }
  }
  return order;
}

std::string Importer::describe(const NodeProto& node) const {
  const std::string name = !node.name.empty()      ? std::string(node.name)
                           : !node.outputs.empty() ? fmt::format("→{}", node.outputs[0])
                                                   : fmt::format("#{}", nodes_);
  return fmt::format("node '{}' ({}{}{})", name, node.domain, node.domain.empty() ? "" : ".",
                     node.op);
}

Result<OpenId> Importer::define(Scope& scope, std::string_view name) {
  if (scope.names.contains(name)) {
    return Status(Code::kVerifyFailed, fmt::format("value '{}' is defined twice", name));
  }
  PYC_ASSIGN(const OpenId id, new_value(*scope.graph, name));
  scope.names.emplace(name, id);
  return id;
}

// The value called `name`, captured from a graph around this one if need be; kAbsentId: there is
// none.
Result<OpenId> Importer::find(Scope& scope, std::string_view name) {
  const auto it = scope.names.find(name);
  if (it != scope.names.end()) return it->second;
  if (scope.outer == nullptr) return kAbsentId;
  PYC_ASSIGN(const OpenId outer, find(*scope.outer, name));
  if (outer == kAbsentId) return kAbsentId;
  PYC_ASSIGN(const OpenId inner, new_value(*scope.graph, name));
  scope.graph->values[inner].constant = scope.outer->graph->values[outer].constant;
  if (!scope.graph->values[inner].constant) scope.graph->captures.push_back({outer, inner});
  scope.names.emplace(name, inner);
  return inner;
}

Result<std::vector<OpenId>> Importer::read(Scope& scope, std::span<const std::string_view> names,
                                           const std::string& who) {
  std::vector<OpenId> ids;
  for (const std::string_view name : names) {
    ids.push_back(kAbsentId);
    if (!name.empty()) {
      auto id = find(scope, name);
      if (!id.ok()) return std::move(id).status().with_context(who);
      ids.back() = *id;
    }
    if (!name.empty() && ids.back() == kAbsentId && !scope.names.contains(name)) {
      return Status(Code::kVerifyFailed,
                    fmt::format("{} reads '{}', which nothing before it defines", who, name));
    }
  }
  return ids;
}

Status Importer::add_constants(const GraphProto& proto, Scope& scope) {
  for (const TensorProto& t : proto.initializers) {
    if (t.name.empty()) return {Code::kVerifyFailed, "an initializer has no name"};
    PYC_ASSIGN(const OpenId id, define(scope, t.name));
    PYC_ASSIGN(DynValue value, decode_tensor(t, source_));
    info_.parameter_bytes += static_cast<int64_t>(value.bytes.size());
    scope.graph->values[id].constant = std::move(value);
  }
  for (const SparseTensorProto& s : proto.sparse_initializers) {
    PYC_ASSIGN(const OpenId id, define(scope, s.values.name));
    PYC_ASSIGN(DynValue value, decode_sparse(s, source_));
    scope.graph->values[id].constant = std::move(value);
  }
  return {};
}

Status Importer::add_inputs(const GraphProto& proto, Scope& scope, bool main) {
  for (const ValueInfo& input : proto.inputs) {
    if (input.name.empty()) return {Code::kVerifyFailed, "a graph input has no name"};
    const auto it = scope.names.find(input.name);
    if (it != scope.names.end()) {
      // Old models list their initializers as inputs.
      open::OpenValue declared{.name = std::string(input.name), .type = {}, .constant = {}};
      const auto& constant = scope.graph->values[it->second].constant;
      if (main && constant) {
        PYC_ASSIGN(declared.type, decode_type(input.type));
        PYC_TRY(open::check_accepts(declared, *constant));
        continue;
      }
      return {Code::kVerifyFailed, fmt::format("input '{}' is defined twice", input.name)};
    }
    PYC_ASSIGN(const OpenId id, define(scope, input.name));
    auto type = decode_type(input.type);
    if (!type.ok())
      return std::move(type).status().with_context(fmt::format("input '{}'", input.name));
    scope.graph->values[id].type = std::move(*type);
    scope.graph->inputs.push_back(id);
  }
  return {};
}

Status Importer::fill(const GraphProto& proto, Scope& scope, bool main) {
  scope.graph->name = std::string(proto.name);
  PYC_TRY(add_constants(proto, scope));
  PYC_TRY(add_inputs(proto, scope, main));
  PYC_ASSIGN(const std::vector<const NodeProto*> nodes, sorted_nodes(proto));
  for (const NodeProto* node : nodes) PYC_TRY(add_node(*node, scope));
  for (const ValueInfo& output : proto.outputs) {
    PYC_ASSIGN(const OpenId id, find(scope, output.name));
    if (id == kAbsentId) {
      return {Code::kVerifyFailed, fmt::format("output '{}' is never computed", output.name)};
    }
    auto type = decode_type(output.type);
    // What PyC has no type for may still be computed.
    if (!type.ok() && type.status().code() != Code::kUnsupported) {
      return std::move(type).status().with_context(fmt::format("output '{}'", output.name));
    }
    open::OpenType& known = scope.graph->values[id].type;
    const bool wanted = main || known.kind == open::OpenType::Kind::kUnknown;
    if (wanted && type.ok()) known = std::move(*type);
    scope.graph->outputs.push_back(id);
  }
  return {};
}

const FunctionProto* Importer::function_of(const NodeProto& node) const {
  const auto it = functions_.find({node.domain, node.op, node.overload});
  return it == functions_.end() ? nullptr : it->second;
}

Status Importer::list_functions() {
  for (const FunctionProto& f : model_.functions) {
    auto opsets = opsets_of(f.opsets);
    if (!opsets.ok()) {
      return std::move(opsets).status().with_context(fmt::format("function '{}'", f.name));
    }
    function_opsets_.push_back(std::move(*opsets));
    if (!functions_.emplace(std::tuple(f.domain, f.name, f.overload), &f).second) {
      return {Code::kVerifyFailed, fmt::format("function '{}' is defined twice", f.name)};
    }
  }
  return {};
}

Result<open::OpenAttr> Importer::convert(const AttributeProto& a, Scope& scope) {
  enum : int32_t { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings };
  constexpr int32_t kSparse = 11;
  constexpr int32_t kType = 13;
  int32_t type = a.type;
  if (type == 0) {  // files of IR version 1 do not say
    type = !a.t.empty()         ? kTensor
           : !a.g.empty()       ? kGraph
           : !a.floats.empty()  ? kFloats
           : !a.ints.empty()    ? kInts
           : !a.strings.empty() ? kStrings
           : !a.s.empty()       ? kString
           : a.f != 0           ? kFloat
                                : kInt;
  }
  PYC_TRY(charge(2 * sizeof(open::OpenAttr) + a.s.size() + 8 * a.floats.size() + 8 * a.ints.size() +
                 64 * a.strings.size()));
  if (type == kFloat) return open::OpenAttr(static_cast<double>(a.f));
  if (type == kInt) return open::OpenAttr(a.i);
  if (type == kString) return open::OpenAttr(std::string(a.s));
  if (type == kFloats) return open::OpenAttr(std::vector<double>(a.floats.begin(), a.floats.end()));
  if (type == kInts) return open::OpenAttr(a.ints);
  if (type == kStrings) {
    return open::OpenAttr(std::vector<std::string>(a.strings.begin(), a.strings.end()));
  }
  if (type == kTensor && a.t.size() == 1) {
    PYC_ASSIGN(DynValue value, decode_tensor(a.t[0], source_));
    return open::OpenAttr(std::move(value));
  }
  if (type == kSparse && a.sparse.size() == 1) {
    PYC_ASSIGN(DynValue value, decode_sparse(a.sparse[0], source_));
    return open::OpenAttr(std::move(value));
  }
  if (type == kType && a.tp.size() == 1) {
    PYC_ASSIGN(open::OpenType value, decode_type(a.tp[0]));
    return open::OpenAttr(std::move(value));
  }
  if (type == kGraph && a.g.size() == 1) {
    if (scope.regions >= kMaxRegionDepth) {
      return Status(Code::kVerifyFailed, "regions nest too deep");
    }
    auto region = std::make_shared<OpenGraph>();
    Scope inner{.graph = region.get(),
                .outer = &scope,
                .opsets = scope.opsets,
                .given = scope.given,
                .depth = scope.depth,
                .regions = scope.regions + 1};
    PYC_TRY(fill(a.g[0], inner, false));
    return open::OpenAttr(std::shared_ptr<const OpenGraph>(std::move(region)));
  }
  return Status(Code::kUnsupported,
                fmt::format("attribute '{}' has a kind ({}) that is not supported", a.name, type));
}

// A Constant node is a constant value and no node.
Status Importer::add_constant(const NodeProto& node, Scope& scope) {
  if (node.attributes.size() != 1 || node.outputs.size() != 1) {
    return {Code::kVerifyFailed,
            fmt::format("{}: expected one attribute and one output", describe(node))};
  }
  const AttributeProto* a = node.attributes.data();
  if (!a->ref.empty()) {
    if (scope.given == nullptr || !scope.given->contains(a->ref)) {
      return {Code::kVerifyFailed,
              fmt::format("{}: attribute '{}' has no value here", describe(node), a->ref)};
    }
    a = scope.given->at(a->ref);
  }
  const auto attr = convert(*a, scope);
  if (!attr.ok()) return Status(attr.status()).with_context(describe(node));
  auto value = constant_value(*attr);
  if (!value.ok()) return std::move(value).status().with_context(describe(node));
  const auto known = scope.names.find(node.outputs[0]);
  if (known != scope.names.end() && known->second != kAbsentId &&
      scope.graph->values[known->second].constant) {
    // Edited models write a constant down twice; the last is the one, as for other runtimes.
    scope.graph->values[known->second].constant = std::move(*value);
    return {};
  }
  const auto id = define(scope, node.outputs[0]);
  if (!id.ok()) return Status(id.status()).with_context(describe(node));
  scope.graph->values[*id].constant = std::move(*value);
  return {};
}

Status Importer::add_unsupported(const NodeProto& node, const std::string& name, int64_t opset) {
  const std::string op(node.op);
  const auto [it, fresh] = nearest_.try_emplace(op);
  if (fresh) it->second = std::string(suggest_op(op));
  UnsupportedNode made{.name = name,
                       .op = op,
                       .domain = std::string(node.domain),
                       .opset = opset,
                       .nearest = it->second,
                       .since = first_version(node.domain, node.op)};
  // It is kept here and once more in the message.
  PYC_TRY(charge(2 * sizeof(UnsupportedNode) + 3 * made.to_string().size()));
  info_.unsupported.push_back(std::move(made));
  return {};
}

std::string Importer::own_name(std::string name) {
  const int count = ++drawing_[name];
  return count == 1 ? name : fmt::format("{}#{}", name, count);
}

// What a node and its regions hold.
struct Extent {
  size_t nodes = 0;
  size_t values = 0;
  int depth = 0;  // of regions in regions
};
void add_extent(const open::OpenNode& node, int depth, Extent& extent) {
  ++extent.nodes;
  extent.values += node.inputs.size() + node.outputs.size();
  extent.depth = std::max(extent.depth, depth);
  for (const OpenGraph* region : open::regions_of(node)) {
    for (const open::OpenNode& inner : region->nodes) add_extent(inner, depth + 1, extent);
  }
}

// A Gradient copies nodes: they count as if they stood in the file, those in regions too, which are
// written out once more when it is closed.
Status Importer::charge_copy(const open::OpenNode& node) {
  Extent extent;
  add_extent(node, 1, extent);
  if (extent.depth > kMaxRegionDepth) return {Code::kVerifyFailed, "regions nest too deep"};
  nodes_ += extent.nodes;
  if (nodes_ > kMaxNodes) {
    return {Code::kBudgetExceeded, fmt::format("the model has more than {} nodes", kMaxNodes)};
  }
  return charge(2 *
                (extent.nodes * sizeof(open::OpenNode) + extent.values * sizeof(open::OpenValue)));
}

// What a Gradient differentiates, which its attributes name, becomes a region of the node.
Status Importer::add_differentiated(const NodeProto& node, open::OpenNode& made, Scope& scope) {
  std::vector<OpenId> given;
  for (const std::string_view list : {"xs", "zs"}) {
    const auto it = made.attrs.find(list);
    if (it == made.attrs.end()) continue;
    const auto* names = std::get_if<std::vector<std::string>>(&it->second);
    if (names == nullptr) {
      return {Code::kVerifyFailed,
              fmt::format("{}: attribute '{}' must be names", describe(node), list)};
    }
    const std::vector<std::string_view> views(names->begin(), names->end());
    PYC_ASSIGN(const std::vector<OpenId> ids, read(scope, views, describe(node)));
    given.insert(given.end(), ids.begin(), ids.end());
  }
  const auto it = made.attrs.find("y");
  const auto* y = it == made.attrs.end() ? nullptr : std::get_if<std::string>(&it->second);
  if (y == nullptr || y->empty() || !made.attrs.contains("xs")) {
    return {Code::kVerifyFailed, fmt::format("{}: attributes 'xs' and 'y' are needed, which name "
                                             "tensors",
                                             describe(node))};
  }
  const std::string_view name = *y;
  PYC_ASSIGN(const std::vector<OpenId> target, read(scope, std::span(&name, 1), describe(node)));
  if (given.size() != made.inputs.size() || std::ranges::count(given, kAbsentId) > 0) {
    return {Code::kVerifyFailed,
            fmt::format("{}: expected an input for each of the {} tensors in xs and zs, found {}",
                        describe(node), given.size(), made.inputs.size())};
  }
  const auto charged = [&](const open::OpenNode& copied) { return charge_copy(copied); };
  PYC_ASSIGN(std::shared_ptr<const OpenGraph> body,
             differentiated_region(*scope.graph, given, target[0], charged));
  made.attrs.insert_or_assign("body", std::move(body));
  return {};
}

Status Importer::add_op(const NodeProto& node, Scope& scope) {
  ++info_.ops[std::string(node.op)];
  const std::string domain(node.domain == "ai.onnx" ? "" : node.domain);
  const auto opset = scope.opsets->find(domain);
  if (opset == scope.opsets->end()) {
    return {Code::kVerifyFailed,
            fmt::format("{}: the model imports no opset for domain '{}'", describe(node), domain)};
  }
  PYC_TRY(check_opset(domain, opset->second));
  if (domain.empty() && node.op == "Constant") return add_constant(node, scope);
  const open::OpenOp* rule = find_rule(domain, node.op, opset->second);
  open::OpenNode made;
  made.op = rule;
  made.name = !node.name.empty()      ? std::string(node.name)
              : !node.outputs.empty() ? std::string(node.outputs[0])
                                      : fmt::format("#{}", nodes_);
  made.version = static_cast<int>(opset->second);
  if (rule == nullptr) {
    PYC_TRY(add_unsupported(node, made.name, opset->second));
  } else {
    info_.draws_numbers = info_.draws_numbers || rule->random;
    if (rule->random) made.name = own_name(std::move(made.name));
  }
  PYC_ASSIGN(made.inputs, read(scope, node.inputs, describe(node)));
  for (const AttributeProto& a : node.attributes) {
    const AttributeProto* source = &a;
    if (!a.ref.empty()) {
      if (scope.given == nullptr) {
        return {Code::kVerifyFailed, fmt::format("{}: attribute '{}' refers to '{}' outside of a "
                                                 "function",
                                                 describe(node), a.name, a.ref)};
      }
      const auto it = scope.given->find(a.ref);
      if (it == scope.given->end()) continue;  // the function was called without it
      source = it->second;
    }
    auto value = convert(*source, scope);
    if (!value.ok()) return std::move(value).status().with_context(describe(node));
    const auto* tensor = std::get_if<DynValue>(&*value);
    if (tensor != nullptr && tensor->is_tensor() && is_complex(tensor->dtype)) {
      return {Code::kUnsupported, fmt::format("{}: attribute '{}': expected real numbers, found {}",
                                              describe(node), a.name, tensor->to_string())};
    }
    if (!made.attrs.emplace(std::string(a.name), std::move(*value)).second) {
      return {Code::kVerifyFailed,
              fmt::format("{}: attribute '{}' is given twice", describe(node), a.name)};
    }
  }
  if (is_gradient(node)) PYC_TRY(add_differentiated(node, made, scope));
  for (const std::string_view name : node.outputs) {
    if (name.empty()) {
      made.outputs.push_back(kAbsentId);
      continue;
    }
    auto id = define(scope, name);
    if (!id.ok()) return std::move(id).status().with_context(describe(node));
    made.outputs.push_back(*id);
  }
  scope.graph->nodes.push_back(std::move(made));
  return {};
}

// Writes a function's body out in place of the node that calls it.
Status Importer::add_function(const NodeProto& node, const FunctionProto& function, Scope& scope) {
  if (scope.depth >= kMaxFunctionDepth) {
    return {Code::kVerifyFailed, fmt::format("{}: functions call one another more than {} deep",
                                             describe(node), kMaxFunctionDepth)};
  }
  std::map<std::string_view, const AttributeProto*> given;
  for (const AttributeProto& a : function.defaults) given[a.name] = &a;
  for (const AttributeProto& a : node.attributes) {
    const AttributeProto* source = &a;
    if (!a.ref.empty() && scope.given != nullptr) {
      const auto it = scope.given->find(a.ref);
      if (it == scope.given->end()) continue;
      source = it->second;
    }
    given[a.name] = source;
  }
  const auto position = static_cast<size_t>(&function - model_.functions.data());
  Scope body{.graph = scope.graph,
             .outer = nullptr,
             .opsets = &function_opsets_[position],
             .given = &given,
             .depth = scope.depth + 1,
             .regions = scope.regions};
  PYC_ASSIGN(const std::vector<OpenId> inputs, read(scope, node.inputs, describe(node)));
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    // An input that was left out reads as absent.
    body.names[function.inputs[i]] = i < inputs.size() ? inputs[i] : kAbsentId;
  }
  for (const NodeProto& inner : function.nodes) {
    Status status = add_node(inner, body);
    if (!status.ok()) return std::move(status).with_context(describe(node));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    OpenId id = kAbsentId;
    if (i < function.outputs.size()) {
      PYC_ASSIGN(id, find(body, function.outputs[i]));
    }
    if (id == kAbsentId) {
      return {Code::kVerifyFailed,
              fmt::format("{}: the function returns no output {}", describe(node), i)};
    }
    if (!scope.names.emplace(node.outputs[i], id).second) {
      return {Code::kVerifyFailed,
              fmt::format("{}: value '{}' is defined twice", describe(node), node.outputs[i])};
    }
  }
  return {};
}

Status Importer::add_node(const NodeProto& node, Scope& scope) {
  if (++nodes_ > kMaxNodes) {
    return {Code::kBudgetExceeded, fmt::format("the model has more than {} nodes", kMaxNodes)};
  }
  Status affordable = charge(2 * sizeof(open::OpenNode) + node.name.size() +
                             sizeof(OpenId) * (node.inputs.size() + node.outputs.size()));
  if (!affordable.ok()) return std::move(affordable).with_context(describe(node));
  if (const FunctionProto* f = function_of(node)) return add_function(node, *f, scope);
  return add_op(node, scope);
}

Status Importer::describe_model() {
  info_.ir_version = model_.ir_version;
  info_.producer = model_.producer;
  info_.domain = model_.domain;
  info_.version = model_.version;
  info_.graph_name = model_.graph.name;
  info_.description = model_.description;
  for (const MetadataEntry& entry : model_.metadata) {
    PYC_TRY(charge(2 * sizeof(info_.metadata[0]) + entry.key.size() + entry.value.size()));
    info_.metadata.emplace_back(entry.key, entry.value);
  }
  return {};
}

Result<std::shared_ptr<const OpenGraph>> Importer::run() {
  PYC_TRY(describe_model());
  PYC_ASSIGN(opsets_, opsets_of(model_.opsets));
  for (const auto& [domain, version] : opsets_) info_.opsets[domain] = version;
  if (!model_.has_graph) return Status(Code::kParseError, "there is no graph in the file");
  if (opsets_.empty()) {
    return Status(Code::kVerifyFailed,
                  "the model imports no opset: it cannot be known what its ops "
                  "mean");
  }
  PYC_TRY(list_functions());
  auto graph = std::make_shared<OpenGraph>();
  Scope scope{.graph = graph.get(), .outer = nullptr, .opsets = &opsets_};
  PYC_TRY(fill(model_.graph, scope, true));
  return std::shared_ptr<const OpenGraph>(std::move(graph));
}

}  // namespace

std::string UnsupportedNode::operator_name() const {
  return fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", op);
}

std::string UnsupportedNode::to_string() const {
  if (since > 0) {
    return fmt::format("operator {} is known from opset {} on, the model imports {}",
                       operator_name(), since, opset);
  }
  return fmt::format("unknown operator {} (opset {}){}", operator_name(), opset,
                     ir::did_you_mean(nearest));
}

Result<Imported> read_model(SharedBytes bytes, const std::string& folder, bool external_allowed) {
  MemoryBudget budget(bytes.size());
  PYC_ASSIGN(const ModelProto model, parse_model(bytes, budget));
  Importer importer(model, {.file = std::move(bytes),
                            .folder = folder,
                            .external_allowed = external_allowed,
                            .budget = &budget});
  PYC_ASSIGN(std::shared_ptr<const OpenGraph> graph, importer.run());
  return Imported{std::move(graph), std::move(importer.info())};
}

Status check_supported(const ModelInfo& info) {
  if (info.unsupported.empty()) return {};
  constexpr size_t kShownNodes = 64;
  std::vector<const UnsupportedNode*> first;  // of each operator, in the order of the file
  std::map<std::string, std::vector<std::string_view>> nodes;
  for (const UnsupportedNode& node : info.unsupported) {
    auto& names = nodes[node.to_string()];
    if (names.empty()) first.push_back(&node);
    names.push_back(node.name);
  }
  std::string text;
  for (const UnsupportedNode* op : first) {
    const auto& names = nodes[op->to_string()];
    const auto shown = std::span(names).first(std::min(names.size(), kShownNodes));
    text += fmt::format("{}{}: node{} '{}'", text.empty() ? "" : "; ", op->to_string(),
                        names.size() == 1 ? "" : "s", fmt::join(shown, "', '"));
    if (names.size() > shown.size())
      text += fmt::format(" and {} more", names.size() - shown.size());
  }
  return Status(Code::kUnknownOp, std::move(text)).with_node(info.unsupported[0].name);
}

Result<Imported> import_model(SharedBytes bytes, const std::string& folder, bool external_allowed) {
  PYC_ASSIGN(Imported imported, read_model(std::move(bytes), folder, external_allowed));
  PYC_TRY(check_supported(imported.info));
  return imported;
}

Result<Imported> import_file(const std::string& path) {
  PYC_ASSIGN(SharedBytes bytes, map_file(path));
  return import_model(std::move(bytes), folder_of(path));
}

}  // namespace pyc::onnx

#include "tooling/reduce.h"

#include <algorithm>
#include <map>
#include <set>

#include "tooling/tables.h"

namespace pyc::tooling {
namespace {

using ir::Graph;
using ir::NodeId;
using ir::TensorType;
using ir::ValueId;

// What is to be different in the next graph.
struct Edit {
  std::vector<ValueId> outputs = {};
  std::set<NodeId> cut = {};                 // their results become inputs
  std::map<NodeId, ValueId> bypassed = {};   // their only result becomes one of their inputs
  std::map<ValueId, TensorType> types = {};  // of inputs and constants
  std::map<ValueId, double> splats = {};     // constants of one value
  std::pair<int64_t, int64_t> dim{0, 0};     // in lists of attributes: this number becomes that
};

// The leading elements of a constant in each dim, as another shape of the same rank.
std::shared_ptr<const ir::ConstData> cropped(const ir::Value& v, const TensorType& to) {
  const ir::Shape from = ir::strides_of(v.type.shape);
  const ir::Shape strides = ir::strides_of(to.shape);
  const auto size = static_cast<size_t>(dtype_size(to.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(to.bytes()));
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < strides.size(); ++d) at += i / strides[d] % to.shape[d] * from[d];
    std::copy_n(v.constant->bytes.begin() + at * static_cast<int64_t>(size), size,
                bytes.begin() + i * static_cast<int64_t>(size));
  }
  return ir::dense_data(SharedBytes(std::move(bytes)));
}

// Makes the edited graph from what the outputs need; refused when it is not valid.
class Rebuild {
 public:
  Rebuild(const Graph& graph, const Edit& edit)
      : graph_(graph), edit_(edit), builder_(known_ops(), graph.name), made_(graph.values.size()) {}

  Result<Graph> run() && {
    find_needed();
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      if (needed_.contains(v) && graph_.value(v).kind != ir::ValueKind::kResult) {
        PYC_TRY(add_source(v));
      }
    }
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) PYC_TRY(add_node(n));
    for (const ValueId v : edit_.outputs) PYC_TRY(builder_.output(made_[v]));
    return std::move(builder_).take();
  }

 private:
  void find_needed() {
    std::vector<ValueId> open = edit_.outputs;
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (!needed_.insert(v).second || graph_.value(v).kind != ir::ValueKind::kResult) continue;
      const NodeId n = graph_.value(v).producer;
      if (edit_.cut.contains(n)) continue;
      const auto by = edit_.bypassed.find(n);
      if (by != edit_.bypassed.end()) {
        open.push_back(by->second);
      } else {
        const auto& inputs = graph_.nodes[n].inputs;
        open.insert(open.end(), inputs.begin(), inputs.end());
      }
    }
  }

  Status add_source(ValueId v) {
    const ir::Value& value = graph_.value(v);
    const auto changed = edit_.types.find(v);
    const TensorType type = changed == edit_.types.end() ? value.type : changed->second;
    if (value.kind == ir::ValueKind::kInput) {
      PYC_ASSIGN(made_[v], builder_.input(value.name, type));
      return {};
    }
    auto data = type == value.type ? value.constant : cropped(value, type);
    const auto splat = edit_.splats.find(v);
    if (splat != edit_.splats.end()) data = ir::splat_data(type, splat->second);
    PYC_ASSIGN(made_[v], builder_.constant(type, std::move(data), value.name));
    return {};
  }

  Status add_node(NodeId n) {
    const ir::Node& node = graph_.nodes[n];
    const auto is_needed = [&](ValueId v) { return needed_.contains(v); };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) return {};
    if (edit_.cut.contains(n)) {
      for (const ValueId v : node.outputs) {
        if (!is_needed(v)) continue;
        PYC_ASSIGN(made_[v], builder_.input(graph_.value(v).name, graph_.type(v)));
      }
      return {};
    }
    const auto by = edit_.bypassed.find(n);
    if (by != edit_.bypassed.end()) {
      made_[node.outputs[0]] = made_[by->second];
      return {};
    }
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(made_[v]);
    PYC_ASSIGN(const ValueId first, builder_.op(node.op->name, std::move(inputs), attrs_of(node),
                                                graph_.value(node.outputs[0]).name, node.loc));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      made_[node.outputs[i]] = first + static_cast<ValueId>(i);
    }
    return {};
  }

  ir::Attrs attrs_of(const ir::Node& node) const {
    ir::Attrs attrs = node.attrs;
    for (auto& [name, attr] : attrs) {
      auto* list = std::get_if<std::vector<int64_t>>(&attr);
      if (list != nullptr)
        std::replace(list->begin(), list->end(), edit_.dim.first, edit_.dim.second);
    }
    return attrs;
  }

  const Graph& graph_;
  const Edit& edit_;
  ir::GraphBuilder builder_;
  std::vector<ValueId> made_;  // by value of the graph
  std::set<ValueId> needed_;
};

class Reducer {
 public:
  Reducer(Graph graph, const ReduceCheck& check, int64_t tries)
      : graph_(std::move(graph)), check_(check), left_(tries) {}

  Graph run() && {
    size_t before = 0;
    do {
      before = changes_;
      drop_outputs();
      step_back();
      cut_nodes();
      bypass_nodes();
      shrink_dims();
      simplify_constants();
    } while (changes_ > before && left_ > 0);
    return std::move(graph_);
  }

 private:
  Edit nothing() const { return {.outputs = graph_.outputs}; }

  // Takes the edited graph if it is valid and the fault is still there.
  bool attempt(const Edit& edit) {
    if (left_ <= 0 || edit.outputs.empty()) return false;
    Result<Graph> next = Rebuild(graph_, edit).run();
    if (!next.ok()) return false;
    --left_;
    if (!check_(*next)) return false;
    graph_ = std::move(*next);
    ++changes_;
    return true;
  }

  // Halves first, then smaller parts, then one by one. `attempt_part` takes [begin, end) of `count`
  // things away; when it succeeds they are gone and the rest is counted again.
  template <class Count, class Attempt>
  void bisect(Count count, Attempt attempt_part) {
    for (size_t part = count(); part > 0; part /= 2) {
      for (size_t begin = 0; begin < count();) {
        const size_t end = std::min(begin + part, count());
        if (!attempt_part(begin, end)) begin = end;
      }
    }
  }

  void drop_outputs() {
    bisect([&] { return graph_.outputs.size(); },
           [&](size_t begin, size_t end) {
             Edit edit = nothing();
             const auto first = edit.outputs.begin();
             edit.outputs.erase(first + static_cast<int64_t>(begin),
                                first + static_cast<int64_t>(end));
             return attempt(edit);
           });
  }

  // The operands of an output's node as outputs instead of it.
  void step_back() {
    for (bool found = true; found;) {
      found = false;
      for (size_t i = 0; i < graph_.outputs.size() && !found; ++i) {
        const ir::Value& v = graph_.value(graph_.outputs[i]);
        if (v.kind != ir::ValueKind::kResult) continue;
        Edit edit = nothing();
        edit.outputs.erase(edit.outputs.begin() + static_cast<int64_t>(i));
        for (const ValueId in : graph_.nodes[v.producer].inputs) {
          if (graph_.value(in).kind == ir::ValueKind::kResult) edit.outputs.push_back(in);
        }
        found = attempt(edit);
      }
    }
  }

  void cut_nodes() {
    bisect([&] { return graph_.nodes.size(); },
           [&](size_t begin, size_t end) {
             Edit edit = nothing();
             for (size_t n = begin; n < end; ++n) edit.cut.insert(static_cast<NodeId>(n));
             const auto gone = [&](ValueId v) {
               return graph_.value(v).kind == ir::ValueKind::kResult &&
                      edit.cut.contains(graph_.value(v).producer);
             };
             std::erase_if(edit.outputs, gone);
             return attempt(edit);
           });
  }

  void bypass_nodes() {
    for (size_t n = 0; n < graph_.nodes.size();) {
      const ir::Node& node = graph_.nodes[n];
      bool gone = false;
      for (size_t i = 0; i < node.inputs.size() && node.outputs.size() == 1 && !gone; ++i) {
        const ValueId by = node.inputs[i];
        if (!(graph_.type(by) == graph_.type(node.outputs[0]))) continue;
        Edit edit = nothing();
        edit.bypassed[static_cast<NodeId>(n)] = by;
        gone = attempt(edit);
        if (gone) break;
      }
      if (!gone) ++n;
    }
  }

  std::vector<ValueId> sources() const {
    std::vector<ValueId> out;
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      if (graph_.value(v).kind != ir::ValueKind::kResult) out.push_back(v);
    }
    return out;
  }

  // Every dim of one size everywhere, then single ones.
  void shrink_dims() {
    std::set<int64_t, std::greater<>> sizes;
    for (const ValueId v : sources()) {
      for (const int64_t n : graph_.type(v).shape) sizes.insert(n);
    }
    for (const int64_t n : sizes) {
      for (const int64_t to : smaller(n)) {
        if (shrink_all(n, to)) break;
      }
    }
    for (size_t i = 0; i < sources().size(); ++i) shrink_one(i);
  }

  static std::vector<int64_t> smaller(int64_t n) {
    std::vector<int64_t> out;
    for (const int64_t to : {int64_t{1}, n / 4, n / 2, n - 1}) {
      if (to >= 1 && to < n) out.push_back(to);
    }
    return out;
  }

  bool shrink_all(int64_t n, int64_t to) {
    Edit edit = nothing();
    edit.dim = {n, to};
    for (const ValueId v : sources()) {
      TensorType type = graph_.type(v);
      std::replace(type.shape.begin(), type.shape.end(), n, to);
      if (!(type == graph_.type(v))) edit.types[v] = std::move(type);
    }
    return !edit.types.empty() && attempt(edit);
  }

  void shrink_one(size_t source) {
    const size_t rank = graph_.type(sources()[source]).shape.size();
    for (size_t d = 0; d < rank; ++d) {
      if (source >= sources().size()) return;
      const ValueId v = sources()[source];
      if (d >= graph_.type(v).shape.size()) return;
      for (const int64_t to : smaller(graph_.type(v).shape[d])) {
        Edit edit = nothing();
        edit.types[v] = graph_.type(v);
        edit.types[v].shape[d] = to;
        if (attempt(edit)) break;
      }
    }
  }

  void simplify_constants() {
    for (size_t i = 0; i < sources().size(); ++i) {
      const ValueId v = sources()[i];
      const ir::Value& value = graph_.value(v);
      if (value.kind != ir::ValueKind::kConstant) continue;
      if (value.constant->form == ir::ConstData::Form::kSplat) continue;
      for (const double x : {1.0, 0.0}) {
        Edit edit = nothing();
        edit.splats[v] = x;
        if (attempt(edit)) break;
      }
    }
  }

  Graph graph_;
  const ReduceCheck& check_;
  int64_t left_;
  size_t changes_ = 0;
};

}  // namespace

Result<Graph> reduce_graph(Graph graph, const ReduceCheck& check, int64_t max_tries) {
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(graph)));
  if (!check(*verified)) {
    return Status(Code::kInvalidArgument, "the model does not show what is to be kept");
  }
  return Reducer(*verified, check, max_tries).run();
}

}  // namespace pyc::tooling

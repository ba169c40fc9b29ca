#include <fmt/format.h>

#include <algorithm>

#include "eval/node_evaluator.h"
#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

constexpr std::string_view kFoldConstants = "fold_constants";

// A result up to this size may be larger than what it is made of.
constexpr int64_t kMaxGrownBytes = int64_t{1} << 20;
// What is moved beyond this size is folded by strided copies alone, and only where it gains
// something: see read_by_product.
constexpr int64_t kMaxMovedBytes = int64_t{1} << 16;
// Of one run of the pass. The work is in scalar operations of the evaluator, never in time: the
// canonical graph is the same on every machine.
constexpr int64_t kMaxTotalBytes = int64_t{1} << 28;
constexpr double kMaxTotalWork = 1 << 26;

// Evaluates nodes until its budgets are spent.
class Folder {
 public:
  Folder(ir::Patch& patch, const PassContext& context) : patch_(patch), context_(context) {}

  Status fold(ir::NodeId n) {
    const ir::NodeView node = patch_.node(n);
    if (node.op().lower == nullptr || !inputs_are_constant(node)) return {};
    PYC_ASSIGN(const std::string why_not, try_fold(n, node));
    if (why_not.empty()) return {};
    const std::string& name = patch_.graph().value(node.outputs()[0]).name;
    context_.decide(kFoldConstants, name, "kept", why_not, node.type().to_string());
    return {};
  }

 private:
  bool inputs_are_constant(const ir::NodeView& node) const {
    for (size_t i = 0; i < node.inputs(); ++i) {
      if (patch_.constant(node.input(i)) == nullptr) return false;
    }
    return true;
  }

  // Whether one product reads `v`, at once or through what moves it on as a whole: it packs its
  // operand from wherever that lies in one constant, so that a copy would only take memory.
  bool read_by_product(ir::ValueId v) {
    const ir::NodeId only = only_reader(v);
    if (only == ir::kNoId) return false;
    const ir::Node& reader = patch_.graph().nodes[only];
    if (reader.op->traits.product) return true;
    return reader.op->traits.moves_data && reader.inputs.size() == 1 &&
           reader.outputs.size() == 1 && read_by_product(reader.outputs[0]);
  }

  // The node that alone reads `v`, once; kNoId: there is none such.
  ir::NodeId only_reader(ir::ValueId v) {
    if (readers_.empty()) {
      readers_.resize(patch_.graph().values.size());
      for (ir::NodeId n = 0; n < patch_.graph().nodes.size(); ++n) {
        for (const ir::ValueId input : patch_.graph().nodes[n].inputs) {
          Readers& r = readers_[input];
          r = {.count = r.count + 1, .last = n};
        }
      }
    }
    return readers_[v].count == 1 ? readers_[v].last : ir::kNoId;
  }

  // "" when the node's outputs became constants, or the reason why not. Refused memory is none: the
  // canonical graph must not depend on it.
  Result<std::string> try_fold(ir::NodeId n, const ir::NodeView& node) {
    std::vector<ir::TensorType> types;
    std::vector<std::span<const std::byte>> inputs;
    int64_t input_bytes = 0;
    for (size_t i = 0; i < node.inputs(); ++i) {
      types.push_back(node.input_type(i));
      inputs.emplace_back(patch_.constant(node.input(i))->bytes);
      // A value that is read twice is there once.
      bool first = true;
      for (size_t j = 0; j < i; ++j) first = first && node.input(j) != node.input(i);
      if (first) input_bytes += node.input_type(i).bytes();
    }
    int64_t bytes = 0;
    for (const ir::ValueId v : node.outputs()) bytes += patch_.type(v).bytes();
    const bool moves_much = node.op().traits.moves_data && bytes > kMaxMovedBytes;
    if (moves_much && node.inputs() == 1 && node.outputs().size() == 1 &&
        read_by_product(node.outputs()[0])) {
      return std::string("product_reads_it");
    }
    if (bytes > std::max(kMaxGrownBytes, input_bytes)) return std::string("result_too_large");
    if (bytes > bytes_left_) return std::string("byte_budget_spent");

    auto evaluator = context_.evaluators.of(context_.ops, node.op(), types, node.attrs());
    if (evaluator.status().code() == Code::kOutOfMemory) return evaluator.status();
    if (!evaluator.ok()) return std::string("not_evaluable");
    if (moves_much && !(*evaluator)->copies()) return std::string("moves_large_data");
    if ((*evaluator)->work() > work_left_) return std::string("work_budget_spent");
    bytes_left_ -= bytes;
    work_left_ -= (*evaluator)->work();
    auto results = (*evaluator)->run(inputs);
    if (results.status().code() == Code::kOutOfMemory) return results.status();
    if (!results.ok()) return std::string("check_failed");
    context_.count("constant_node");
    patch_.at(n);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      replace(node.outputs()[i], std::move((*results)[i]));
    }
    return std::string();
  }

  void replace(ir::ValueId v, std::vector<std::byte> bytes) {
    const ir::TensorType& type = patch_.type(v);
    auto data = std::make_shared<ir::ConstData>();
    data->bytes = std::move(bytes);
    Word element = 0;
    if (ir::is_splat(type, *data, &element)) data->form = ir::ConstData::Form::kSplat;
    patch_.replace(v, patch_.constant(type, std::move(data)));
  }

  ir::Patch& patch_;
  const PassContext& context_;
  struct Readers {
    int count = 0;
    ir::NodeId last = ir::kNoId;
  };
  std::vector<Readers> readers_;  // of each value of the graph, once somebody asks
  int64_t bytes_left_ = kMaxTotalBytes;
  double work_left_ = kMaxTotalWork;
};

}  // namespace

Result<bool> fold_constants(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  Folder folder(patch, context);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) PYC_TRY(folder.fold(n));
  return patch.apply();
}

}  // namespace pyc::passes

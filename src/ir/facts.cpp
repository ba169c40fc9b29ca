#include "ir/facts.h"

namespace pyc::ir {
namespace {

// Of the narrower floats some have no NaN, and make a number of it.
bool has_nan(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}

}  // namespace

bool at_most_zero(const Graph& graph, ValueId v) {
  const Node* node = graph.producer(v);
  return node != nullptr && node->outputs[0] == v && has_nan(graph.type(v).dtype) &&
         node->op->at_most_zero != nullptr && node->op->at_most_zero(graph, *node);
}

}  // namespace pyc::ir

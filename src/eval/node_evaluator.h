#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace pyc::eval {

// One node on host memory: the kernels and the interpreter of the reference backend, so that a
// folded value has the bits a run would have given it (with the one canonical NaN).
class NodeEvaluator {
 public:
  // Requires an op with a `lower`. `inputs` are the types of the node's inputs.
  static Result<std::unique_ptr<NodeEvaluator>> create(const ir::OpSet& ops, const ir::OpDef& op,
                                                       std::span<const ir::TensorType> inputs,
                                                       const ir::Attrs& attrs);
  virtual ~NodeEvaluator() = default;
  // Scalar operations of a run, roughly: a function of the node alone.
  virtual double work() const = 0;
  // Whether a run does nothing but copy its inputs' elements by strides.
  virtual bool copies() const = 0;
  // The bytes of every output, or kRuntimeFailed when a check of the op fails (an index out of
  // range).
  virtual Result<std::vector<std::vector<std::byte>>> run(
      std::span<const std::span<const std::byte>> inputs) const = 0;
};

// Evaluators of one op set, made once for nodes that are alike: op, attributes and types of inputs.
// Thread-safe. What is full keeps what it has.
class Evaluators {
 public:
  Result<std::shared_ptr<const NodeEvaluator>> of(const ir::OpSet& ops, const ir::OpDef& op,
                                                  std::span<const ir::TensorType> inputs,
                                                  const ir::Attrs& attrs);

 private:
  static constexpr size_t kMost = 256;

  struct Made {
    const ir::OpDef* op;
    std::vector<ir::TensorType> inputs;
    ir::Attrs attrs;
    std::shared_ptr<const NodeEvaluator> evaluator;
  };
  std::mutex mutex_;  // guards everything below
  std::vector<Made> made_;
};

}  // namespace pyc::eval

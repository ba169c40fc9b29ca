#include "eval/node_evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/fp_state.h"
#include "eval/interpreter.h"
#include "eval/movement.h"
#include "ir/rules.h"
#include "lower/lower.h"

namespace pyc::eval {
namespace {

using Bytes = std::vector<std::byte>;

// The node alone in a graph: its inputs are the graph's, and so are its outputs.
Result<ir::VerifiedGraph> node_graph(const ir::OpSet& ops, const ir::OpDef& op,
                                     std::span<const ir::TensorType> inputs,
                                     const ir::Attrs& attrs) {
  ir::GraphBuilder builder(ops);
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    PYC_ASSIGN(const ir::ValueId v, builder.input(fmt::format("x{}", i), inputs[i]));
    operands.push_back(v);
  }
  PYC_ASSIGN(const ir::ValueId first, builder.op(op.name, std::move(operands), attrs, "y"));
  for (int i = 0; i < op.outputs; ++i) {
    PYC_TRY(builder.output(first + static_cast<ir::ValueId>(i)));
  }
  return ir::verify_graph(std::move(builder).take());
}

class Evaluator final : public NodeEvaluator {
 public:
  explicit Evaluator(lower::LoweredGraph lowered) : lowered_(std::move(lowered)) {}

  Status prepare() {
    for (const lower::Group& group : lowered_.groups) {
      movements_.push_back(Movement::of(group.kernel));
      PYC_ASSIGN(interpreters_.emplace_back(), Interpreter::create(group.kernel));
    }
    return {};
  }

  double work() const override {
    double total = 0.0;
    for (size_t g = 0; g < lowered_.groups.size(); ++g) {
      const lower::Group& group = lowered_.groups[g];
      double stored = 0.0;
      for (const loop::Buffer& b : group.kernel.buffers) {
        if (b.access == loop::Access::kWrite) stored += static_cast<double>(b.elements);
      }
      if (movements_[g]) {
        total += stored;
        continue;
      }
      total += std::max(group.flops, stored * static_cast<double>(group.kernel.pool.size()));
    }
    return total;
  }

  bool copies() const override {
    return std::all_of(movements_.begin(), movements_.end(),
                       [](const std::optional<Movement>& m) { return m.has_value(); });
  }

  Result<std::vector<Bytes>> run(std::span<const std::span<const std::byte>> inputs) const override;

 private:
  Status run_group(size_t g, std::span<std::byte* const> values) const;

  lower::LoweredGraph lowered_;
  // Of each group; movements where there are any go before interpreters.
  std::vector<std::optional<Movement>> movements_;
  std::vector<std::unique_ptr<Interpreter>> interpreters_;
};

Result<std::vector<Bytes>> Evaluator::run(
    std::span<const std::span<const std::byte>> inputs) const {
  const ir::Graph& graph = *lowered_.graph;
  std::vector<std::byte*> values(graph.values.size(), nullptr);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    // Kernels take their buffers by one type of pointer and only read from this one.
    values[graph.inputs[i]] = const_cast<std::byte*>(inputs[i].data());
  }
  std::vector<Bytes> outputs;
  for (const ir::ValueId v : graph.outputs) {
    outputs.emplace_back(static_cast<size_t>(graph.type(v).bytes()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    values[lowered_.output_values[i]] = outputs[i].data();
  }
  const FpStateGuard state;
  for (size_t g = 0; g < lowered_.groups.size(); ++g) PYC_TRY(run_group(g, values));
  return outputs;
}

Status Evaluator::run_group(size_t g, std::span<std::byte* const> values) const {
  const lower::Group& group = lowered_.groups[g];
  std::vector<void*> buffers;
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId v = group.buffer_values[b];
    buffers.push_back(v == ir::kNoId ? nullptr : values[v] + group.buffer_offset_bytes(b));
  }
  if (movements_[g]) {
    movements_[g]->run(buffers);
    return {};
  }
  PYC_ASSIGN(AlignedBuffer scratch,
             AlignedBuffer::create(static_cast<size_t>(group.kernel.scratch_bytes())));
  int32_t fault = 0;
  const pyc_kernel_args args{.buffers = buffers.data(),
                             .dims = nullptr,
                             .scratch = scratch.data(),
                             .self = interpreters_[g].get(),
                             .fault = &fault,
                             .thread = 0,
                             .threads = 1};
  interpreters_[g]->run(args, 0, group.kernel.parallel_size());
  if (fault == 0) return {};
  const bool known = fault > 0 && static_cast<size_t>(fault) <= group.faults.size();
  return {Code::kRuntimeFailed,
          known ? describe(group.faults[static_cast<size_t>(fault) - 1], buffers)
                : "access out of bounds"};
}

}  // namespace

Result<std::unique_ptr<NodeEvaluator>> NodeEvaluator::create(const ir::OpSet& ops,
                                                             const ir::OpDef& op,
                                                             std::span<const ir::TensorType> inputs,
                                                             const ir::Attrs& attrs) {
  PYC_ASSIGN(ir::VerifiedGraph graph, node_graph(ops, op, inputs, attrs));
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(graph, {.fuse = false}));
  auto evaluator = std::make_unique<Evaluator>(std::move(lowered));
  PYC_TRY(evaluator->prepare());
  return std::unique_ptr<NodeEvaluator>(std::move(evaluator));
}

Result<std::shared_ptr<const NodeEvaluator>> Evaluators::of(const ir::OpSet& ops,
                                                            const ir::OpDef& op,
                                                            std::span<const ir::TensorType> inputs,
                                                            const ir::Attrs& attrs) {
  {
    const std::scoped_lock lock(mutex_);
    for (const Made& made : made_) {
      if (made.op == &op && std::ranges::equal(made.inputs, inputs) &&
          ir::same_attrs(made.attrs, attrs)) {
        return made.evaluator;
      }
    }
  }
  PYC_ASSIGN(std::shared_ptr<const NodeEvaluator> evaluator,
             NodeEvaluator::create(ops, op, inputs, attrs));
  const std::scoped_lock lock(mutex_);
  if (made_.size() < kMost)
    made_.push_back({&op, {inputs.begin(), inputs.end()}, attrs, evaluator});
  return evaluator;
}

}  // namespace pyc::eval

#pragma once

// Calls ops' `lower` functions. A Reader says what reading a value means: a load from a buffer, the
// expression of a value computed in the same kernel, or the producer's own expression, inlined.

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/facts.h"
#include "ir/graph.h"
#include "lower/layout.h"
#include "lower/orders.h"
#include "ops/lowering.h"

namespace pyc::lower {

using loop::Expr;

struct ReduceRequest {
  loop::ReduceKind kind;
  loop::ReduceOp op;
  std::span<const int64_t> extents;
  const std::function<ops::ReduceTerm(std::span<const Expr>)>& term;
  int64_t segment;
  // For a product that is summed in a named order, else null; and the dtype of its factors.
  const MatrixUnit* unit = nullptr;
  DType factors = DType::kF32;
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual loop::Pool& pool() = 0;
  // The orders in which the nodes' products are summed.
  virtual const Orders& orders() const = 0;
  // The element of `value` at `index`. With a guard, the index is in range only where it holds, and
  // `fallback` (if valid) is the result elsewhere.
  virtual Expr read(ir::ValueId value, std::span<const Expr> index, Expr guard, Expr fallback) = 0;
  virtual Expr reduce(const ReduceRequest& request) = 0;
  // `value` is the one whose elements are checked; the fault does not say yet where it is.
  virtual void check(Expr ok, Fault fault, ir::ValueId value) = 0;
};

// What ops see of one node, whose inputs are read through a reader; Base is LowerContext or more.
// Where `guard` is valid, every load is made under it.
template <class Base>
class NodeContext : public Base {
 public:
  NodeContext(const ir::Graph& graph, ir::NodeId node, Expr guard, Reader& reader)
      : graph_(graph),
        node_(graph.nodes[node]),
        unit_(reader.orders().unit(node)),
        guard_(guard),
        reader_(reader) {}

  const ir::Node& node() const override { return node_; }
  const ir::TensorType& input_type(int i) const override {
    return graph_.type(node_.inputs[static_cast<size_t>(i)]);
  }
  const ir::TensorType& output_type(int i) const override {
    return graph_.type(node_.outputs[static_cast<size_t>(i)]);
  }
  loop::Pool& pool() override { return reader_.pool(); }

  Expr input(int i, std::span<const Expr> index) override {
    return reader_.read(node_.inputs[static_cast<size_t>(i)], index, guard_, {});
  }
  Expr input_if(int i, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const Expr all = guard_.valid() ? guard_ & guard : guard;
    return reader_.read(node_.inputs[static_cast<size_t>(i)], index, all, fallback);
  }
  Expr reduce(loop::ReduceKind kind, loop::ReduceOp op, std::span<const int64_t> extents,
              const std::function<ops::ReduceTerm(std::span<const Expr>)>& term,
              int64_t segment) override {
    if (kind != loop::ReduceKind::kChain || unit_ == nullptr) {
      return reader_.reduce({kind, op, extents, term, segment});
    }
    return reader_.reduce({kind, op, extents, term, unit_->segment, unit_, input_type(0).dtype});
  }
  const MatrixUnit* unit() const override { return unit_; }
  bool at_most_zero(int i) const override {
    return ir::at_most_zero(graph_, node_.inputs[static_cast<size_t>(i)]);
  }
  void check_input(int i, Expr ok, const Accepted& accepted, std::string_view what) override {
    const Expr all = guard_.valid() ? ok | ~guard_ : ok;
    const std::string& where = node_.loc.empty() ? graph_.value(node_.outputs[0]).name : node_.loc;
    Fault fault{.message = fmt::format("{} '{}': {} out of range {} to {}", node_.op->name, where,
                                       what, accepted.first, accepted.last)};
    fault.accepted = accepted;
    reader_.check(all, std::move(fault), node_.inputs[static_cast<size_t>(i)]);
  }

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  const MatrixUnit* unit_;
  Expr guard_;
  Reader& reader_;
};

// The expression of output `output` of `node` at `index`, reading through `reader`. Where `guard`
// is valid, every load is made under it.
Expr lower_node(const ir::Graph& graph, ir::NodeId node, int output, std::span<const Expr> index,
                Expr guard, Reader& reader);

// Position of a value among its producer's outputs.
int output_index(const ir::Graph& graph, ir::ValueId value);

// The place in memory of an index; its inverse (a dim of extent 1 gets index 0).
Expr linearize(loop::Pool& pool, std::span<const Expr> index, const ir::Shape& shape,
               const Layout& layout = {});
std::vector<Expr> delinearize(Expr linear, const ir::Shape& shape, const Layout& layout = {});

// A load of `value`, which lies in memory as `layout` says, from buffer `slot`, guarded if `guard`
// is valid. A constant of one element becomes an immediate, and one of equal bytes, as zero points
// of channels are.
Expr load_value(loop::Pool& pool, const ir::Value& value, const Layout& layout, uint32_t slot,
                std::span<const Expr> index, Expr guard, Expr fallback);
bool is_immediate(const ir::Value& value);

}  // namespace pyc::lower

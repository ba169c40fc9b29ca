#pragma once

// Calls ops' `lower` functions. A Reader says what reading a value means: a load from a buffer, the
// expression of a value computed in the same kernel, or the producer's own expression, inlined.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/lowering.h"

namespace pyc::lower {

using loop::Expr;

struct ReduceRequest {
  loop::ReduceKind kind;
  loop::ReduceOp op;
  std::span<const int64_t> extents;
  const std::function<ops::ReduceTerm(std::span<const Expr>)>& term;
  int64_t segment;
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual loop::Pool& pool() = 0;
  // The element of `value` at `index`. With a guard, the index is in range only where it holds, and
  // `fallback` (if valid) is the result elsewhere.
  virtual Expr read(ir::ValueId value, std::span<const Expr> index, Expr guard, Expr fallback) = 0;
  virtual Expr reduce(const ReduceRequest& request) = 0;
  virtual void check(Expr ok, std::string message) = 0;
};

// What ops see of one node, whose inputs are read through a reader; Base is LowerContext or more.
// Where `guard` is valid, every load is made under it.
template <class Base>
class NodeContext : public Base {
 public:
  NodeContext(const ir::Graph& graph, ir::NodeId node, Expr guard, Reader& reader)
      : graph_(graph), node_(graph.nodes[node]), guard_(guard), reader_(reader) {}

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
    return reader_.reduce({kind, op, extents, term, segment});
  }
  void check(Expr ok, std::string_view message) override {
    const Expr all = guard_.valid() ? ok | ~guard_ : ok;
    const std::string& where = node_.loc.empty() ? graph_.value(node_.outputs[0]).name : node_.loc;
    reader_.check(all, std::string(node_.op->name) + " '" + where + "': " + std::string(message));
  }

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  Expr guard_;
  Reader& reader_;
};

// The expression of output `output` of `node` at `index`, reading through `reader`. Where `guard`
// is valid, every load is made under it.
Expr lower_node(const ir::Graph& graph, ir::NodeId node, int output, std::span<const Expr> index,
                Expr guard, Reader& reader);

// Position of a value among its producer's outputs.
int output_index(const ir::Graph& graph, ir::ValueId value);

// Row-major position of an index; its inverse (a dim of extent 1 gets index 0).
Expr linearize(loop::Pool& pool, std::span<const Expr> index, const ir::Shape& shape);
std::vector<Expr> delinearize(Expr linear, const ir::Shape& shape);

// A load of `value` from buffer `slot`, guarded if `guard` is valid. A constant of one element
// becomes an immediate.
Expr load_value(loop::Pool& pool, const ir::Value& value, uint32_t slot,
                std::span<const Expr> index, Expr guard, Expr fallback);
bool is_immediate(const ir::Value& value);

}  // namespace pyc::lower

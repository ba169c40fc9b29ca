// Kernels that an op writes itself.

#include <numeric>

#include "loop/renamed.h"
#include "lower/attention.h"
#include "lower/builder_base.h"
#include "lower/kernel_builder.h"
#include "ops/kernel.h"

namespace pyc::lower {
namespace {

using loop::kNone;
using loop::VarId;

class WholeKernelBuilder final : public BuilderBase, private AttentionBuilder {
 public:
  using BuilderBase::BuilderBase;

  Group build();

  Expr reduce(const ReduceRequest& r) override {
    PYC_CHECK(!standing_, "no loop is written where a variable replaces a value");
    if (r.unit != nullptr) {
      const auto term = [&](std::span<const Expr> k, std::vector<loop::Stmt>& body) {
        return within(body, [&] { return r.term(k); });
      };
      const UnitSumLoop sum = unit_sum(r, term);
      append(sum.stmt);
      return sum.value;
    }
    const int64_t extent = extent_of(r);
    loop::Loop l;
    l.var = index_var("k", extent);
    l.extent = extent;
    // Sums in their fixed tree and what order cannot change may be taken several at a time.
    l.vector = r.kind != loop::ReduceKind::kChain && vectors_ == 0;
    const ir::Shape shape(r.extents.begin(), r.extents.end());
    const ops::ReduceTerm term = r.term(delinearize(var(l.var), shape));
    const VarId result = pool().new_var("r", term.value.dtype(), loop::kResult);
    l.reductions.push_back(reduction(r, term, result));
    append(add_loop(std::move(l)));
    return var(result);
  }

  Expr add_products(const MatrixUnit& unit, DType factors, Expr start, int64_t extent,
                    const std::function<ops::ReduceTerm(Expr k)>& term) {
    UnitSum sum{.unit = &unit, .factors = factors, .terms = extent, .start = start, .term = {}};
    sum.term = [&](Expr k, std::vector<loop::Stmt>& body) {
      return within(body, [&] { return term(k); });
    };
    const UnitSumLoop made = write_unit_sum(kernel_, sum);
    append(made.stmt);
    return made.value;
  }

  void check(Expr ok, Fault fault, ir::ValueId value) override {
    if (standing_) ok.id = (*standing_)(ok.id);
    if (always(ok)) return;
    append(add_check(ok, std::move(fault), value));
  }

  Expr parallel(int64_t extent) {
    PYC_CHECK(kernel_.body.empty() && bodies_.empty(), "parallel variables come first");
    if (extent == 1) return loop::index(pool(), 0);
    kernel_.parallel.push_back(index_var("p", extent));
    return var(kernel_.parallel.back());
  }

  using Context = ops::KernelContext;
  std::vector<Expr> loop(int64_t extent, Context::Order order,
                         std::span<const Context::Carried> carried, const Context::Body& body) {
    loop::Loop l;
    l.var = index_var("i", extent);
    l.extent = extent;
    l.vector = order == Context::Order::kVector;
    l.ordered = order == Context::Order::kOrdered;
    std::vector<Expr> inside;
    std::vector<Expr> results;
    for (const Context::Carried& c : carried) {
      const DType t = c.init.dtype();
      l.carries.push_back({.var = pool().new_var("c", t, c.extent),
                           .init = c.init.id,
                           .next = kNone,
                           .result = pool().new_var("r", t, c.extent)});
      inside.push_back(var(l.carries.back().var));
      results.push_back(var(l.carries.back().result));
    }
    bodies_.push_back(&l.body);
    vectors_ += l.vector ? 1 : 0;
    const std::vector<Expr> next = body(var(l.var), inside);
    vectors_ -= l.vector ? 1 : 0;
    bodies_.pop_back();
    PYC_CHECK(next.size() == carried.size(), "a loop carries on as many values as it was given");
    for (size_t i = 0; i < next.size(); ++i) l.carries[i].next = next[i].id;
    append(add_loop(std::move(l)));
    return results;
  }

  uint32_t scratch(DType t, int64_t elements) {
    return add_buffer(ir::kNoId, "scratch", t, elements, loop::Access::kScratch);
  }

  // Declared at first use.
  uint32_t output(ir::ValueId v) {
    if (plan_.find(v) == nullptr) return kNone;
    const auto it = slots_.find(v);
    if (it != slots_.end()) return it->second;
    const ir::Value& value = graph_.value(v);
    return slots_[v] = add_buffer(v, value.name, value.type.dtype, value.type.elements(),
                                  loop::Access::kWrite);
  }

  Expr load(uint32_t buffer, Expr offset) {
    return {&pool(), pool().load(buffer, kernel_.buffers[buffer].dtype, place(buffer, offset).id)};
  }

  void store(uint32_t buffer, Expr offset, Expr value) {
    if (buffer == kNone) return;
    append(add_store(buffer, place(buffer, offset), as_stored(buffer, value)));
  }

  // Ops count an output's elements in the order of its shape; this is where one lies.
  Expr place(uint32_t buffer, Expr number) {
    const ir::ValueId v = values_[buffer];
    if (v == ir::kNoId || grouping_.layouts.is_row_major(v)) return number;
    const ir::Shape& shape = graph_.type(v).shape;
    return linearize(pool(), delinearize(number, shape), shape, grouping_.layouts.of(v));
  }

  Expr as_stored(uint32_t buffer, Expr value) const override {
    const ir::ValueId v = values_[buffer];
    return v != ir::kNoId && grouping_.forwarded_output[v] >= 0 ? canonical_nan(value) : value;
  }

  void attention(Context& context, const ops::AttentionForm& form) {
    attention_ = write_attention(context, form, *this);
  }

 protected:
  Expr member(const Member&) override {
    PYC_CHECK(false, "a kernel of its own has no other members");
    return {};
  }

 private:
  Expr replaced(VarId standing, Expr value, const std::function<Expr()>& build) override {
    const bool outermost = !standing_;
    if (outermost) standing_.emplace(pool());
    standing_->set_var(standing, value.id);
    Expr built = build();
    if (!outermost) return built;
    built.id = (*standing_)(built.id);
    standing_.reset();
    return built;
  }

  // What is written meanwhile goes to `body`.
  ops::ReduceTerm within(std::vector<loop::Stmt>& body,
                         const std::function<ops::ReduceTerm()>& write) {
    bodies_.push_back(&body);
    const ops::ReduceTerm term = write();
    bodies_.pop_back();
    return term;
  }

  void append(loop::Stmt s) { (bodies_.empty() ? kernel_.body : *bodies_.back()).push_back(s); }

  std::vector<std::vector<loop::Stmt>*> bodies_;  // of the loops being written
  int vectors_ = 0;                               // vector loops among them
  std::optional<loop::Renamed> standing_;         // while variables stand for values
  std::optional<Attention> attention_;
};

class WholeKernelContext final : public NodeContext<ops::KernelContext> {
 public:
  WholeKernelContext(const ir::Graph& graph, ir::NodeId node, WholeKernelBuilder& builder)
      : NodeContext(graph, node, {}, builder), builder_(builder) {}

  Expr parallel(int64_t extent) override { return builder_.parallel(extent); }
  std::vector<Expr> loop(int64_t extent, Order order, std::span<const Carried> carried,
                         const Body& body) override {
    return builder_.loop(extent, order, carried, body);
  }
  uint32_t scratch(DType t, int64_t elements) override { return builder_.scratch(t, elements); }
  uint32_t output(int i) override {
    return builder_.output(node().outputs[static_cast<size_t>(i)]);
  }
  Expr add_products(Expr start, int64_t extent,
                    const std::function<ops::ReduceTerm(Expr k)>& term) override {
    return builder_.add_products(*unit(), input_type(0).dtype, start, extent, term);
  }
  Expr load(uint32_t buffer, Expr offset) override { return builder_.load(buffer, offset); }
  void store(uint32_t buffer, Expr offset, Expr value) override {
    builder_.store(buffer, offset, value);
  }
  void attention(const ops::AttentionForm& form) override { builder_.attention(*this, form); }

 private:
  WholeKernelBuilder& builder_;
};

Group WholeKernelBuilder::build() {
  const ir::NodeId node = graph_.value(plan_.members.front().value).producer;
  WholeKernelContext context(graph_, node, *this);
  graph_.nodes[node].op->kernel(context);
  const bool row_major =
      std::all_of(plan_.members.begin(), plan_.members.end(),
                  [&](const Member& m) { return grouping_.layouts.is_row_major(m.value); });
  Group group = finish();
  // It describes rows that are stored one after the other.
  if (row_major) group.attention = std::move(attention_);
  return group;
}

}  // namespace

Group build_whole_kernel(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan) {
  return WholeKernelBuilder(graph, grouping, plan).build();
}

}  // namespace pyc::lower

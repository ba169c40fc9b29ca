// What ops say about themselves, held against what their lowering does.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "lower/lower.h"
#include "lower/probe.h"
#include "ops/registry.h"
#include "support/draw.h"

namespace pyc::passes {
namespace {

// One dim of size 1, so that ops which drop such dims show it.
const ir::Shape kShape{3, 2, 1, 5};

// The op over `kShape` and others of shape `rest`; nothing where its type rule refuses them.
std::optional<ir::Graph> graph_of(const ir::OpDef& op, DType t, const ir::Shape& rest, DType to) {
  ir::GraphBuilder builder(ops::all_ops());
  std::vector<ir::ValueId> inputs;
  for (int i = 0; i < op.min_inputs; ++i) {
    const bool condition = op.min_inputs == 3 && i == 0 && op.name == "where";
    inputs.push_back(
        builder
            .input("x" + std::to_string(i), {condition ? DType::kBool : t, i == 0 ? kShape : rest})
            .value());
  }
  ir::Attrs attrs;
  for (const ir::AttrDef& attr : op.attrs) {
    if (attr.required && attr.kind == ir::AttrKind::kDType) attrs[std::string(attr.name)] = to;
  }
  const auto made = builder.op(op.name, inputs, attrs);
  if (!made.ok()) return {};
  EXPECT_TRUE(builder.output(*made).ok());
  return std::move(builder).take();
}

// Whether the value depends on the place it stands at, other than by what is read there.
bool uses_index(const loop::Pool& pool, loop::ExprId id, std::set<loop::ExprId>& seen) {
  if (id == loop::kNone || !seen.insert(id).second) return false;
  const loop::ExprNode& n = pool.node(id);
  if (n.op == loop::Op::kVar) return true;
  const loop::ExprId a = n.op == loop::Op::kLoad ? loop::kNone : n.a;
  return uses_index(pool, a, seen) || uses_index(pool, n.b, seen) || uses_index(pool, n.c, seen);
}

// Where an element of an input of shape `rest` is read for the output's element, by numpy's rules.
loop::ExprId broadcast_offset(lower::Probe& probe, const ir::Shape& rest) {
  if (rest == kShape) return probe.linear;
  if (rest.empty()) return probe.pool->integer(0);
  if (rest.back() != kShape.back()) return loop::kNone;
  return probe.pool->binary(loop::Op::kFloorMod, probe.linear, probe.pool->integer(rest.back()));
}

// Whether each element is a function of the inputs' elements at the same index.
bool reads_same_index(const ir::Graph& graph, const ir::Shape& rest) {
  if (graph.type(graph.outputs[0]).shape != kShape || graph.nodes[0].outputs.size() != 1) {
    return false;
  }
  lower::Probe probe =
      lower::probe_node(graph, 0, 0, std::vector<bool>(graph.values.size(), false));
  if (!probe.pointwise() || probe.reads.empty()) return false;
  std::set<loop::ExprId> seen;
  if (uses_index(*probe.pool, probe.result, seen)) return false;
  return std::all_of(probe.reads.begin(), probe.reads.end(), [&](const lower::ProbeRead& read) {
    const bool first = read.value == graph.inputs[0];
    const loop::ExprId expected = first ? probe.linear : broadcast_offset(probe, rest);
    return !read.guarded && expected != loop::kNone && read.offset == expected;
  });
}

// What the lowering shows, over every way of using the op that is tried.
bool is_elementwise(const ir::OpDef& op) {
  if (op.lower == nullptr || op.min_inputs == 0) return false;
  int accepted = 0;
  for (const DType t : {DType::kF32, DType::kI32, DType::kBool, DType::kI8}) {
    for (const DType to : {DType::kF32, DType::kI8, DType::kU32}) {
      for (const ir::Shape& rest : {kShape, ir::Shape{}, ir::Shape{5}, ir::Shape{2}}) {
        const std::optional<ir::Graph> graph = graph_of(op, t, rest, to);
        if (!graph) continue;
        ++accepted;
        if (!reads_same_index(*graph, rest)) return false;
      }
    }
  }
  return accepted > 0;
}

TEST(Traits, ElementwiseIsWhatTheLoweringShows) {
  int elementwise = 0;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    EXPECT_EQ(op->traits.elementwise, is_elementwise(*op)) << op->name;
    elementwise += op->traits.elementwise ? 1 : 0;
  }
  EXPECT_GT(elementwise, 70);
}

// What an element is made of, besides being chosen among.
struct Leaves {
  bool loads = false;
  bool constants = false;
  bool computed = false;
};

void add_leaves(const loop::Pool& pool, loop::ExprId id, Leaves& out) {
  if (id == loop::kNone) return;
  const loop::ExprNode& n = pool.node(id);
  out.loads |= n.op == loop::Op::kLoad;
  out.constants |= n.op == loop::Op::kConst;
  if (n.op == loop::Op::kLoad) return add_leaves(pool, n.c, out);
  if (n.op == loop::Op::kSelect) {
    add_leaves(pool, n.b, out);
    return add_leaves(pool, n.c, out);
  }
  out.computed |= n.op != loop::Op::kConst;
}

// What the kernel of the graph's last node stores into values.
void add_stores(const ir::Graph& graph, Leaves& out) {
  auto given = ir::verify_graph(graph);
  ASSERT_TRUE(given.ok()) << given.status().to_string();
  const auto lowered = lower::lower_graph(*given, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
  const loop::Kernel& kernel = lowered->groups.back().kernel;
  for (const loop::Store& store : kernel.stores) {
    if (kernel.buffers[store.buffer].access != loop::Access::kWrite) continue;
    // Of an output NaNs are made canonical on the way.
    const loop::ExprNode& n = kernel.pool.node(store.value);
    const bool canonical = n.op == loop::Op::kSelect && kernel.pool.node(n.a).op == loop::Op::kNe;
    add_leaves(kernel.pool, canonical ? n.c : store.value, out);
  }
}

// A trait is the op's, whatever its operands and attributes: several are drawn.
TEST(Traits, MovingDataIsWhatTheLoweringShows) {
  constexpr uint64_t kDraws = 24;
  int moving = 0;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    const bool writes_kernel = op->kernel != nullptr && op->traits.moves_data;
    if ((op->lower == nullptr && !writes_kernel) || op->traits.elementwise || op->min_inputs == 0) {
      EXPECT_FALSE(op->traits.moves_data && !op->traits.elementwise) << op->name;
      continue;
    }
    Leaves leaves;
    for (uint64_t seed = 1; seed <= kDraws; ++seed) {
      const auto drawn = test::draw_node(seed, {op, DType::kF32}, test::Values::kWild);
      if (!drawn.ok()) continue;
      const ir::Graph& graph = drawn->graph;
      if (writes_kernel) {
        add_stores(graph, leaves);
        continue;
      }
      const lower::Probe probe =
          lower::probe_node(graph, static_cast<ir::NodeId>(graph.nodes.size() - 1), 0,
                            std::vector<bool>(graph.values.size(), false));
      ASSERT_EQ(graph.nodes.back().op, op);
      add_leaves(*probe.pool, probe.result, leaves);
    }
    if (op->traits.moves_data) {
      ++moving;
      EXPECT_TRUE(leaves.loads && !leaves.computed) << op->name;
    } else {
      // Zeros between them are no elements of an input.
      EXPECT_TRUE(!leaves.loads || leaves.constants || leaves.computed) << op->name;
    }
  }
  EXPECT_GT(moving, 15);
}

// What `to` may be is the type rule's business (tests/ops); that it is there, the trait's.
TEST(Traits, ProductsHaveTheAttributeTo) {
  std::string products;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    const bool has = std::any_of(op->attrs.begin(), op->attrs.end(), [](const ir::AttrDef& attr) {
      return attr.name == "to" && attr.may_be_absent && attr.kind == ir::AttrKind::kDType;
    });
    EXPECT_EQ(op->traits.product, has) << op->name;
    if (op->traits.product) products += std::string(op->name) + " ";
  }
  EXPECT_EQ(products, "attention contract conv conv_transpose deform_conv einsum gemm matmul ");
}

// What the pass narrow_products relies on.
TEST(Traits, OnlyProductsHaveFactorsAndAtMostOneInputIsAdded) {
  std::string alone;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    const ir::Traits& traits = op->traits;
    EXPECT_TRUE(traits.product || (traits.factors == 0 && !traits.adds_input)) << op->name;
    if (traits.product && traits.factors == 0) alone += std::string(op->name) + " ";
    if (traits.factors > 0) {
      EXPECT_GE(traits.factors, 2) << op->name;
      EXPECT_LE(traits.factors, op->max_inputs) << op->name;
    }
    if (traits.adds_input) {
      EXPECT_EQ(op->max_inputs, traits.factors + 1) << op->name;
    }
  }
  EXPECT_EQ(alone, "deform_conv ");
}

TEST(Traits, CommutativeOpsHaveTwoInputsAndAreElementwise) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    if (!op->traits.commutative) continue;
    EXPECT_EQ(op->min_inputs, 2) << op->name;
    EXPECT_EQ(op->max_inputs, 2) << op->name;
    EXPECT_TRUE(op->traits.elementwise) << op->name;
  }
}

TEST(Traits, OpsWithRulesHaveOneOutput) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    EXPECT_TRUE(op->simplify == nullptr || op->outputs == 1) << op->name;
  }
}

}  // namespace
}  // namespace pyc::passes

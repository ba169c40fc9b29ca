#pragma once

// Lowered graphs made by hand: groups whose kernels have buffers but do nothing.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "loop/builder.h"
#include "lower/types.h"

namespace pyc::plan {

inline loop::Expr lower_nothing(ops::LowerContext&, int, std::span<const loop::Expr>) { return {}; }

inline Result<std::vector<ir::TensorType>> infer_bytes(const ir::InferArgs& args) {
  return std::vector<ir::TensorType>{{DType::kU8, {args.attr_int("bytes")}}};
}

// An op with any inputs and one output of as many bytes as its attribute says.
inline const ir::OpSet& test_ops() {
  static const ir::OpDef make = [] {
    ir::OpDef op;
    op.name = "make";
    op.summary = "makes bytes";
    op.max_inputs = ir::kVariadic;
    op.attrs = {{"bytes", ir::AttrKind::kInt}};
    op.infer = infer_bytes;
    op.lower = lower_nothing;
    return op;
  }();
  static const ir::OpSet ops({&make});
  return ops;
}

class LoweredBuilder {
 public:
  ir::ValueId input(std::string name, int64_t bytes) {
    return take(builder_.input(std::move(name), {DType::kU8, {bytes}}));
  }

  ir::ValueId constant(std::string name, int64_t bytes) {
    const ir::TensorType type{DType::kU8, {bytes}};
    return take(builder_.constant(type, ir::splat_data(type, 1), std::move(name)));
  }

  // A group that reads values and writes one new value per (name, bytes); gives the first.
  ir::ValueId group(const std::vector<ir::ValueId>& reads,
                    const std::vector<std::pair<std::string, int64_t>>& writes) {
    lower::Group group;
    group.name = "g" + std::to_string(groups_.size());
    for (const ir::ValueId value : reads) add_buffer(group, value, loop::Access::kRead);
    for (const auto& [name, bytes] : writes) {
      const ir::ValueId value = take(builder_.op("make", reads, {{"bytes", bytes}}, name));
      group.members.push_back(static_cast<ir::NodeId>(builder_.graph().nodes.size() - 1));
      add_buffer(group, value, loop::Access::kWrite);
    }
    const ir::ValueId first = group.buffer_values[reads.size()];
    groups_.push_back(std::move(group));
    needs.emplace_back();
    return first;
  }

  // A group that adds values of one size element by element; gives its result.
  ir::ValueId elementwise(const std::vector<ir::ValueId>& reads, const std::string& name) {
    return computed(reads, name, false);
  }
  // The same, but of the elements in reversed order.
  ir::ValueId reversed(const std::vector<ir::ValueId>& reads, const std::string& name) {
    return computed(reads, name, true);
  }

  // The pairs of the last group, which does nothing: all of one size.
  std::vector<loop::InPlacePair> equal_sizes() const {
    return loop::in_place_pairs(groups_.back().kernel);
  }

  void output(ir::ValueId value) {
    EXPECT_TRUE(builder_.output(value).ok());
    outputs_.push_back(value);
  }

  lower::LoweredGraph finish() && {
    Result<ir::VerifiedGraph> graph = ir::verify_graph(std::move(builder_).take());
    EXPECT_TRUE(graph.ok()) << graph.status().to_string();
    return {std::move(graph).value(), std::move(groups_), std::move(outputs_), {}};
  }

  std::vector<lower::KernelNeeds> needs;  // per group

 private:
  static ir::ValueId take(const Result<ir::ValueId>& value) {
    EXPECT_TRUE(value.ok()) << value.status().to_string();
    return *value;
  }

  ir::ValueId computed(const std::vector<ir::ValueId>& reads, const std::string& name,
                       bool reversed) {
    const int64_t n = builder_.type(reads[0]).elements();
    const ir::ValueId result = group(reads, {{name, n}});
    loop::Kernel& kernel = groups_.back().kernel;
    const loop::VarId v = kernel.pool.new_var("i", DType::kI64, n);
    kernel.parallel = {v};
    const loop::ExprId i = kernel.pool.var(v);
    const loop::ExprId from =
        reversed ? kernel.pool.binary(loop::Op::kSub, kernel.pool.integer(n - 1), i) : i;
    loop::ExprId sum = loop::kNone;
    for (uint32_t b = 0; b < reads.size(); ++b) {
      const loop::ExprId load = kernel.pool.load(b, DType::kU8, from);
      sum = b == 0 ? load : kernel.pool.binary(loop::Op::kAdd, sum, load);
    }
    kernel.stores.push_back({static_cast<uint32_t>(reads.size()), i, sum});
    kernel.body.push_back({loop::StmtKind::kStore, 0});
    needs.back().in_place = loop::in_place_pairs(kernel);
    return result;
  }

  void add_buffer(lower::Group& group, ir::ValueId value, loop::Access access) {
    group.kernel.buffers.push_back({"b", DType::kU8, builder_.type(value).elements(), access});
    group.buffer_values.push_back(value);
  }

  ir::GraphBuilder builder_{test_ops()};
  std::vector<lower::Group> groups_;
  std::vector<ir::ValueId> outputs_;
};

// x → a → b → c → y, of 256, 256, 256, 128 and 256 bytes; group g1 needs 100 bytes of scratch.
struct Chain {
  LoweredBuilder builder;
  lower::LoweredGraph lowered = make();

  lower::LoweredGraph make() {
    const ir::ValueId x = builder.input("x", 256);
    const ir::ValueId a = builder.group({x}, {{"a", 256}});
    const ir::ValueId b = builder.group({a}, {{"b", 256}});
    const ir::ValueId c = builder.group({b}, {{"c", 128}});
    builder.output(builder.group({c}, {{"y", 256}}));
    builder.needs[1].scratch_bytes = 100;
    return std::move(builder).finish();
  }
};

}  // namespace pyc::plan

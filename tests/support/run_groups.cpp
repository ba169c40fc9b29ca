#include "support/run_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "eval/interpreter.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;

class Execution {
 public:
  Execution(const lower::LoweredGraph& lowered, const std::vector<Bytes>& inputs)
      : lowered_(lowered), graph_(*lowered.graph) {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) memory_[graph_.inputs[i]] = inputs[i];
  }

  Outcome run() {
    Outcome out;
    for (const lower::Group& group : lowered_.groups) {
      const int32_t fault = run(group);
      if (fault == 0) continue;
      out.fault = group.faults.at(static_cast<size_t>(fault) - 1).message;
      return out;
    }
    for (ir::ValueId v : lowered_.output_values) out.outputs.push_back(memory(v));
    return out;
  }

 private:
  Bytes& memory(ir::ValueId v) {
    const auto [it, fresh] = memory_.try_emplace(v);
    if (!fresh) return it->second;
    const ir::Value& value = graph_.value(v);
    it->second.resize(static_cast<size_t>(value.type.bytes()));
    if (value.kind == ir::ValueKind::kConstant) {
      const auto& bytes = value.constant->bytes;
      std::copy(bytes.begin(), bytes.end(), it->second.begin());
    }
    return it->second;
  }

  int32_t run(const lower::Group& group) {
    auto made = eval::Interpreter::create(group.kernel);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    if (!made.ok()) return 0;
    std::vector<void*> pointers;
    for (size_t b = 0; b < group.buffer_values.size(); ++b) {
      const ir::ValueId v = group.buffer_values[b];
      pointers.push_back(v == ir::kNoId ? nullptr
                                        : memory(v).data() + group.buffer_offset_bytes(b));
    }
    Bytes scratch(static_cast<size_t>(group.kernel.scratch_bytes()));
    int32_t fault = 0;
    pyc_kernel_args args{};
    args.buffers = pointers.data();
    args.scratch = scratch.data();
    args.fault = &fault;
    (*made)->run(args, 0, group.kernel.parallel_size());
    return fault;
  }

  const lower::LoweredGraph& lowered_;
  const ir::Graph& graph_;
  std::map<ir::ValueId, Bytes> memory_;
};

// The low bits of its products are mixed well enough for a choice.
uint32_t mixed(uint32_t x) {
  for (int i = 0; i < 2; ++i) x = (x ^ (x >> 16)) * 0x45d9f3bU;
  return x ^ (x >> 16);
}

}  // namespace

ir::VerifiedGraph canonical(const ir::Graph& graph) {
  auto verified = ir::verify_graph(graph);
  PYC_CHECK(verified.ok(), verified.status().to_string());
  DecisionLog log;
  auto out = passes::run_pipeline(*verified, ops::all_ops(), {}, &log);
  PYC_CHECK(out.ok(), out.status().to_string());
  return *out;
}

Outcome run_groups(const lower::LoweredGraph& lowered, const std::vector<Bytes>& inputs) {
  return Execution(lowered, inputs).run();
}

Outcome outcome_of(const ir::VerifiedGraph& graph, const std::vector<Bytes>& inputs,
                   const lower::LowerOptions& options) {
  const auto lowered = lower::lower_graph(graph, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  return lowered.ok() ? run_groups(*lowered, inputs) : Outcome{};
}

std::function<bool(const ir::Graph&, ir::ValueId)> any_groups(uint32_t seed, uint32_t one_of) {
  return [=](const ir::Graph&, ir::ValueId v) { return mixed(seed * 8191 + v) % one_of == 0; };
}

}  // namespace pyc::test

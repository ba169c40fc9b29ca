// Looking ahead of all runs: the same walk as a run's, over types.

#include <algorithm>

#include "exec/executor.h"
#include "exec/host_call.h"
#include "exec/stage.h"

namespace pyc::exec {

using open::OpenGraph;
using open::Segment;

namespace {

constexpr int kMaxRegionDepth = 64;  // of regions inside regions
constexpr int kMaxForeseen = 64;     // conditions multiply

DynValue type_of(const runtime::IoSpec& spec) {
  DynValue type;
  type.kind = DynValue::Kind::kTensor;
  type.dtype = spec.dtype;
  type.shape = spec.shape;
  return type;
}

bool is_condition(const DynValue& value) {
  return value.dtype == DType::kBool && value.elements() == 1;
}

DynValue condition(const DynValue& type, bool holds) {
  DynValue value = DynValue::of_bool(holds);
  value.shape = type.shape;
  return value;
}

// What a run of the segment leaves in the frame, as far as types tell.
void apply(const StageProgram& program, Frame& frame) {
  const Segment& segment = program.segment;
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    frame.set(segment.outputs[i], type_of(program.code.outputs[i]));
  }
  for (const auto& [v, constant] : segment.constants) frame.set(v, constant, true);
  for (const auto& [v, same] : segment.aliases) frame.set(v, *frame.find(same));
  for (const uint32_t n : segment.closed) frame.finish(n);
}

// Absent values stand for what is not known.
std::vector<DynValue> unknown(size_t count) { return std::vector<DynValue>(count); }

bool same_type(const DynValue& a, const DynValue& b) {
  return a.is_tensor() && b.is_tensor() && a.dtype == b.dtype && a.shape == b.shape;
}

}  // namespace

struct Executor::Outlook {
  int programs = 0;
  bool all = true;  // nothing was left to the runs
};

// The nodes that would run on the host now. Whether all that they give is known.
Result<bool> Executor::foresee_host_nodes(const StageProgram& program, Frame& frame,
                                          Outlook& outlook, int depth) {
  bool known = true;
  for (const open::Break& b : program.segment.breaks) {
    if (!runs_on_host(b, frame)) continue;
    const open::OpenNode& node = frame.graph().nodes[b.node];
    if (node.op->foresee == nullptr || complex_input(node, frame) != nullptr) {
      known = false;
      continue;
    }
    const auto enter = [&](const OpenGraph& region, std::vector<DynValue> inputs,
                           std::span<const DynValue> captured) {
      return foresee_graph(region, std::move(inputs), captured, outlook, depth + 1);
    };
    NodeCall call(node, frame, enter, [&]() -> const OpenGraph& { return graph_of(node); });
    PYC_TRY(node.op->foresee(call));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == open::kAbsentId) continue;
      if (!call.output(i) || call.output(i)->absent()) {
        known = false;
        continue;
      }
      frame.set(node.outputs[i], std::move(*call.output(i)));
    }
    frame.finish(b.node);
  }
  return known;
}

// Once with each content of a condition that decides what is compiled.
Result<std::vector<DynValue>> Executor::foresee_both(Stage& stage, const Frame& frame,
                                                     OpenId deciding, Outlook& outlook, int depth) {
  std::vector<std::vector<DynValue>> found;
  for (const bool holds : {true, false}) {
    Frame decided = frame;
    decided.set(deciding, condition(*frame.find(deciding), holds));
    PYC_ASSIGN(std::vector<DynValue> outputs,
               foresee_from(stage, std::move(decided), outlook, depth));
    found.push_back(std::move(outputs));
  }
  for (size_t i = 0; i < found[0].size(); ++i) {
    // A content may differ between the sides; what follows is only that there is one of this type.
    const bool same = same_type(found[0][i], found[1][i]);
    found[0][i].bytes = {};
    if (!same) found[0][i] = {};
  }
  return std::move(found[0]);
}

Result<std::vector<DynValue>> Executor::foresee_from(Stage& start, Frame frame, Outlook& outlook,
                                                     int depth) {
  const OpenGraph& g = frame.graph();
  const auto give_up = [&] {
    outlook.all = false;
    return unknown(g.outputs.size());
  };
  Stage* stage = &start;
  std::vector<std::shared_ptr<StageProgram>> path;  // keeps the stages alive
  while (!frame.complete()) {
    if (++outlook.programs > kMaxForeseen) return give_up();
    PYC_ASSIGN(const Segment segment,
               open::close_segment(frame.state(), *options_.ops, options_.evaluate));
    if (!segment.undetermined.empty()) {
      const OpenId first = segment.undetermined.front();
      if (!is_condition(*frame.find(first))) return give_up();
      return foresee_both(*stage, frame, first, outlook, depth);
    }
    PYC_ASSIGN(std::shared_ptr<StageProgram> program, find_program(*stage, frame, nullptr));
    apply(*program, frame);
    const Signature before = frame.signature();
    PYC_ASSIGN(const bool known, foresee_host_nodes(*program, frame, outlook, depth));
    const bool stuck = program->segment.closed.empty() && frame.signature() == before;
    if (!known || stuck) return give_up();
    stage = program->next.get();
    path.push_back(std::move(program));
  }
  std::vector<DynValue> outputs;
  for (const OpenId v : g.outputs) outputs.push_back(*frame.find(v));
  return outputs;
}

Result<std::vector<DynValue>> Executor::foresee_graph(const OpenGraph& g,
                                                      std::vector<DynValue> inputs,
                                                      std::span<const DynValue> captured,
                                                      Outlook& outlook, int depth) {
  const auto missing = [](const DynValue& v) { return v.absent(); };
  if (depth > kMaxRegionDepth || inputs.size() != g.inputs.size() ||
      std::any_of(inputs.begin(), inputs.end(), missing)) {
    outlook.all = false;
    return unknown(g.outputs.size());
  }
  Root& root = root_of(g);
  Frame frame(root.table);
  for (size_t i = 0; i < inputs.size(); ++i) frame.set(g.inputs[i], std::move(inputs[i]));
  for (size_t i = 0; i < captured.size(); ++i) frame.set(g.captures[i].inner, captured[i]);
  return foresee_from(*root.stage, std::move(frame), outlook, depth);
}

Result<bool> Executor::foresee(std::vector<DynValue> types) {
  Outlook outlook;
  PYC_TRY(foresee_graph(graph_, std::move(types), {}, outlook, 0).status());
  return outlook.all;
}

}  // namespace pyc::exec

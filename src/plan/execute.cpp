// verify_schedule: the plan executed on symbols. What each instance holds is followed through the
// steps; nothing is taken from what the planner thought.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "plan/happens_before.h"
#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/plan.h"
#include "plan/refusal.h"

namespace pyc::plan {
namespace {

bool among(const std::vector<uint32_t>& list, uint32_t entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

// What the bytes of an instance are.
struct Contents {
  ir::ValueId value = ir::kNoId;  // kNoId: nothing in particular
  std::string packing = {};
  std::optional<uint32_t> writer;  // the step that stored it; none: there from the start
  bool is(const Instance& i) const { return value == i.value && packing == i.packing; }
};

class Execution {
 public:
  Execution(const lower::LoweredGraph& lowered, const ExecutionPlan& plan,
            std::span<const lower::KernelNeeds> needs, const HappensBefore& before)
      : lowered_(lowered),
        graph_(*lowered.graph),
        plan_(plan),
        needs_(needs),
        before_(before),
        contents_(plan.instances.size()),
        used_(plan.instances.size()) {}

  Status run() {
    PYC_TRY(check_pairs());
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) PYC_TRY(start(i));
    std::vector<bool> ran(lowered_.groups.size(), false);
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind == StepKind::kRun) ran[step.group] = true;
      PYC_TRY(execute(s));
    }
    for (size_t g = 0; g < ran.size(); ++g) {
      if (!ran[g]) {
        return refusal("missing_step",
                       fmt::format("group '{}' never runs", lowered_.groups[g].name));
      }
    }
    PYC_TRY(check_one_code());
    return finish();
  }

 private:
  // A group has one code for all of its steps, made for the pairs of one.
  Status check_one_code() const {
    std::vector<uint32_t> runs(lowered_.groups.size(), 0);
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::kRun) ++runs[step.group];
    }
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.in_place.empty() || runs[step.group] == 1) continue;
      return refusal(
          "false_in_place",
          fmt::format("{} writes in place, but its group runs more than once", step_name(s)));
    }
    return {};
  }

  // Every state is an input and an output of one type, and no other's.
  Status check_pairs() {
    for (uint32_t v = 0; v < graph_.inputs.size(); ++v) given_.push_back(v);
    for (uint32_t v = 0; v < lowered_.output_values.size(); ++v) returned_.push_back(v);
    for (uint32_t s = 0; s < plan_.states.size(); ++s) {
      const auto [input, output] = plan_.states[s];
      const auto wrong = [&](const std::string& why) {
        return refusal("wrong_state", fmt::format("state {} is input {} and output {}: {}", s,
                                                  input, output, why));
      };
      if (std::erase(given_, input) != 1 || std::erase(returned_, output) != 1) {
        return wrong("one of them does not exist or is another state's");
      }
      const ir::TensorType& before = graph_.type(graph_.inputs[input]);
      const ir::TensorType& after = graph_.type(graph_.outputs[output]);
      if (before != after) {
        return wrong(fmt::format("{} is not {}", before.to_string(), after.to_string()));
      }
    }
    return {};
  }

  // What a state's instance may hold: its input's value or its output's.
  bool is_input_of_state(const Instance& i) const {
    return i.io_index < plan_.states.size() &&
           graph_.inputs[plan_.states[i.io_index].input] == i.value;
  }
  bool is_output_of_state(const Instance& i) const {
    return i.io_index < plan_.states.size() &&
           lowered_.output_values[plan_.states[i.io_index].output] == i.value;
  }

  // Inputs, parameters and states are there before the run.
  Status start(uint32_t i) {
    const Instance& instance = plan_.instances[i];
    const auto wrong = [&](const char* what) {
      return refusal("wrong_value", fmt::format("{} is no {}", name_of_instance(plan_, i), what));
    };
    if (instance.cls == BufferClass::kHostInput) {
      const bool is_input = instance.io_index < given_.size() &&
                            graph_.inputs[given_[instance.io_index]] == instance.value;
      if (!is_input || !instance.packing.empty() || instance.place != 0) return wrong("input");
      contents_[i].value = instance.value;
    }
    if (instance.cls == BufferClass::kState) {
      const bool is_input = is_input_of_state(instance);
      if ((!is_input && !is_output_of_state(instance)) || !instance.packing.empty()) {
        return wrong("value of its state");
      }
      if (is_input) {
        contents_[i].value = instance.value;
        held_.push_back(i);
      }
    }
    if (instance.cls == BufferClass::kParameter || instance.cls == BufferClass::kMapped) {
      if (instance.value == ir::kNoId ||
          graph_.value(instance.value).kind != ir::ValueKind::kConstant) {
        return wrong("constant");
      }
      contents_[i] = {instance.value, instance.packing, {}};
    }
    return {};
  }

  Status execute(uint32_t s) {
    const Step& step = plan_.steps[s];
    switch (step.kind) {
      case StepKind::kRun:
        PYC_TRY(check_places(s));
        PYC_TRY(check_operands(s));
        break;
      case StepKind::kCopy:
        PYC_TRY(check_copy(s));
        break;
      case StepKind::kRecord:
      case StepKind::kWait:
        if (named_by(step).empty()) return {};
        return refusal("bad_step", fmt::format("step {} is an event and names instances", s));
    }
    for (const uint32_t i : step.reads) PYC_TRY(read(s, i));
    for (const loop::InPlacePair& pair : step.in_place) PYC_TRY(check_in_place(s, pair));
    for (const uint32_t i : step.writes) {
      PYC_TRY(write(s, i, plan_.instances[i].value));
      if (step.kind == StepKind::kCopy) contents_[i].packing = plan_.instances[i].packing;
    }
    if (step.workspace != ir::kNoId) PYC_TRY(write(s, step.workspace, ir::kNoId));
    return {};
  }

  std::string step_name(uint32_t s) const {
    const Step& step = plan_.steps[s];
    if (step.kind != StepKind::kRun) return fmt::format("step {} (copy)", s);
    return fmt::format("step {} ({})", s, lowered_.groups[step.group].name);
  }

  std::string held_by(uint32_t i) const {
    const Contents& c = contents_[i];
    if (c.value != ir::kNoId) {
      return fmt::format("'{}'{}", graph_.value(c.value).name,
                         c.packing.empty() ? "" : " in another packing");
    }
    const std::optional<uint32_t> writer = last_writer_over(i);
    return writer ? fmt::format("what step {} left in its memory", *writer) : "nothing yet";
  }

  // The last step so far that wrote into memory of the instance.
  std::optional<uint32_t> last_writer_over(uint32_t i) const {
    std::optional<uint32_t> last = contents_[i].writer;
    for (uint32_t other = 0; other < plan_.instances.size(); ++other) {
      if (!share_bytes(plan_.instances[i], plan_.instances[other])) continue;
      last = std::max(last, contents_[other].writer);
    }
    return last;
  }

  Status read(uint32_t s, uint32_t i) {
    const Contents& c = contents_[i];
    if (!c.is(plan_.instances[i])) {
      return refusal("wrong_contents", fmt::format("{} reads {}, which holds {}", step_name(s),
                                                   name_of_instance(plan_, i), held_by(i)));
    }
    if (c.writer && !before_(*c.writer, s)) {
      return refusal("not_waited",
                     fmt::format("{} reads {} without waiting for step {}, which writes it",
                                 step_name(s), name_of_instance(plan_, i), *c.writer));
    }
    used_[i].push_back(s);
    return {};
  }

  // Steps that used the instance before are over, and what shares its bytes is lost.
  Status write(uint32_t s, uint32_t i, ir::ValueId value) {
    const Instance& instance = plan_.instances[i];
    const bool written = instance.cls == BufferClass::kOutput ||
                         (instance.cls == BufferClass::kState && is_output_of_state(instance));
    if (!in_arena(instance) && !written) {
      return refusal("wrong_class",
                     fmt::format("{} writes {}, which is of class {}", step_name(s),
                                 name_of_instance(plan_, i), buffer_class_name(instance.cls)));
    }
    for (const uint32_t u : used_[i]) {
      if (before_(u, s)) continue;
      return refusal("not_waited", fmt::format("{} writes {} without waiting for step {}",
                                               step_name(s), name_of_instance(plan_, i), u));
    }
    std::erase_if(held_, [&](uint32_t other) {
      if (other != i && !share_bytes(instance, plan_.instances[other])) return false;
      contents_[other] = {ir::kNoId, "", s};
      return true;
    });
    contents_[i] = {value, "", s};
    if (in_arena(instance) || instance.cls == BufferClass::kState) held_.push_back(i);
    used_[i].push_back(s);
    return {};
  }

  Status check_places(uint32_t s) const {
    const Step& step = plan_.steps[s];
    for (const uint32_t i : named_by(step)) {
      const Instance& instance = plan_.instances[i];
      if (instance.place == step.place) continue;
      return refusal("wrong_place",
                     fmt::format("{} runs on {} but {} lies in {}", step_name(s),
                                 plan_.places[step.place].name, name_of_instance(plan_, i),
                                 plan_.places[instance.place].name));
    }
    return {};
  }

  // The step names an instance of every value that its group's kernel takes, and no more writes;
  // what it reads is in memory.
  Status check_operands(uint32_t s) const {
    const Step& step = plan_.steps[s];
    for (const uint32_t i : step.reads) {
      if (plan_.instances[i].cls != BufferClass::kMapped) continue;
      return refusal("wrong_class", fmt::format("{} reads {}, which stays in a file", step_name(s),
                                                name_of_instance(plan_, i)));
    }
    const lower::Group& group = lowered_.groups[step.group];
    size_t written = 0;
    for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
      const loop::Access access = group.kernel.buffers[b].access;
      if (access == loop::Access::kScratch) continue;
      const ir::ValueId value = group.buffer_values[b];
      const bool writes = access == loop::Access::kWrite;
      if (writes) ++written;
      if (find_instance(plan_, writes ? step.writes : step.reads, value) != ir::kNoId) continue;
      if (!writes && reads_packed(step, value)) continue;
      return refusal(writes ? "missing_write" : "missing_read",
                     fmt::format("{} does not name '{}', which its group {}", step_name(s),
                                 graph_.value(value).name, writes ? "writes" : "reads"));
    }
    if (step.writes.size() != written) {
      return refusal("double_write", fmt::format("{} writes {} instances, its group {}",
                                                 step_name(s), step.writes.size(), written));
    }
    const uint32_t w = step.workspace;
    if (w != ir::kNoId && plan_.instances[w].cls != BufferClass::kWorkspace) {
      return refusal("wrong_class", fmt::format("{} has {} as its workspace", step_name(s),
                                                name_of_instance(plan_, w)));
    }
    return {};
  }

  // Whether the step reads the constant in some packed form.
  bool reads_packed(const Step& step, ir::ValueId value) const {
    return std::any_of(step.reads.begin(), step.reads.end(), [&](uint32_t i) {
      return plan_.instances[i].value == value && !plan_.instances[i].packing.empty();
    });
  }

  Status check_copy(uint32_t s) const {
    const Step& step = plan_.steps[s];
    if (step.reads.size() != 1 || step.writes.size() != 1 || step.workspace != ir::kNoId) {
      return refusal("bad_step", fmt::format("{} needs one source and one target", step_name(s)));
    }
    const Instance& from = plan_.instances[step.reads[0]];
    const Instance& to = plan_.instances[step.writes[0]];
    if (from.value != to.value || from.packing != to.packing || from.bytes != to.bytes) {
      return refusal("wrong_contents", fmt::format("{} copies {} into {}", step_name(s),
                                                   name_of_instance(plan_, step.reads[0]),
                                                   name_of_instance(plan_, step.writes[0])));
    }
    return {};
  }

  // The kernel of the step allows the pair, and both are the same memory.
  Status check_in_place(uint32_t s, const loop::InPlacePair& pair) const {
    const Step& step = plan_.steps[s];
    const auto wrong = [&](const char* why) {
      return refusal("false_in_place", fmt::format("{} writes {} in place of {}: {}", step_name(s),
                                                   name_of_instance(plan_, pair.written),
                                                   name_of_instance(plan_, pair.read), why));
    };
    if (step.kind != StepKind::kRun || !among(step.reads, pair.read) ||
        !among(step.writes, pair.written)) {
      return wrong("it does not read the one and write the other");
    }
    const Instance& r = plan_.instances[pair.read];
    const Instance& w = plan_.instances[pair.written];
    const bool temporaries = r.cls == BufferClass::kTemporary && w.cls == BufferClass::kTemporary;
    const bool states = r.cls == BufferClass::kState && w.cls == BufferClass::kState;
    if (!temporaries && !states) return wrong("only temporaries and states may be");
    const bool same = temporaries ? r.offset == w.offset : of_one_state(r, w);
    if (!same || r.bytes != w.bytes) return wrong("their memory is not the same");
    const auto shares =
        std::count_if(step.in_place.begin(), step.in_place.end(), [&](const loop::InPlacePair& p) {
          return p.read == pair.read || p.written == pair.written;
        });
    if (shares != 1) return wrong("another pair has one of them");
    const lower::Group& group = lowered_.groups[step.group];
    const loop::InPlacePair buffers{buffer_of(group, r.value), buffer_of(group, w.value)};
    const bool allowed = (temporaries && is_packed_before(step.group, buffers)) ||
                         loop::may_be_in_place(group.kernel, buffers);
    if (!cover_alike(group, buffers) || !allowed) return wrong("its kernel does not allow it");
    return {};
  }

  bool is_packed_before(uint32_t group, const loop::InPlacePair& buffers) const {
    const std::vector<loop::Buffer>& all = lowered_.groups[group].kernel.buffers;
    return group < needs_.size() && among(needs_[group].read_first, buffers.read) &&
           buffers.written < all.size() && all[buffers.written].access == loop::Access::kWrite;
  }

  static uint32_t buffer_of(const lower::Group& group, ir::ValueId value) {
    const auto& values = group.buffer_values;
    return static_cast<uint32_t>(std::find(values.begin(), values.end(), value) - values.begin());
  }

  // At the end everything is over and the outputs hold their values.
  Status finish() const {
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (before_.before_end(s)) continue;
      const std::vector<uint32_t> named = named_by(plan_.steps[s]);
      if (named.empty()) continue;
      return refusal("not_waited",
                     fmt::format("the run ends without waiting for {}, which uses {}", step_name(s),
                                 name_of_instance(plan_, named.back())));
    }
    for (uint32_t o = 0; o < returned_.size(); ++o) PYC_TRY(check_output(o));
    for (uint32_t s = 0; s < plan_.states.size(); ++s) PYC_TRY(check_state(s));
    return {};
  }

  Status check_state(uint32_t s) const {
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      if (instance.cls != BufferClass::kState || instance.io_index != s ||
          !is_output_of_state(instance)) {
        continue;
      }
      if (contents_[i].is(instance)) return {};
      return refusal("wrong_state", fmt::format("at the end {}, state {}, holds {}",
                                                name_of_instance(plan_, i), s, held_by(i)));
    }
    return refusal("wrong_state", fmt::format("state {} has no instance after the run", s));
  }

  Status check_output(uint32_t o) const {
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      if (instance.cls != BufferClass::kOutput || instance.io_index != o) continue;
      if (instance.place == 0 && instance.value == lowered_.output_values[returned_[o]] &&
          contents_[i].is(instance)) {
        return {};
      }
      return refusal("wrong_output", fmt::format("at the end {}, output {}, holds {}",
                                                 name_of_instance(plan_, i), o, held_by(i)));
    }
    return refusal("wrong_output", fmt::format("output {} has no instance", o));
  }

  const lower::LoweredGraph& lowered_;
  const ir::Graph& graph_;
  const ExecutionPlan& plan_;
  std::span<const lower::KernelNeeds> needs_;
  const HappensBefore& before_;
  std::vector<Contents> contents_;  // per instance
  std::vector<uint32_t> given_;     // the graph's inputs and outputs that are no state's
  std::vector<uint32_t> returned_;
  std::vector<std::vector<uint32_t>> used_;  // per instance: the steps that named it so far
  std::vector<uint32_t> held_;               // in arena or state, and nothing was written over them
};

}  // namespace

Status verify_schedule(const lower::LoweredGraph& lowered, const ExecutionPlan& plan,
                       std::span<const lower::KernelNeeds> needs) {
  PYC_TRY(check_ids(&lowered, plan));
  PYC_ASSIGN(const HappensBefore before, HappensBefore::create(plan));
  return Execution(lowered, plan, needs, before).run();
}

}  // namespace pyc::plan

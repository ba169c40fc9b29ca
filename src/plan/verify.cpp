#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "plan/happens_before.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"
#include "plan/refusal.h"

namespace pyc::plan {
namespace {

// Uses are those of the steps.
// Whether every instance has its uses, and its size is none that cannot be.
bool uses_are_right(const ExecutionPlan& plan) {
  struct Count {
    size_t uses = 0;
    uint32_t last = ir::kNoId;
  };
  std::vector<Count> counted(plan.instances.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    bool right = true;
    each_named(plan.steps[s], [&](uint32_t i) {
      if (counted[i].last == s) return;
      counted[i].last = s;
      const std::vector<uint32_t>& uses = plan.instances[i].uses;
      right = right && counted[i].uses < uses.size() && uses[counted[i].uses] == s;
      ++counted[i].uses;
    });
    if (!right) return false;
  }
  for (size_t i = 0; i < counted.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.bytes < 0 || counted[i].uses != instance.uses.size()) return false;
  }
  return true;
}

Status check_uses(const ExecutionPlan& plan) {
  if (uses_are_right(plan)) return {};
  ExecutionPlan counted = plan;
  set_uses(counted);
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.bytes < 0) {
      return refusal("negative_size",
                     fmt::format("{} has {} bytes", name_of_instance(plan, i), instance.bytes));
    }
    if (instance.uses == counted.instances[i].uses) continue;
    return refusal(
        "wrong_uses",
        fmt::format("{} is used at steps {}, not at {}", name_of_instance(plan, i),
                    fmt::join(counted.instances[i].uses, " "), fmt::join(instance.uses, " ")));
  }
  return {};
}

enum class Role : uint8_t { kGiven, kWritten, kWorkspace };

bool suits(BufferClass cls, Role role) {
  switch (cls) {
    case BufferClass::kHostInput:
    case BufferClass::kParameter:
    case BufferClass::kMapped:
      return role == Role::kGiven;
    case BufferClass::kTemporary:
    case BufferClass::kOutput:
      return role == Role::kWritten;
    case BufferClass::kWorkspace:
      return role == Role::kWorkspace;
    case BufferClass::kState:  // what it holds before a run, and what a step left there
      return role != Role::kWorkspace;
  }
  return false;
}

Status check_classes(const ExecutionPlan& plan) {
  std::vector<Role> roles(plan.instances.size(), Role::kGiven);
  for (const Step& step : plan.steps) {
    for (const uint32_t i : step.writes) roles[i] = Role::kWritten;
    if (step.workspace != ir::kNoId) roles[step.workspace] = Role::kWorkspace;
  }
  constexpr std::string_view kRoleNames[] = {"only read", "written by a step", "a workspace"};
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const std::string_view cls = buffer_class_name(instance.cls);
    if (!suits(instance.cls, roles[i])) {
      return refusal("wrong_class",
                     fmt::format("{} has class {} but is {}", name_of_instance(plan, i), cls,
                                 kRoleNames[static_cast<size_t>(roles[i])]));
    }
    if (in_arena(instance) != (instance.offset >= 0)) {
      return refusal("wrong_class",
                     fmt::format("{} has class {} but {} place in the arena",
                                 name_of_instance(plan, i), cls, in_arena(instance) ? "no" : "a"));
    }
  }
  return {};
}

// A state is two instances of one size, before a run and after it; one that the run does not write
// would keep what it has.
Status check_states(const ExecutionPlan& plan) {
  std::vector<std::vector<uint32_t>> of_state(plan.states.size());
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.cls != BufferClass::kState) continue;
    if (instance.io_index >= of_state.size()) {
      return refusal("wrong_state",
                     fmt::format("{} is of state {} of {}", name_of_instance(plan, i),
                                 instance.io_index, of_state.size()));
    }
    of_state[instance.io_index].push_back(i);
  }
  for (size_t s = 0; s < of_state.size(); ++s) {
    if (of_state[s].size() != 2) {
      return refusal("wrong_state",
                     fmt::format("state {} has {} instances, expected one before a run and one "
                                 "after it",
                                 s, of_state[s].size()));
    }
    const Instance& a = plan.instances[of_state[s][0]];
    const Instance& b = plan.instances[of_state[s][1]];
    if (a.bytes != b.bytes || a.place != b.place) {
      return refusal("wrong_state", fmt::format("{} and {} are no one memory",
                                                name_of_instance(plan, of_state[s][0]),
                                                name_of_instance(plan, of_state[s][1])));
    }
  }
  return {};
}

// Inputs, outputs and parameters are numbered from 0 without gaps; those in a file are parameters.
Status check_io_indices(const ExecutionPlan& plan) {
  std::array<std::vector<bool>, kBufferClasses> seen;
  const auto numbers_of = [&seen](const Instance& instance) -> std::vector<bool>& {
    const bool mapped = instance.cls == BufferClass::kMapped;
    return seen[static_cast<size_t>(mapped ? BufferClass::kParameter : instance.cls)];
  };
  for (const Instance& instance : plan.instances) numbers_of(instance).push_back(false);
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (in_arena(instance) || instance.cls == BufferClass::kState) continue;
    std::vector<bool>& taken = numbers_of(instance);
    if (instance.io_index >= taken.size() || taken[instance.io_index]) {
      return refusal("wrong_index",
                     fmt::format("{} cannot be {} {} of {}", name_of_instance(plan, i),
                                 buffer_class_name(instance.cls), instance.io_index, taken.size()));
    }
    taken[instance.io_index] = true;
  }
  return {};
}

Status check_offset(const ExecutionPlan& plan, uint32_t i) {
  const Instance& instance = plan.instances[i];
  const int64_t arena = plan.places[instance.place].metrics.arena_bytes;
  if (instance.offset % kAlignment != 0) {
    return refusal("misaligned",
                   fmt::format("{} at offset {} is not {}-byte aligned", name_of_instance(plan, i),
                               instance.offset, kAlignment));
  }
  const int64_t size = arena_size(instance);
  if (size > arena || instance.offset > arena - size) {
    return refusal("out_of_arena",
                   fmt::format("{} takes {} bytes at offset {} of an arena of {}",
                               name_of_instance(plan, i), size, instance.offset, arena));
  }
  return {};
}

bool in_place_at(const Step& step, uint32_t read, uint32_t written) {
  const loop::InPlacePair pair{read, written};
  return std::find(step.in_place.begin(), step.in_place.end(), pair) != step.in_place.end();
}

// Every use of `first` happens before every use of `second`, but for the step that writes the
// second in place of the first.
Status check_in_turn(const ExecutionPlan& plan, const HappensBefore& before, uint32_t first,
                     uint32_t second) {
  for (const uint32_t u : plan.instances[first].uses) {
    for (const uint32_t v : plan.instances[second].uses) {
      if (before(u, v)) continue;
      if (u == v && in_place_at(plan.steps[u], first, second)) continue;
      const std::string when = u == v ? fmt::format("step {} uses both", u)
                                      : fmt::format("step {} need not be over at step {}", u, v);
      const Instance& a = plan.instances[first];
      const std::string where =
          a.cls == BufferClass::kState
              ? fmt::format("of state {}", a.io_index)
              : fmt::format("at offset {}", std::max(a.offset, plan.instances[second].offset));
      return refusal("overlap",
                     fmt::format("{} and {} share memory {}: {}", name_of_instance(plan, first),
                                 name_of_instance(plan, second), where, when));
    }
  }
  return {};
}

Status check_sharing(const ExecutionPlan& plan, const HappensBefore& before) {
  std::vector<uint32_t> placed;
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    if (!in_arena(plan.instances[i])) continue;
    PYC_TRY(check_offset(plan, i));
    placed.push_back(i);
  }
  std::stable_sort(placed.begin(), placed.end(), [&](uint32_t a, uint32_t b) {
    const Instance& x = plan.instances[a];
    const Instance& y = plan.instances[b];
    return x.place != y.place ? x.place < y.place : x.offset < y.offset;
  });
  std::vector<int> first;
  std::vector<int> last;
  for (const Instance& instance : plan.instances) {
    const Lifetime life = lifetime(plan, instance);
    first.push_back(life.first);
    last.push_back(life.last);
  }
  // On one queue steps run as they are listed.
  const auto in_turn = [&](uint32_t a, uint32_t b) {
    return before.one_queue() && (last[a] < first[b] || last[b] < first[a]);
  };
  for (size_t i = 0; i < placed.size(); ++i) {
    for (size_t j = i + 1; j < placed.size(); ++j) {
      const Instance& a = plan.instances[placed[i]];
      const Instance& b = plan.instances[placed[j]];
      if (a.place != b.place || b.offset >= a.offset + arena_size(a)) break;
      if (in_turn(placed[i], placed[j])) continue;
      const auto writes_over = [&](uint32_t read, uint32_t written) {
        return in_place_at(plan.steps[static_cast<size_t>(first[written])], read, written);
      };
      const bool later =
          first[placed[j]] < first[placed[i]] ||
          (first[placed[j]] == first[placed[i]] && writes_over(placed[j], placed[i]));
      PYC_TRY(later ? check_in_turn(plan, before, placed[j], placed[i])
                    : check_in_turn(plan, before, placed[i], placed[j]));
    }
  }
  return {};
}

// What a state holds before a run is read before it is overwritten.
Status check_state_turns(const ExecutionPlan& plan, const HappensBefore& before) {
  std::vector<bool> written(plan.instances.size(), false);
  for (const Step& step : plan.steps) {
    for (const uint32_t i : step.writes) written[i] = true;
  }
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    for (uint32_t j = 0; j < plan.instances.size(); ++j) {
      if (i == j || written[i] || !of_one_state(plan.instances[i], plan.instances[j])) continue;
      PYC_TRY(check_in_turn(plan, before, i, j));
    }
  }
  return {};
}

Status check_metric(std::string_view name, int64_t expected, int64_t found) {
  if (expected == found) return {};
  return refusal("wrong_metrics", fmt::format("{}: expected {}, found {}", name, expected, found));
}

// How many threads the plan is for is not in it, so the scratch part of the peak is checked as a
// positive multiple of one thread's.
Status check_peak(int64_t without_scratch, const PlanMetrics& found) {
  if (found.scratch_bytes < 0 || found.scratch_bytes % kAlignment != 0) {
    return refusal("wrong_metrics",
                   fmt::format("scratch_bytes: expected a multiple of {}, found {}", kAlignment,
                               found.scratch_bytes));
  }
  const int64_t scratch = found.peak_bytes - without_scratch;
  if (found.scratch_bytes == 0)
    return check_metric("peak_bytes", without_scratch, found.peak_bytes);
  if (scratch < found.scratch_bytes || scratch % found.scratch_bytes != 0) {
    return refusal("wrong_metrics",
                   fmt::format("peak_bytes: expected {} and a multiple of {}, found {}",
                               without_scratch, found.scratch_bytes, found.peak_bytes));
  }
  return {};
}

Status check_metrics(const ExecutionPlan& plan, uint32_t place) {
  const PlanMetrics expected = measure(plan, place);
  const PlanMetrics& found = plan.places[place].metrics;
  for (size_t c = 0; c < kBufferClasses; ++c) {
    const std::string name =
        fmt::format("bytes of class {}", buffer_class_name(static_cast<BufferClass>(c)));
    PYC_TRY(check_metric(name, expected.class_bytes[c], found.class_bytes[c]));
  }
  struct Field {
    std::string_view name;
    int64_t PlanMetrics::*value;
  };
  constexpr Field kFields[] = {
      {"arena_bytes", &PlanMetrics::arena_bytes},
      {"requested_bytes", &PlanMetrics::requested_bytes},
      {"lower_bound_bytes", &PlanMetrics::lower_bound_bytes},
      {"largest_bytes", &PlanMetrics::largest_bytes},
      {"buffers", &PlanMetrics::buffers},
      {"reused", &PlanMetrics::reused},
      {"in_place", &PlanMetrics::in_place},
      {"overlap_pairs", &PlanMetrics::overlap_pairs},
      {"copied_bytes", &PlanMetrics::copied_bytes},
  };
  for (const Field& field : kFields) {
    PYC_TRY(check_metric(field.name, expected.*field.value, found.*field.value));
  }
  PYC_TRY(check_metric("peak_step", expected.peak_step, found.peak_step));
  return check_peak(expected.peak_bytes, found);
}

}  // namespace

Status check_ids(const lower::LoweredGraph* lowered, const ExecutionPlan& plan) {
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.place >= plan.places.size()) {
      return refusal("unknown_place",
                     fmt::format("{} lies in place {} of {}", name_of_instance(plan, i),
                                 instance.place, plan.places.size()));
    }
    const bool no_value = instance.value == ir::kNoId;
    if (no_value == (instance.cls == BufferClass::kWorkspace) &&
        (no_value || lowered == nullptr || instance.value < lowered->graph->values.size())) {
      continue;
    }
    return refusal("unknown_value", fmt::format("{} holds no value", name_of_instance(plan, i)));
  }
  const size_t count = plan.instances.size();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    std::vector<uint32_t> named = named_by(step);
    for (const loop::InPlacePair& p : step.in_place) {
      named.push_back(p.read);
      named.push_back(p.written);
    }
    if (std::any_of(named.begin(), named.end(), [count](uint32_t i) { return i >= count; })) {
      return refusal("unknown_instance",
                     fmt::format("step {} names an instance that is not among the {}", s, count));
    }
    if (step.place >= plan.places.size()) {
      return refusal("unknown_place", fmt::format("step {} runs on place {} of {}", s, step.place,
                                                  plan.places.size()));
    }
    if (lowered == nullptr || step.kind != StepKind::kRun) continue;
    if (step.group >= lowered->groups.size()) {
      return refusal("unknown_group", fmt::format("step {} names group {} of {}", s, step.group,
                                                  lowered->groups.size()));
    }
  }
  return {};
}

Status verify_allocation(const ExecutionPlan& plan) {
  PYC_TRY(check_ids(nullptr, plan));
  PYC_ASSIGN(const HappensBefore before, HappensBefore::create(plan));
  PYC_TRY(check_uses(plan));
  PYC_TRY(check_classes(plan));
  PYC_TRY(check_io_indices(plan));
  PYC_TRY(check_states(plan));
  PYC_TRY(check_sharing(plan, before));
  PYC_TRY(check_state_turns(plan, before));
  for (uint32_t p = 0; p < plan.places.size(); ++p) {
    Status metrics = check_metrics(plan, p);
    if (!metrics.ok() && p > 0) metrics = std::move(metrics).with_context(plan.places[p].name);
    PYC_TRY(std::move(metrics));
  }
  return {};
}

}  // namespace pyc::plan

#include "plan/in_place.h"

#include <algorithm>

#include "loop/in_place.h"
#include "loop/kept.h"

namespace pyc::plan {
namespace {

// Of buffers: what Loop IR allows, then what is packed before results are written.
std::vector<loop::InPlacePair> pairs_of_kernel(const lower::Group& group,
                                               const lower::KernelNeeds& needs) {
  std::vector<loop::InPlacePair> pairs = needs.in_place;
  for (const uint32_t read : needs.read_first) {
    for (uint32_t b = 0; b < group.kernel.buffers.size(); ++b) {
      if (group.kernel.buffers[b].access == loop::Access::kWrite) pairs.push_back({read, b});
    }
  }
  return pairs;
}

// Those of a step's pairs that are both temporaries of one place and size.
std::vector<loop::InPlacePair> pairs_of_step(const lower::Group& group,
                                             const lower::KernelNeeds& needs,
                                             const ExecutionPlan& plan, const Step& step) {
  std::vector<loop::InPlacePair> pairs;
  for (const loop::InPlacePair& buffers : pairs_of_kernel(group, needs)) {
    if (!cover_alike(group, buffers)) continue;
    const uint32_t read = find_instance(plan, step.reads, group.buffer_values[buffers.read]);
    const uint32_t written = find_instance(plan, step.writes, group.buffer_values[buffers.written]);
    if (read == ir::kNoId || written == ir::kNoId) continue;
    const Instance& r = plan.instances[read];
    const Instance& w = plan.instances[written];
    if (r.cls == BufferClass::kTemporary && w.cls == BufferClass::kTemporary &&
        r.bytes == w.bytes && r.place == w.place) {
      pairs.push_back({read, written});
    }
  }
  return pairs;
}

// Finds `written` a pair by moving those that are taken, along a path of at most one per instance.
class PairMatching {
 public:
  explicit PairMatching(std::span<const loop::InPlacePair> pairs)
      : pairs_(pairs), taken_(pairs.size(), false) {}

  std::vector<loop::InPlacePair> match() {
    for (size_t p = 0; p < pairs_.size(); ++p) {
      taken_[p] = holder(&loop::InPlacePair::read, pairs_[p].read) == kFree &&
                  holder(&loop::InPlacePair::written, pairs_[p].written) == kFree;
    }
    for (const loop::InPlacePair& p : pairs_) {
      if (holder(&loop::InPlacePair::written, p.written) != kFree) continue;
      std::vector<uint32_t> seen;
      find_place(p.written, seen);
    }
    std::vector<loop::InPlacePair> out;
    for (size_t p = 0; p < pairs_.size(); ++p) {
      if (taken_[p]) out.push_back(pairs_[p]);
    }
    return out;
  }

 private:
  static constexpr size_t kFree = SIZE_MAX;

  size_t holder(uint32_t loop::InPlacePair::*side, uint32_t instance) const {
    for (size_t p = 0; p < pairs_.size(); ++p) {
      if (taken_[p] && pairs_[p].*side == instance) return p;
    }
    return kFree;
  }

  bool find_place(uint32_t written, std::vector<uint32_t>& seen) {
    for (size_t p = 0; p < pairs_.size(); ++p) {
      if (pairs_[p].written != written || taken_[p]) continue;
      if (std::find(seen.begin(), seen.end(), pairs_[p].read) != seen.end()) continue;
      seen.push_back(pairs_[p].read);
      const size_t other = holder(&loop::InPlacePair::read, pairs_[p].read);
      if (other != kFree) {
        taken_[other] = false;
        if (!find_place(pairs_[other].written, seen)) {
          taken_[other] = true;
          continue;
        }
      }
      taken_[p] = true;
      return true;
    }
    return false;
  }

  std::span<const loop::InPlacePair> pairs_;
  std::vector<bool> taken_;  // per pair
};

}  // namespace

uint32_t find_instance(const ExecutionPlan& plan, const std::vector<uint32_t>& ids,
                       ir::ValueId value) {
  const auto found = std::find_if(ids.begin(), ids.end(), [&](uint32_t i) {
    return plan.instances[i].value == value && plan.instances[i].packing.empty();
  });
  return found == ids.end() ? ir::kNoId : *found;
}

bool cover_alike(const lower::Group& group, const loop::InPlacePair& buffers) {
  const size_t count = group.buffer_values.size();
  if (buffers.read >= count || buffers.written >= count) return false;
  const auto once = [&](uint32_t buffer) {
    return std::count(group.buffer_values.begin(), group.buffer_values.end(),
                      group.buffer_values[buffer]) == 1;
  };
  return once(buffers.read) && once(buffers.written) && group.buffer_offset(buffers.read) == 0 &&
         group.buffer_offset(buffers.written) == 0;
}

std::vector<std::vector<loop::InPlacePair>> possible_pairs(
    const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
    const ExecutionPlan& plan) {
  std::vector<uint32_t> runs(lowered.groups.size(), 0);
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kRun) ++runs[step.group];
  }
  std::vector<std::vector<loop::InPlacePair>> pairs(plan.steps.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind != StepKind::kRun || runs[step.group] > 1) continue;
    pairs[s] = pairs_of_step(lowered.groups[step.group], needs[step.group], plan, step);
  }
  return pairs;
}

std::vector<loop::InPlacePair> disjoint_pairs(std::span<const loop::InPlacePair> pairs) {
  if (pairs.size() < 2) return {pairs.begin(), pairs.end()};
  return PairMatching(pairs).match();
}

std::vector<loop::InPlacePair> saving_pairs(std::span<const loop::InPlacePair> possible,
                                            const ExecutionPlan& plan, uint32_t step) {
  std::vector<loop::InPlacePair> saving;
  for (const loop::InPlacePair& p : possible) {
    const bool last_read = plan.instances[p.read].uses.back() == step;
    if (last_read && plan.instances[p.written].uses.front() == step) saving.push_back(p);
  }
  return disjoint_pairs(saving);
}

void choose_in_place(std::span<const std::vector<loop::InPlacePair>> possible,
                     ExecutionPlan& plan) {
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const std::vector<loop::InPlacePair> chosen = saving_pairs(possible[s], plan, s);
    std::vector<loop::InPlacePair>& in_place = plan.steps[s].in_place;  // holds those of states
    in_place.insert(in_place.end(), chosen.begin(), chosen.end());
  }
}

void state_in_place(const ExecutionPlan& plan, lower::LoweredGraph& lowered) {
  for (const Step& step : plan.steps) {
    for (const loop::InPlacePair& pair : step.in_place) {
      lower::Group& group = lowered.groups[step.group];
      const auto& values = group.buffer_values;
      const auto buffer_of = [&](uint32_t instance) {
        const auto at = std::find(values.begin(), values.end(), plan.instances[instance].value);
        return static_cast<uint32_t>(at - values.begin());
      };
      const loop::InPlacePair buffers{buffer_of(pair.read), buffer_of(pair.written)};
      // What is read before is packed: no code reads the one and writes the other.
      if (!loop::may_be_in_place(group.kernel, buffers)) continue;
      group.set_in_place(buffers.written, buffers.read);
      // Generators of these name parts of the kernel.
      if (group.contraction || group.attention) continue;
      // A state holds what a run left there or what was set, with one NaN.
      const bool one_nan = plan.instances[pair.read].cls == BufferClass::kState;
      loop::drop_kept_stores(group.kernel, buffers, one_nan);
    }
  }
}

}  // namespace pyc::plan

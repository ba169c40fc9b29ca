#include "plan/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/metrics.h"

namespace pyc::plan {
namespace {

// An instance and two neighbouring uses of it.
struct Gap {
  uint32_t instance = ir::kNoId;
  uint32_t from = 0;
  uint32_t to = 0;
};

class OffloadSearch {
 public:
  OffloadSearch(const Drafting& drafting, Draft draft)
      : drafting_(drafting), given_(std::move(draft)) {}

  Draft fit(int64_t limit) && {
    std::optional<Draft> found = try_limit(limit);
    if (!found) found = lowered(0);
    if (found->placement.arena_bytes >= given_.placement.arena_bytes) return std::move(given_);
    log(*found, limit);
    return std::move(*found);
  }

 private:
  // Offsets may take more than the steps use; then less is asked for.
  std::optional<Draft> try_limit(int64_t limit) const {
    constexpr int kTries = 4;
    int64_t asked = limit;
    for (int i = 0; i < kTries && asked > 0; ++i) {
      Draft draft = lowered(asked);
      if (draft.placement.arena_bytes <= limit) return draft;
      if (draft.lower_bound > asked) return {};
      asked -= draft.placement.arena_bytes - limit;
    }
    return {};
  }

  // Moves out until no step uses more than `asked` bytes, or nothing more can
  // be.
  Draft lowered(int64_t asked) const {
    Draft out = given_;
    ExecutionPlan& plan = out.plan;
    plan.places.push_back({"shelf"});
    // Another step may be the largest now, so every result that may be in place
    // is.
    for (Step& step : plan.steps) {
      std::erase_if(step.in_place, [&](const loop::InPlacePair& p) {
        return plan.instances[p.read].cls == BufferClass::kTemporary;
      });
    }
    set_uses(plan);
    choose_in_place(possible_pairs(drafting_.lowered, drafting_.needs, plan), plan);
    std::map<uint32_t, uint32_t> shelf;  // by instance: where its value waits
    while (const std::optional<Gap> gap = largest_gap(plan, asked)) split(plan, *gap, shelf);
    out.order.clear();
    out.lower_bound = live_peak(plan, 0).bytes;
    out.placement = place_instances(plan, 0, true, drafting_.work.offsets);
    place_instances(plan, kShelf, true, drafting_.work.offsets);
    return out;
  }

  // What is not used at the first step that uses most, if that is more than
  // `asked`.
  static std::optional<Gap> largest_gap(const ExecutionPlan& plan, int64_t asked) {
    const std::vector<int64_t> use = live_bytes(plan, 0);
    const auto most = std::max_element(use.begin(), use.end());
    if (most == use.end() || *most <= asked) return {};
    const auto peak = static_cast<uint32_t>(most - use.begin());
    Gap best;
    const auto rank = [&](const Gap& g) {
      return std::tuple(arena_size(plan.instances[g.instance]), g.to - g.from);
    };
    for (uint32_t i = 0; i < plan.instances.size(); ++i) {
      const Instance& instance = plan.instances[i];
      if (instance.cls != BufferClass::kTemporary || instance.place != 0) continue;
      const auto later = std::upper_bound(instance.uses.begin(), instance.uses.end(), peak);
      if (later == instance.uses.begin() || later == instance.uses.end()) continue;
      const Gap gap{i, *std::prev(later), *later};
      if (gap.from == peak || arena_size(instance) == 0 || !computes(plan, gap)) continue;
      if (best.instance == ir::kNoId || rank(gap) > rank(best)) best = gap;
    }
    return best.instance == ir::kNoId ? std::nullopt : std::optional(best);
  }

  // Whether something runs between the two uses: waiting for other copies is no
  // reason to move out.
  static bool computes(const ExecutionPlan& plan, const Gap& gap) {
    return std::any_of(plan.steps.begin() + gap.from + 1, plan.steps.begin() + gap.to,
                       [](const Step& step) { return step.kind == StepKind::kRun; });
  }

  static uint32_t add(ExecutionPlan& plan, uint32_t like, const char* suffix, uint32_t place) {
    Instance copy = plan.instances[like];
    copy.name += suffix;
    copy.place = place;
    copy.offset = -1;
    plan.instances.push_back(std::move(copy));
    return static_cast<uint32_t>(plan.instances.size() - 1);
  }

  static Step copy_step(uint32_t from, uint32_t to) {
    Step step;
    step.kind = StepKind::kCopy;
    step.reads = {from};
    step.writes = {to};
    return step;
  }

  static void split(ExecutionPlan& plan, const Gap& gap, std::map<uint32_t, uint32_t>& shelf) {
    const uint32_t i = gap.instance;
    const bool waits = shelf.contains(i);
    if (!waits) shelf[i] = add(plan, i, ".out", kShelf);
    const uint32_t out = shelf.at(i);
    const uint32_t back = add(plan, i, ".back", 0);
    shelf[back] = out;
    for (uint32_t s = gap.to; s < plan.steps.size(); ++s) {
      Step& step = plan.steps[s];
      std::replace(step.reads.begin(), step.reads.end(), i, back);
      for (loop::InPlacePair& pair : step.in_place) {
        if (pair.read == i) pair.read = back;
      }
    }
    plan.steps.insert(plan.steps.begin() + gap.to, copy_step(out, back));
    if (!waits) plan.steps.insert(plan.steps.begin() + gap.from + 1, copy_step(i, out));
    set_uses(plan);
  }

  static void log(Draft& draft, int64_t limit) {
    ExecutionPlan& plan = draft.plan;
    const PlanMetrics device = measure(plan, 0);
    const PlanMetrics host = measure(plan, kShelf);
    plan.decisions.push_back({"plan:offload",
                              fmt::format("{} values moved out", host.buffers),
                              "over_budget",
                              fmt::format("arena {} bytes of {} allowed, {} on the host; {} bytes "
                                          "out and {} back",
                                          draft.placement.arena_bytes, limit, host.arena_bytes,
                                          host.copied_bytes, device.copied_bytes),
                              {}});
    for (const Instance& instance : plan.instances) {
      if (instance.place != kShelf) continue;
      const int64_t copies = static_cast<int64_t>(instance.uses.size());
      plan.decisions.push_back(
          {"offload:" + instance.name,
           "shelf",
           "no_room_on_device",
           fmt::format("{} bytes, copied {} times", instance.bytes, copies),
           {{"shelf", static_cast<double>(instance.bytes * copies) * kShelfNsPerByte, ""},
            {"in_memory", 0.0, "over_budget"}}});
    }
  }

  const Drafting& drafting_;
  Draft given_;
};

}  // namespace

Draft move_out(const Drafting& drafting, Draft draft, int64_t limit) {
  return OffloadSearch(drafting, std::move(draft)).fit(limit);
}

}  // namespace pyc::plan

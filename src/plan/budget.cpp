#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "plan/in_place.h"
#include "plan/recompute.h"

namespace pyc::plan {
namespace {

std::vector<double> times_of(const lower::LoweredGraph& lowered, std::span<const double> group_ns) {
  std::vector<double> times;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    const double known = g < group_ns.size() ? group_ns[g] : 0.0;
    times.push_back(known > 0 ? known
                              : static_cast<double>(std::max<int64_t>(1, lowered.groups[g].bytes)));
  }
  return times;
}

// Makes drafts with steps that run again.
class BudgetSearch {
 public:
  BudgetSearch(const Drafting& drafting, Draft draft, std::span<const double> group_ns)
      : drafting_(drafting),
        times_(times_of(drafting.lowered, group_ns)),
        task_{drafting.lowered, drafting.needs, times_},
        ordered_(drafting.unordered),
        kept_(std::move(draft)) {
    for (size_t s = 0; s < kept_.order.size(); ++s) {
      ordered_.steps[s] = drafting.unordered.steps[kept_.order[s]];
    }
    floor_ = largest_step(task_, ordered_);
  }

  // The draft with an arena of at most `limit` bytes, or the smallest that is found.
  Draft fit(int64_t limit) && {
    std::optional<Found> found = try_below(limit / kAlignment * kAlignment);
    if (!found) {
      found = smallest();
      if (!found) return std::move(kept_);
    }
    log(*found, limit);
    return std::move(found->draft);
  }

 private:
  struct Found {
    Draft draft;
    double more_ns = 0;
  };

  // Offsets may take more than the steps use; then less is asked for.
  std::optional<Found> try_limit(int64_t limit) const {
    constexpr int kTries = 4;
    int64_t asked = limit;
    for (int i = 0; i < kTries && asked >= floor_; ++i) {
      Recomputed made = recompute(task_, ordered_, asked, drafting_.work.recompute);
      if (!made.fits) return {};
      const Drafting again{drafting_.lowered, drafting_.needs, made.plan,
                           possible_pairs(drafting_.lowered, drafting_.needs, made.plan),
                           drafting_.work};
      Draft draft = again.draft(program_order(made.plan, again.pairs), true);
      if (draft.placement.arena_bytes <= limit) return Found{std::move(draft), made.more_ns};
      asked -= draft.placement.arena_bytes - limit;
    }
    return {};
  }

  // The part `of` parts of the way from what no plan is below to `limit`.
  int64_t between(int64_t limit, int64_t part, int64_t of) const {
    return floor_ + (limit - floor_) * part / of / kAlignment * kAlignment;
  }

  // A search may end where one for less does not: a few are tried.
  std::optional<Found> try_below(int64_t limit) const {
    if (limit < floor_) return {};
    constexpr int64_t kParts = 16;
    for (const int64_t part : {16, 15, 14, 12, 8, 4, 0}) {
      if (std::optional<Found> found = try_limit(between(limit, part, kParts))) return found;
    }
    return {};
  }

  // From what no plan is below up to what needs nothing run again, then by halves. It does not know
  // the budget: what it finds is found again for a budget of just that.
  std::optional<Found> smallest() const {
    constexpr int64_t kParts = 16;
    constexpr int kHalvings = 8;
    constexpr int kSteps = 32;
    const int64_t all = kept_.placement.arena_bytes;
    std::optional<Found> best;
    int64_t below = floor_ - kAlignment;  // did not fit
    for (int64_t part = 0; part < kParts && !best; ++part) {
      best = try_limit(between(all, part, kParts));
      if (!best) below = between(all, part, kParts);
    }
    for (int i = 0; i < kHalvings && best; ++i) {
      const int64_t fits = best->draft.placement.arena_bytes;
      if (below + kAlignment >= fits) break;
      const int64_t middle = below + (fits - below) / 2 / kAlignment * kAlignment;
      std::optional<Found> found = try_limit(middle);
      if (found) {
        best = std::move(found);
      } else {
        below = middle;
      }
    }
    for (int i = 0; i < kSteps; ++i) {
      const int64_t fits = best ? best->draft.placement.arena_bytes : all;
      std::optional<Found> found = try_below(fits - kAlignment);
      if (!found) break;
      best = std::move(found);
    }
    return best;
  }

  double total_ns() const {
    double sum = 0;
    for (const double ns : times_) sum += ns;
    return sum;
  }

  void log(Found& found, int64_t limit) const {
    ExecutionPlan& plan = found.draft.plan;
    DecisionLog decisions = std::move(plan.decisions);  // of states
    std::copy_if(kept_.plan.decisions.begin(), kept_.plan.decisions.end(),
                 std::back_inserter(decisions),
                 [](const Decision& d) { return d.what == "plan:order"; });
    const std::vector<bool> again = runs_again(plan);
    decisions.push_back(
        {"plan:recompute",
         fmt::format("{} steps again", std::count(again.begin(), again.end(), true)),
         "over_budget",
         fmt::format("arena {} bytes of {} allowed, {} without; {:.1f} % more predicted time",
                     found.draft.placement.arena_bytes, limit, kept_.placement.arena_bytes,
                     100.0 * found.more_ns / total_ns()),
         {}});
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      if (again[s]) decisions.push_back(recompute_decision(plan, s));
    }
    plan.decisions = std::move(decisions);
  }

  Decision recompute_decision(const ExecutionPlan& plan, size_t s) const {
    const Step& step = plan.steps[s];
    int64_t bytes = 0;
    for (const uint32_t i : step.writes) bytes += plan.instances[i].bytes;
    const std::string& name = drafting_.lowered.groups[step.group].name;
    return {"recompute:" + name,
            "again",
            "over_budget",
            fmt::format("step {} writes {} bytes that were not kept", s, bytes),
            {{"again", times_[step.group], ""}, {"kept", 0.0, "over_budget"}}};
  }

  const Drafting& drafting_;
  std::vector<double> times_;
  RecomputeTask task_;
  ExecutionPlan ordered_;
  Draft kept_;
  int64_t floor_ = 0;
};

}  // namespace

Draft fit_arena(const Drafting& drafting, Draft draft, std::span<const double> group_ns,
                int64_t limit) {
  return BudgetSearch(drafting, std::move(draft), group_ns).fit(limit);
}

}  // namespace pyc::plan

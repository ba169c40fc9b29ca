#include "plan/order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "plan/step_run.h"

namespace pyc::plan {
namespace {

// How many steps the look-ahead takes behind a candidate.
constexpr int kLookAhead = 8;

StepOrder order_of(const StepRun& run, int64_t peak, std::string_view found_by) {
  StepOrder order{.steps = {}, .peak_bytes = peak, .found_by = found_by};
  order.steps.assign(run.trail().begin(), run.trail().end());
  return order;
}

// The step after which the fewest bytes are live, the earliest of several.
uint32_t least_growth(const StepRun& run) {
  return *std::min_element(run.ready().begin(), run.ready().end(),
                           [&](uint32_t a, uint32_t b) { return run.growth(a) < run.growth(b); });
}

StepOrder as_it_stands(StepRun& run) {
  int64_t peak = 0;
  for (uint32_t s = 0; s < run.count(); ++s) {
    peak = std::max(peak, run.use(s));
    run.run(s);
  }
  StepOrder order = order_of(run, peak, "program_order");
  run.back_to(0);
  return order;
}

StepOrder by_growth(StepRun& run) {
  int64_t peak = 0;
  while (!run.complete()) {
    const uint32_t s = least_growth(run);
    peak = std::max(peak, run.use(s));
    run.run(s);
  }
  StepOrder order = order_of(run, peak, "memory_aware_order");
  run.back_to(0);
  return order;
}

// Looks for orders with less memory than the best one known.
class OrderSearch {
 public:
  OrderSearch(StepRun& run, StepOrder best, int64_t work)
      : run_(run), best_(std::move(best)), work_(work) {
    for (uint32_t s = 0; s < run.count(); ++s) floor_ = std::max(floor_, run.least(s));
  }

  StepOrder best() {
    take(by_growth(run_));
    if (best_.peak_bytes > floor_) look_ahead();
    best_.optimal = best_.peak_bytes <= floor_;
    while (!best_.optimal && work_ > 0) {
      const std::optional<bool> better = search(best_.peak_bytes - 1);
      if (!better) break;
      best_.optimal = !*better || best_.peak_bytes <= floor_;
    }
    return std::move(best_);
  }

 private:
  void take(StepOrder order) {
    if (order.peak_bytes < best_.peak_bytes) best_ = std::move(order);
  }

  // What comes of a step: the bytes in use until the fewest are live again, and those.
  struct Prospect {
    int64_t peak;
    int64_t live;
    auto operator<=>(const Prospect&) const = default;
  };
  Prospect prospect(uint32_t step, int64_t peak) {
    const size_t before = run_.trail().size();
    Prospect best{std::max(peak, run_.use(step)), 0};
    run_.run(step);
    best.live = run_.live();
    int64_t top = best.peak;
    for (int i = 0; i < kLookAhead && !run_.complete(); ++i) {
      work_ -= static_cast<int64_t>(run_.ready().size());
      const uint32_t next = least_growth(run_);
      top = std::max(top, run_.use(next));
      run_.run(next);
      if (run_.live() < best.live) best = {top, run_.live()};
    }
    run_.back_to(before);
    return best;
  }

  // Takes half of the work at most and goes on by growth alone then.
  void look_ahead() {
    const int64_t rest = work_ / 2;
    int64_t peak = 0;
    while (!run_.complete() && peak < best_.peak_bytes) {
      uint32_t chosen = least_growth(run_);
      if (run_.ready().size() > 1 && work_ > rest) {
        std::optional<Prospect> least;
        for (const uint32_t s : std::vector<uint32_t>(run_.ready())) {
          const Prospect found = prospect(s, peak);
          if (least && !(found < *least)) continue;
          least = found;
          chosen = s;
        }
      }
      peak = std::max(peak, run_.use(chosen));
      run_.run(chosen);
    }
    if (run_.complete()) take(order_of(run_, peak, "look_ahead_order"));
    run_.back_to(0);
  }

  // A point of the search: steps that may come next and have not been tried.
  struct Branch {
    StepRun::Key key;
    size_t steps;  // that had run before it
    std::vector<uint32_t> candidates;
    size_t next = 0;
  };

  // Runs what loses nothing by running now: a step that fits and after which no more bytes are live
  // than before. Run later in any order, it could as well run now: live bytes would at no point be
  // more, and what others write in place they still could.
  void settle(int64_t limit) {
    for (bool found = true; found;) {
      found = false;
      for (const uint32_t s : run_.ready()) {
        --work_;
        if (run_.growth(s) > 0 || run_.use(s) > limit) continue;
        run_.run(s);
        found = true;
        break;
      }
    }
  }

  // The point that is reached now, or nothing if it is known to lead nowhere.
  std::optional<Branch> branch(size_t steps, int64_t limit) {
    settle(limit);
    if (failed_.contains(run_.key())) return {};
    Branch out{run_.key(), steps, {}};
    for (const uint32_t s : run_.ready()) {
      --work_;
      if (run_.use(s) <= limit) out.candidates.push_back(s);
    }
    std::stable_sort(out.candidates.begin(), out.candidates.end(),
                     [this](uint32_t a, uint32_t b) { return run_.growth(a) < run_.growth(b); });
    return out;
  }

  // Whether there is an order of at most `limit` bytes, which is then the best one; nothing when
  // the work ends first. A set of steps that could not be completed within more bytes cannot be
  // within fewer, so `failed_` stays.
  std::optional<bool> search(int64_t limit) {
    std::vector<Branch> open;
    if (auto first = branch(0, limit)) open.push_back(std::move(*first));
    while (!open.empty() && !run_.complete() && work_ > 0) {
      Branch& at = open.back();
      if (at.next == at.candidates.size()) {
        failed_.insert(at.key);
        run_.back_to(at.steps);
        open.pop_back();
        continue;
      }
      const size_t before = run_.trail().size();
      run_.run(at.candidates[at.next++]);
      if (auto deeper = branch(before, limit)) {
        open.push_back(std::move(*deeper));
      } else {
        run_.back_to(before);
      }
    }
    const bool found = run_.complete();
    if (found) keep_trail();
    run_.back_to(0);
    if (!found && !open.empty()) return {};
    return found;
  }

  void keep_trail() {
    const std::vector<uint32_t> trail = run_.trail();
    run_.back_to(0);
    int64_t peak = 0;
    for (const uint32_t s : trail) {
      peak = std::max(peak, run_.use(s));
      run_.run(s);
    }
    best_ = order_of(run_, peak, "searched_order");
  }

  StepRun& run_;
  StepOrder best_;
  int64_t work_;
  int64_t floor_ = 0;  // what some step takes by itself
  std::set<StepRun::Key> failed_;
};

}  // namespace

StepOrder program_order(const ExecutionPlan& plan, const PairsOfSteps& pairs) {
  StepRun run(plan, pairs);
  return as_it_stands(run);
}

StepOrder greedy_order(const ExecutionPlan& plan, const PairsOfSteps& pairs) {
  StepRun run(plan, pairs);
  return run.orderable() ? by_growth(run) : as_it_stands(run);
}

StepOrder least_memory_order(const ExecutionPlan& plan, const PairsOfSteps& pairs, int64_t work) {
  StepRun run(plan, pairs);
  StepOrder order = as_it_stands(run);
  return run.orderable() ? OrderSearch(run, std::move(order), work).best() : order;
}

}  // namespace pyc::plan

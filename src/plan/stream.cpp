#include "plan/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/metrics.h"

namespace pyc::plan {
namespace {

// How many choices get offsets before one that is known to fit is taken.
constexpr size_t kTries = 8;

struct Streamable {
  uint32_t instance = 0;
  int64_t bytes = 0;
  int64_t window = 0;                  // what it takes in the arena
  std::vector<uint32_t> readers = {};  // steps

  int64_t copied() const { return bytes * static_cast<int64_t>(readers.size()); }
};

// Which parameters stay in the file.
struct Choice {
  std::vector<bool> streamed;  // per Streamable
  int64_t arena = 0;           // what no step is above
  int64_t resident = 0;        // bytes of the other parameters
  int64_t copied = 0;          // in a run

  int64_t total() const { return arena + resident; }
};

class StreamSearch {
 public:
  StreamSearch(const Drafting& drafting, Draft draft)
      : drafting_(drafting), given_(std::move(draft)), draft_(given_) {
    write_in_place();
    use_ = live_bytes(draft_.plan, 0);
    base_ = use_.empty() ? 0 : *std::max_element(use_.begin(), use_.end());
    for (uint32_t i = 0; i < draft_.plan.instances.size(); ++i) {
      const Instance& instance = draft_.plan.instances[i];
      if (instance.cls != BufferClass::kParameter || instance.place != 0) continue;
      all_bytes_ += instance.bytes;
      if (instance.bytes == 0 || instance.uses.empty()) continue;
      parameters_.push_back({i, instance.bytes, arena_size(instance), instance.uses});
    }
    // Those that win most go first, ties by number.
    std::stable_sort(parameters_.begin(), parameters_.end(),
                     [](const Streamable& a, const Streamable& b) { return a.bytes > b.bytes; });
  }

  Draft fit(int64_t limit) && {
    if (parameters_.empty()) return std::move(given_);
    Made least = smallest();
    if (arena_and_parameters(given_) <= arena_and_parameters(least.draft)) return std::move(given_);
    if (arena_and_parameters(least.draft) > limit) return take(std::move(least), limit);
    std::vector<Choice> choices;
    for (const int64_t level : levels()) {
      Choice choice = within(level);
      if (choice.total() > limit) continue;
      keep_small(choice, limit);
      choices.push_back(std::move(choice));
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.copied != b.copied ? a.copied < b.copied : a.arena < b.arena;
    });
    for (size_t i = 0; i < std::min(kTries, choices.size()); ++i) {
      Made made = make(choices[i]);
      if (arena_and_parameters(made.draft) <= limit) return take(std::move(made), limit);
    }
    return take(std::move(least), limit);
  }

 private:
  struct Made {
    Draft draft;
    Choice choice;
  };

  // With windows the largest step may be another one, so every result that may be in place is.
  void write_in_place() {
    ExecutionPlan& plan = draft_.plan;
    for (Step& step : plan.steps) {
      std::erase_if(step.in_place, [&](const loop::InPlacePair& p) {
        return plan.instances[p.read].cls == BufferClass::kTemporary;
      });
    }
    set_uses(plan);
    choose_in_place(possible_pairs(drafting_.lowered, drafting_.needs, plan), plan);
  }

  // The sizes of arena that are worth a look: where one more window fits somewhere.
  std::vector<int64_t> levels() const {
    std::vector<int64_t> together = use_;
    std::vector<int64_t> found = {base_};
    for (const Streamable& p : parameters_) {
      for (const uint32_t s : p.readers) {
        together[s] += p.window;
        found.push_back(use_[s] + p.window);
      }
    }
    found.insert(found.end(), together.begin(), together.end());
    for (int64_t& level : found) level = std::max(level, base_);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // As much as possible stays in the file while no step uses more than `level` bytes of the arena.
  Choice within(int64_t level) const {
    Choice choice{.streamed = std::vector<bool>(parameters_.size(), false),
                  .arena = level,
                  .resident = all_bytes_};
    std::vector<int64_t> use = use_;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Streamable& p = parameters_[i];
      if (!std::all_of(p.readers.begin(), p.readers.end(),
                       [&](uint32_t s) { return use[s] + p.window <= level; })) {
        continue;
      }
      for (const uint32_t s : p.readers) use[s] += p.window;
      choice.streamed[i] = true;
      choice.resident -= p.bytes;
      choice.copied += p.copied();
    }
    return choice;
  }

  // What fits stays in memory after all, the smallest first: that leaves the fewest copies.
  void keep_small(Choice& choice, int64_t limit) const {
    for (size_t i = parameters_.size(); i-- > 0;) {
      if (!choice.streamed[i] || choice.total() + parameters_[i].bytes > limit) continue;
      choice.streamed[i] = false;
      choice.resident += parameters_[i].bytes;
      choice.copied -= parameters_[i].copied();
    }
  }

  // It does not know the limit.
  Made smallest() const {
    std::vector<Choice> choices;
    for (const int64_t level : levels()) choices.push_back(within(level));
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.total() < b.total(); });
    std::optional<Made> best;
    for (size_t i = 0; i < std::min(kTries, choices.size()); ++i) {
      if (best && arena_and_parameters(best->draft) <= choices[i].total()) break;
      Made made = make(choices[i]);
      if (best && arena_and_parameters(best->draft) <= arena_and_parameters(made.draft)) continue;
      best = std::move(made);
    }
    return std::move(*best);  // there is a level at least
  }

  Made make(const Choice& choice) const {
    Draft out = draft_;
    ExecutionPlan& plan = out.plan;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (choice.streamed[i]) plan.instances[parameters_[i].instance].cls = BufferClass::kMapped;
    }
    std::vector<Step> steps;
    for (Step& step : plan.steps) {
      for (uint32_t& read : step.reads) {
        if (plan.instances[read].cls != BufferClass::kMapped) continue;
        const uint32_t window = add_window(plan, read);
        Step copy;
        copy.kind = StepKind::kCopy;
        copy.reads = {read};
        copy.writes = {window};
        steps.push_back(std::move(copy));
        read = window;
      }
      steps.push_back(std::move(step));
    }
    plan.steps = std::move(steps);
    out.order.clear();
    set_uses(plan);
    out.placement = place_instances(plan, 0, true, drafting_.work.offsets);
    out.lower_bound =
        program_order(plan, possible_pairs(drafting_.lowered, drafting_.needs, plan)).peak_bytes;
    return {std::move(out), choice};
  }

  static uint32_t add_window(ExecutionPlan& plan, uint32_t parameter) {
    Instance window = plan.instances[parameter];
    window.name += ".window";
    window.cls = BufferClass::kTemporary;
    window.io_index = 0;
    plan.instances.push_back(std::move(window));
    return static_cast<uint32_t>(plan.instances.size() - 1);
  }

  Draft take(Made made, int64_t limit) const {
    DecisionLog& log = made.draft.plan.decisions;
    const auto count = std::count(made.choice.streamed.begin(), made.choice.streamed.end(), true);
    log.push_back(
        {"plan:stream",
         fmt::format("{} parameters in a file", count),
         "over_budget",
         fmt::format("arena {} and parameters {} bytes of {} allowed; {} bytes copied in a "
                     "run",
                     made.draft.placement.arena_bytes, made.choice.resident, limit,
                     made.choice.copied),
         {}});
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!made.choice.streamed[i]) continue;
      const Streamable& p = parameters_[i];
      log.push_back({"stream:" + draft_.plan.instances[p.instance].name,
                     "window",
                     "over_budget",
                     fmt::format("{} bytes copied before {} steps", p.bytes, p.readers.size()),
                     {{"window", static_cast<double>(p.copied()) * kStreamNsPerByte, ""},
                      {"in_memory", 0.0, "over_budget"}}});
    }
    return std::move(made.draft);
  }

  const Drafting& drafting_;
  Draft given_;
  Draft draft_;                         // with all results in place that may be
  std::vector<Streamable> parameters_;  // largest first
  std::vector<int64_t> use_;            // per step: arena bytes without windows
  int64_t base_ = 0;                    // their largest
  int64_t all_bytes_ = 0;               // of all parameters
};

}  // namespace

Draft stream_parameters(const Drafting& drafting, Draft draft, int64_t limit) {
  return StreamSearch(drafting, std::move(draft)).fit(limit);
}

int64_t arena_and_parameters(const Draft& draft) {
  int64_t sum = draft.placement.arena_bytes;
  for (const Instance& instance : draft.plan.instances) {
    if (instance.place == 0 && instance.cls == BufferClass::kParameter) sum += instance.bytes;
  }
  return sum;
}

}  // namespace pyc::plan

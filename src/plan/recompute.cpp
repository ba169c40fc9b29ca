#include "plan/recompute.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "plan/chain.h"
#include "plan/in_place.h"
#include "plan/liveness.h"
#include "plan/order.h"
#include "plan/step_run.h"

namespace pyc::plan {
namespace {

// How many steps one move may run again.
constexpr size_t kLongestChain = 24;

int64_t over(int64_t bytes, int64_t limit) { return std::max<int64_t>(0, bytes - limit); }

// The arena bytes in use along the steps as they stand.
struct Profile {
  std::vector<int64_t> use;       // per step: while it runs
  std::vector<int64_t> through;   // per step: of what was live before it and is used then or later
  std::vector<int64_t> saved;     // per step: by results in place
  std::vector<uint32_t> crowded;  // per step: how many steps before it are over the limit
  int64_t excess = 0;             // bytes over the limit, summed over the steps

  Profile(const RecomputeTask& task, const ExecutionPlan& plan, int64_t limit)
      : use(plan.steps.size() + 1, 0),
        through(plan.steps.size() + 1, 0),
        saved(plan.steps.size(), 0),
        crowded(plan.steps.size() + 1, 0) {
    for (const Instance& i : plan.instances) {
      if (!in_arena(i) || i.uses.empty()) continue;
      const int64_t bytes = arena_size(i);
      use[i.uses.front()] += bytes;
      use[i.uses.back() + 1] -= bytes;
      if (i.uses.front() == i.uses.back()) continue;
      through[i.uses.front() + 1] += bytes;
      through[i.uses.back() + 1] -= bytes;
    }
    std::partial_sum(use.begin(), use.end(), use.begin());
    std::partial_sum(through.begin(), through.end(), through.begin());
    const auto pairs = possible_pairs(task.lowered, task.needs, plan);
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      for (const loop::InPlacePair& p : saving_pairs(pairs[s], plan, s)) {
        saved[s] += arena_size(plan.instances[p.written]);
      }
      use[s] -= saved[s];
      excess += over(use[s], limit);
      crowded[s + 1] = crowded[s] + (use[s] > limit ? 1 : 0);
    }
  }
};

// Bytes that become live or free from one step to before another.
struct Change {
  uint32_t from;
  uint32_t to;
  int64_t bytes;
};

// A step to run again, and where it finds what it reads.
struct Rerun {
  uint32_t step;                              // a step of its group
  std::map<uint32_t, uint32_t> from = {};     // per instance it reads: another one to read
  std::map<uint32_t, ir::ValueId> made = {};  // per instance it reads: made by an earlier rerun
};

// An instance is not kept between two of its uses: before the later one its step runs again.
struct Move {
  uint32_t instance = ir::kNoId;
  uint32_t before = 0;  // the step that uses it again
  bool crowd = false;   // inputs may be kept over steps that are over the limit
  std::vector<Rerun> reruns = {};
  std::vector<uint32_t> kept = {};  // what lives on until then for the reruns
  std::vector<Change> changes = {};
  double ns = 0;
  int64_t gain = 0;  // of the excess
};

class Search {
 public:
  Search(const RecomputeTask& task, const ExecutionPlan& plan, int64_t limit, int64_t work)
      : task_(task), plan_(plan), limit_(limit), work_(work), profile_(look()) {}

  void lower() {
    std::set<std::pair<uint32_t, uint32_t>> banned;  // moves that promised more than they did
    while (profile_.excess > 0 && work_ > 0) {
      const std::optional<Move> move = best_move(banned);
      if (!move) return;
      const ExecutionPlan before = plan_;
      const int64_t excess = profile_.excess;
      apply(*move);
      profile_ = look();
      if (profile_.excess < excess) {
        banned.clear();
        continue;
      }
      plan_ = before;
      profile_ = look();
      banned.emplace(move->instance, move->before);
    }
  }

  // Gives up the values that are cheapest to make again of those that are kept over the most
  // crowded step, taken as a chain (chain.h); what is over the limit then is left to lower().
  void lower_chain() {
    const auto peak = static_cast<uint32_t>(
        std::max_element(profile_.use.begin(), profile_.use.end() - 1) - profile_.use.begin());
    const int64_t need = profile_.use[peak] - limit_;
    if (need <= 0) return;
    std::vector<Move> moves;
    std::vector<ChainValue> values;
    for (uint32_t s = 0; s < peak && work_ > 0; ++s) {
      std::optional<Move> move = move_over(s, peak);
      const int64_t bytes = move ? -changed(*move, peak) : 0;
      if (bytes <= 0) continue;
      values.push_back({bytes, std::max(move->ns, 0.0)});
      moves.push_back(std::move(*move));
    }
    work_ -= static_cast<int64_t>(values.size() * kChainStates);
    const std::vector<bool> dropped = cheapest_of_chain(values, need, limit_);
    // From the last one on: then what it is made of is given up until just before it.
    const uint32_t group = plan_.steps[peak].group;
    for (size_t i = dropped.size(); i > 0; --i) {
      if (dropped[i - 1]) give_up(moves[i - 1].instance, group);
    }
  }

  // Takes back runs that the limit does not need, the dearest first.
  void take_back() {
    for (bool found = true; found && work_ > 0;) {
      found = false;
      for (const uint32_t s : dearest_reruns()) {
        ExecutionPlan before = plan_;
        read_earlier(s);
        Profile after = look();
        if (after.excess == 0) {
          profile_ = std::move(after);
          found = true;
          break;
        }
        plan_ = std::move(before);
        set_uses(plan_);
        if (work_ <= 0) return;
      }
    }
  }

  Recomputed result() && {
    Recomputed out{.plan = {}, .more_ns = 0, .fits = profile_.excess == 0};
    const std::vector<bool> again = runs_again(plan_);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (again[s]) out.more_ns += task_.group_ns[plan_.steps[s].group];
    }
    drop_unused();
    for (Instance& i : plan_.instances) i.uses.clear();
    out.plan = std::move(plan_);
    return out;
  }

  bool fits() const { return profile_.excess == 0; }

 private:
  Profile look() {
    set_uses(plan_);
    writer_.assign(plan_.instances.size(), ir::kNoId);
    instances_of_.assign(task_.lowered.graph->values.size(), {});
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      for (const uint32_t i : step.writes) {
        writer_[i] = s;
        instances_of_[plan_.instances[i].value].push_back(i);
      }
    }
    work_ -= static_cast<int64_t>(plan_.steps.size());
    return {task_, plan_, limit_};
  }

  double ns_of(uint32_t step) const { return task_.group_ns[plan_.steps[step].group]; }

  // Whether the step may run again right before step `at`.
  bool may_run_again(uint32_t s, uint32_t at) const {
    const Step& step = plan_.steps[s];
    return step.kind == StepKind::kRun &&
           std::all_of(
               step.writes.begin(), step.writes.end(),
               [&](uint32_t i) { return plan_.instances[i].cls == BufferClass::kTemporary; }) &&
           std::all_of(step.reads.begin(), step.reads.end(),
                       [&](uint32_t i) { return !overwritten(plan_.instances[i], at); });
  }

  // Whether a step before `at` writes over the state that the instance is of.
  bool overwritten(const Instance& read, uint32_t at) const {
    if (read.cls != BufferClass::kState) return false;
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) {
      if (of_one_state(plan_.instances[i], read) && writer_[i] < at) return true;
    }
    return false;
  }

  // A use of an instance that it need not be kept for.
  struct Gap {
    uint32_t instance;
    uint32_t to;
    double bound;  // that a move's worth is not above
  };
  static double worth(int64_t gain, double ns) {
    return static_cast<double>(gain) / std::max(ns, 1.0);
  }

  std::vector<Gap> gaps(const std::set<std::pair<uint32_t, uint32_t>>& banned) const {
    std::vector<Gap> out;
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      if (instance.cls != BufferClass::kTemporary) continue;
      for (size_t u = 1; u < instance.uses.size(); ++u) {
        const uint32_t to = instance.uses[u];
        if (profile_.crowded[to] == profile_.crowded[instance.uses[u - 1] + 1]) continue;
        if (banned.contains({i, to})) continue;
        int64_t most = 0;
        bool kept = false;  // the run that is there now
        for (const Freed& f : freed(i, to)) {
          most += -f.change.bytes * (profile_.crowded[to] - profile_.crowded[f.change.from]);
          kept = kept || f.used;
        }
        out.push_back({i, to, worth(most, kept ? ns_of(writer_[i]) : 0.0)});
      }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Gap& a, const Gap& b) { return a.bound > b.bound; });
    return out;
  }

  std::optional<Move> best_move(const std::set<std::pair<uint32_t, uint32_t>>& banned) {
    std::optional<Move> best;
    for (const Gap& gap : gaps(banned)) {
      if (work_ <= 0 || (best && worth(best->gain, best->ns) >= gap.bound)) break;
      for (const bool crowd : {true, false}) {
        std::optional<Move> move = try_move(gap.instance, gap.to, crowd);
        if (!move || move->gain <= 0) continue;
        if (best && worth(move->gain, move->ns) <= worth(best->gain, best->ns)) continue;
        best = std::move(move);
      }
    }
    return best;
  }

  // A result of a step from its last use before another step on: it is made again there.
  struct Freed {
    Change change;
    bool used;     // between the step that writes it and then
    bool through;  // used then or later
  };
  std::vector<Freed> freed(uint32_t i, uint32_t to) const {
    std::vector<Freed> out;
    for (const uint32_t w : plan_.steps[writer_[i]].writes) {
      const std::vector<uint32_t>& uses = plan_.instances[w].uses;
      const auto later = std::lower_bound(uses.begin(), uses.end(), to);
      const uint32_t last = *std::prev(later);
      const bool through = later != uses.end();
      out.push_back({{last + 1, through ? to : last + 1, -arena_size(plan_.instances[w])},
                     last != writer_[i],
                     through});
    }
    return out;
  }

  std::optional<Move> try_move(uint32_t i, uint32_t to, bool crowd) {
    Move move{.instance = i, .before = to, .crowd = crowd};
    int64_t kept = profile_.through[to];
    bool stays = false;
    for (const Freed& f : freed(i, to)) {
      stays = stays || f.used;
      if (!f.through) continue;
      move.changes.push_back(f.change);
      kept += f.change.bytes;
    }
    if (!add_rerun(writer_[i], move)) return {};
    if (!stays) move.ns -= ns_of(writer_[i]);  // it runs later instead
    uint32_t first = to;
    for (const Change& c : move.changes) {
      first = std::min(first, c.from);
      if (c.bytes > 0 && c.to == to) kept += c.bytes;
    }
    for (uint32_t s = first; s < to; ++s) {
      move.gain += over(profile_.use[s], limit_) - over(profile_.use[s] + changed(move, s), limit_);
    }
    work_ -= static_cast<int64_t>((to - first) * move.changes.size());
    for (const Rerun& rerun : move.reruns) {
      const Step& step = plan_.steps[rerun.step];
      for (const uint32_t w : step.writes) kept += arena_size(plan_.instances[w]);
      const int64_t workspace =
          step.workspace == ir::kNoId ? 0 : arena_size(plan_.instances[step.workspace]);
      move.gain -= over(kept + workspace, limit_);
    }
    return move;
  }

  // The move that does not keep the results of step `s` over step `over`.
  std::optional<Move> move_over(uint32_t s, uint32_t over) {
    uint32_t instance = ir::kNoId;
    uint32_t to = ir::kNoId;
    for (const uint32_t w : plan_.steps[s].writes) {
      const std::vector<uint32_t>& uses = plan_.instances[w].uses;
      const auto later = std::upper_bound(uses.begin(), uses.end(), over);
      if (later == uses.end() || later == uses.begin() || *std::prev(later) == over) continue;
      if (*later >= to) continue;
      instance = w;
      to = *later;
    }
    if (instance == ir::kNoId) return {};
    return try_move(instance, to, true);
  }

  // The same for an instance, over the first step of a group, where that is possible still.
  void give_up(uint32_t instance, uint32_t group) {
    const auto over = std::ranges::find(plan_.steps, group, &Step::group);
    if (writer_[instance] == ir::kNoId || over == plan_.steps.end() || work_ <= 0) return;
    const std::optional<Move> move =
        move_over(writer_[instance], static_cast<uint32_t>(over - plan_.steps.begin()));
    if (!move) return;
    apply(*move);
    profile_ = look();
  }

  static int64_t changed(const Move& move, uint32_t s) {
    int64_t bytes = 0;
    for (const Change& c : move.changes) bytes += c.from <= s && s < c.to ? c.bytes : 0;
    return bytes;
  }

  // The step is run again before move.before, with all that has to be run again for it.
  bool add_rerun(uint32_t s, Move& move) {
    if (!may_run_again(s, move.before)) return false;
    Rerun rerun{.step = s};
    for (const uint32_t r : plan_.steps[s].reads) {
      if (plan_.instances[r].cls == BufferClass::kTemporary && !supply(r, rerun, move))
        return false;
    }
    if (move.reruns.size() == kLongestChain) return false;
    move.ns += ns_of(s);
    move.reruns.push_back(std::move(rerun));
    return true;
  }

  // Finds or makes what the step read as `read`: an instance that is live then, one that can be
  // kept so long within the limit, or one made by running its step again.
  bool supply(uint32_t read, Rerun& rerun, Move& move) {
    const ir::ValueId value = plan_.instances[read].value;
    uint32_t latest = ir::kNoId;
    work_ -= static_cast<int64_t>(1 + instances_of_[value].size() + move.reruns.size());
    for (const uint32_t i : instances_of_[value]) {
      const std::vector<uint32_t>& uses = plan_.instances[i].uses;
      if (uses.front() >= move.before || i == move.instance) continue;
      if (latest == ir::kNoId || uses.back() > plan_.instances[latest].uses.back()) latest = i;
    }
    for (const Rerun& earlier : move.reruns) {
      for (const uint32_t w : plan_.steps[earlier.step].writes) {
        if (plan_.instances[w].value != value) continue;
        rerun.made[read] = value;
        return true;
      }
    }
    if (latest != ir::kNoId && can_keep(latest, move)) {
      rerun.from[read] = latest;
      return true;
    }
    if (!add_rerun(writer_[read], move)) return false;
    rerun.made[read] = value;
    return true;
  }

  bool can_keep(uint32_t i, Move& move) {
    const uint32_t last = plan_.instances[i].uses.back();
    if (last >= move.before) return true;
    if (std::find(move.kept.begin(), move.kept.end(), i) != move.kept.end()) return true;
    const int64_t bytes = arena_size(plan_.instances[i]);
    // Where the limit is passed already, the move as a whole may take as much as before.
    const auto too_much = [&](uint32_t at, int64_t more) {
      const int64_t use = profile_.use[at];
      return use + changed(move, at) + more > (move.crowd ? std::max(limit_, use) : limit_);
    };
    // A result that was written over it needs memory of its own then.
    const int64_t lost = profile_.saved[last];
    if (lost > 0 && too_much(last, lost)) return false;
    for (uint32_t s = last + 1; s < move.before; ++s) {
      --work_;
      if (too_much(s, bytes)) return false;
    }
    if (lost > 0) move.changes.push_back({last, last + 1, lost});
    move.changes.push_back({last + 1, move.before, bytes});
    move.kept.push_back(i);
    return true;
  }

  uint32_t copy_of(uint32_t i) {
    Instance copy = plan_.instances[i];
    if (!copy.name.ends_with(".again")) copy.name += ".again";
    plan_.instances.push_back(std::move(copy));
    return static_cast<uint32_t>(plan_.instances.size() - 1);
  }

  void apply(const Move& move) {
    std::vector<Step> again;
    std::map<ir::ValueId, uint32_t> made;
    for (const Rerun& rerun : move.reruns) {
      Step step = plan_.steps[rerun.step];
      for (uint32_t& r : step.reads) {
        if (const auto at = rerun.from.find(r); at != rerun.from.end()) {
          r = at->second;
        } else if (rerun.made.contains(r)) {
          r = made.at(plan_.instances[r].value);
        }
      }
      for (uint32_t& w : step.writes) {
        w = copy_of(w);
        made[plan_.instances[w].value] = w;
      }
      if (step.workspace != ir::kNoId) step.workspace = copy_of(step.workspace);
      again.push_back(std::move(step));
    }
    // What reads results of the step from then on reads the new ones.
    for (const uint32_t w : std::vector<uint32_t>(plan_.steps[writer_[move.instance]].writes)) {
      const uint32_t fresh = made.at(plan_.instances[w].value);
      for (uint32_t s = move.before; s < plan_.steps.size(); ++s) {
        std::replace(plan_.steps[s].reads.begin(), plan_.steps[s].reads.end(), w, fresh);
      }
    }
    plan_.steps.insert(plan_.steps.begin() + move.before, again.begin(), again.end());
    drop_dead();
  }

  // Removes steps whose results nothing reads; every group keeps one.
  void drop_dead() {
    std::vector<uint32_t> runs(task_.lowered.groups.size(), 0);
    for (const Step& step : plan_.steps) ++runs[step.group];
    while (true) {
      std::vector<bool> read(plan_.instances.size(), false);
      for (const Step& step : plan_.steps) {
        for (const uint32_t i : step.reads) read[i] = true;
      }
      const auto is_dead = [&](const Step& step) {
        return runs[step.group] > 1 &&
               std::all_of(step.writes.begin(), step.writes.end(), [&](uint32_t i) {
                 return plan_.instances[i].cls == BufferClass::kTemporary && !read[i];
               });
      };
      const auto dead = std::find_if(plan_.steps.begin(), plan_.steps.end(), is_dead);
      if (dead == plan_.steps.end()) return;
      --runs[dead->group];
      plan_.steps.erase(dead);
    }
  }

  std::vector<uint32_t> dearest_reruns() const {
    std::vector<uint32_t> steps;
    const std::vector<bool> again = runs_again(plan_);
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (again[s]) steps.push_back(s);
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [this](uint32_t a, uint32_t b) { return ns_of(a) > ns_of(b); });
    return steps;
  }

  // What reads results of the step reads those of the run before it instead.
  void read_earlier(uint32_t s) {
    const Step step = plan_.steps[s];
    uint32_t earlier = s;
    while (plan_.steps[--earlier].group != step.group) continue;
    for (size_t w = 0; w < step.writes.size(); ++w) {
      for (uint32_t t = s; t < plan_.steps.size(); ++t) {
        std::replace(plan_.steps[t].reads.begin(), plan_.steps[t].reads.end(), step.writes[w],
                     plan_.steps[earlier].writes[w]);
      }
    }
    drop_dead();
  }

  // Instances that no step names are left out, and the others numbered anew.
  void drop_unused() {
    std::vector<bool> named(plan_.instances.size(), false);
    for (const Step& step : plan_.steps) {
      for (const uint32_t i : named_by(step)) named[i] = true;
    }
    std::vector<uint32_t> number(plan_.instances.size(), ir::kNoId);
    std::vector<Instance> kept;
    for (uint32_t i = 0; i < plan_.instances.size(); ++i) {
      if (in_arena(plan_.instances[i]) && !named[i]) continue;
      number[i] = static_cast<uint32_t>(kept.size());
      kept.push_back(std::move(plan_.instances[i]));
    }
    plan_.instances = std::move(kept);
    for (Step& step : plan_.steps) {
      for (uint32_t& i : step.reads) i = number[i];
      for (uint32_t& i : step.writes) i = number[i];
      if (step.workspace != ir::kNoId) step.workspace = number[step.workspace];
    }
  }

  const RecomputeTask& task_;
  ExecutionPlan plan_;
  int64_t limit_;
  int64_t work_;
  std::vector<uint32_t> writer_;                     // per instance: the step that writes it
  std::vector<std::vector<uint32_t>> instances_of_;  // per value: those that steps write
  Profile profile_;
};

}  // namespace

std::vector<bool> runs_again(const ExecutionPlan& plan) {
  std::vector<bool> again;
  std::set<uint32_t> ran;
  for (const Step& step : plan.steps) {
    again.push_back(step.kind == StepKind::kRun && !ran.insert(step.group).second);
  }
  return again;
}

int64_t largest_step(const RecomputeTask& task, const ExecutionPlan& plan) {
  const StepRun run(plan, possible_pairs(task.lowered, task.needs, plan));
  int64_t most = 0;
  for (uint32_t s = 0; s < run.count(); ++s) most = std::max(most, run.least(s));
  return most;
}

Recomputed recompute(const RecomputeTask& task, const ExecutionPlan& plan, int64_t limit,
                     int64_t work) {
  const auto made = [&](bool chain, int64_t most) {
    Search search(task, plan, limit, most);
    if (chain) search.lower_chain();
    search.lower();
    if (search.fits()) search.take_back();
    return std::move(search).result();
  };
  constexpr int64_t kPartOfChain = 4;
  Recomputed steps = made(false, work);
  Recomputed chain = made(true, work / kPartOfChain);
  const bool better = chain.fits && (!steps.fits || chain.more_ns < steps.more_ns);
  return better ? std::move(chain) : std::move(steps);
}

}  // namespace pyc::plan

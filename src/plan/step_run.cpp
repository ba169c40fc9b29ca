#include "plan/step_run.h"

#include <algorithm>

#include "plan/in_place.h"
#include "plan/liveness.h"

namespace pyc::plan {
namespace {

// A number of 64 bits that looks random (splitmix64): sets of steps are told apart by their sum.
uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

void insert_sorted(std::vector<uint32_t>& list, uint32_t entry) {
  list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
}
void erase_sorted(std::vector<uint32_t>& list, uint32_t entry) {
  list.erase(std::lower_bound(list.begin(), list.end(), entry));
}

}  // namespace

StepRun::StepRun(const ExecutionPlan& plan, const PairsOfSteps& pairs)
    : pairs_(pairs),
      next_(plan.steps.size()),
      missing_(plan.steps.size(), 0),
      reads_(plan.steps.size()),
      kept_(plan.steps.size(), 0),
      own_(plan.steps.size(), 0),
      least_(plan.steps.size(), 0),
      growth_(plan.steps.size(), 0),
      bytes_(plan.instances.size(), 0),
      unread_(plan.instances.size(), 0),
      unread_ids_(plan.instances.size(), 0) {
  add_edges(plan);
  add_bytes(plan);
  for (uint32_t s = 0; s < count(); ++s) {
    if (missing_[s] == 0) ready_.push_back(s);
  }
}

// Reads stay behind the write they see, and writes behind the reads and the write before them.
void StepRun::add_edges(const ExecutionPlan& plan) {
  std::vector<uint32_t> writer(plan.instances.size(), ir::kNoId);
  std::vector<std::vector<uint32_t>> readers(plan.instances.size());  // since the last write
  const auto edge = [this](uint32_t from, uint32_t to) {
    // All edges to a step are added in one go, so an edge that is there stands last.
    if (from == to || (!next_[from].empty() && next_[from].back() == to)) return;
    next_[from].push_back(to);
    ++missing_[to];
  };
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.queue != 0 || step.kind == StepKind::kRecord || step.kind == StepKind::kWait) {
      orderable_ = false;
    }
    for (const uint32_t i : step.reads) {
      if (writer[i] != ir::kNoId) edge(writer[i], s);
      readers[i].push_back(s);
    }
    for (const uint32_t i : step.writes) {
      if (writer[i] != ir::kNoId) {
        edge(writer[i], s);
        if (in_arena(plan.instances[i])) orderable_ = false;
      }
      for (const uint32_t reader : readers[i]) edge(reader, s);
      readers[i].clear();
      writer[i] = s;
    }
  }
}

void StepRun::add_bytes(const ExecutionPlan& plan) {
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    if (in_arena(plan.instances[i])) bytes_[i] = arena_size(plan.instances[i]);
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const uint32_t i : plan.steps[s].reads) {
      if (bytes_[i] == 0) continue;
      reads_[s].push_back({i, bytes_[i]});
      ++unread_[i];
      unread_ids_[i] ^= s;
    }
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const uint32_t i : step.writes) {
      own_[s] += bytes_[i];
      if (unread_[i] > 0) kept_[s] += bytes_[i];
    }
    if (step.workspace != ir::kNoId) own_[s] += bytes_[step.workspace];
    growth_[s] = kept_[s];
    least_[s] = own_[s];
    for (const Operand& read : reads_[s]) {
      least_[s] += read.bytes;
      if (unread_[read.instance] == 1) growth_[s] -= read.bytes;
    }
    for (const loop::InPlacePair& p : disjoint_pairs(pairs_[s])) least_[s] -= bytes_[p.written];
  }
}

int64_t StepRun::saved(uint32_t step) const {
  if (pairs_[step].empty()) return 0;
  if (pairs_[step].size() == 1) {
    const loop::InPlacePair& only = pairs_[step].front();
    return unread_[only.read] == 1 ? bytes_[only.written] : 0;
  }
  std::vector<loop::InPlacePair> now;
  for (const loop::InPlacePair& p : pairs_[step]) {
    if (unread_[p.read] == 1) now.push_back(p);
  }
  int64_t bytes = 0;
  for (const loop::InPlacePair& p : disjoint_pairs(now)) bytes += bytes_[p.written];
  return bytes;
}

void StepRun::flip(uint32_t step) {
  key_.a ^= scramble(step);
  key_.b ^= scramble(~static_cast<uint64_t>(step));
}

void StepRun::run(uint32_t step) {
  erase_sorted(ready_, step);
  trail_.push_back(step);
  flip(step);
  live_ += kept_[step];
  for (const Operand& read : reads_[step]) {
    unread_ids_[read.instance] ^= step;
    const uint32_t left = --unread_[read.instance];
    if (left == 0) live_ -= read.bytes;
    if (left == 1) growth_[unread_ids_[read.instance]] -= read.bytes;
  }
  for (const uint32_t s : next_[step]) {
    if (--missing_[s] == 0) insert_sorted(ready_, s);
  }
}

void StepRun::back_to(size_t steps) {
  while (trail_.size() > steps) {
    const uint32_t step = trail_.back();
    trail_.pop_back();
    flip(step);
    for (const uint32_t s : next_[step]) {
      if (missing_[s]++ == 0) erase_sorted(ready_, s);
    }
    for (const Operand& read : reads_[step]) {
      const uint32_t left = unread_[read.instance]++;
      if (left == 0) live_ += read.bytes;
      if (left == 1) growth_[unread_ids_[read.instance]] += read.bytes;
      unread_ids_[read.instance] ^= step;
    }
    live_ -= kept_[step];
    insert_sorted(ready_, step);
  }
}

}  // namespace pyc::plan

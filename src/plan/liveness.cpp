#include "plan/liveness.h"

namespace pyc::plan {

Lifetime lifetime(const ExecutionPlan& plan, const Instance& instance) {
  const int end = std::max(0, static_cast<int>(plan.steps.size()) - 1);
  Lifetime all{0, end};
  if (instance.uses.empty()) return all;
  if (in_arena(instance) || instance.cls == BufferClass::kOutput) {
    all.first = static_cast<int>(instance.uses.front());
  }
  if (in_arena(instance)) all.last = static_cast<int>(instance.uses.back());
  return all;
}

std::vector<uint32_t> named_by(const Step& step) {
  std::vector<uint32_t> named = step.reads;
  named.insert(named.end(), step.writes.begin(), step.writes.end());
  if (step.workspace != ir::kNoId) named.push_back(step.workspace);
  return named;
}

void set_uses(ExecutionPlan& plan) {
  for (Instance& instance : plan.instances) instance.uses.clear();
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    each_named(plan.steps[s], [&](uint32_t i) {
      std::vector<uint32_t>& uses = plan.instances[i].uses;
      if (uses.empty() || uses.back() != s) uses.push_back(s);
    });
  }
}

std::vector<uint32_t> in_place_sources(const ExecutionPlan& plan) {
  std::vector<uint32_t> sources(plan.instances.size(), ir::kNoId);
  for (const Step& step : plan.steps) {
    for (const loop::InPlacePair& pair : step.in_place) sources[pair.written] = pair.read;
  }
  return sources;
}

}  // namespace pyc::plan

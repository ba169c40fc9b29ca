#include "rails/controller.h"

#include <algorithm>

namespace pyc::rails {
namespace {

constexpr int kMostDoublings = 6;

// Why the reading is worse than the level by more than the limits allow; "" when it is not.
std::string_view breach(const Limits& limits, const Reading& level, const Reading& reading) {
  if (reading.latency_ns > level.latency_ns * (1.0 + limits.latency)) return "latency_breach";
  if (reading.throughput < level.throughput * (1.0 - limits.throughput)) {
    return "throughput_breach";
  }
  if (reading.pressure > level.pressure + limits.pressure) return "pressure_breach";
  return "";
}

void set_norm(const Limits& limits, State& state, const Reading& reading) {
  if (state.normed >= limits.dwell || reading.failed) return;
  Reading& best = state.norm;
  if (state.normed == 0) best = reading;
  best.latency_ns = std::min(best.latency_ns, reading.latency_ns);
  best.throughput = std::max(best.throughput, reading.throughput);
  best.pressure = std::min(best.pressure, reading.pressure);
  ++state.normed;
}

int patience(const Limits& limits, const State& state) {
  return limits.dwell << std::min(state.changes, kMostDoublings);
}

Verdict change(State& state, Action action, std::string_view reason, const Reading& reading) {
  state.windows = 0;
  state.breaches = 0;
  state.worse = 0;
  ++state.changes;
  if (state.shadow) return {action, reason, false};
  if (action == Action::kSwitch) state.left = reading;
  state.program = action == Action::kSwitch ? Program::kOther : Program::kKnownGood;
  return {action, reason, true};
}

Verdict step_known_good(const Limits& limits, State& state, const Reading& reading) {
  set_norm(limits, state, reading);
  const std::string_view why = reading.failed ? "" : breach(limits, state.norm, reading);
  const bool counts = state.windows > limits.cooldown && !why.empty();
  state.breaches = counts ? state.breaches + 1 : 0;
  const int stay = std::max(limits.dwell, state.changes == 0 ? 0 : patience(limits, state));
  if (state.barred || state.breaches < limits.breach_windows || state.windows < stay) return {};
  return change(state, Action::kSwitch, why, reading);
}

Verdict step_other(const Limits& limits, State& state, const Reading& reading) {
  if (reading.failed) {
    state.barred = true;
    return change(state, Action::kRollback, "hard_failure", reading);
  }
  if (state.windows <= limits.cooldown) return {};
  const std::string_view why = breach(limits, state.left, reading);
  state.breaches = why.empty() ? 0 : state.breaches + 1;
  if (state.breaches >= limits.breach_windows) {
    return change(state, Action::kRollback, why, reading);
  }
  state.worse = breach(limits, state.norm, reading).empty() ? 0 : state.worse + 1;
  if (state.worse >= patience(limits, state)) {
    return change(state, Action::kReturn, "worse_than_norm", reading);
  }
  return {};
}

}  // namespace

Verdict step(const Limits& limits, State& state, const Reading& reading) {
  ++state.windows;
  return state.program == Program::kKnownGood ? step_known_good(limits, state, reading)
                                              : step_other(limits, state, reading);
}

}  // namespace pyc::rails

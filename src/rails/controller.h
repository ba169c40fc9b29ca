#pragma once

// The runtime controller: when a model leaves the program that was asked for, the known good one,
// for another of the same bits, and when it returns. A pure function of limits, state and readings.
//
// Runs are counted by windows. Of each the controller is told a reading and says which of two
// programs the next window runs:
//
// - The norm is the best of the first `dwell` readings of the known good program.
// - A reading is in breach when its latency, throughput or memory pressure is worse than a level by
//   more than the limit: in the known good program the level is the norm, in the other one the
//   reading for which the known good program was left.
// - No breach counts in the `cooldown` windows after a change. `breach_windows` breaches in a row
//   are needed for a change, and `dwell` windows in the known good program before it is left.
// - A failure (memory or code refused, an invariant broken) ends the other program at once and
//   for ever: the hard rollback.
// - From the other program the known good one is tried again when every reading of `patience`
//   windows is worse than the norm, so that a disturbance that is over costs nothing for long.
//   The patience begins as `dwell` and doubles with every change, up to 64 times: however the
//   readings go, changes get rare.
//
// In shadow mode the same is said and nothing is done.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/decision.h"
#include "base/status.h"

namespace pyc::rails {

struct Limits {
  int dwell = 4;
  int cooldown = 2;
  int breach_windows = 2;
  double latency = 0.08;     // more of it, as a part of the level
  double throughput = 0.05;  // less of it, likewise
  double pressure = 0.20;    // more of it, as a part of all memory
};

// What one window measured.
struct Reading {
  double latency_ns = 0;  // the median run
  double throughput = 0;  // runs a second
  double pressure = 0;    // the part of the machine's memory that is in use, 0 to 1
  bool failed = false;
};

enum class Program : uint8_t { kKnownGood, kOther };

struct State {
  Program program = Program::kKnownGood;
  bool shadow = false;
  bool barred = false;  // the other program failed, or there is none
  int windows = 0;      // since the last change
  int breaches = 0;     // in a row
  int worse = 0;        // windows of the other program that were worse than the norm, in a row
  int changes = 0;      // patience = dwell << min(changes, 6)
  int normed = 0;       // readings that the norm is the best of, up to dwell
  Reading norm = {};
  Reading left = {};  // for which the known good program was left
};

enum class Action : uint8_t {
  kHold,
  kSwitch,    // to the other program
  kRollback,  // to the known good one, since the other is no better
  kReturn,    // likewise, to see whether what was wrong with it is over
};

struct Verdict {
  Action action = Action::kHold;
  std::string_view reason = {};  // "" when it holds
  bool applied = false;          // not in shadow mode
};

// One window: what to do, and the state after it.
Verdict step(const Limits& limits, State& state, const Reading& reading);

// The verdict as the log has it, with all that it was made from: the limits, the state before the
// window and the reading.
Decision decision_of(const Limits& limits, const State& before, const Reading& reading,
                     const Verdict& verdict);

// Takes every decision of the controller in the log again, from the readings that the log has. The
// decisions are the same to the byte, or kParseError (not a log of this controller) or
// kVerifyFailed names the first that is another.
Status replay(const DecisionLog& log);

}  // namespace pyc::rails

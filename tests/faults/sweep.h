#pragma once

// Refuses one call of a scenario after another.

#include <cstring>
#include <string>

#include "faults/inject.h"
#include "faults/scenarios.h"

namespace pyc::faults {

inline bool same(const Answer& a, const Answer& b) {
  return a.status == b.status && std::strcmp(a.text.data(), b.text.data()) == 0;
}

// What a refused call may turn into.
inline bool fits(Kind kind, pyc_status status) {
  return status == (kind == Kind::kFile ? PYC_STATUS_IO_ERROR : PYC_STATUS_OUT_OF_MEMORY);
}

struct Counts {
  int64_t refused = 0;
  int64_t tolerated = 0;  // the answer was right all the same
};

// Refuses call `number`, then runs once more; what is wrong with what came of it, or "".
inline std::string refuse(const Scenario& scenario, const Files& files, int64_t number,
                          const Answer& right, Counts& counts) {
  arm(number);
  const Answer answer = scenario.run(files);
  const Outcome outcome = disarm();
  if (!outcome.refused) return "";
  ++counts.refused;
  const bool tolerated = same(answer, right);
  counts.tolerated += tolerated ? 1 : 0;
  const Answer next = scenario.run(files);
  const bool wrong = !tolerated && !fits(outcome.kind, answer.status);
  if (!wrong && same(next, right)) return "";
  const std::string what = "call " + std::to_string(number) + ", " + kind_name(outcome.kind) + ": ";
  if (wrong) return what + pyc_status_name(answer.status) + ": " + answer.text.data();
  return what + "the next run: " + next.text.data();
}

// The whole of it; adds a failure to the running test for each wrong answer and each leak.
void sweep(const Scenario& scenario, bool every);

}  // namespace pyc::faults

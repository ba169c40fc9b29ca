#pragma once

#include <string>
#include <vector>

namespace pyc {

// One alternative that was weighed, with its estimated cost (nanoseconds) or the reason it was out.
struct Alternative {
  std::string name;
  double cost_ns = 0.0;
  std::string rejected = {};  // empty: it was applicable
  double measured_ns = 0.0;   // of one run on this machine; 0: nobody measured it
};

// A choice the compiler or the runtime made, and why. Nothing is chosen without one.
// `reason` is a stable lower_snake_case code; `detail` is for people.
struct Decision {
  std::string what;    // stage and subject, e.g. "fusion:%y" or "kernel:g0"
  std::string chosen;  // what was done
  std::string reason;  // reason code
  std::string detail;  // free text: sizes, names
  std::vector<Alternative> alternatives;

  std::string to_string() const;
};

// The list of decisions of one compile or run, in the order they were made: byte-identical on
// replay.
using DecisionLog = std::vector<Decision>;

}  // namespace pyc

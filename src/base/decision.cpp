#include "base/decision.h"

#include <fmt/format.h>

namespace pyc {

std::string Decision::to_string() const {
  std::string text = fmt::format("{} -> {} [{}]", what, chosen, reason);
  if (!detail.empty()) text += " " + detail;
  for (const Alternative& a : alternatives) {
    if (a.rejected.empty()) {
      text += fmt::format("\n    candidate {} cost {:.0f} ns", a.name, a.cost_ns);
      if (a.measured_ns > 0) text += fmt::format(", measured {:.0f} ns", a.measured_ns);
    } else {
      text += fmt::format("\n    candidate {} not applicable: {}", a.name, a.rejected);
    }
  }
  return text;
}

}  // namespace pyc

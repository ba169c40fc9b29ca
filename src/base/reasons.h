#pragma once

// The reason codes of decisions (reasons.inc), and the form that every decision has.

#include <span>
#include <string_view>

#include "base/decision.h"
#include "base/status.h"

namespace pyc {

struct ReasonInfo {
  std::string_view code;
  std::string_view where;    // what decisions with it are about
  std::string_view meaning;  // without a full stop
};

// In the order of the table; the texts live for ever and end with a NUL.
std::span<const ReasonInfo> reason_table();

// Whether it is a code of the table or the name of an error code.
bool is_reason(std::string_view code);

// That every decision says what was decided, what was chosen and a reason that is one, and that
// every alternative has a name and, if it was out, such a reason. kInternal names the first that
// does not.
Status check_decisions(const DecisionLog& log);

}  // namespace pyc

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace pyc::policy {

// Runs `work` in a child process and returns what it returned there. kInvalidArgument when the
// child crashed or ended otherwise, kBudgetExceeded when it was ended after `limit_ms`,
// kOutOfMemory when there is none to be had. Of the caller's threads the child has only this one: a
// lock that another one held stays locked there, which the limit ends, too.
Result<std::string> run_in_child(int64_t limit_ms, const std::function<std::string()>& work);

}  // namespace pyc::policy

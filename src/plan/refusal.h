#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

// What the verifiers answer: a reason code and a sentence.
inline Status refusal(std::string_view reason, const std::string& message) {
  return {Code::kVerifyFailed, fmt::format("[{}] {}", reason, message)};
}

// "i3 'a'"
inline std::string name_of_instance(const ExecutionPlan& plan, uint32_t i) {
  return fmt::format("i{} '{}'", i, plan.instances[i].name);
}

// Refuses steps that name instances, places or groups there are none of, and instances at such
// places or of such values.
Status check_ids(const lower::LoweredGraph* lowered, const ExecutionPlan& plan);

}  // namespace pyc::plan

#pragma once

// What the option `fallback` means: whether the cpu takes the place of a device that cannot be
// used.

#include "base/decision.h"
#include "driver/compile_options.h"

namespace pyc::driver {

// That models of the options' device can run here; else the cause, and the option that would help.
Status check_device(const CompileOptions& options);

// Whether the cpu may take the device's place after this refusal: it is one of a device that is
// missing or cannot serve the model, not one of the model or of another option.
bool may_fall_back(const CompileOptions& options, const Status& refusal);

// The same for the cpu; and what the log says about it.
CompileOptions on_cpu(CompileOptions options);
Decision fallback_decision(const CompileOptions& options, const Status& refusal);

// make(options, log): with the options as they are and an empty log, or for the cpu with the reason
// in the log where the device cannot serve and `fallback` allows it.
template <class Make>
auto with_fallback(const CompileOptions& options, const Make& make)
    -> decltype(make(options, DecisionLog())) {
  Status refusal = check_device(options);
  if (refusal.ok()) {
    auto made = make(options, DecisionLog());
    if (made.ok()) return made;
    refusal = std::move(made).status();
  }
  if (!may_fall_back(options, refusal)) return refusal;
  return make(on_cpu(options), DecisionLog{fallback_decision(options, refusal)});
}

}  // namespace pyc::driver

// What follows from the options alone.

#include <algorithm>
#include <iterator>

#include "base/cores.h"
#include "driver/compile.h"

namespace pyc::driver {

int thread_count(const CompileOptions& options) {
  if (options.threads > 0) return options.threads;
  return core_count();
}

DecisionLog with_choices(DecisionLog log, const CompileOptions& o) {
  std::erase_if(log, [](const Decision& d) {
    return d.what == "determinism" || d.what == "options" || d.what.starts_with("contract:");
  });
  const auto choice = [](std::string what, std::string chosen, bool asked) {
    return Decision{std::move(what), std::move(chosen), asked ? "asked" : "default", "", {}};
  };
  const std::string summary = options_summary(o);
  DecisionLog out;
  out.push_back(choice("determinism", std::string(determinism_name(o.determinism)),
                       was_asked(o, "determinism")));
  out.push_back(choice("options", summary, !o.asked.empty() || summary != "defaults"));
  out.insert(out.end(), std::move_iterator(log.begin()), std::move_iterator(log.end()));
  return out;
}

}  // namespace pyc::driver

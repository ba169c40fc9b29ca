#include "host/regex.h"

#include <fmt/format.h>

#include "host/elements.h"

#ifdef PYC_HAVE_RE2
#include <re2/re2.h>
#endif

namespace pyc::host {

#ifdef PYC_HAVE_RE2

Result<DynValue> match_fully(const DynValue& input, const std::string& pattern) {
  PYC_TRY(check_strings(input, "input"));
  re2::RE2::Options options;
  options.set_log_errors(false);
  const re2::RE2 compiled(pattern, options);
  if (!compiled.ok()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("pattern '{}': {}", pattern, compiled.error()));
  }
  Ints matches;
  for (const std::string& text : *input.strings) {
    matches.push_back(re2::RE2::FullMatch(text, compiled) ? 1 : 0);
  }
  return tensor_of(DType::kBool, input.shape, matches);
}

#else

Result<DynValue> match_fully(const DynValue& input, const std::string& pattern) {
  PYC_TRY(check_strings(input, "input"));
  return Status(Code::kUnsupported,
                fmt::format("pattern '{}': PyC was built without RE2", pattern));
}

#endif

}  // namespace pyc::host

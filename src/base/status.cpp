#include "base/status.h"

#include <fmt/format.h>

namespace pyc {

std::string Status::to_string() const {
  if (ok()) return "ok";
  return fmt::format("{}: {}", code_name(code_), message_);
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {} ({})", file, line, message, condition));
}

}  // namespace pyc

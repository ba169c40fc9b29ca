#include "base/status.h"

#include <fmt/format.h>

namespace pyc {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kParseError:
      return "parse_error";
    case Code::kVerifyFailed:
      return "verify_failed";
    case Code::kShapeMismatch:
      return "shape_mismatch";
    case Code::kDtypeMismatch:
      return "dtype_mismatch";
    case Code::kRankMismatch:
      return "rank_mismatch";
    case Code::kSizeMismatch:
      return "size_mismatch";
    case Code::kMisaligned:
      return "misaligned";
    case Code::kNullPointer:
      return "null_pointer";
    case Code::kUnknownOption:
      return "unknown_option";
    case Code::kUnknownOp:
      return "unknown_op";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kBudgetExceeded:
      return "budget_exceeded";
    case Code::kOutOfMemory:
      return "out_of_memory";
    case Code::kCompileFailed:
      return "compile_failed";
    case Code::kRuntimeFailed:
      return "runtime_failed";
    case Code::kIoError:
      return "io_error";
    case Code::kNotFound:
      return "not_found";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return fmt::format("{}: {}", code_name(code_), message_);
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {} ({})", file, line, message, condition));
}

}  // namespace pyc

#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace pyc {

// Every way a call can be refused. The numbers are part of the public contract: they are never
// reused, and each has an entry in docs/errors.md and a test that provokes it.
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,
  kParseError = 2,
  kVerifyFailed = 3,
  kShapeMismatch = 4,
  kDtypeMismatch = 5,
  kRankMismatch = 6,
  kSizeMismatch = 7,
  kMisaligned = 8,
  kNullPointer = 9,
  kUnknownOption = 10,
  kUnknownOp = 11,
  kUnsupported = 12,
  kBudgetExceeded = 13,
  kOutOfMemory = 14,
  kCompileFailed = 15,
  kRuntimeFailed = 16,
  kIoError = 17,
  kNotFound = 18,
  kInternal = 19,
};

// The stable lower-case name of a code, e.g. "shape_mismatch".
std::string_view code_name(Code code);

// The outcome of a call that can be refused: a code and, unless it is kOk, a message that names
// what was expected and found. `with_context` puts where it happened in front; `with_node` notes
// the node, input or output it is about, unless that is known already.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& node() const { return node_; }  // "": about none

  Status with_context(std::string_view where) && {
    if (!ok()) message_ = std::string(where) + ": " + message_;
    return std::move(*this);
  }
  Status with_node(std::string_view node) && {
    if (!ok() && node_.empty()) node_ = node;
    return std::move(*this);
  }
  // "shape_mismatch: message", or "ok".
  std::string to_string() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
  std::string node_;
};

// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status(Code::kInternal, "Result made from an ok Status");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// A broken invariant of PyC itself: the only exception PyC throws, caught at its outermost border.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const char* condition,
                             const std::string& message);

}  // namespace pyc

#define PYC_CHECK(condition, message)                               \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::pyc::fail_check(__FILE__, __LINE__, #condition, (message)); \
  } while (false)

#define PYC_CONCAT_INNER(a, b) a##b
#define PYC_CONCAT(a, b) PYC_CONCAT_INNER(a, b)

// Returns early from the enclosing function when `expr` (a Status) is not ok.
#define PYC_TRY(expr)                                \
  do {                                               \
    ::pyc::Status pyc_try_status = (expr);           \
    if (!pyc_try_status.ok()) return pyc_try_status; \
  } while (false)

// `PYC_ASSIGN(auto x, f())`: x becomes the value of the Result, or its Status is returned.
#define PYC_ASSIGN(lhs, expr) PYC_ASSIGN_INNER(PYC_CONCAT(pyc_result_, __LINE__), lhs, expr)
#define PYC_ASSIGN_INNER(tmp, lhs, expr)         \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = std::move(tmp).value()

#include "pyc/common.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "base/codes.h"
#include "base/escape.h"
#include "capi/guard.h"
#include "ir/rules.h"

namespace pyc::capi {

// Without memory for the error the code alone is left.
pyc_status report(const Status& status, pyc_error** error) noexcept {
  const auto code = static_cast<pyc_status>(status.code());
  if (error == nullptr) return code;
  try {
    Status shown = Status(status.code(), printable(status.message())).with_node(status.node());
    *error = new pyc_error{std::move(shown)};
  } catch (const std::bad_alloc&) {
    *error = nullptr;
  }
  return code;
}

Status require_index(size_t index, size_t count, std::string_view what) {
  if (index < count) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: expected an index under {}, found {}", what, count, index)};
}

Status check_struct_size(size_t size, size_t first, std::string_view what) {
  // No version will ever be larger: a size beyond is memory that was not set.
  constexpr size_t kLargest = 4096;
  if (size >= first && size <= kLargest) return {};
  return {
      Code::kInvalidArgument,
      fmt::format("{}: struct_size must be its sizeof, at least {}, found {}", what, first, size)};
}

Status give_text(std::string_view text, char** out) {
  PYC_TRY(require(out, "text"));
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return {Code::kOutOfMemory, "out of memory"};
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  *out = copy;
  return {};
}

Result<DType> to_dtype(pyc_dtype dtype) {
  if (is_dtype(dtype)) return static_cast<DType>(dtype);
  return Status(
      Code::kInvalidArgument,
      fmt::format("dtype: expected a number from 0 to {}, found {}", kValueDTypeCount - 1, dtype));
}

Result<ir::TensorType> to_type(pyc_dtype dtype, const int64_t* shape, int64_t rank) {
  ir::TensorType type;
  PYC_ASSIGN(type.dtype, to_dtype(dtype));
  if (rank < 0 || rank > ir::kMaxRank) {
    return Status(Code::kInvalidArgument,
                  fmt::format("rank: expected 0 to {}, found {}", ir::kMaxRank, rank));
  }
  PYC_TRY(require_list(shape, static_cast<size_t>(rank), "shape"));
  if (rank > 0) type.shape.assign(shape, shape + rank);
  PYC_TRY(ir::check_value_type(type));
  return type;
}

// `name` ends with a NUL: it is a whole std::string.
pyc_value_info value_info(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                          int64_t bytes, int32_t kind) {
  pyc_value_info info{};
  info.name = name.data();
  info.shape = shape.data();
  info.rank = static_cast<int64_t>(shape.size());
  info.bytes = bytes;
  info.dtype = static_cast<pyc_dtype>(dtype);
  info.kind = kind;
  return info;
}

static_assert(PYC_STATUS_OK == static_cast<int>(Code::kOk));
static_assert(PYC_STATUS_INVALID_ARGUMENT == static_cast<int>(Code::kInvalidArgument));
static_assert(PYC_STATUS_PARSE_ERROR == static_cast<int>(Code::kParseError));
static_assert(PYC_STATUS_VERIFY_FAILED == static_cast<int>(Code::kVerifyFailed));
static_assert(PYC_STATUS_SHAPE_MISMATCH == static_cast<int>(Code::kShapeMismatch));
static_assert(PYC_STATUS_DTYPE_MISMATCH == static_cast<int>(Code::kDtypeMismatch));
static_assert(PYC_STATUS_RANK_MISMATCH == static_cast<int>(Code::kRankMismatch));
static_assert(PYC_STATUS_SIZE_MISMATCH == static_cast<int>(Code::kSizeMismatch));
static_assert(PYC_STATUS_MISALIGNED == static_cast<int>(Code::kMisaligned));
static_assert(PYC_STATUS_NULL_POINTER == static_cast<int>(Code::kNullPointer));
static_assert(PYC_STATUS_UNKNOWN_OPTION == static_cast<int>(Code::kUnknownOption));
static_assert(PYC_STATUS_UNKNOWN_OP == static_cast<int>(Code::kUnknownOp));
static_assert(PYC_STATUS_UNSUPPORTED == static_cast<int>(Code::kUnsupported));
static_assert(PYC_STATUS_BUDGET_EXCEEDED == static_cast<int>(Code::kBudgetExceeded));
static_assert(PYC_STATUS_OUT_OF_MEMORY == static_cast<int>(Code::kOutOfMemory));
static_assert(PYC_STATUS_COMPILE_FAILED == static_cast<int>(Code::kCompileFailed));
static_assert(PYC_STATUS_RUNTIME_FAILED == static_cast<int>(Code::kRuntimeFailed));
static_assert(PYC_STATUS_IO_ERROR == static_cast<int>(Code::kIoError));
static_assert(PYC_STATUS_NOT_FOUND == static_cast<int>(Code::kNotFound));
static_assert(PYC_STATUS_INTERNAL == static_cast<int>(Code::kInternal));
static_assert(PYC_DTYPE_BOOL == static_cast<int>(DType::kBool));
static_assert(PYC_DTYPE_I8 == static_cast<int>(DType::kI8));
static_assert(PYC_DTYPE_I64 == static_cast<int>(DType::kI64));
static_assert(PYC_DTYPE_U64 == static_cast<int>(DType::kU64));
static_assert(PYC_DTYPE_F8E4M3FN == static_cast<int>(DType::kF8E4M3FN));
static_assert(PYC_DTYPE_F8E5M2 == static_cast<int>(DType::kF8E5M2));
static_assert(PYC_DTYPE_F16 == static_cast<int>(DType::kF16));
static_assert(PYC_DTYPE_BF16 == static_cast<int>(DType::kBF16));
static_assert(PYC_DTYPE_F32 == static_cast<int>(DType::kF32));
static_assert(PYC_DTYPE_F64 == static_cast<int>(DType::kF64));

}  // namespace pyc::capi

using namespace pyc;
using namespace pyc::capi;

int32_t pyc_abi_version(void) { return PYC_ABI_VERSION; }
const char* pyc_version(void) { return PYC_VERSION; }
const char* pyc_build_facts(void) {
#ifdef NDEBUG
#define PYC_BUILD_ASSERTIONS "off"
#else
#define PYC_BUILD_ASSERTIONS "on"
#endif
  return "compiler " PYC_BUILD_COMPILER "\nbuild " PYC_BUILD_TYPE
         ", assertions " PYC_BUILD_ASSERTIONS "\nllvm " PYC_BUILD_LLVM "\nsystem " PYC_BUILD_SYSTEM
         "\n";
}

const char* pyc_status_name(pyc_status status) {
  return code_name(static_cast<Code>(status)).data();
}

const char* pyc_status_cause(pyc_status status) {
  return code_info(static_cast<Code>(status)).cause.data();
}

const char* pyc_status_cure(pyc_status status) {
  return code_info(static_cast<Code>(status)).cure.data();
}

pyc_status pyc_error_code(const pyc_error* error) {
  return error == nullptr ? PYC_STATUS_OK : static_cast<pyc_status>(error->status.code());
}
const char* pyc_error_message(const pyc_error* error) {
  return error == nullptr ? "" : error->status.message().c_str();
}
const char* pyc_error_node(const pyc_error* error) {
  return error == nullptr ? "" : error->status.node().c_str();
}
const char* pyc_error_cure(const pyc_error* error) {
  return pyc_status_cure(pyc_error_code(error));
}
void pyc_error_destroy(pyc_error* error) { delete error; }

void pyc_text_destroy(char* text) { std::free(text); }

pyc_status pyc_printable_text(const char* text, size_t size, int32_t keep_lines, char** out,
                              pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(text, size, "text"));
    return give_text(printable({text, size}, keep_lines != 0), out);
  });
}

int32_t pyc_dtype_count(void) { return kValueDTypeCount; }

const char* pyc_dtype_name(pyc_dtype dtype) {
  return is_dtype(dtype) ? dtype_name(static_cast<DType>(dtype)).data() : nullptr;
}

int64_t pyc_dtype_size(pyc_dtype dtype) {
  return is_dtype(dtype) ? dtype_size(static_cast<DType>(dtype)) : 0;
}

pyc_status pyc_dtype_from_name(const char* name, pyc_dtype* dtype, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(name, "name"));
    PYC_TRY(require(dtype, "dtype"));
    if (const auto found = dtype_from_name(name)) {
      *dtype = static_cast<pyc_dtype>(*found);
      return {};
    }
    std::vector<std::string_view> known;
    for (int d = 0; d < kValueDTypeCount; ++d) known.push_back(dtype_name(static_cast<DType>(d)));
    return {Code::kUnknownOption,
            fmt::format("dtype '{}' is not known; known are {}{}", name, fmt::join(known, ", "),
                        ir::did_you_mean(ir::closest_name(name, known)))};
  });
}

const char* pyc_closest_name(const char* name, const char* const* candidates, size_t count) {
  const char* closest = nullptr;
  guard(nullptr, [&]() -> Status {
    PYC_TRY(require(name, "name"));
    PYC_TRY(require_list(candidates, count, "candidates"));
    std::vector<std::string_view> known;
    for (size_t i = 0; i < count; ++i) {
      PYC_TRY(require(candidates[i], "a candidate"));
      known.push_back(candidates[i]);
    }
    const std::string_view found = ir::closest_name(name, known);
    if (!found.empty()) closest = found.data();
    return {};
  });
  return closest;
}

#pragma once

// String tensors. Strings are bytes, as a rule UTF-8; what is no UTF-8 is kept as it is.

#include <optional>
#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

// Element by element, stretched to one shape.
Result<DynValue> concat_strings(const DynValue& a, const DynValue& b);
// bool.
Result<DynValue> equal_strings(const DynValue& a, const DynValue& b);

struct SplitStrings {
  DynValue parts;   // string[…, most parts], filled up with ""
  DynValue counts;  // i64[…]
};
// An empty delimiter: runs of white space, none at the ends. At most `most` splits from the left;
// below 0: as many as there are.
Result<SplitStrings> split_strings(const DynValue& input, const std::string& delimiter,
                                   int64_t most);

enum class CaseChange : uint8_t { kNone, kLower, kUpper };
struct NormalizeSpec {
  CaseChange change = CaseChange::kNone;
  bool case_sensitive = false;  // of the stop words
  std::vector<std::string> stop_words;
};
// Takes a vector, or a matrix of one row: removes stop words, then changes case. When nothing is
// left, one empty string is.
Result<DynValue> normalize_strings(const DynValue& input, const NormalizeSpec& spec);

// Of the letters Unicode has in two cases, one to one. kUnsupported when there are such letters and
// the system has no table of them.
Result<std::string> change_case(const std::string& text, CaseChange change);

}  // namespace pyc::host

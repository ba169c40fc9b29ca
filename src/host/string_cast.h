#pragma once

#include <string>

#include "base/convert.h"
#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

// Numbers as text: the shortest decimal that reads back as the same element ("3.14", "1.0",
// "1e+20", "inf", "nan") in numpy's form, integers as they are, "True" and "False".
std::string number_text(Word word, DType dtype);
Result<DynValue> numbers_to_strings(const DynValue& input);

// Text as numbers: decimals, "inf" and "nan" in any case, surrounding white space ignored; for
// integers decimals are truncated; for bool also "true" and "false". kInvalidArgument with the text
// otherwise.
Result<DynValue> strings_to_numbers(const DynValue& input, DType to);

}  // namespace pyc::host

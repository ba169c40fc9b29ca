#pragma once

// How single elements and names are written in the text form.

#include <optional>
#include <string>
#include <string_view>

#include "base/convert.h"
#include "base/dtype.h"

namespace pyc::ir {

// Appends the element so that parse_element gives back the same bits: bools as true or false,
// integers in decimal, floats as the shortest decimal that is read back exactly (always with a
// point or an exponent), nan, inf, -inf, and NaNs other than the canonical one as their bits in
// hexadecimal.
void append_element(std::string& out, Word value, DType dtype);
std::string format_element(Word value, DType dtype);

// Nothing when the text is malformed or its value is outside the type's range. Decimals for f32 and
// f64 are rounded once; those for narrower floats by way of f64. Floats may be written as integers.
std::optional<Word> parse_element(std::string_view text, DType dtype);

bool is_plain_name(std::string_view name);
// In double quotes, with \" \\ \n \t \r and \xHH for control characters.
std::string quote(std::string_view text);
// As it is when it is a plain name, else quoted.
std::string format_name(std::string_view name);
// format_name for messages: long names are cut.
std::string shown_name(std::string_view name);

}  // namespace pyc::ir

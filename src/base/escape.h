#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pyc {

// How many bytes at the start of `text`, which is not empty, are one well-formed UTF-8 character;
// 0: none.
size_t utf8_length(std::string_view text);

// Whether the character at the start of `text` must not reach a terminal: a control character (of
// one byte, or U+0080 to U+009F) or a byte that is not UTF-8.
bool is_unprintable(std::string_view text);

// Text for people to read: what `is_unprintable` finds stands as \n, \t, \r or \xNN, each byte on
// its own; all else as it is. `keep_lines` leaves \n and \t in place, for text that has lines of
// its own.
std::string printable(std::string_view text, bool keep_lines = false);

}  // namespace pyc

#pragma once

// The one way the program prints. Names and messages may come from a file that somebody else wrote:
// every argument that is text is printed with control characters and bytes that are not UTF-8
// escaped, so that no file can drive a terminal or forge a line.

#include <fmt/format.h>

#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace pyc::tool {

// Text that has lines of its own: their ends stay.
struct Lines {
  std::string text;
};

// pyc_printable_text.
std::string printable(std::string_view text, bool keep_lines = false);

template <class T>
auto shown(const T& value) {
  if constexpr (std::same_as<T, Lines>) {
    return printable(value.text, true);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return printable(value);
  } else {
    return value;
  }
}
template <class T>
using Shown = decltype(shown(std::declval<const T&>()));

template <class... Args>
void say(std::FILE* to, fmt::format_string<Shown<Args>...> format, const Args&... args) {
  const std::tuple<Shown<Args>...> all(shown(args)...);
  std::apply([&](const auto&... each) { fmt::vprint(to, format, fmt::make_format_args(each...)); },
             all);
}
template <class... Args>
void say(fmt::format_string<Shown<Args>...> format, const Args&... args) {
  say(stdout, format, args...);
}

}  // namespace pyc::tool

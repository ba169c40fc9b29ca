#pragma once

#include <string>
#include <string_view>

namespace pyc::report {

// One HTML file that shows the JSON document and needs no other file. No text in the document can
// end the element it is in: "<" stands as an escape, which JSON has in strings only.
std::string page(std::string_view json);

}  // namespace pyc::report

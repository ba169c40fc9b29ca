#include "report/page.h"

namespace pyc::report {
namespace {

// kPageHead and kPageTail: src/report/page/ joined, before and after the data.
#include "report_page.inc"

}  // namespace

std::string page(std::string_view json) {
  std::string out(kPageHead);
  out.reserve(out.size() + json.size() + json.size() / 64 + kPageTail.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  out += kPageTail;
  return out;
}

}  // namespace pyc::report

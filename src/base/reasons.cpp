#include "base/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/codes.h"

namespace pyc {
namespace {

constexpr ReasonInfo kReasons[] = {
#define PYC_REASON(code, where, meaning) {code, where, meaning},
#include "base/reasons.inc"
#undef PYC_REASON
};

std::vector<std::string_view> sorted_reasons() {
  std::vector<std::string_view> codes;
  for (const ReasonInfo& r : kReasons) codes.push_back(r.code);
  for (int code = 1; code < kCodeCount; ++code) {
    codes.push_back(code_name(static_cast<Code>(code)));
  }
  std::ranges::sort(codes);
  return codes;
}

Status not_a_reason(const Decision& decision, std::string_view code) {
  return {Code::kInternal,
          fmt::format("decision '{}': expected a reason of base/reasons.inc, found '{}'",
                      decision.what, code)};
}

}  // namespace

std::span<const ReasonInfo> reason_table() { return kReasons; }

bool is_reason(std::string_view code) {
  static const std::vector<std::string_view> known = sorted_reasons();
  return std::ranges::binary_search(known, code);
}

Status check_decisions(const DecisionLog& log) {
  for (const Decision& d : log) {
    if (d.what.empty() || d.chosen.empty()) {
      return {Code::kInternal, fmt::format("decision '{}': expected what was decided and what was "
                                           "chosen, found one without ('{}')",
                                           d.what, d.chosen)};
    }
    if (!is_reason(d.reason)) return not_a_reason(d, d.reason);
    for (const Alternative& a : d.alternatives) {
      if (a.name.empty()) {
        return {Code::kInternal,
                fmt::format("decision '{}': expected a name of every alternative", d.what)};
      }
      if (!a.rejected.empty() && !is_reason(a.rejected)) return not_a_reason(d, a.rejected);
    }
  }
  return {};
}

}  // namespace pyc

// The controller's decisions as text, and back.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

#include "rails/controller.h"

namespace pyc::rails {
namespace {

constexpr std::string_view kWhat = "rails:window";
constexpr std::string_view kNames[] = {"hold", "switch", "rollback", "return"};

// All numbers that a verdict was made from, in one order; "{}" is read back as the same double.
std::vector<double> numbers_of(const Limits& l, const State& s, const Reading& r) {
  std::vector<double> out = {static_cast<double>(l.dwell),
                             static_cast<double>(l.cooldown),
                             static_cast<double>(l.breach_windows),
                             l.latency,
                             l.throughput,
                             l.pressure,
                             static_cast<double>(s.program),
                             static_cast<double>(s.shadow),
                             static_cast<double>(s.barred),
                             static_cast<double>(s.windows),
                             static_cast<double>(s.breaches),
                             static_cast<double>(s.worse),
                             static_cast<double>(s.changes),
                             static_cast<double>(s.normed)};
  for (const Reading* reading : {&s.norm, &s.left, &r}) {
    for (const double x : {reading->latency_ns, reading->throughput, reading->pressure,
                           static_cast<double>(reading->failed)}) {
      out.push_back(x);
    }
  }
  return out;
}
constexpr size_t kNumbers = 26;

struct Logged {
  Limits limits;
  State state;
  Reading reading;
};

Logged from_numbers(const std::vector<double>& n) {
  const auto reading_at = [&](size_t i) {
    return Reading{n[i], n[i + 1], n[i + 2], n[i + 3] != 0};
  };
  const auto whole = [&](size_t i) { return static_cast<int>(n[i]); };
  return {.limits = {.dwell = whole(0),
                     .cooldown = whole(1),
                     .breach_windows = whole(2),
                     .latency = n[3],
                     .throughput = n[4],
                     .pressure = n[5]},
          .state = {.program = n[6] == 0 ? Program::kKnownGood : Program::kOther,
                    .shadow = n[7] != 0,
                    .barred = n[8] != 0,
                    .windows = whole(9),
                    .breaches = whole(10),
                    .worse = whole(11),
                    .changes = whole(12),
                    .normed = whole(13),
                    .norm = reading_at(14),
                    .left = reading_at(18)},
          .reading = reading_at(22)};
}

// The numbers behind the last colon.
Result<Logged> parse_logged(const Decision& decision) {
  const auto bad = [&] {
    return Status(Code::kParseError, fmt::format("decision '{}': expected {} numbers, found '{}'",
                                                 decision.what, kNumbers, decision.detail));
  };
  const size_t colon = decision.detail.rfind(':');
  if (colon == std::string::npos) return bad();
  const char* at = decision.detail.data() + colon + 1;
  const char* const end = decision.detail.data() + decision.detail.size();
  std::vector<double> numbers;
  while (at != end) {
    if (*at != ' ') return bad();
    double x = 0;
    const auto [stopped, error] = std::from_chars(at + 1, end, x);
    if (error != std::errc() || !(x >= -1e18 && x <= 1e18)) return bad();
    numbers.push_back(x);
    at = stopped;
  }
  if (numbers.size() != kNumbers) return bad();
  for (const size_t i : {0, 1, 2, 9, 10, 11, 12, 13}) {  // counts
    if (!(numbers[i] >= 0 && numbers[i] <= 1e6)) return bad();
  }
  return from_numbers(numbers);
}

}  // namespace

Decision decision_of(const Limits& limits, const State& before, const Reading& reading,
                     const Verdict& verdict) {
  const std::string_view name = kNames[static_cast<size_t>(verdict.action)];
  const Reading& level = before.program == Program::kKnownGood ? before.norm : before.left;
  return {
      .what = std::string(kWhat),
      .chosen = fmt::format("{}{}", verdict.applied ? "" : "recommend ", name),
      .reason = std::string(verdict.reason),
      .detail = fmt::format(
          "latency {:.0f} ns after {:.0f}, {:.1f} runs a second after {:.1f}, memory {:.2f} "
          "after {:.2f}; limits, state, reading: {}",
          reading.latency_ns, level.latency_ns, reading.throughput, level.throughput,
          reading.pressure, level.pressure, fmt::join(numbers_of(limits, before, reading), " ")),
      .alternatives = {}};
}

Status replay(const DecisionLog& log) {
  for (const Decision& logged : log) {
    if (logged.what != kWhat) continue;
    PYC_ASSIGN(const Logged l, parse_logged(logged));
    State state = l.state;
    const Verdict verdict = step(l.limits, state, l.reading);
    const std::string again = decision_of(l.limits, l.state, l.reading, verdict).to_string();
    if (again == logged.to_string()) continue;
    return {Code::kVerifyFailed, fmt::format("rails: expected the decision '{}', found '{}'",
                                             logged.to_string(), again)};
  }
  return {};
}

}  // namespace pyc::rails

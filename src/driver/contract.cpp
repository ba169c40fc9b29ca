#include "driver/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "driver/compile.h"

namespace pyc::driver {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// "name = value"; a value may hold an equals sign.
Result<ContractClause> parse_clause(std::string_view line) {
  const size_t equal = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equal));
  if (equal == std::string_view::npos || name.empty()) {
    return Status(Code::kParseError, fmt::format("expected NAME = VALUE, found '{}'", line));
  }
  return ContractClause{std::string(name), std::string(trimmed(line.substr(equal + 1)))};
}

Status add_clause(CompileOptions& options, ContractClause clause) {
  PYC_ASSIGN(const OptionRow* row, find_option(clause.name));
  const bool is_list = row->kind == OptionKind::kList;
  const auto same_name = [&](const ContractClause& c) { return c.name == clause.name; };
  if (!is_list && std::ranges::any_of(options.clauses, same_name)) {
    return {Code::kInvalidArgument, fmt::format("{}: named twice", clause.name)};
  }
  const std::string before = row->text(options);
  PYC_TRY(set_option(options, clause.name, clause.text));
  if (!is_list && before != row->text(CompileOptions()) && before != row->text(options)) {
    return {Code::kInvalidArgument,
            fmt::format("{}: the contract says '{}', but it is set to '{}' already; leave out one",
                        clause.name, clause.text, before)};
  }
  options.clauses.push_back(std::move(clause));
  return {};
}

// Why a clause is kept, and the numbers that show it. Times are not in it: a log is the same every
// time.
struct Kept {
  std::string_view reason;
  std::string detail = {};
};

Kept kept(const ContractClause& clause, const CompileOptions& o, const DecisionLog& log,
          int64_t peak_bytes) {
  if (clause.name == "memory_budget" && o.memory_budget > 0) {
    return {"within_budget", fmt::format("peak {} of {} bytes", peak_bytes, o.memory_budget)};
  }
  if (clause.name == "compile_budget_ms" && o.compile_budget_ms >= 0) return {"within_budget"};
  if (clause.name == "latency_target_us" && o.latency_target_us > 0) {
    return {"predicted",
            fmt::format("{:.1f} of {} us", predicted_ns(log) / 1e3, o.latency_target_us)};
  }
  if (clause.name == "threads") {
    return {"threads_used", fmt::format("{} threads", thread_count(o))};
  }
  if (clause.name == "device" && o.device != clause.text) {
    return {"replaced_as_allowed", fmt::format("{} by {}", clause.text, o.device)};
  }
  return {"applied"};
}

}  // namespace

Status add_contract(CompileOptions& options, std::string_view text) {
  CompileOptions changed = options;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, std::min(end, text.find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::string where = fmt::format("contract, line {}", number);
    auto clause = parse_clause(line);
    if (!clause.ok()) return std::move(clause).status().with_context(where);
    PYC_TRY(add_clause(changed, std::move(clause).value()).with_context(where));
  }
  options = std::move(changed);
  return {};
}

double predicted_ns(const DecisionLog& log) {
  double sum = 0;
  for (const Decision& d : log) {
    constexpr std::array<std::string_view, 4> kCosting = {
        "kernel:", "recompute:", "stream:", "offload:"};
    if (std::ranges::none_of(kCosting, [&](std::string_view p) { return d.what.starts_with(p); })) {
      continue;
    }
    const auto chosen = std::ranges::find_if(d.alternatives, [&](const Alternative& a) {
      return a.name == d.chosen && a.rejected.empty();
    });
    if (chosen == d.alternatives.end() || chosen->cost_ns <= 0) return -1;
    sum += chosen->measured_ns > 0 ? chosen->measured_ns : chosen->cost_ns;
  }
  return sum;
}

Status check_latency(const CompileOptions& o, const DecisionLog& log) {
  if (o.latency_target_us == 0) return {};
  const double predicted_us = predicted_ns(log) / 1e3;
  if (predicted_us < 0) {
    return {Code::kUnsupported,
            fmt::format("latency_target_us: the device {} does not predict times; leave it out",
                        o.device)};
  }
  if (predicted_us <= static_cast<double>(o.latency_target_us)) return {};
  return {Code::kBudgetExceeded,
          fmt::format("latency_target_us: expected a run of at most {} us, predicted {:.1f}; allow "
                      "as much, or more threads",
                      o.latency_target_us, predicted_us)};
}

DecisionLog contract_answers(const CompileOptions& options, const DecisionLog& log,
                             int64_t peak_bytes) {
  DecisionLog answers;
  for (const ContractClause& clause : options.clauses) {
    Kept answer = kept(clause, options, log, peak_bytes);
    answers.push_back({.what = "contract:" + clause.name,
                       .chosen = "kept",
                       .reason = std::string(answer.reason),
                       .detail = std::move(answer.detail),
                       .alternatives = {}});
  }
  return answers;
}

}  // namespace pyc::driver

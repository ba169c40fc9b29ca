#pragma once

// Contracts: what a caller asks of a compile and its runs, as text. Each line is a clause, an
// option by name and its value; `#` begins a comment.
//
//   memory_budget = 1048576
//   threads = 2
//
// A compile keeps every clause, and the log has an answer to each ("contract:memory_budget"), or it
// is refused and the refusal names the clause.

#include <string_view>

#include "base/decision.h"
#include "driver/compile_options.h"

namespace pyc::driver {

// Adds the clauses to the options. kParseError, naming the line, for a line that is none;
// kUnknownOption and kInvalidArgument as set_option, and kInvalidArgument for a clause that stands
// twice or that an option set otherwise contradicts. A refusal changes nothing.
Status add_contract(CompileOptions& options, std::string_view text);

// The estimated time of one run: the costs of the kernels that the log says were chosen, and of
// those that run again. -1 where one of them has none.
double predicted_ns(const DecisionLog& log);

// Refuses a program whose predicted time is above the option latency_target_us.
Status check_latency(const CompileOptions& options, const DecisionLog& log);

// An answer to every clause, for a program that was not refused: its log and the peak of its runs.
DecisionLog contract_answers(const CompileOptions& options, const DecisionLog& log,
                             int64_t peak_bytes);

}  // namespace pyc::driver

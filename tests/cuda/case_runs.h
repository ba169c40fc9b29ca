#pragma once

// Op cases, lowered and interpreted: what a device's results are compared with.

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "lower/types.h"
#include "ops/case_graph.h"

namespace pyc::test {

struct CaseRun {
  std::string name;  // "softmax:rows_of_nan"
  lower::LoweredGraph lowered;
  std::map<ir::ValueId, Bytes> given = {};    // inputs and constants
  std::map<ir::ValueId, Bytes> results = {};  // of the model, by the interpreter
  int32_t fault = 0;                          // of the interpreter, 0: none
  size_t faulty_group = 0;
};

struct CaseChoice {
  std::string folder;     // of .cases files
  std::string only = "";  // one op
  int per_op = 3;         // the first so many of each op, 0: all
  int rest = 0;           // and every so-many-th of the others, 0: none
  int rest_from = 0;
};

// All cases that compile; the name of an op that has none is an error.
Result<std::vector<CaseRun>> interpret_cases(const CaseChoice& choice);

// A graph of the text IR, lowered, its constants given; nothing is computed.
Result<CaseRun> lower_text(const std::string& name, const std::string& text);
// The same whose inputs are random numbers.
Result<CaseRun> interpret_graph(const std::string& name, const std::string& text);

int64_t bytes_of(const ir::Graph& graph, ir::ValueId value);

}  // namespace pyc::test

#pragma once

// Loops whose body is run again and again, on values of any kind.

#include <functional>
#include <optional>
#include <vector>

#include "base/dyn_value.h"
#include "host/elements.h"
#include "open/open_graph.h"

namespace pyc::host {

using Values = std::vector<DynValue>;
using Body = std::function<Result<Values>(Values)>;

// What a stacked output is when the body never ran: as declared, a dim that is not fixed being 0.
Result<DynValue> empty_stack(const open::OpenType& element, size_t axis);

struct LoopSpec {
  std::optional<int64_t> trips;   // none: no limit
  std::optional<bool> condition;  // none: what the body says about going on is ignored
  Values carried;
  size_t scans = 0;                           // outputs of the body that are stacked
  std::vector<open::OpenType> scan_elements;  // as declared
};
// The body takes (iteration, condition, carried…) and gives (condition, carried…, scanned…). The
// result is (carried…, stacked…).
Result<Values> run_loop(const LoopSpec& spec, const Body& body);

struct ScanSpec {
  Values states;
  Values inputs;  // each cut along its axis; at least one
  std::vector<int64_t> input_axes;
  std::vector<bool> input_reversed;
  size_t outputs = 0;
  std::vector<int64_t> output_axes;  // of the stacked arrays
  std::vector<bool> output_reversed;
  std::vector<open::OpenType> output_elements;
};
// The body takes (states…, cuts…) and gives (states…, elements…). The result is (states…,
// stacked…).
Result<Values> run_scan(const ScanSpec& spec, const Body& body);

// Every state and input has batches along its first axis and is cut along the second; sequences
// are `lengths` long, as many as batches, or all of full length. What is beyond a sequence's end
// is zero in the outputs.
struct BatchedScanSpec {
  Values states;
  Values inputs;
  std::vector<bool> input_reversed;
  size_t outputs = 0;
  std::vector<open::OpenType> output_elements;
  std::optional<Ints> lengths;
};
Result<Values> run_batched_scan(const BatchedScanSpec& spec, const Body& body);

// Runs the body for each item of the first input, a sequence. Other sequences are read item by
// item, arrays are given as they are. The result are `outputs` sequences.
Result<Values> map_sequence(const Values& inputs, size_t outputs, const Body& body);

}  // namespace pyc::host

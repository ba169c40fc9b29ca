#pragma once

// What a report shows, as plain data: gathered once, then written as JSON for the page.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "ir/types.h"
#include "report/layout.h"

namespace pyc::report {

inline constexpr uint32_t kNone = UINT32_MAX;

// Text of a model's file as it is shown: at most `bytes` of it, then "…".
inline constexpr size_t kShownBytes = 160;
inline constexpr size_t kShownDetailBytes = 600;
std::string shown(std::string_view text, size_t bytes = kShownBytes);

struct ValueRow {
  std::string name;
  std::string type;
  uint8_t kind = 0;  // 0: input, 1: constant, 2: result
};

struct NodeRow {
  std::string op;
  std::vector<uint32_t> inputs;  // values
  std::vector<uint32_t> outputs;
  std::string attributes;
  std::string location;          // in the model's file
  std::vector<uint32_t> groups;  // that compute it, or what became of it
};

enum class BoxKind : uint8_t { kInput, kNode, kOutput, kGroup };

struct BoxRow {
  BoxKind kind = BoxKind::kNode;
  uint32_t item = 0;        // a value (input, output), a node or a group
  uint32_t parent = kNone;  // the box of the group it is drawn in
  Point corner;
  Size size;
};

struct EdgeRow {
  uint32_t from = 0;  // boxes
  uint32_t to = 0;
  std::vector<Point> bends;
};

// A graph and its drawing.
struct GraphPart {
  std::vector<ValueRow> values;
  std::vector<NodeRow> nodes;
  std::vector<BoxRow> boxes;
  std::vector<EdgeRow> edges;
  Size size;
};

struct GroupRow {
  std::string name;
  std::string kind;    // "contraction", "attention" or "loop"
  std::string kernel;  // the candidate that was chosen
  std::string order;   // of its products
  std::vector<uint32_t> members;
  std::vector<std::string> reasons;  // why each member is in it
  std::vector<uint32_t> writes;      // values it stores
};

struct StepRow {
  std::string name;
  uint32_t group = kNone;
  double flops = 0.0;
  int64_t bytes = 0;
  int64_t parallel = 0;
};

struct PlaceRow {
  std::string name;
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;
  int64_t requested_bytes = 0;
  int peak_step = 0;
};

// Memory of an arena from one step of the plan to another.
struct InstanceRow {
  std::string name;
  std::string cls;
  uint32_t place = 0;
  int64_t offset = 0;
  int64_t bytes = 0;        // as used
  int64_t taken_bytes = 0;  // with what alignment adds
  int first = 0;
  int last = 0;
  bool in_place = false;  // its first step writes it in the memory of what that step reads
};

// What the compile of one graph says.
struct CompileRows {
  GraphPart before;
  GraphPart after;
  std::vector<GroupRow> groups;
  std::vector<PlaceRow> places;
  std::vector<InstanceRow> instances;
  std::vector<uint32_t> runs;           // the group of each step that runs one, in their order
  std::vector<std::string> plan_steps;  // the group of each, or "copy", "record", "wait"
};

}  // namespace pyc::report

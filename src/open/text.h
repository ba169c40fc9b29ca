#pragma once

// Text form of open graphs: docs/IR.md, "Open graphs". print(parse_open(print(g))) == print(g).

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "ir/graph.h"
#include "open/open_graph.h"

namespace pyc::open {

// Values of one name, or without one, get names of their own; constants are written out. Broken
// graphs are printed too, for messages and debugging; nodes without an op are printed "<no op>".
std::string print(const OpenGraph& graph);
// The same with the bytes of larger tensors beside the text, which names them stored(0), stored(1),
// …: as files hold it.
struct StoredText {
  std::string text;
  std::vector<SharedBytes> stored;
};
StoredText print_stored(const OpenGraph& graph);

// The ops a text may name.
struct OpenOps {
  // By OpenOp::name and the version of the op's set; null when there is none.
  const OpenOp* (*find)(std::string_view name, int64_t version);
  // The name that is nearest, or "".
  std::string (*suggest)(std::string_view name);
};

// Whether the text begins like an open graph's.
bool is_open_text(std::string_view text);
// Refuses malformed text with kParseError and unknown ops with kUnknownOp, always as "line:column:
// …". Takes memory in proportion to the text, plus at most `max_generated_bytes` for all splat and
// random constants together (more: kBudgetExceeded).
Result<std::shared_ptr<const OpenGraph>> parse_open(
    std::string_view text, const OpenOps& ops, int64_t max_generated_bytes = ir::kMaxGeneratedBytes,
    std::span<const SharedBytes> stored = {});

}  // namespace pyc::open

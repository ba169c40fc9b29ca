#include "driver/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ir/rules.h"

namespace pyc::driver {
namespace {

Result<uint32_t> find_named(const ir::Graph& graph, const std::vector<ir::ValueId>& values,
                            std::string_view what, const std::string& name) {
  std::vector<std::string_view> known;
  for (const ir::ValueId v : values) known.push_back(graph.value(v).name);
  const auto at = std::find(known.begin(), known.end(), name);
  if (at != known.end()) return static_cast<uint32_t>(at - known.begin());
  return Status(Code::kUnknownOption, fmt::format("state: '{}' is no {} of the model{}", name, what,
                                                  ir::did_you_mean(ir::closest_name(name, known))))
      .with_node(name);
}

Status check_types(const ir::Value& input, const ir::Value& output) {
  const ir::TensorType& before = input.type;
  const ir::TensorType& after = output.type;
  if (before == after) return {};
  const Code code = before.dtype != after.dtype     ? Code::kDtypeMismatch
                    : before.rank() != after.rank() ? Code::kRankMismatch
                                                    : Code::kShapeMismatch;
  return Status(code, fmt::format("state '{}={}': expected an output of the input's type {}, found "
                                  "{}",
                                  input.name, output.name, before.to_string(), after.to_string()))
      .with_node(input.name);
}

}  // namespace

Result<std::vector<plan::StatePair>> find_states(const ir::Graph& graph, const StatePairs& names) {
  std::vector<plan::StatePair> states;
  for (const auto& [input, output] : names) {
    plan::StatePair pair;
    PYC_ASSIGN(pair.input, find_named(graph, graph.inputs, "input", input));
    PYC_ASSIGN(pair.output, find_named(graph, graph.outputs, "output", output));
    for (const plan::StatePair& other : states) {
      if (other.input != pair.input && other.output != pair.output) continue;
      const bool same_input = other.input == pair.input;
      return Status(
                 Code::kInvalidArgument,
                 fmt::format("state '{}={}': the {} '{}' is another state's already", input, output,
                             same_input ? "input" : "output", same_input ? input : output))
          .with_node(same_input ? input : output);
    }
    PYC_TRY(check_types(graph.value(graph.inputs[pair.input]),
                        graph.value(graph.outputs[pair.output])));
    states.push_back(pair);
  }
  return states;
}

}  // namespace pyc::driver

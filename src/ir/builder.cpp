#include <fmt/format.h>

#include <utility>

#include "ir/graph.h"
#include "ir/literal.h"
#include "ir/rules.h"

namespace pyc::ir {
namespace {

Status bad_value_id(ValueId id, size_t values) {
  return {Code::kInvalidArgument,
          fmt::format("[bad_id] expected a value id under {}, found {}", values, id)};
}

Status duplicate_name(std::string_view name) {
  return {Code::kInvalidArgument,
          fmt::format("[duplicate_name] there is a value %{} already", shown_name(name))};
}

}  // namespace

GraphBuilder::GraphBuilder(const OpSet& ops, std::string name) : ops_(ops) {
  graph_.name = std::move(name);
}

GraphBuilder::GraphBuilder(const OpSet& ops, Graph graph) : ops_(ops), graph_(std::move(graph)) {
  for (ValueId id = 0; id < graph_.values.size(); ++id) names_.emplace(graph_.values[id].name, id);
  for (Node& node : graph_.nodes) streams_.number(*node.op, node.attrs);
}

Result<ValueId> GraphBuilder::input(std::string name, TensorType type) {
  if (name.empty()) return Status(Code::kInvalidArgument, "[bad_name] an input needs a name");
  if (names_.contains(name)) return duplicate_name(name);
  const Status accepted = check_type(type);
  if (!accepted.ok()) return placed(accepted, accepted.code(), "input %" + shown_name(name));
  const auto id = static_cast<ValueId>(graph_.values.size());
  names_.emplace(name, id);
  graph_.values.push_back({std::move(name), std::move(type), ValueKind::kInput, kNoId, nullptr});
  graph_.inputs.push_back(id);
  return id;
}

Result<ValueId> GraphBuilder::constant(TensorType type, std::shared_ptr<const ConstData> data,
                                       std::string name) {
  if (!name.empty() && names_.contains(name)) return duplicate_name(name);
  Status accepted = check_type(type);
  if (accepted.ok()) accepted = check_constant(type, data.get());
  if (!accepted.ok()) {
    return placed(accepted, accepted.code(),
                  name.empty() ? "constant" : "constant %" + shown_name(name));
  }
  const auto id = static_cast<ValueId>(graph_.values.size());
  name = fresh_name(name);
  names_.emplace(name, id);
  graph_.values.push_back(
      {std::move(name), std::move(type), ValueKind::kConstant, kNoId, std::move(data)});
  return id;
}

Result<ValueId> GraphBuilder::scalar(DType dtype, double value) {
  TensorType type{dtype, {}};
  PYC_TRY(check_type(type));
  auto data = splat_data(type, value);
  return constant(std::move(type), std::move(data));
}

Result<ValueId> GraphBuilder::op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs,
                                 std::string name, std::string loc) {
  const auto where = [&] {
    return loc.empty() ? fmt::format("op '{}'", op) : fmt::format("op '{}' from '{}'", op, loc);
  };
  const OpDef* def = ops_.find(op);
  if (def == nullptr) {
    return Status(Code::kUnknownOp,
                  fmt::format("unknown {}{}", where(), did_you_mean(ops_.suggest(op))));
  }
  if (!name.empty() && names_.contains(name)) {
    return placed(duplicate_name(name), Code::kInvalidArgument, where());
  }
  std::vector<TensorType> input_types;
  input_types.reserve(inputs.size());
  for (const ValueId id : inputs) {
    if (id >= graph_.values.size()) {
      return placed(bad_value_id(id, graph_.values.size()), Code::kInvalidArgument, where());
    }
    input_types.push_back(graph_.values[id].type);
  }
  PYC_TRY(check_arity(*def, inputs.size()));
  streams_.number(*def, attrs);
  PYC_ASSIGN(Attrs complete, complete_attrs(*def, std::move(attrs)));
  auto types = infer_outputs(*def, input_types, complete);
  if (!types.ok()) {
    return loc.empty() ? types.status()
                       : placed(types.status(), types.status().code(), fmt::format("'{}'", loc));
  }

  const auto first = static_cast<ValueId>(graph_.values.size());
  const auto producer = static_cast<NodeId>(graph_.nodes.size());
  Node node{def, std::move(inputs), {}, std::move(complete), std::move(loc)};
  name = fresh_name(name);
  for (size_t i = 0; i < types->size(); ++i) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    std::string value_name = i == 0 ? name : fresh_name(fmt::format("{}.{}", name, i));
    names_.emplace(value_name, id);
    node.outputs.push_back(id);
    graph_.values.push_back(
        {std::move(value_name), std::move((*types)[i]), ValueKind::kResult, producer, nullptr});
  }
  graph_.nodes.push_back(std::move(node));
  return first;
}

Status GraphBuilder::output(ValueId value) {
  if (value >= graph_.values.size()) return bad_value_id(value, graph_.values.size());
  graph_.outputs.push_back(value);
  return {};
}

// `wanted` if it is free, else (or when it is empty) a name that is.
std::string GraphBuilder::fresh_name(std::string_view wanted) {
  std::string name(wanted);
  while (name.empty() || names_.contains(name)) {
    name = wanted.empty() ? "v" : std::string(wanted) + '.';
    name += std::to_string(next_name_++);
  }
  return name;
}

}  // namespace pyc::ir

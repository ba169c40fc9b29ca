#include "ir/patch.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "ir/literal.h"
#include "ir/rules.h"

namespace pyc::ir {

ValueId NodeView::input(size_t i) const { return patch_->current(node_->inputs[i]); }

std::vector<ValueId> NodeView::all_inputs() const {
  std::vector<ValueId> all;
  for (size_t i = 0; i < inputs(); ++i) all.push_back(input(i));
  return all;
}

const TensorType& NodeView::input_type(size_t i) const { return patch_->type(node_->inputs[i]); }
const TensorType& NodeView::type() const { return patch_->type(node_->outputs[0]); }

bool is_splat(const TensorType& type, const ConstData& data, Word* element) {
  const auto size = static_cast<size_t>(dtype_size(type.dtype));
  if (data.bytes.size() < size) return false;
  // All elements are equal when each equals the one before it.
  if (data.form != ConstData::Form::kSplat &&
      std::memcmp(data.bytes.data(), data.bytes.data() + size, data.bytes.size() - size) != 0) {
    return false;
  }
  *element = load_word(data.bytes.data(), type.dtype);
  return true;
}

const Value& Patch::value(ValueId v) const {
  return v < graph_.values.size() ? graph_.values[v] : values_[v - graph_.values.size()];
}

const Node& Patch::any_node(NodeId n) const {
  return n < graph_.nodes.size() ? graph_.nodes[n] : nodes_[n - graph_.nodes.size()];
}

ValueId Patch::current(ValueId v) const {
  while (v < replaced_.size() && replaced_[v] != kNoId) v = replaced_[v];
  return v;
}

NodeView Patch::producer(ValueId v) const {
  const Value& found = value(current(v));
  if (found.kind != ValueKind::kResult) return {};
  return {*this, any_node(found.producer)};
}

const std::shared_ptr<const ConstData>& Patch::constant(ValueId v) const {
  return value(current(v)).constant;
}

std::optional<Word> Patch::uniform(ValueId v) const {
  const std::shared_ptr<const ConstData>& data = constant(v);
  Word element = 0;
  if (data == nullptr || !is_splat(type(v), *data, &element)) return {};
  return element;
}

bool Patch::is_uniform(ValueId v, double x) const {
  const DType t = type(v).dtype;
  const Word wanted = word_from_double(x, t);
  // f8e4m3fn has no infinity: what it makes of one is a NaN.
  if (is_float(t) && std::isnan(word_to_double(wanted, t)) != std::isnan(x)) return false;
  const std::optional<Word> element = uniform(v);
  return element && *element == wanted;
}

// The first node of the graph before which the value may be read.
NodeId Patch::known_from(ValueId v) const {
  const Value& found = value(v);
  if (found.kind != ValueKind::kResult) return 0;
  const NodeId n = found.producer;
  return n < graph_.nodes.size() ? n + 1 : anchors_[n - graph_.nodes.size()];
}

ValueId Patch::refuse(std::string message) {
  if (status_.ok()) status_ = Status(Code::kInternal, "patch: " + std::move(message));
  return kNoId;
}

std::string Patch::fresh_name(std::string_view wanted) {
  if (names_.empty()) {
    // Names that are made have a dot, and only those that have one are in their way.
    names_.reserve(graph_.values.size());
    for (const Value& v : graph_.values) {
      if (v.name.find('.') != std::string::npos) names_.emplace(v.name, 0);
    }
  }
  auto base = names_.find(wanted);
  if (base == names_.end()) base = names_.emplace(made_names_.emplace_back(wanted), 0).first;
  int& next = base->second;  // stays where it is when others are added
  std::string name;
  do {
    name = fmt::format("{}.{}", wanted, next++);
  } while (names_.contains(name));
  names_.emplace(made_names_.emplace_back(name), 0);
  return name;
}

std::string Patch::value_text(ValueId v) const {
  return v < graph_.values.size() + values_.size() ? "%" + shown_name(value(v).name)
                                                   : fmt::format("value {}", v);
}

ValueId Patch::op(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
  if (!status_.ok()) return kNoId;
  const OpDef* def = ops_.find(op);
  if (def == nullptr) return refuse(fmt::format("unknown op '{}'", op));
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (ValueId& v : inputs) {
    if (v >= graph_.values.size() + values_.size()) {
      return refuse(fmt::format("op '{}' reads value {}, which does not exist", op, v));
    }
    v = current(v);
    if (known_from(v) > anchor_) {
      return refuse(fmt::format("op '{}' before node {} reads {}, which is made only later", op,
                                anchor_, value_text(v)));
    }
    types.push_back(value(v).type);
  }
  const Status arity = check_arity(*def, inputs.size());
  if (!arity.ok()) return refuse(arity.message());
  auto complete = complete_attrs(*def, std::move(attrs));
  if (!complete.ok()) return refuse(complete.status().message());
  auto results = infer_outputs(*def, types, *complete);
  if (!results.ok()) return refuse(results.status().message());

  const Node* near = anchor_ < graph_.nodes.size() ? &graph_.nodes[anchor_] : nullptr;
  const auto n = static_cast<NodeId>(graph_.nodes.size() + nodes_.size());
  const auto first = static_cast<ValueId>(graph_.values.size() + values_.size());
  Node node{def, std::move(inputs), {}, std::move(*complete), near != nullptr ? near->loc : ""};
  const std::string base = near != nullptr ? graph_.value(near->outputs[0]).name : "t";
  for (TensorType& t : *results) {
    node.outputs.push_back(static_cast<ValueId>(graph_.values.size() + values_.size()));
    values_.push_back({fresh_name(base), std::move(t), ValueKind::kResult, n, nullptr});
  }
  nodes_.push_back(std::move(node));
  anchors_.push_back(anchor_);
  log_.push_back({EditKind::kNode, n});
  return first;
}

ValueId Patch::constant(TensorType type, std::shared_ptr<const ConstData> data) {
  if (!status_.ok()) return kNoId;
  Status accepted = check_type(type);
  if (accepted.ok()) accepted = check_constant(type, data.get());
  if (!accepted.ok()) return refuse(accepted.message());
  const Node* near = anchor_ < graph_.nodes.size() ? &graph_.nodes[anchor_] : nullptr;
  const std::string base = near != nullptr ? graph_.value(near->outputs[0]).name : "t";
  const auto id = static_cast<ValueId>(graph_.values.size() + values_.size());
  values_.push_back(
      {fresh_name(base), std::move(type), ValueKind::kConstant, kNoId, std::move(data)});
  log_.push_back({EditKind::kConstant, id});
  return id;
}

void Patch::replace(ValueId old, ValueId by) {
  if (!status_.ok()) return;
  if (const std::string why = refusal(old, by); !why.empty()) {
    refuse(fmt::format("{} cannot become {}: {}", value_text(old), value_text(by), why));
    return;
  }
  replaced_[old] = current(by);
  log_.push_back({EditKind::kReplace, old});
}

std::string Patch::refusal(ValueId old, ValueId by) const {
  if (old >= graph_.values.size() || value(old).kind == ValueKind::kInput) {
    return "it is no result or constant of the graph";
  }
  if (by >= graph_.values.size() + values_.size()) return "there is no such value";
  if (replaced_[old] != kNoId) return "it was replaced already";
  if (type(old) != type(by)) {
    return fmt::format("their types are {} and {}", type(old).to_string(), type(by).to_string());
  }
  const NodeId needed_at = value(old).kind == ValueKind::kResult ? value(old).producer : 0;
  return known_from(current(by)) > needed_at || current(by) == old ? "it does not stand before it"
                                                                   : "";
}

void Patch::undo_to(size_t count) {
  while (log_.size() > count) {
    const Edit edit = log_.back();
    log_.pop_back();
    if (edit.kind == EditKind::kReplace) {
      replaced_[edit.subject] = kNoId;
    } else if (edit.kind == EditKind::kConstant) {
      values_.pop_back();
    } else {
      for (size_t i = 0; i < nodes_.back().outputs.size(); ++i) values_.pop_back();
      nodes_.pop_back();
      anchors_.pop_back();
    }
  }
  status_ = {};
}

std::string Patch::to_string() const {
  std::string text;
  for (const Edit& edit : log_) {
    if (edit.kind == EditKind::kReplace) {
      text +=
          fmt::format("{} -> {}\n", value_text(edit.subject), value_text(replaced_[edit.subject]));
      continue;
    }
    if (edit.kind == EditKind::kConstant) {
      text += fmt::format("new {} = const {}\n", value_text(edit.subject),
                          value(edit.subject).type.to_string());
      continue;
    }
    const Node& node = any_node(edit.subject);
    text += fmt::format("new {} = {}(", value_text(node.outputs[0]), node.op->name);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      text += (i > 0 ? ", " : "") + value_text(node.inputs[i]);
    }
    text += ")";
    for (const auto& [name, attr] : node.attrs) {
      text += fmt::format(" {}={}", name, attr_to_string(attr));
    }
    text += "\n";
  }
  return text;
}

}  // namespace pyc::ir

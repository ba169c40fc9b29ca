#include "import/onnx/rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/rules.h"
#include "ops/registry.h"

namespace pyc::onnx {
namespace {

struct Entry {
  int since;
  open::OpenOp op;
};
using Table = std::map<std::string, std::vector<Entry>, std::less<>>;  // versions ascending

std::string key_of(std::string_view domain, std::string_view op) {
  return std::string(domain) + "::" + std::string(op);
}

// As the text of open graphs calls it.
std::string text_name(std::string_view domain, std::string_view op) {
  return std::string(domain.empty() ? "onnx" : domain) + "." + std::string(op);
}

// The two meanings of an op may come from two families; the one that came first stays.
void add(std::vector<Entry>& entries, Entry entry) {
  for (Entry& e : entries) {
    if (e.since != entry.since) continue;
    if (e.op.close == nullptr) {
      e.op.close = entry.op.close;
      e.op.same = entry.op.same;
    }
    if (e.op.host == nullptr) e.op.host = entry.op.host;
    return;
  }
  entries.push_back(std::move(entry));
}

Table make_table() {
  Table table;
  for (const Rules family :
       {control_rules(), dynamic_rules(), elementwise_rules(), linear_rules(), ml_rules(),
        microsoft_rules(), norm_rules(), product_rules(), recurrent_rules(), reduce_rules(),
        resize_rules(), sequence_rules(), shape_rules(), string_rules(), training_rules(),
        tree_rules(), window_rules()}) {
    for (const Rule& rule : family) {
      add(table[key_of(rule.domain, rule.op)], {rule.since,
                                                {.name = text_name(rule.domain, rule.op),
                                                 .close = rule.close,
                                                 .host = rule.host,
                                                 .random = rule.random,
                                                 .foresee = rule.foresee}});
    }
  }
  for (const ir::OpDef* op : ops::all_ops().all()) {
    const ir::OnnxNode& onnx = op->onnx;
    if (onnx.name.empty()) continue;
    add(table[key_of(onnx.domain, onnx.name)],
        {onnx.since, {.name = text_name(onnx.domain, onnx.name), .close = close_same, .same = op}});
  }
  for (auto& [key, entries] : table) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.since < b.since; });
    // What the host does has no versions.
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].op.host == nullptr) entries[i].op.host = entries[i - 1].op.host;
    }
  }
  for (const ComplexRule& rule : complex_rules()) {
    for (Entry& e : table.at(key_of("", rule.op))) {
      e.op.complex = rule.host != nullptr ? rule.host : e.op.host;
    }
  }
  return table;
}

const Table& table() {
  static const Table made = make_table();
  return made;
}

const open::OpenOp* find_by_name(std::string_view name, int64_t version) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  const std::string_view domain = name.substr(0, dot);
  return find_rule(domain == "onnx" ? "" : domain, name.substr(dot + 1), version);
}

std::string suggest_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [key, entries] : table()) names.push_back(entries[0].op.name);
  return std::string(ir::closest_name(name, names));
}

}  // namespace

const open::OpenOp* find_rule(std::string_view domain, std::string_view op, int64_t version) {
  if (domain == "ai.onnx") domain = "";
  const auto it = table().find(key_of(domain, op));
  if (it == table().end()) return nullptr;
  const open::OpenOp* best = nullptr;
  for (const Entry& e : it->second) {
    if (e.since <= version) best = &e.op;
  }
  return best;
}

int first_version(std::string_view domain, std::string_view op) {
  const auto it = table().find(key_of(domain == "ai.onnx" ? "" : domain, op));
  return it == table().end() ? 0 : it->second.front().since;
}

std::optional<int64_t> newest_opset(std::string_view domain) {
  static const std::map<std::string_view, int64_t> kNewest = {{"", 28},
                                                              {"ai.onnx", 28},
                                                              {"ai.onnx.ml", 5},
                                                              {"ai.onnx.preview", 1},
                                                              {"ai.onnx.preview.training", 1},
                                                              {"com.microsoft", 1}};
  const auto it = kNewest.find(domain);
  return it == kNewest.end() ? std::nullopt : std::optional(it->second);
}

const open::OpenOps& open_ops() {
  static constexpr open::OpenOps ops = {.find = find_by_name, .suggest = suggest_name};
  return ops;
}

std::vector<std::string_view> rule_names(std::string_view domain) {
  std::vector<std::string_view> names;
  const std::string prefix = key_of(domain, "");
  for (const auto& [key, entries] : table()) {
    if (key.starts_with(prefix)) names.push_back(std::string_view(key).substr(prefix.size()));
  }
  return names;
}

std::string_view suggest_op(std::string_view op) {
  std::vector<std::string_view> names;
  for (const auto& [key, entries] : table()) {
    names.push_back(std::string_view(key).substr(key.find("::") + 2));
  }
  return ir::closest_name(op, names);
}

}  // namespace pyc::onnx

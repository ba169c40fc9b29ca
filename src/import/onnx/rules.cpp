#include "import/onnx/rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace pyc::onnx {
namespace {

struct Entry {
  int since;
  ir::OpenOp op;
};
using Table = std::map<std::string, std::vector<Entry>, std::less<>>;  // versions ascending

std::string key_of(std::string_view domain, std::string_view op) {
  return std::string(domain) + "::" + std::string(op);
}

// The two meanings of an op may come from two families.
void add(std::vector<Entry>& entries, Entry entry) {
  for (Entry& e : entries) {
    if (e.since != entry.since) continue;
    if (e.op.close == nullptr) e.op.close = entry.op.close;
    if (e.op.host == nullptr) e.op.host = entry.op.host;
    return;
  }
  entries.push_back(std::move(entry));
}

Table make_table() {
  Table table;
  for (const Rules family : {control_rules(), dynamic_rules(), elementwise_rules(), linear_rules(),
                             ml_rules(), microsoft_rules(), norm_rules(), product_rules(),
                             recurrent_rules(), reduce_rules(), resize_rules(), sequence_rules(),
                             shape_rules(), string_rules(), tree_rules(), window_rules()}) {
    for (const Rule& rule : family) {
      const std::string prefix = rule.domain.empty() ? "onnx." : std::string(rule.domain) + ".";
      add(table[key_of(rule.domain, rule.op)],
          {rule.since, {prefix + std::string(rule.op), rule.close, rule.host}});
    }
  }
  for (auto& [key, entries] : table) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.since < b.since; });
  }
  return table;
}

const Table& table() {
  static const Table made = make_table();
  return made;
}

size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

const ir::OpenOp* find_rule(std::string_view domain, std::string_view op, int64_t version) {
  if (domain == "ai.onnx") domain = "";
  const auto it = table().find(key_of(domain, op));
  if (it == table().end()) return nullptr;
  const ir::OpenOp* best = nullptr;
  for (const Entry& e : it->second) {
    if (e.since <= version) best = &e.op;
  }
  return best;
}

std::string_view suggest_op(std::string_view op) {
  std::string_view best;
  size_t nearest = 3;
  for (const auto& [key, entries] : table()) {
    const std::string_view name = std::string_view(key).substr(key.find("::") + 2);
    const size_t d = distance(op, name);
    if (d < nearest) {
      nearest = d;
      best = name;
    }
  }
  return best;
}

}  // namespace pyc::onnx

#include "export/onnx/rules.h"

#include <map>

namespace pyc::onnx::exporting {
namespace {

std::map<std::string_view, const Rule*> make_table() {
  std::map<std::string_view, const Rule*> table;
  for (const Rules family : {elementwise_rules(), norm_rules(), product_rules(), recurrent_rules(),
                             reduce_rules(), shape_rules(), source_rules(), window_rules()}) {
    for (const Rule& rule : family) table.emplace(rule.op, &rule);
  }
  return table;
}

}  // namespace

const Rule* find_rule(std::string_view op) {
  static const std::map<std::string_view, const Rule*> table = make_table();
  const auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace pyc::onnx::exporting

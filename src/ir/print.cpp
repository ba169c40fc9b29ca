#include <fmt/format.h>

#include <iterator>

#include "base/convert.h"
#include "ir/graph.h"
#include "ir/literal.h"

// Constants come first, in the order of their ids, then the nodes: parsing the text and printing it
// again gives the same text. Broken graphs are printed too, for messages and debugging.

namespace pyc::ir {
namespace {

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string print() {
    out_ += "graph @" + format_name(graph_.name) + "(";
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      separate(i);
      value(graph_.inputs[i]);
      out_ += ": ";
      type(graph_.inputs[i]);
    }
    out_ += ") -> (";
    values(graph_.outputs);
    out_ += ") {\n";
    for (const Value& value : graph_.values) {
      if (value.kind == ValueKind::kConstant) constant(value);
    }
    for (const Node& n : graph_.nodes) node(n);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void separate(size_t i) {
    if (i != 0) out_ += ", ";
  }

  void value(ValueId id) {
    if (id < graph_.values.size()) {
      out_ += "%" + format_name(graph_.values[id].name);
    } else {
      out_ += fmt::format("<no value {}>", id);
    }
  }

  void values(const std::vector<ValueId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      separate(i);
      value(ids[i]);
    }
  }

  void type(ValueId id) {
    out_ += id < graph_.values.size() ? graph_.values[id].type.to_string() : "<no type>";
  }

  void node(const Node& node) {
    out_ += "  ";
    values(node.outputs);
    out_ += " = ";
    out_ += node.op != nullptr ? node.op->name : "<no op>";
    out_ += "(";
    values(node.inputs);
    out_ += ")";
    if (!node.attrs.empty()) {
      out_ += " {";
      size_t i = 0;
      for (const auto& [name, attr] : node.attrs) {
        separate(i++);
        out_ += name + "=" + attr_to_string(attr);
      }
      out_ += "}";
    }
    out_ += " : ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      separate(i);
      type(node.outputs[i]);
    }
    out_ += "\n";
  }

  void constant(const Value& value) {
    out_ += "  %" + format_name(value.name) + " = const " + value.type.to_string() + " ";
    if (!check_type(value.type).ok() || value.constant == nullptr) {
      out_ += "<no data>\n";
      return;
    }
    const ConstData& data = *value.constant;
    const DType dtype = value.type.dtype;
    if (data.form == ConstData::Form::kRandom && !data.bytes.empty()) {
      out_ += fmt::format("random(seed={}, lo={}, hi={})", data.seed, attr_to_string(data.lo),
                          attr_to_string(data.hi));
    } else {
      const auto size = static_cast<size_t>(dtype_size(dtype));
      const bool splat = data.form == ConstData::Form::kSplat && data.bytes.size() >= size;
      const size_t count = splat ? 1 : data.bytes.size() / size;
      out_ += splat ? "splat(" : "dense(";
      for (size_t i = 0; i < count; ++i) {
        separate(i);
        append_element(out_, load_word(data.bytes.data() + i * size, dtype), dtype);
      }
      out_ += ")";
    }
    out_ += "\n";
  }

  const Graph& graph_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).print(); }

}  // namespace pyc::ir

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/convert.h"
#include "ir/literal.h"
#include "open/text.h"

// Constants come first, in the order of their ids, then the nodes, as in a Graph's text.

namespace pyc::open {
namespace {

// Names by value: those of the graph where they are there and unique, inputs and outputs first.
std::vector<std::string> names_of(const OpenGraph& graph) {
  std::vector<std::string> names(graph.values.size());
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> used;  // the last number a name was told apart by
  const auto name = [&](OpenId v) {
    if (v >= names.size() || !names[v].empty()) return;
    const std::string& wanted = graph.values[v].name;
    std::string chosen = wanted.empty() ? fmt::format("v{}", v) : wanted;
    const std::string stem = chosen;
    while (!taken.insert(chosen).second) {
      int& n = used.try_emplace(stem, 1).first->second;
      chosen = fmt::format("{}.{}", stem, ++n);
    }
    names[v] = std::move(chosen);
  };
  for (const OpenId v : graph.inputs) name(v);
  for (const OpenId v : graph.outputs) name(v);
  for (OpenId v = 0; v < names.size(); ++v) name(v);
  return names;
}

// Where the content lies; null when there is none.
const void* content_of(const DynValue& value) {
  switch (value.kind) {
    case DynValue::Kind::kTensor:
      return value.bytes.empty() ? nullptr : value.bytes.data();
    case DynValue::Kind::kStrings:
      return value.strings.get();
    case DynValue::Kind::kSequence:
      return value.items.get();
    case DynValue::Kind::kAbsent:
      return nullptr;
  }
  return nullptr;
}

std::string dim_text(const OpenType::Dim& dim) {
  if (dim.symbol.empty()) return dim.value < 0 ? "?" : std::to_string(dim.value);
  return ir::format_name(dim.symbol) + (dim.value < 0 ? "" : fmt::format("={}", dim.value));
}

std::string type_text(const OpenType& type) {
  if (type.kind == OpenType::Kind::kUnknown) return "?";
  if (type.kind == OpenType::Kind::kSequence || type.kind == OpenType::Kind::kOptional) {
    return fmt::format("{}({})", type.kind == OpenType::Kind::kSequence ? "sequence" : "optional",
                       type.element == nullptr ? "?" : type_text(*type.element));
  }
  std::string text = type.kind == OpenType::Kind::kStrings ? "string"
                     : type.dtype                          ? std::string(dtype_name(*type.dtype))
                                                           : "?";
  if (!type.shape) return text + "[*]";
  text += "[";
  for (size_t i = 0; i < type.shape->size(); ++i) {
    text += (i == 0 ? "" : ",") + dim_text((*type.shape)[i]);
  }
  return text + "]";
}

// Tensors of more bytes are stored beside the text, where that is asked for.
constexpr size_t kMaxInText = 256;

class OpenPrinter {
 public:
  explicit OpenPrinter(std::vector<SharedBytes>* stored = nullptr) : stored_(stored) {}

  std::string print(const OpenGraph& graph) {
    out_ += "open graph ";
    const Scope scope(graph, nullptr);
    body(scope);
    out_ += "\n";
    return std::move(out_);
  }

 private:
  struct Scope {
    Scope(const OpenGraph& g, const Scope* around) : graph(g), outer(around), names(names_of(g)) {
      for (OpenId v = 0; v < g.values.size(); ++v) {
        const auto& constant = g.values[v].constant;
        if (constant && content_of(*constant) != nullptr) {
          contents.emplace(content_of(*constant), v);
        }
      }
    }
    const OpenGraph& graph;
    const Scope* outer;
    std::vector<std::string> names;
    std::map<const void*, OpenId> contents;  // of constants
  };

  void separate(size_t i) {
    if (i != 0) out_ += ", ";
  }
  void line(size_t more = 1) { out_ += "\n" + std::string(2 * (depth_ + more), ' '); }

  void value(const Scope& scope, OpenId id) {
    if (id == kAbsentId) {
      out_ += "_";
    } else if (id < scope.names.size()) {
      out_ += "%" + ir::format_name(scope.names[id]);
    } else {
      out_ += fmt::format("<no value {}>", id);
    }
  }

  void values(const Scope& scope, const std::vector<OpenId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      separate(i);
      value(scope, ids[i]);
    }
  }

  std::string type_of(const Scope& scope, OpenId id) const {
    return id < scope.graph.values.size() ? type_text(scope.graph.values[id].type) : "?";
  }

  // ": type", where there is something to say.
  void declared(const Scope& scope, const std::vector<OpenId>& ids) {
    const bool any =
        std::any_of(ids.begin(), ids.end(), [&](OpenId v) { return type_of(scope, v) != "?"; });
    for (size_t i = 0; any && i < ids.size(); ++i) {
      out_ += (i == 0 ? " : " : ", ") + type_of(scope, ids[i]);
    }
  }

  void captures(const Scope& scope) {
    if (scope.graph.captures.empty()) return;
    out_ += " captures (";
    for (size_t i = 0; i < scope.graph.captures.size(); ++i) {
      const OpenGraph::Capture& c = scope.graph.captures[i];
      separate(i);
      value(scope, c.inner);
      out_ += " = ";
      if (scope.outer != nullptr) value(*scope.outer, c.outer);
      declared(scope, {c.inner});
    }
    out_ += ")";
  }

  void body(const Scope& scope) {
    const OpenGraph& graph = scope.graph;
    out_ += "@" + ir::format_name(graph.name) + "(";
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      separate(i);
      value(scope, graph.inputs[i]);
      out_ += ": " + type_of(scope, graph.inputs[i]);
    }
    out_ += ")";
    captures(scope);
    out_ += " -> (";
    values(scope, graph.outputs);
    out_ += ") {";
    for (OpenId v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].constant) constant(scope, v);
    }
    for (const OpenNode& n : graph.nodes) node(scope, n);
    line(0);
    out_ += "}";
  }

  // The constant of the graph around this one that `constant` is; kAbsentId: none.
  static OpenId shared_with(const Scope& scope, const DynValue& constant) {
    if (scope.outer == nullptr || content_of(constant) == nullptr) return kAbsentId;
    const auto it = scope.outer->contents.find(content_of(constant));
    if (it == scope.outer->contents.end()) return kAbsentId;
    const DynValue& other = *scope.outer->graph.values[it->second].constant;
    const bool same = other.kind == constant.kind && other.dtype == constant.dtype &&
                      other.shape == constant.shape && other.bytes.size() == constant.bytes.size();
    return same ? it->second : kAbsentId;
  }

  void constant(const Scope& scope, OpenId id) {
    const DynValue& content = *scope.graph.values[id].constant;
    line();
    value(scope, id);
    const OpenId shared = shared_with(scope, content);
    if (shared != kAbsentId) {
      out_ += " = outer ";
      value(*scope.outer, shared);
    } else {
      out_ += " = const ";
      literal(content);
    }
    declared(scope, {id});
  }

  void literal(const DynValue& v) {
    switch (v.kind) {
      case DynValue::Kind::kAbsent:
        out_ += "nothing";
        return;
      case DynValue::Kind::kTensor:
        out_ += v.to_string() + " ";
        elements(v);
        return;
      case DynValue::Kind::kStrings:
        out_ += v.to_string() + " dense(";
        for (size_t i = 0; i < v.strings->size(); ++i) {
          separate(i);
          out_ += ir::quote((*v.strings)[i]);
        }
        break;
      case DynValue::Kind::kSequence:
        out_ += "sequence(";
        for (size_t i = 0; i < v.items->size(); ++i) {
          separate(i);
          literal((*v.items)[i]);
        }
        break;
    }
    out_ += ")";
  }

  void elements(const DynValue& v) {
    const auto size = static_cast<size_t>(dtype_size(v.dtype));
    const auto whole = tensor_bytes(v.dtype, v.shape);
    if (!whole.ok() || static_cast<size_t>(*whole) != v.bytes.size()) {
      out_ += "<no data>";
      return;
    }
    if (stored_ != nullptr && v.bytes.size() > kMaxInText) {
      out_ += fmt::format("stored({})", index_of(v.bytes));
      return;
    }
    const std::byte* data = v.bytes.data();
    size_t count = v.bytes.size() / size;
    // Equal to its neighbour everywhere: one element says it.
    const bool splat = count > 1 && std::memcmp(data, data + size, v.bytes.size() - size) == 0;
    if (splat) count = 1;
    out_ += splat ? "splat(" : "dense(";
    for (size_t i = 0; i < count; ++i) {
      separate(i);
      ir::append_element(out_, load_word(data + i * size, v.dtype), v.dtype);
    }
    out_ += ")";
  }

  // Equal places of memory are stored once.
  size_t index_of(const SharedBytes& bytes) {
    const auto [it, fresh] =
        indices_.emplace(std::pair(bytes.data(), bytes.size()), stored_->size());
    if (fresh) stored_->push_back(bytes);
    return it->second;
  }

  void node(const Scope& scope, const OpenNode& n) {
    line();
    if (n.outputs.empty()) out_ += "()";
    values(scope, n.outputs);
    out_ += " = ";
    out_ += n.op != nullptr ? n.op->name : "<no op>";
    out_ += fmt::format("[{}](", n.version);
    values(scope, n.inputs);
    out_ += ")";
    attributes(scope, n.attrs);
    const OpenId first = n.outputs.empty() ? kAbsentId : n.outputs[0];
    const bool named_so = first < scope.names.size() && scope.names[first] == n.name;
    if (!named_so) out_ += " @" + ir::format_name(n.name);
    declared(scope, n.outputs);
  }

  void attributes(const Scope& scope, const OpenAttrs& attrs) {
    if (attrs.empty()) return;
    out_ += " {";
    size_t i = 0;
    for (const auto& [name, attr] : attrs) {
      separate(i++);
      out_ += ir::format_name(name) + "=";
      std::visit([&](const auto& v) { attribute(scope, v); }, attr);
    }
    out_ += "}";
  }

  void attribute(const Scope&, int64_t v) { out_ += std::to_string(v); }
  void attribute(const Scope&, double v) {
    ir::append_element(out_, std::bit_cast<Word>(v), DType::kF64);
  }
  void attribute(const Scope&, const std::string& v) { out_ += ir::quote(v); }
  void attribute(const Scope& s, const std::vector<int64_t>& v) { list(s, "", v); }
  void attribute(const Scope& s, const std::vector<double>& v) { list(s, "floats", v); }
  void attribute(const Scope& s, const std::vector<std::string>& v) { list(s, "strings", v); }
  void attribute(const Scope&, const DynValue& v) {
    out_ += "const ";
    literal(v);
  }
  void attribute(const Scope&, const OpenType& v) { out_ += "type " + type_text(v); }
  void attribute(const Scope& scope, const std::shared_ptr<const OpenGraph>& region) {
    out_ += "region ";
    if (region == nullptr) {
      out_ += "<no graph>";
      return;
    }
    const Scope inner(*region, &scope);
    ++depth_;
    body(inner);
    --depth_;
  }

  // An empty list does not show what it is a list of.
  template <class T>
  void list(const Scope& scope, std::string_view when_empty, const std::vector<T>& all) {
    if (all.empty()) out_ += when_empty;
    out_ += "[";
    for (size_t i = 0; i < all.size(); ++i) {
      if (i != 0) out_ += ",";
      attribute(scope, all[i]);
    }
    out_ += "]";
  }

  std::string out_;
  size_t depth_ = 0;
  std::vector<SharedBytes>* stored_;
  std::map<std::pair<const std::byte*, size_t>, size_t> indices_;
};

}  // namespace

std::string print(const OpenGraph& graph) { return OpenPrinter().print(graph); }

StoredText print_stored(const OpenGraph& graph) {
  StoredText out;
  out.text = OpenPrinter(&out.stored).print(graph);
  return out;
}

}  // namespace pyc::open

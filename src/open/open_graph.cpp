#include "open/open_graph.h"

#include <fmt/format.h>

namespace pyc::open {

std::string OpenType::to_string() const {
  if (kind == Kind::kUnknown) return "?";
  if (kind == Kind::kSequence || kind == Kind::kOptional) {
    return fmt::format("{}({})", kind == Kind::kSequence ? "sequence" : "optional",
                       element == nullptr ? "?" : element->to_string());
  }
  std::string text = kind == Kind::kStrings ? "string"
                     : dtype                ? std::string(dtype_name(*dtype))
                                            : "?";
  if (!shape) return text + "[…]";
  text += "[";
  for (size_t i = 0; i < shape->size(); ++i) {
    const Dim& d = (*shape)[i];
    if (i > 0) text += ",";
    text += d.value >= 0 ? std::to_string(d.value) : d.symbol.empty() ? "?" : d.symbol;
  }
  return text + "]";
}

bool OpenType::is_static() const {
  if (kind != Kind::kTensor || !dtype || !shape) return false;
  for (const Dim& d : *shape) {
    if (d.value < 0) return false;
  }
  return true;
}

namespace {

// Whether the value itself is of the type; what a sequence holds is looked at on its own.
Code compare(const OpenType& type, const DynValue& value) {
  using Kind = OpenType::Kind;
  if (type.kind == Kind::kSequence) {
    return value.kind == DynValue::Kind::kSequence ? Code::kOk : Code::kDtypeMismatch;
  }
  if (type.kind != Kind::kTensor && type.kind != Kind::kStrings) return Code::kOk;
  if (value.is_tensor() != (type.kind == Kind::kTensor) ||
      (type.kind == Kind::kStrings && value.kind != DynValue::Kind::kStrings) ||
      (type.dtype && *type.dtype != value.dtype)) {
    return Code::kDtypeMismatch;
  }
  // Exporters write no dims for "anything" as well as for a scalar.
  if (!type.shape || type.shape->empty()) return Code::kOk;
  if (type.shape->size() != value.shape.size()) return Code::kRankMismatch;
  for (size_t i = 0; i < value.shape.size(); ++i) {
    const int64_t d = (*type.shape)[i].value;
    if (d >= 0 && d != value.shape[i]) return Code::kShapeMismatch;
  }
  return Code::kOk;
}

Status check_type(const OpenType& type, const DynValue& value) {
  if (type.kind == OpenType::Kind::kOptional) {
    if (value.absent() || type.element == nullptr) return {};
    return check_type(*type.element, value);
  }
  if (const Code code = compare(type, value); code != Code::kOk) {
    return {code, fmt::format("expected {}, found {}", type.to_string(), value.to_string())};
  }
  if (type.kind != OpenType::Kind::kSequence || type.element == nullptr) return {};
  for (size_t i = 0; i < value.items->size(); ++i) {
    Status status = check_type(*type.element, (*value.items)[i]);
    if (!status.ok()) return std::move(status).with_context(fmt::format("item {}", i));
  }
  return {};
}

}  // namespace

Status check_accepts(const OpenValue& declared, const DynValue& value) {
  Status status = check_type(declared.type, value);
  if (status.ok()) return status;
  return std::move(status).with_context(fmt::format("input '{}'", declared.name));
}

void SymbolSizes::set(const std::string& symbol, int64_t size, const std::string& where) {
  sizes_.insert_or_assign(symbol, Size{size, where});
}

Status SymbolSizes::take(const OpenValue& declared, const DynValue& value) {
  if (!declared.type.shape || declared.type.shape->size() != value.shape.size()) return {};
  for (size_t i = 0; i < value.shape.size(); ++i) {
    const std::string& symbol = (*declared.type.shape)[i].symbol;
    if (symbol.empty() || symbol == "None" || symbol == "?") continue;
    const auto it = sizes_.find(symbol);
    if (it == sizes_.end()) {
      sizes_.try_emplace(symbol, Size{value.shape[i], "input '" + declared.name + "'"});
      continue;
    }
    if (it->second.size == value.shape[i]) continue;
    return {Code::kShapeMismatch,
            fmt::format("dim '{}' is {} in {} and {} in input '{}' ({})", symbol, it->second.size,
                        it->second.where, value.shape[i], declared.name, value.to_string())};
  }
  return {};
}

std::optional<int64_t> SymbolSizes::find(const std::string& symbol) const {
  const auto it = sizes_.find(symbol);
  return it == sizes_.end() ? std::nullopt : std::optional(it->second.size);
}

std::vector<const OpenGraph*> regions_of(const OpenNode& node) {
  std::vector<const OpenGraph*> regions;
  for (const auto& [name, attr] : node.attrs) {
    if (const auto* g = std::get_if<std::shared_ptr<const OpenGraph>>(&attr)) {
      regions.push_back(g->get());
    }
  }
  return regions;
}

std::vector<OpenId> reads_of(const OpenNode& node) {
  std::vector<OpenId> reads;
  for (const OpenId v : node.inputs) {
    if (v != kAbsentId) reads.push_back(v);
  }
  for (const OpenGraph* region : regions_of(node)) {
    for (const OpenGraph::Capture& c : region->captures) reads.push_back(c.outer);
  }
  return reads;
}

int64_t HostCall::attr_int(std::string_view name, int64_t fallback) const {
  const auto* v = attr<int64_t>(name);
  return v == nullptr ? fallback : *v;
}

double HostCall::attr_float(std::string_view name, double fallback) const {
  const auto* v = attr<double>(name);
  return v == nullptr ? fallback : *v;
}

std::string HostCall::attr_string(std::string_view name, std::string_view fallback) const {
  const auto* v = attr<std::string>(name);
  return v == nullptr ? std::string(fallback) : *v;
}

}  // namespace pyc::open

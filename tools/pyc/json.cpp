#include "json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace pyc::tool {
namespace {

using Library = nlohmann::ordered_json;

Library library_value(const Json& json) {
  if (json.kind() == Json::Kind::kValue) {
    return std::visit([](const auto& value) { return Library(value); }, json.value());
  }
  Library out = json.kind() == Json::Kind::kArray ? Library::array() : Library::object();
  for (size_t i = 0; i < json.items().size(); ++i) {
    Library item = library_value(json.items()[i]);
    if (json.kind() == Json::Kind::kArray) {
      out.push_back(std::move(item));
    } else {
      out[json.names()[i]] = std::move(item);
    }
  }
  return out;
}

Json own_value(const Library& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  Json out;
  if (value.is_array()) {
    out = Json::array();
    for (const Library& item : value) out.push_back(own_value(item));
  } else if (value.is_object()) {
    out = Json::object();
    for (const auto& [name, item] : value.items()) out[name] = own_value(item);
  }
  return out;
}

// The library writes U+007F to U+009F as they are; some terminals obey those, too.
std::string without_controls(const std::string& json) {
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0xFF);
    if (byte == 0x7F) {
      out += "\\u007f";
    } else if (byte == 0xC2 && next < 0xA0) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

}  // namespace

std::optional<Json> Json::parse(std::string_view text) {
  const Library value = Library::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return own_value(value);
}

std::string Json::text(int indent) const {
  return without_controls(
      library_value(*this).dump(indent, ' ', false, Library::error_handler_t::replace));
}

int64_t Json::integer() const {
  const auto* natural = std::get_if<uint64_t>(&value_);
  return natural != nullptr ? static_cast<int64_t>(*natural) : std::get<int64_t>(value_);
}

size_t Json::find(std::string_view name) const {
  return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

bool Json::contains(std::string_view name) const { return find(name) < names_.size(); }

const Json& Json::operator[](std::string_view name) const {
  if (!contains(name)) throw std::out_of_range("no member '" + std::string(name) + "'");
  return items_[find(name)];
}

Json& Json::operator[](std::string_view name) {
  kind_ = Kind::kObject;
  const size_t at = find(name);
  if (at == names_.size()) {
    names_.emplace_back(name);
    items_.emplace_back();
  }
  return items_[at];
}

void Json::push_back(Json item) {
  kind_ = Kind::kArray;
  items_.push_back(std::move(item));
}

}  // namespace pyc::tool

#pragma once

// As much of JSON Schema as docs/decision_log.schema.json uses: $ref to $defs, type, const, enum,
// oneOf, minLength, properties, required, additionalProperties and items. Stricter in one respect:
// a member that the schema does not list is a problem.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pyc::test {

class JsonSchema {
 public:
  explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

  // "" when the document fits, else the place and what does not.
  std::string problem(const nlohmann::json& document) const { return look(root_, document, "$"); }

 private:
  using Json = nlohmann::json;

  static bool is_of(const Json& value, const std::string& type) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "array") return value.is_array();
    return type == "object" && value.is_object();
  }

  static bool has_type(const Json& types, const Json& value) {
    if (types.is_string()) return is_of(value, types.get<std::string>());
    return std::any_of(types.begin(), types.end(),
                       [&](const Json& t) { return is_of(value, t.get<std::string>()); });
  }

  std::string look(const Json& schema, const Json& value, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"].get<std::string>().substr(sizeof("#/$defs/") - 1);
      return look(root_.at("$defs").at(name), value, at);
    }
    if (schema.contains("oneOf")) {
      const auto fits = [&](const Json& s) { return look(s, value, at).empty(); };
      const auto count = std::count_if(schema["oneOf"].begin(), schema["oneOf"].end(), fits);
      return count == 1 ? "" : at + ": fits " + std::to_string(count) + " of oneOf";
    }
    if (schema.contains("const") && schema["const"] != value) return at + ": other constant";
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return at + ": not in the enum: " + value.dump();
    }
    if (schema.contains("type") && !has_type(schema["type"], value)) return at + ": other type";
    if (schema.contains("minLength") &&
        value.get<std::string>().size() < schema["minLength"].get<size_t>()) {
      return at + ": too short";
    }
    if (value.is_object()) return look_members(schema, value, at);
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i) {
        std::string found = look(schema["items"], value[i], at + "[" + std::to_string(i) + "]");
        if (!found.empty()) return found;
      }
    }
    return "";
  }

  std::string look_members(const Json& schema, const Json& value, const std::string& at) const {
    if (schema.contains("required")) {
      for (const Json& name : schema["required"]) {
        if (!value.contains(name.get<std::string>())) return at + ": no " + name.dump();
      }
    }
    for (const auto& [name, member] : value.items()) {
      std::string found;
      if (schema.contains("properties") && schema["properties"].contains(name)) {
        found = look(schema["properties"][name], member, at + "." + name);
      } else if (schema.contains("additionalProperties")) {
        found = look(schema["additionalProperties"], member, at + "." + name);
      } else {
        found = at + ": not listed: " + name;
      }
      if (!found.empty()) return found;
    }
    return "";
  }

  Json root_;
};

}  // namespace pyc::test

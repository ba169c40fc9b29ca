#pragma once

// What --json prints. A type of PyC's own, so that a command's file need not read the headers of a
// JSON library; json.cpp does, for reading and writing text.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pyc::tool {

// A value, an array, or an object that keeps its members in the order they were given in.
class Json {
 public:
  using Value = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string>;
  enum class Kind { kValue, kArray, kObject };
  struct Member;

  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::signed_integral auto value) : value_(static_cast<int64_t>(value)) {}
  Json(std::unsigned_integral auto value) : value_(static_cast<uint64_t>(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  template <class T>
  Json(const std::vector<T>& items) : kind_(Kind::kArray), items_(items.begin(), items.end()) {}
  Json(std::initializer_list<Member> members);
  static Json array() { return Json(Kind::kArray); }
  static Json object() { return Json(Kind::kObject); }

  // Nothing where `text` is not JSON.
  static std::optional<Json> parse(std::string_view text);
  // Over several lines; bytes that are not UTF-8 are replaced.
  std::string text(int indent) const;

  Kind kind() const { return kind_; }
  const Value& value() const { return value_; }
  const std::vector<Json>& items() const { return items_; }         // also of an object
  const std::vector<std::string>& names() const { return names_; }  // of items()

  // Reading what must be there: throws where it is not.
  int64_t integer() const;
  const std::string& string() const { return std::get<std::string>(value_); }
  const Json& operator[](std::string_view name) const;

  bool contains(std::string_view name) const;
  // The member of that name, a new one where there is none; null becomes an object.
  Json& operator[](std::string_view name);
  // Null becomes an array.
  void push_back(Json item);

  bool operator==(const Json&) const = default;

 private:
  explicit Json(Kind kind) : kind_(kind) {}
  size_t find(std::string_view name) const;  // names_.size() where there is none

  Kind kind_ = Kind::kValue;
  Value value_;
  std::vector<std::string> names_;
  std::vector<Json> items_;
};

struct Json::Member {
  std::string name;
  Json value;
};

inline Json::Json(std::initializer_list<Member> members) : kind_(Kind::kObject) {
  for (const Member& member : members) (*this)[member.name] = member.value;
}

}  // namespace pyc::tool

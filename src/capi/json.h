#pragma once

// Writes JSON text, value after value. Strings that are no UTF-8 get U+FFFD where they are not;
// numbers that are not finite become null.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyc::capi {

class JsonWriter {
 public:
  // `indent` spaces per level on lines of their own; 0: everything on one line.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // Before each value of an object.
  JsonWriter& key(std::string_view name);

  JsonWriter& text(std::string_view value);
  JsonWriter& integer(int64_t value);
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  std::string take() && { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void begin_value();
  void new_line();
  void append_quoted(std::string_view value);

  const int indent_;
  std::string out_;
  std::vector<bool> has_entries_;  // of the open objects and arrays
  bool after_key_ = false;
};

}  // namespace pyc::capi

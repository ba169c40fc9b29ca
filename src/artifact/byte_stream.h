#pragma once

// Numbers and texts one behind the other, without padding.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pyc::artifact {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  void text(std::string_view text) {
    number<uint64_t>(text.size());
    raw(text);
  }
  void raw(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // `text` and zeros to `size` bytes; it must be shorter.
  void fixed(std::string_view text, size_t size) {
    raw(text);
    bytes_.resize(bytes_.size() + size - text.size());
  }
  // Zeros until there are `size` bytes.
  void pad_to(size_t size) { bytes_.resize(size); }

  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what ByteWriter wrote. After a read beyond the end every read gives 0 or "", and ok() is
// false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::span<const std::byte> rest() const { return rest_; }

  template <class T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    const auto bytes = take(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string text() { return raw(count()); }
  std::string raw(size_t size) {
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // `size` bytes with zeros behind the text.
  std::string fixed(size_t size) {
    std::string text = raw(size);
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  // The length of a list or text whose elements take a byte at least: never more than is there.
  size_t count() {
    const auto n = number<uint64_t>();
    if (n > rest_.size()) fail();
    return ok_ ? static_cast<size_t>(n) : 0;
  }

 private:
  std::span<const std::byte> take(size_t size) {
    if (size > rest_.size()) fail();
    if (!ok_) return {};
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace pyc::artifact

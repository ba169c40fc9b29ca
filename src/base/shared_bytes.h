#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace pyc {

// Read-only bytes and whoever keeps them: a vector, a mapped file, a tensor's memory. Copies share.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::vector<std::byte> bytes) {  // NOLINT: a vector is bytes with an owner
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    bytes_ = *owner;
    owner_ = std::move(owner);
  }
  // `in_file`: the owner is a mapped file.
  SharedBytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
              bool in_file = false)
      : owner_(std::move(owner)), bytes_(bytes), in_file_(in_file) {}

  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Whether they are a file's, so that they take no memory that the system cannot take back.
  bool in_file() const { return in_file_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  const std::byte& operator[](size_t i) const { return bytes_[i]; }
  std::span<const std::byte> span() const { return bytes_; }
  operator std::span<const std::byte>() const { return bytes_; }  // NOLINT: that is what it is
  std::vector<std::byte> copy() const { return {begin(), end()}; }
  bool operator==(const SharedBytes& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  bool in_file_ = false;
};

}  // namespace pyc

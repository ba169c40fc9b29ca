#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace pyc {

// A vector of plain data whose first N elements need no memory of their own: for short lists that
// are made in great numbers.
template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copy_constructible_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  InlineVector(const InlineVector& other) { assign(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~InlineVector() = default;

  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(const T& value) {
    const T copy = value;  // it may be an element
    if (size_ == room_) grow(2 * room_);
    data()[size_++] = copy;
  }
  template <class... Args>
  void emplace_back(Args&&... args) {
    push_back(T(std::forward<Args>(args)...));
  }
  template <class It>
  void assign(It first, It last) {
    const auto count = static_cast<size_t>(std::distance(first, last));
    if (count > room_) {
      size_ = 0;
      grow(count);
    }
    std::copy(first, last, data());
    size_ = count;
  }
  T* insert(const T* at, const T& value) {
    const auto place = at - begin();
    push_back(value);
    std::rotate(begin() + place, end() - 1, end());
    return begin() + place;
  }
  T* erase(const T* first, const T* last) {
    T* const from = begin() + (first - begin());
    std::copy(last, static_cast<const T*>(end()), from);
    size_ -= static_cast<size_t>(last - first);
    return from;
  }
  T* erase(const T* at) { return erase(at, at + 1); }

  bool operator==(const InlineVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  T* data() { return far_ == nullptr ? reinterpret_cast<T*>(near_) : far_.get(); }
  const T* data() const { return far_ == nullptr ? reinterpret_cast<const T*>(near_) : far_.get(); }
  void grow(size_t room) {
    auto more = std::make_unique<T[]>(room);
    std::copy(begin(), end(), more.get());
    far_ = std::move(more);
    room_ = room;
  }
  // What the other one had; it is empty then.
  void take(InlineVector& other) {
    far_ = std::move(other.far_);
    if (far_ == nullptr) std::memcpy(near_, other.near_, other.size_ * sizeof(T));
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, N);
  }

  size_t size_ = 0;
  size_t room_ = N;
  std::unique_ptr<T[]> far_;  // null: the elements are in `near_`
  alignas(T) std::byte near_[N * sizeof(T)];
};

template <class T, size_t N, class Predicate>
size_t erase_if(InlineVector<T, N>& from, Predicate predicate) {
  T* const kept = std::remove_if(from.begin(), from.end(), predicate);
  const auto erased = static_cast<size_t>(from.end() - kept);
  from.erase(kept, from.end());
  return erased;
}

template <class T, size_t N>
size_t erase(InlineVector<T, N>& from, const T& value) {
  const T wanted = value;
  return erase_if(from, [&](const T& x) { return x == wanted; });
}

}  // namespace pyc

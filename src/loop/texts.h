#pragma once

// Kernels by their text, where many are one another's copies.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "loop/loop.h"

namespace pyc::loop {

// Whether the kernels are the same statement by statement and node by node, names aside: then they
// have one text. Kernels with the same text need not be.
bool same_nodes(const Kernel& a, const Kernel& b);

// The texts of some kernels. Of those that have the same nodes one is printed, and none of which
// `before` has the text.
class KernelTexts {
 public:
  explicit KernelTexts(std::shared_ptr<const KernelTexts> before = nullptr)
      : before_(std::move(before)) {}

  // What print(kernel) gives. The kernel stays as it is as long as this lives.
  const std::string& of(const Kernel& kernel);
  size_t printed() const { return printed_; }
  // All that was asked of this, with kernels of its own: for others to start from.
  std::shared_ptr<const KernelTexts> kept() const;

 private:
  struct Text {
    Kernel kernel;  // empty where it is somebody else's
    std::string text;
  };
  struct Known {
    const Kernel* kernel;
    std::shared_ptr<const Text> text;
  };
  using Table = std::unordered_multimap<uint64_t, Known>;
  static const Known* find(const Table& known, uint64_t hash, const Kernel& kernel);

  std::shared_ptr<const KernelTexts> before_;
  Table known_;
  size_t printed_ = 0;
};

}  // namespace pyc::loop

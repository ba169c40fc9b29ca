#pragma once

// Kernels by their text, where many are one another's copies.

#include <cstdint>
#include <string>
#include <unordered_map>

#include "loop/loop.h"

namespace pyc::loop {

// Whether the kernels are the same statement by statement and node by node, names aside: then they
// have one text. Kernels with the same text need not be.
bool same_nodes(const Kernel& a, const Kernel& b);

// The texts of some kernels. Of those that have the same nodes one is printed.
class KernelTexts {
 public:
  // What print(kernel) gives. The kernel stays as it is as long as this lives.
  const std::string& of(const Kernel& kernel);
  size_t printed() const { return known_.size(); }

 private:
  struct Known {
    const Kernel* kernel;
    std::string text;
  };
  std::unordered_multimap<uint64_t, Known> known_;  // asked, never gone through
};

}  // namespace pyc::loop

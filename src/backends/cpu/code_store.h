#pragma once

// The code that the programs of one open graph share, found by all that it follows from. A
// program's first code is made for its sizes alone, since most of its kernels are the same at all
// sizes; what a further program of the same inputs needs beside it takes its sizes as arguments
// (llvm/numbers.h), and is then there for all that follow.

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "backends/backend.h"
#include "loop/texts.h"
#include "lower/types.h"

namespace pyc::cpu {

using SharedObject = std::shared_ptr<const std::string>;

class CodeStore final : public backends::CodeStore {
 public:
  // Whether a program with inputs of these names, dtypes and ranks was asked for before.
  bool meet(const ir::Graph& graph);

  // The object made of exactly this, or null.
  SharedObject find(const std::string& source) const;
  // Keeps it; returns the one that is kept, which another thread may have made before.
  SharedObject keep(const std::string& source, const SharedObject& object);

  // Of the kernels of the program that was asked for last; null: of none.
  std::shared_ptr<const loop::KernelTexts> texts() const;
  void keep_texts(std::shared_ptr<const loop::KernelTexts> texts);

 private:
  static constexpr size_t kMostObjects = 1024;

  mutable std::mutex mutex_;  // guards everything below
  std::set<std::string> met_;
  std::unordered_map<std::string, SharedObject> objects_;
  std::shared_ptr<const loop::KernelTexts> texts_;
};

}  // namespace pyc::cpu

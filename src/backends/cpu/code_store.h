#pragma once

// What the programs of one open graph share: code, and constants packed for it. Code is found by
// all that it follows from. A program's first code is made for its sizes alone, since most of its
// kernels are the same at all sizes; what a further program of the same inputs needs beside it
// takes its sizes as arguments (llvm/numbers.h), and is then there for all that follow.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/backend.h"
#include "base/shared_bytes.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::cpu {

using SharedObject = std::shared_ptr<const std::string>;

class CodeStore final : public backends::CodeStore {
 public:
  // Whether a program with inputs of these names, dtypes and ranks was asked for before.
  bool meet(const ir::Graph& graph);

  // The object made of exactly this, or null.
  SharedObject find(const std::string& source) const;
  // Keeps it; returns the one that is kept, which another thread may have made before.
  SharedObject keep(const std::string& source, SharedObject object);

  // The constant in that packing as some living program has it.
  std::optional<runtime::Parameter> find_packed(const SharedBytes& constant,
                                                const std::string& packing) const;
  // Shares it with the programs to come, as long as one lives.
  runtime::Parameter keep_packed(const SharedBytes& constant, const std::string& packing,
                                 runtime::Parameter made);

 private:
  struct Packed {
    std::weak_ptr<const void> owner;
    runtime::Parameter made;  // without its owner
  };
  using PackedKey = std::pair<const std::byte*, std::string>;

  static constexpr size_t kMostObjects = 1024;

  mutable std::mutex mutex_;  // guards everything below
  std::set<std::string> met_;
  std::unordered_map<std::string, SharedObject> objects_;
  std::map<PackedKey, Packed> packed_;
};

}  // namespace pyc::cpu

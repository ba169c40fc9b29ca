#pragma once

#include <unordered_map>

#include "open/segment.h"

namespace pyc::open {

// Finds the content of values that follow from constants alone, by evaluating just what they need.
// Bounded: chains over kMaxNodes nodes or kMaxElements elements are not followed, and all chains
// together stay under kMaxTotal elements.
class ConstantFinder {
 public:
  static constexpr size_t kMaxNodes = 4096;
  static constexpr int64_t kMaxElements = int64_t{1} << 20;
  static constexpr int64_t kMaxTotal = int64_t{1} << 25;

  ConstantFinder(const ir::OpSet& ops, const Evaluate& evaluate) : ops_(ops), evaluate_(evaluate) {}
  std::shared_ptr<const ir::ConstData> find(const ir::Graph& graph, ir::ValueId value);
  // kOutOfMemory when a search failed for that alone: its value is then not unknown.
  const Status& refused() const { return refused_; }

 private:
  bool derived(const ir::Graph& graph, ir::ValueId value);

  const ir::OpSet& ops_;
  const Evaluate& evaluate_;
  int64_t total_ = 0;
  Status refused_;
  std::unordered_map<ir::ValueId, std::shared_ptr<const ir::ConstData>> found_;
  std::unordered_map<ir::ValueId, bool> derived_;
};

}  // namespace pyc::open

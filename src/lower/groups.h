#pragma once

// Which nodes share a kernel. Private to lower/.

#include <algorithm>
#include <vector>

#include "base/decision.h"
#include "base/inline_vector.h"
#include "lower/lower.h"
#include "lower/probe.h"

namespace pyc::lower {

enum class GroupShape : uint8_t {
  kFlat,    // every member has one element per point of one space
  kKernel,  // one node whose op writes the kernel; its members are the outputs that are read
  kRows,    // the space is rows × cols; members have one element per point or one per row
};

// A value computed by a group and not inlined.
struct Member {
  ir::ValueId value = ir::kNoId;
  bool per_row = false;  // kRows only: a row's statistic, or a function of such
  bool reduces = false;  // kRows: it is a reduction over the row's columns
  // kRows: the pass over the columns that computes it. A per-row member is known after pass
  // `level` (-1: before the first); a per-point member can be computed in any pass >= level.
  int level = 0;
};

// Groups by their numbers.
class GroupSet {
 public:
  bool contains(uint32_t g) const {
    return g / 64 < words_.size() && ((words_[g / 64] >> (g % 64)) & 1) != 0;
  }
  bool empty() const { return words_.empty(); }
  void insert(uint32_t g) {
    if (g / 64 >= words_.size()) words_.resize(g / 64 + 1, 0);
    words_[g / 64] |= uint64_t{1} << (g % 64);
  }
  void insert(const GroupSet& others) {
    if (others.words_.size() > words_.size()) words_.resize(others.words_.size(), 0);
    for (size_t i = 0; i < others.words_.size(); ++i) words_[i] |= others.words_[i];
  }
  // Whether all of them are among the others.
  bool within(const GroupSet& others) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t there = i < others.words_.size() ? others.words_[i] : 0;
      if ((words_[i] & ~there) != 0) return false;
    }
    return true;
  }

 private:
  std::vector<uint64_t> words_;
};

// Few values, ascending.
class ValueSet {
 public:
  bool contains(ir::ValueId v) const { return std::binary_search(begin(), end(), v); }
  void insert(ir::ValueId v) {
    const ir::ValueId* const at = std::lower_bound(begin(), end(), v);
    if (at == end() || *at != v) values_.insert(at, v);
  }
  const ir::ValueId* begin() const { return values_.begin(); }
  const ir::ValueId* end() const { return values_.end(); }

 private:
  InlineVector<ir::ValueId, 6> values_;
};

struct GroupPlan {
  GroupShape shape = GroupShape::kFlat;
  bool lane_reduction = false;  // kFlat: a member reduces inside each element (matmul, conv, pool)
  int64_t elements = 0;         // points of the space
  int64_t rows = 0;             // kRows only
  int64_t cols = 0;
  std::vector<Member> members;  // in topological order
  GroupSet depends;             // groups it needs, transitively

  const Member* find(ir::ValueId v) const;
};

struct Grouping {
  Layouts layouts;
  Orders orders;
  std::vector<bool> inlined;         // by value: read through, never stored
  std::vector<GroupPlan> groups;     // in an executable order
  std::vector<bool> stored;          // by value: another group or the caller reads it
  std::vector<ValueSet> reads;       // by member value: what its expression loads
  std::vector<std::string> reasons;  // by value: why it was read through, joined or kept apart
  std::vector<ir::ValueId> output_values;
  std::vector<int> forwarded_output;  // by value: the model output it is stored to, or -1
  DecisionLog decisions;
};

// Groups are formed over places in memory, so that what lies alike can share a kernel.
Grouping form_groups(const ir::Graph& graph, Layouts layouts, Orders orders,
                     const LowerOptions& options);

}  // namespace pyc::lower

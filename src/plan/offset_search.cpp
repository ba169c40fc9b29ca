// Branch and bound over offsets.
//
// Any placement can be pushed down until every block lies at 0 or on top of another one that it
// lives together with. Read from the lowest block up, each lies then on the highest of those below
// it: at its floor. So it is enough to place blocks one by one, each at its floor, with offsets
// that never fall; equal offsets come by number.

#include "plan/offset_search.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace pyc::plan {
namespace {

constexpr int64_t kNoLimit = INT64_MAX;
// Parts of more blocks are left as the greedy orders placed them: a search would not come far.
constexpr size_t kMostSearched = 400;

// Blocks of one part, in the order of preference, with offsets below `limit` bytes.
class PartSearch {
 public:
  PartSearch(std::vector<Block> blocks, int64_t& work, int64_t& placements)
      : blocks_(std::move(blocks)),
        together_(blocks_together(blocks_)),
        floor_(blocks_.size(), 0),
        work_(work),
        placements_(placements) {
    for (Block& b : blocks_) b.offset = -1;
    list_columns();
  }

  // Whether there are offsets that end at or below `limit`; nothing when the work ends first.
  std::optional<bool> fits(int64_t limit, int64_t work_until) {
    limit_ = limit;
    until_ = work_until;
    std::vector<Level> levels;
    levels.push_back(level());
    while (!levels.empty() && trail_.size() < blocks_.size()) {
      if (work_ <= until_) return {};
      Level& at = levels.back();
      if (at.next == at.candidates.size()) {
        levels.pop_back();
        if (!levels.empty()) take_back();
        continue;
      }
      place(at.candidates[at.next++]);
      levels.push_back(can_go_on() ? level() : Level{});
    }
    return trail_.size() == blocks_.size();
  }

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  struct Level {
    std::vector<uint32_t> candidates = {};
    size_t next = 0;
  };
  struct Placed {
    uint32_t block;
    std::vector<std::pair<uint32_t, int64_t>> floors;  // as they were
  };

  // The steps at which most is live: each that begins a block, unless the next one has all of its
  // blocks and more.
  void list_columns() {
    std::vector<int> starts;
    for (const Block& b : blocks_) starts.push_back(b.first);
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    for (const int step : starts) {
      std::vector<uint32_t> column;
      for (uint32_t i = 0; i < blocks_.size(); ++i) {
        if (blocks_[i].first <= step && step <= blocks_[i].last) column.push_back(i);
      }
      if (!columns_.empty() && std::includes(column.begin(), column.end(), columns_.back().begin(),
                                             columns_.back().end())) {
        columns_.back() = std::move(column);
      } else {
        columns_.push_back(std::move(column));
      }
    }
  }

  int64_t lowest() const { return trail_.empty() ? 0 : blocks_[trail_.back().block].offset; }
  bool is_placed(uint32_t i) const { return blocks_[i].offset >= 0; }

  // The blocks that may come next. A block does not come before one that would fit below it whole,
  // nor before an equal one of a smaller number.
  Level level() {
    int64_t first_end = kNoLimit;
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (!is_placed(i)) first_end = std::min(first_end, floor_[i] + blocks_[i].size);
    }
    work_ -= static_cast<int64_t>(blocks_.size());
    Level out;
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (is_placed(i) || floor_[i] >= first_end || floor_[i] < lowest()) continue;
      if (floor_[i] == lowest() && !trail_.empty() && i < trail_.back().block) continue;
      if (floor_[i] + blocks_[i].size > limit_ || has_earlier_equal(i)) continue;
      out.candidates.push_back(i);
    }
    std::stable_sort(out.candidates.begin(), out.candidates.end(),
                     [this](uint32_t a, uint32_t b) { return floor_[a] < floor_[b]; });
    return out;
  }

  bool has_earlier_equal(uint32_t i) const {
    const Block& b = blocks_[i];
    return std::any_of(together_[i].begin(), together_[i].end(), [&](uint32_t j) {
      const Block& other = blocks_[j];
      return j < i && !is_placed(j) && other.size == b.size && other.first == b.first &&
             other.last == b.last;
    });
  }

  void place(uint32_t i) {
    ++placements_;
    blocks_[i].offset = floor_[i];
    const int64_t end = floor_[i] + blocks_[i].size;
    Placed placed{i, {}};
    for (const uint32_t j : together_[i]) {
      if (is_placed(j) || floor_[j] >= end) continue;
      placed.floors.emplace_back(j, floor_[j]);
      floor_[j] = end;
    }
    work_ -= static_cast<int64_t>(together_[i].size());
    trail_.push_back(std::move(placed));
  }

  void take_back() {
    blocks_[trail_.back().block].offset = -1;
    for (const auto& [j, floor] : trail_.back().floors) floor_[j] = floor;
    trail_.pop_back();
  }

  // At every step what is left fits above the lowest place that any of it can have.
  bool can_go_on() {
    for (const std::vector<uint32_t>& column : columns_) {
      int64_t left = 0;
      int64_t base = kNoLimit;
      for (const uint32_t i : column) {
        if (is_placed(i)) continue;
        left += blocks_[i].size;
        base = std::min(base, std::max(floor_[i], lowest()));
      }
      work_ -= static_cast<int64_t>(column.size());
      if (left > 0 && base + left > limit_) return false;
    }
    return true;
  }

  std::vector<Block> blocks_;
  std::vector<std::vector<uint32_t>> together_;
  std::vector<std::vector<uint32_t>> columns_;  // per step that counts: the blocks live at it
  std::vector<int64_t> floor_;                  // per block that is not placed
  std::vector<Placed> trail_;
  int64_t limit_ = 0;
  int64_t until_ = 0;
  int64_t& work_;
  int64_t& placements_;
};

int64_t end_of(std::span<const Block> blocks) {
  int64_t end = 0;
  for (const Block& b : blocks) end = std::max(end, b.offset + b.size);
  return end;
}

// Orders of preference among blocks with the same floor; each may find quickly what the others do
// not.
bool longest_first(const Block& a, const Block& b) {
  const int la = a.last - a.first;
  const int lb = b.last - b.first;
  if (la != lb) return la > lb;
  if (a.size != b.size) return a.size > b.size;
  return a.first < b.first;
}
bool widest_first(const Block& a, const Block& b) {
  const int64_t area_a = a.size * (a.last - a.first + 1);
  const int64_t area_b = b.size * (b.last - b.first + 1);
  return area_a != area_b ? area_a > area_b : longest_first(a, b);
}
bool largest_first(const Block& a, const Block& b) {
  return a.size != b.size ? a.size > b.size : longest_first(a, b);
}
using Preference = bool (*)(const Block& a, const Block& b);
constexpr Preference kPreferences[] = {widest_first, longest_first, largest_first};

// Offsets for a part that end as low as can be found but need not be below `enough`.
class Part {
 public:
  Part(std::vector<Block>& all, std::vector<uint32_t> members)
      : all_(&all), members_(std::move(members)) {}

  size_t size() const { return members_.size(); }
  int64_t end() const {
    int64_t end = 0;
    for (const uint32_t i : members_) end = std::max(end, (*all_)[i].offset + (*all_)[i].size);
    return end;
  }

  // True when offsets end at `enough` or it is proven that none end lower; `step` is how far ends
  // are apart at least.
  bool improve(int64_t enough, int64_t step, int64_t& work, int64_t& placements) {
    const std::optional<bool> fits = try_limit(enough, work / 2, work, placements);
    if (fits) {
      if (*fits) return true;
      enough += step;  // that is impossible
    }
    while (end() > enough) {
      const std::optional<bool> lower = try_limit(end() - step, 0, work, placements);
      if (!lower) return false;
      if (!*lower) return true;
    }
    return true;
  }

 private:
  // With each preference in turn, which share the work down to `until`.
  std::optional<bool> try_limit(int64_t limit, int64_t until, int64_t& work, int64_t& placements) {
    const auto count = static_cast<int64_t>(std::size(kPreferences));
    for (int64_t p = 0; p < count; ++p) {
      std::vector<uint32_t> order = members_;
      std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return kPreferences[p]((*all_)[a], (*all_)[b]);
      });
      std::vector<Block> blocks;
      blocks.reserve(order.size());
      for (const uint32_t i : order) blocks.push_back((*all_)[i]);
      PartSearch search(std::move(blocks), work, placements);
      const int64_t share = (work - until) / (count - p);
      const std::optional<bool> fits = search.fits(limit, work - share);
      if (!fits) continue;
      if (*fits) {
        for (size_t i = 0; i < order.size(); ++i)
          (*all_)[order[i]].offset = search.blocks()[i].offset;
      }
      return fits;
    }
    return {};
  }

  std::vector<Block>* all_;
  std::vector<uint32_t> members_;
};

std::vector<std::vector<uint32_t>> parts_of(std::span<const Block> blocks) {
  std::vector<uint32_t> by_first(blocks.size());
  std::iota(by_first.begin(), by_first.end(), 0U);
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](uint32_t a, uint32_t b) { return blocks[a].first < blocks[b].first; });
  std::vector<std::vector<uint32_t>> parts;
  int last = -1;
  for (const uint32_t i : by_first) {
    if (parts.empty() || blocks[i].first > last) parts.emplace_back();
    parts.back().push_back(i);
    last = std::max(last, blocks[i].last);
  }
  return parts;
}

// What all sizes are multiples of: ends differ by that much.
int64_t unit_of_sizes(std::span<const Block> blocks) {
  int64_t unit = 0;
  for (const Block& b : blocks) unit = std::gcd(unit, b.size);
  return std::max<int64_t>(unit, 1);
}

}  // namespace

void search_offsets(std::vector<Block>& blocks, int64_t lower_bound, int64_t work, Packing& best) {
  std::vector<Part> parts;
  for (std::vector<uint32_t>& members : parts_of(blocks)) {
    parts.emplace_back(blocks, std::move(members));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.end() > b.end(); });
  const int64_t unit = unit_of_sizes(blocks);
  int64_t enough = lower_bound;  // what is known to be needed
  for (Part& part : parts) {
    if (part.end() <= enough) continue;
    if (part.size() > kMostSearched) continue;
    if (part.improve(enough, unit, work, best.placements)) enough = std::max(enough, part.end());
  }
  const int64_t end = end_of(blocks);
  if (end < best.bytes) {
    best.bytes = end;
    best.found_by = "branch_and_bound";
  }
  best.optimal = end <= enough;
}

}  // namespace pyc::plan

#include "plan/offsets.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "plan/offset_search.h"

namespace pyc::plan {
namespace {

using Order = std::vector<uint32_t>;

int length(const Block& b) { return b.last - b.first + 1; }

// What a greedy order sorts by, the largest first; then by size, start and number. The pressure is
// the most bytes that are live at a step of the block.
int64_t size_key(const Block& b, int64_t) { return b.size; }
int64_t length_key(const Block& b, int64_t) { return length(b); }
int64_t area_key(const Block& b, int64_t) { return b.size * length(b); }
int64_t start_key(const Block& b, int64_t) { return -b.first; }
int64_t pressure_key(const Block&, int64_t pressure) { return pressure; }

struct Strategy {
  std::string_view name;
  int64_t (*key)(const Block& block, int64_t pressure);
  bool best_fit;  // the smallest gap that is large enough; else the lowest one
};

constexpr Strategy kStrategies[] = {
    {"size_best_fit", size_key, true},         {"size_first_fit", size_key, false},
    {"length_best_fit", length_key, true},     {"length_first_fit", length_key, false},
    {"area_best_fit", area_key, true},         {"area_first_fit", area_key, false},
    {"start_best_fit", start_key, true},       {"start_first_fit", start_key, false},
    {"pressure_best_fit", pressure_key, true}, {"pressure_first_fit", pressure_key, false},
};

std::vector<int64_t> pressures(std::span<const Block> blocks) {
  int end = 0;
  for (const Block& b : blocks) end = std::max(end, b.last);
  std::vector<int64_t> live(static_cast<size_t>(end) + 2, 0);
  for (const Block& b : blocks) {
    live[static_cast<size_t>(b.first)] += b.size;
    live[static_cast<size_t>(b.last) + 1] -= b.size;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<int64_t> most;
  most.reserve(blocks.size());
  for (const Block& b : blocks) {
    most.push_back(*std::max_element(live.begin() + b.first, live.begin() + b.last + 1));
  }
  return most;
}

Order order_by(std::span<const Block> blocks, const Strategy& strategy,
               std::span<const int64_t> pressure) {
  std::vector<int64_t> keys;
  keys.reserve(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    keys.push_back(strategy.key(blocks[i], pressure[i]));
  }
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (keys[a] != keys[b]) return keys[a] > keys[b];
    if (blocks[a].size != blocks[b].size) return blocks[a].size > blocks[b].size;
    if (blocks[a].first != blocks[b].first) return blocks[a].first < blocks[b].first;
    return a < b;
  });
  return order;
}

// Where a block of `size` can go among those it lives together with, sorted by offset.
int64_t find_gap(int64_t size, std::span<const Block* const> others, bool best_fit) {
  int64_t found = -1;
  int64_t smallest_gap = 0;
  int64_t end = 0;
  for (const Block* other : others) {
    const int64_t gap = other->offset - end;
    if (gap >= size && (found < 0 || gap < smallest_gap)) {
      found = end;
      smallest_gap = gap;
      if (!best_fit) return found;
    }
    end = std::max(end, other->offset + other->size);
  }
  return found < 0 ? end : found;
}

// Sets the offsets one after the other; returns the end of the highest block.
int64_t place_greedily(std::vector<Block>& blocks, std::span<const Order> together,
                       const Order& order, bool best_fit) {
  for (Block& b : blocks) b.offset = -1;
  int64_t end = 0;
  std::vector<const Block*> placed;
  for (const uint32_t i : order) {
    placed.clear();
    for (const uint32_t other : together[i]) {
      if (blocks[other].offset >= 0) placed.push_back(&blocks[other]);
    }
    std::sort(placed.begin(), placed.end(), [](const Block* a, const Block* b) {
      return a->offset != b->offset ? a->offset < b->offset : a < b;
    });
    blocks[i].offset = find_gap(blocks[i].size, placed, best_fit);
    end = std::max(end, blocks[i].offset + blocks[i].size);
  }
  return end;
}

}  // namespace

std::vector<std::vector<uint32_t>> blocks_together(std::span<const Block> blocks) {
  std::vector<uint32_t> by_first(blocks.size());
  std::iota(by_first.begin(), by_first.end(), 0U);
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](uint32_t a, uint32_t b) { return blocks[a].first < blocks[b].first; });
  std::vector<std::vector<uint32_t>> together(blocks.size());
  std::vector<uint32_t> living;
  for (const uint32_t i : by_first) {
    std::erase_if(living, [&](uint32_t other) { return blocks[other].last < blocks[i].first; });
    for (const uint32_t other : living) {
      together[i].push_back(other);
      together[other].push_back(i);
    }
    living.push_back(i);
  }
  return together;
}

Packing pack(std::vector<Block>& blocks, int64_t lower_bound, int64_t work) {
  const std::vector<std::vector<uint32_t>> together = blocks_together(blocks);
  const std::vector<int64_t> pressure = pressures(blocks);
  Packing best;
  std::vector<Block> best_blocks;
  for (const Strategy& strategy : kStrategies) {
    const int64_t bytes =
        place_greedily(blocks, together, order_by(blocks, strategy, pressure), strategy.best_fit);
    if (!best.found_by.empty() && bytes >= best.bytes) continue;
    best.bytes = bytes;
    best.found_by = strategy.name;
    best_blocks = blocks;
    if (bytes <= lower_bound) break;
  }
  blocks = std::move(best_blocks);
  best.optimal = best.bytes <= lower_bound;
  if (!best.optimal) search_offsets(blocks, lower_bound, work, best);
  return best;
}

}  // namespace pyc::plan

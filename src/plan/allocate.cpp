#include "plan/allocate.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "plan/liveness.h"
#include "plan/metrics.h"

namespace pyc::plan {
namespace {

struct Item {
  uint32_t buffer = 0;
  int64_t size = 0;
  int first = 0;
  int last = 0;
  int64_t offset = -1;

  int length() const { return last - first + 1; }
};

bool by_size(const Item& a, const Item& b) {
  if (a.size != b.size) return a.size > b.size;
  if (a.first != b.first) return a.first < b.first;
  return a.buffer < b.buffer;
}

bool by_start(const Item& a, const Item& b) {
  if (a.first != b.first) return a.first < b.first;
  return by_size(a, b);
}

bool by_length(const Item& a, const Item& b) {
  if (a.length() != b.length()) return a.length() > b.length();
  return by_size(a, b);
}

bool by_area(const Item& a, const Item& b) {
  const int64_t area_a = a.size * a.length();
  const int64_t area_b = b.size * b.length();
  if (area_a != area_b) return area_a > area_b;
  return by_size(a, b);
}

struct Strategy {
  std::string_view name;
  bool (*before)(const Item& a, const Item& b);
  bool best_fit;  // the smallest gap that is large enough; else the lowest one
};

constexpr Strategy kStrategies[] = {
    {"size_best_fit", by_size, true},     {"size_first_fit", by_size, false},
    {"length_best_fit", by_length, true}, {"length_first_fit", by_length, false},
    {"area_best_fit", by_area, true},     {"area_first_fit", by_area, false},
    {"start_best_fit", by_start, true},   {"start_first_fit", by_start, false},
};

// Where `item` can go among `placed`, which is sorted by offset.
int64_t find_offset(const Item& item, std::span<const Item> placed, bool best_fit) {
  int64_t found = -1;
  int64_t smallest_gap = 0;
  int64_t end = 0;  // of everything seen that is live together with the item
  for (const Item& other : placed) {
    if (other.first > item.last || item.first > other.last) continue;
    const int64_t gap = other.offset - end;
    if (gap >= item.size && (found < 0 || gap < smallest_gap)) {
      found = end;
      smallest_gap = gap;
      if (!best_fit) return found;
    }
    end = std::max(end, other.offset + other.size);
  }
  return found < 0 ? end : found;
}

// The items with their offsets, sorted by them, and the arena's size.
std::pair<std::vector<Item>, int64_t> place(std::vector<Item> items, const Strategy& strategy) {
  std::sort(items.begin(), items.end(), strategy.before);
  std::vector<Item> placed;
  placed.reserve(items.size());
  int64_t arena = 0;
  for (Item& item : items) {
    item.offset = find_offset(item, placed, strategy.best_fit);
    arena = std::max(arena, item.offset + item.size);
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), item,
                         [](const Item& a, const Item& b) { return a.offset < b.offset; });
    placed.insert(position, item);
  }
  return {std::move(placed), arena};
}

std::vector<Item> arena_items(const ExecutionPlan& plan) {
  std::vector<Item> items;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    if (!in_arena(buffer)) continue;
    items.push_back(
        {static_cast<uint32_t>(b), arena_size(buffer), buffer.first_step, buffer.last_step, -1});
  }
  return items;
}

}  // namespace

Placement place_buffers(ExecutionPlan& plan, bool reuse) {
  for (PlannedBuffer& buffer : plan.buffers) buffer.offset = -1;
  std::vector<Item> items = arena_items(plan);
  Placement best;
  if (!reuse) {
    best.strategy = "no_reuse";
    for (Item& item : items) {
      item.offset = best.arena_bytes;
      best.arena_bytes += item.size;
    }
  } else {
    const int64_t lower_bound = live_peak(plan).bytes;
    std::vector<Item> best_items;
    for (const Strategy& strategy : kStrategies) {
      auto [placed, arena] = place(items, strategy);
      if (!best.strategy.empty() && arena >= best.arena_bytes) continue;
      best = {arena, strategy.name};
      best_items = std::move(placed);
      if (arena == lower_bound) break;
    }
    items = std::move(best_items);
  }
  for (const Item& item : items) plan.buffers[item.buffer].offset = item.offset;
  return best;
}

}  // namespace pyc::plan

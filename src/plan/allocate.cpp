#include "plan/allocate.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "plan/liveness.h"
#include "plan/metrics.h"

namespace pyc::plan {
namespace {

struct Item {
  uint32_t instance = 0;
  int64_t size = 0;
  int first = 0;
  int last = 0;
  int64_t offset = -1;

  int length() const { return last - first + 1; }
};

bool by_size(const Item& a, const Item& b) {
  if (a.size != b.size) return a.size > b.size;
  if (a.first != b.first) return a.first < b.first;
  return a.instance < b.instance;
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
std::pair<std::vector<Item>, int64_t> place_in_order(std::vector<Item> items,
                                                     const Strategy& strategy) {
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

// Where a chain of instances, each in place of the one before, begins.
uint32_t in_place_root(const std::vector<uint32_t>& sources, uint32_t instance) {
  while (sources[instance] != ir::kNoId) instance = sources[instance];
  return instance;
}

// One item per instance of the place's arena; what is written in place extends the item of what it
// is written over.
std::vector<Item> arena_items(const ExecutionPlan& plan, uint32_t place) {
  const std::vector<uint32_t> sources = in_place_sources(plan);
  std::map<uint32_t, size_t> item_of;
  std::vector<Item> items;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    if (plan.instances[i].place == place && in_arena(plan.instances[i])) order.push_back(i);
  }
  for (const uint32_t i : order) {
    if (sources[i] != ir::kNoId) continue;
    const Lifetime life = lifetime(plan, plan.instances[i]);
    items.push_back({i, arena_size(plan.instances[i]), life.first, life.last, -1});
    item_of[i] = items.size() - 1;
  }
  for (const uint32_t i : order) {
    if (sources[i] == ir::kNoId) continue;
    Item& item = items[item_of.at(in_place_root(sources, i))];
    item.last = std::max(item.last, lifetime(plan, plan.instances[i]).last);
  }
  return items;
}

}  // namespace

Placement place_instances(ExecutionPlan& plan, uint32_t place, bool reuse) {
  std::vector<Item> items = arena_items(plan, place);
  Placement best;
  if (!reuse) {
    best.strategy = "no_reuse";
    for (Item& item : items) {
      item.offset = best.arena_bytes;
      best.arena_bytes += item.size;
    }
  } else {
    const int64_t lower_bound = live_peak(plan, place).bytes;
    std::vector<Item> best_items;
    for (const Strategy& strategy : kStrategies) {
      auto [placed, arena] = place_in_order(items, strategy);
      if (!best.strategy.empty() && arena >= best.arena_bytes) continue;
      best = {arena, strategy.name};
      best_items = std::move(placed);
      if (arena == lower_bound) break;
    }
    items = std::move(best_items);
  }
  for (const Item& item : items) plan.instances[item.instance].offset = item.offset;
  const std::vector<uint32_t> sources = in_place_sources(plan);
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    Instance& instance = plan.instances[i];
    if (instance.place != place || sources[i] == ir::kNoId) continue;
    instance.offset = plan.instances[in_place_root(sources, i)].offset;
  }
  return best;
}

}  // namespace pyc::plan

#include "plan/allocate.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/offsets.h"

namespace pyc::plan {
namespace {

// One block of the arena, and the first instance that has it.
struct Item {
  uint32_t instance = 0;
  Block block = {};
};

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
    items.push_back({i, {arena_size(plan.instances[i]), life.first, life.last}});
    item_of[i] = items.size() - 1;
  }
  for (const uint32_t i : order) {
    if (sources[i] == ir::kNoId) continue;
    Block& block = items[item_of.at(in_place_root(sources, i))].block;
    block.last = std::max(block.last, lifetime(plan, plan.instances[i]).last);
  }
  return items;
}

}  // namespace

Placement place_instances(ExecutionPlan& plan, uint32_t place, bool reuse, int64_t work) {
  const std::vector<Item> items = arena_items(plan, place);
  std::vector<Block> blocks;
  for (const Item& item : items) blocks.push_back(item.block);
  Placement placement;
  if (!reuse) {
    placement.strategy = "no_reuse";
    for (Block& block : blocks) {
      block.offset = placement.arena_bytes;
      placement.arena_bytes += block.size;
    }
  } else {
    const Packing packing = pack(blocks, live_peak(plan, place).bytes, work);
    placement = {packing.bytes, packing.found_by, packing.optimal};
  }
  for (size_t i = 0; i < items.size(); ++i) {
    plan.instances[items[i].instance].offset = blocks[i].offset;
  }
  const std::vector<uint32_t> sources = in_place_sources(plan);
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    Instance& instance = plan.instances[i];
    if (instance.place != place || sources[i] == ir::kNoId) continue;
    instance.offset = plan.instances[in_place_root(sources, i)].offset;
  }
  return placement;
}

}  // namespace pyc::plan

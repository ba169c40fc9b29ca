#include "plan/chain.h"

#include <algorithm>
#include <tuple>

namespace pyc::plan {
namespace {

// A choice for the first values of the chain.
struct Partial {
  int64_t freed = 0;
  int64_t run = 0;  // bytes of the values not kept that it ends in
  double ns = 0;
  uint32_t parent = 0;   // among the choices for one value less
  bool dropped = false;  // the last value
};

// Leaves those that no other one is as good as in everything.
void prune(std::vector<Partial>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Partial& a, const Partial& b) {
    return std::tuple(-a.freed, a.ns, a.run) < std::tuple(-b.freed, b.ns, b.run);
  });
  std::vector<Partial> left;
  for (const Partial& p : all) {
    const auto as_good = [&](const Partial& q) { return q.ns <= p.ns && q.run <= p.run; };
    if (std::none_of(left.begin(), left.end(), as_good)) left.push_back(p);
  }
  if (left.size() > kChainStates) {
    // The cheapest of each part of the way to all.
    const int64_t part = left.front().freed / static_cast<int64_t>(kChainStates) + 1;
    std::stable_sort(left.begin(), left.end(), [&](const Partial& a, const Partial& b) {
      return std::tuple(-(a.freed / part), a.ns) < std::tuple(-(b.freed / part), b.ns);
    });
    const auto last = std::unique(
        left.begin(), left.end(),
        [&](const Partial& a, const Partial& b) { return a.freed / part == b.freed / part; });
    left.erase(last, left.end());
  }
  all = std::move(left);
}

}  // namespace

std::vector<bool> cheapest_of_chain(std::span<const ChainValue> values, int64_t need,
                                    int64_t limit) {
  std::vector<std::vector<Partial>> choices = {{Partial{}}};
  int64_t made = 0;  // bytes of all values so far
  for (const ChainValue& value : values) {
    made += value.bytes;
    std::vector<Partial> next;
    for (uint32_t i = 0; i < choices.back().size(); ++i) {
      Partial p = choices.back()[i];
      p.parent = i;
      p.dropped = false;
      p.run = 0;
      next.push_back(p);
      p.run = choices.back()[i].run + value.bytes;
      p.freed += value.bytes;
      p.ns += value.ns;
      p.dropped = true;
      if (made - p.freed + p.run <= limit) next.push_back(p);
    }
    prune(next);
    choices.push_back(std::move(next));
  }
  const std::vector<Partial>& ends = choices.back();
  const Partial* best = nullptr;
  for (const Partial& p : ends) {
    if (p.freed >= need && (best == nullptr || p.ns < best->ns)) best = &p;
  }
  std::vector<bool> dropped(values.size(), false);
  if (best == nullptr) return {};
  for (size_t i = values.size(); i > 0; --i) {
    dropped[i - 1] = best->dropped;
    best = &choices[i - 1][best->parent];
  }
  return dropped;
}

}  // namespace pyc::plan

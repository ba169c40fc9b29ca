#include <algorithm>

#include <fmt/format.h>

#include "ops/registry.h"
#include "support/draw.h"

namespace pyc::test {
namespace {

constexpr int kTries = 6;  // draws that must all agree on whether a dtype is taken

// Whether the op takes the dtype; draws that are refused for another reason are
// faults.
bool takes(const Pair& pair, std::vector<std::string>& faults) {
  bool taken = false;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t seed = 1000 * static_cast<uint64_t>(i) + static_cast<uint64_t>(pair.dtype);
    const auto made = draw_node(seed, pair, Values::kWild);
    taken = taken || made.ok();
    if (made.ok() || made.status().code() == Code::kDtypeMismatch) continue;
    faults.push_back(
        fmt::format("{} {}: {}", pair.op->name, dtype_name(pair.dtype), made.status().to_string()));
  }
  return taken;
}

struct Found {
  std::vector<Pair> pairs;
  std::vector<std::string> faults;
};

Found find_pairs() {
  Found found;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    for (int t = 0; t < kDTypeCount; ++t) {
      const Pair pair{op, static_cast<DType>(t)};
      if (takes(pair, found.faults)) found.pairs.push_back(pair);
    }
  }
  return found;
}

// First an op, then one of its dtypes. Pairs of one op stand together.
const Pair& choose(Draw& d, const std::vector<Pair>& pairs) {
  const auto differs = [](const Pair& a, const Pair& b) { return a.op != b.op; };
  int64_t ops = 1;
  for (size_t i = 1; i < pairs.size(); ++i) ops += differs(pairs[i - 1], pairs[i]) ? 1 : 0;
  auto first = pairs.begin();
  const auto next = [&] { return std::adjacent_find(first, pairs.end(), differs); };
  for (int64_t skip = d.pick(0, ops - 1); skip > 0; --skip) first = next() + 1;
  const auto last = next();
  const int64_t count = last == pairs.end() ? pairs.end() - first : last + 1 - first;
  return *(first + d.pick(0, count - 1));
}

}  // namespace

const std::vector<Pair>& all_pairs(std::vector<std::string>* faults) {
  static const Found kFound = find_pairs();
  if (faults != nullptr) *faults = kFound.faults;
  return kFound.pairs;
}

Result<DrawnGraph> draw_node(uint64_t seed, const Pair& pair, Values values) {
  Draw d(seed, values);
  PYC_TRY(d.node(pair).status());
  return std::move(d).finish();
}

DrawnGraph draw_graph(uint64_t seed, const DrawOptions& options) {
  const std::vector<Pair>& pairs = options.pairs.empty() ? all_pairs() : options.pairs;
  Draw d(seed, options.values);
  const int64_t wanted = d.pick(1, options.max_nodes);
  for (int64_t made = 0; made < wanted;) {
    made += d.node(choose(d, pairs)).ok() ? 1 : 0;
  }
  return std::move(d).finish();
}

}  // namespace pyc::test

#include "report/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pyc::report {
namespace {

constexpr uint32_t kNoBox = UINT32_MAX;
constexpr int kSweeps = 6;            // that order ranks
constexpr int kAlignments = 8;        // that move boxes under what they are joined to
constexpr double kBendWeight = 0.05;  // bends give way to boxes
constexpr int kBendWidth = 8;

// Lists of numbers per item, in one piece of memory.
class Lists {
 public:
  Lists(size_t items, std::span<const Edge> edges, bool forward) : begin_(items + 1, 0) {
    for (const Edge& e : edges) ++begin_[(forward ? e.from : e.to) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    entries_.resize(edges.size());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (const Edge& e : edges) {
      entries_[next[forward ? e.from : e.to]++] = forward ? e.to : e.from;
    }
  }
  std::span<const uint32_t> operator[](size_t item) const {
    return std::span(entries_).subspan(begin_[item], begin_[item + 1] - begin_[item]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<uint32_t> entries_;
};

// The longest path to every box. Where all that is left waits for a circle, its first box goes on.
std::vector<uint32_t> longest_paths(size_t count, std::span<const Edge> edges) {
  const Lists after(count, edges, true);
  std::vector<uint32_t> waits(count, 0);
  for (const Edge& e : edges) waits[e.to] += e.from == e.to ? 0 : 1;
  std::vector<uint32_t> rank(count, 0);
  std::vector<bool> done(count, false);
  std::vector<uint32_t> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waits[i] == 0) ready.push_back(static_cast<uint32_t>(i));
  }
  size_t first_left = 0;
  for (size_t at = 0; at < count; ++at) {
    if (at == ready.size()) {
      while (done[first_left]) ++first_left;
      ready.push_back(static_cast<uint32_t>(first_left));
    }
    const uint32_t box = ready[at];
    done[box] = true;
    for (const uint32_t next : after[box]) {
      if (done[next] || next == box) continue;
      rank[next] = std::max(rank[next], rank[box] + 1);
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  return rank;
}

// Boxes that nothing leads to move down to what reads them.
void pull_down(std::vector<uint32_t>& rank, std::span<const Edge> edges) {
  std::vector<bool> led_to(rank.size(), false);
  for (const Edge& e : edges) led_to[e.to] = true;
  std::vector<uint32_t> nearest(rank.size(), kNoBox);
  for (const Edge& e : edges) {
    if (rank[e.to] > rank[e.from]) nearest[e.from] = std::min(nearest[e.from], rank[e.to]);
  }
  for (size_t i = 0; i < rank.size(); ++i) {
    if (!led_to[i] && nearest[i] != kNoBox) rank[i] = nearest[i] - 1;
  }
}

// Boxes and bends, which are boxes without height.
struct Items {
  size_t boxes;
  std::vector<Size> sizes;
  std::vector<uint32_t> ranks;
  std::vector<Edge> links;                       // each from one rank to the next
  std::vector<std::vector<uint32_t>> bends;      // of each edge
  std::vector<std::vector<uint32_t>> rows = {};  // the items of each rank, from left to right
  std::vector<double> x = {};                    // left sides
  bool is_bend(uint32_t item) const { return item >= boxes; }
};

void bend_edges(Items& items, std::span<const Edge> edges) {
  const auto span_of = [&](const Edge& e) {
    const uint32_t from = items.ranks[e.from];
    const uint32_t to = items.ranks[e.to];
    return to > from ? to - from : 0;
  };
  std::vector<size_t> shortest_first(edges.size());
  std::iota(shortest_first.begin(), shortest_first.end(), size_t{0});
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](size_t a, size_t b) { return span_of(edges[a]) < span_of(edges[b]); });
  size_t left = kSlotsPerItem * (items.sizes.size() + edges.size());
  for (const size_t i : shortest_first) {
    const uint32_t span = span_of(edges[i]);
    if (span == 0) continue;
    if (span - 1 > left) break;
    left -= span - 1;
    uint32_t before = edges[i].from;
    for (uint32_t r = 1; r < span; ++r) {
      const auto bend = static_cast<uint32_t>(items.sizes.size());
      items.sizes.push_back({kBendWidth, 0});
      items.ranks.push_back(items.ranks[edges[i].from] + r);
      items.links.push_back({before, bend});
      items.bends[i].push_back(bend);
      before = bend;
    }
    items.links.push_back({before, edges[i].to});
  }
}

void fill_rows(Items& items) {
  uint32_t rows = 0;
  for (const uint32_t r : items.ranks) rows = std::max(rows, r + 1);
  items.rows.resize(rows);
  for (size_t i = 0; i < items.ranks.size(); ++i) {
    items.rows[items.ranks[i]].push_back(static_cast<uint32_t>(i));
  }
}

// Sorts a row by the mean place of what its items are joined to in the row before.
void sort_row(std::vector<uint32_t>& row, const Lists& joined, std::vector<double>& place) {
  std::vector<std::pair<double, uint32_t>> wanted;
  wanted.reserve(row.size());
  for (const uint32_t item : row) {
    const auto others = joined[item];
    double sum = 0.0;
    for (const uint32_t other : others) sum += place[other];
    wanted.emplace_back(others.empty() ? place[item] : sum / static_cast<double>(others.size()),
                        item);
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = wanted[i].second;
    // In parts of the row, so that rows of other lengths compare.
    place[row[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
  }
}

void order_rows(Items& items, const Lists& above, const Lists& below) {
  std::vector<double> place(items.sizes.size(), 0.0);
  for (const auto& row : items.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      place[row[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
    }
  }
  const size_t rows = items.rows.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    if (sweep % 2 == 0) {
      for (size_t r = 1; r < rows; ++r) sort_row(items.rows[r], above, place);
    } else {
      for (size_t r = rows - 1; r-- > 0;) sort_row(items.rows[r], below, place);
    }
  }
}

// The places nearest to the wanted ones (least squares) at which no two items of the row touch:
// with the widths before them taken off, places must not fall, so falling runs share their mean.
void place_row(Items& items, const std::vector<uint32_t>& row, std::span<const double> wanted) {
  struct Run {
    double sum;
    double weight;
    size_t begin;
  };
  std::vector<Run> runs;
  std::vector<double> before(row.size(), 0.0);
  double taken = 0.0;
  for (size_t i = 0; i < row.size(); ++i) {
    before[i] = taken;
    taken += items.sizes[row[i]].width + kColumnGap;
    const double weight = items.is_bend(row[i]) ? kBendWeight : 1.0;
    runs.push_back({(wanted[i] - before[i]) * weight, weight, i});
    while (runs.size() > 1) {
      const Run& last = runs.back();
      Run& previous = runs[runs.size() - 2];
      if (previous.sum / previous.weight < last.sum / last.weight) break;
      previous.sum += last.sum;
      previous.weight += last.weight;
      runs.pop_back();
    }
  }
  for (size_t k = 0; k < runs.size(); ++k) {
    const size_t end = k + 1 < runs.size() ? runs[k + 1].begin : row.size();
    for (size_t i = runs[k].begin; i < end; ++i) {
      items.x[row[i]] = runs[k].sum / runs[k].weight + before[i];
    }
  }
}

// Where the item would like its left side: under, or above, the middle of what it is joined to. A
// box goes by boxes where there are any: going by bends too, chains with long edges beside them
// would drift to the side.
double wanted_place(const Items& items, uint32_t item, std::span<const uint32_t> joined) {
  double sums[2] = {0.0, 0.0};  // over bends, over boxes
  double counts[2] = {0.0, 0.0};
  for (const uint32_t other : joined) {
    const size_t kind = items.is_bend(item) || items.is_bend(other) ? 0 : 1;
    sums[kind] += items.x[other] + items.sizes[other].width / 2.0;
    counts[kind] += 1.0;
  }
  const size_t kind = counts[1] > 0.0 ? 1 : 0;
  if (counts[kind] == 0.0) return items.x[item];
  return sums[kind] / counts[kind] - items.sizes[item].width / 2.0;
}

void align_row(Items& items, const std::vector<uint32_t>& row, const Lists& joined) {
  std::vector<double> wanted;
  wanted.reserve(row.size());
  for (const uint32_t item : row) wanted.push_back(wanted_place(items, item, joined[item]));
  place_row(items, row, wanted);
}

void place_columns(Items& items, const Lists& above, const Lists& below) {
  items.x.assign(items.sizes.size(), 0.0);
  for (const auto& row : items.rows) {
    double width = 0.0;
    for (const uint32_t item : row) width += items.sizes[item].width + kColumnGap;
    double at = -width / 2.0;
    for (const uint32_t item : row) {
      items.x[item] = at;
      at += items.sizes[item].width + kColumnGap;
    }
  }
  const size_t rows = items.rows.size();
  for (int i = 0; i < kAlignments; ++i) {
    if (i % 2 == 0) {
      for (size_t r = 1; r < rows; ++r) align_row(items, items.rows[r], above);
    } else {
      for (size_t r = rows - 1; r-- > 0;) align_row(items, items.rows[r], below);
    }
  }
}

// An edge's way through a rank: straight down, so that it curves between ranks only. Ways of one
// column are one piece.
void pass_rank(std::vector<Point>& points, int x, int top, int bottom) {
  if (!points.empty() && points.back().x == x) {
    points.back().y = bottom;
    return;
  }
  points.push_back({x, top});
  points.push_back({x, bottom});
}

// Whole numbers from 0 on. Widths are whole, so rounding brings no two items closer.
Layout round_off(const Items& items) {
  double least = 0.0;
  for (size_t i = 0; i < items.x.size(); ++i)
    least = i == 0 ? items.x[i] : std::min(least, items.x[i]);
  Layout out;
  std::vector<Point> corners(items.sizes.size());
  std::vector<std::pair<int, int>> ends;  // top and bottom of each rank
  int top = 0;
  for (const auto& row : items.rows) {
    int height = 0;
    for (const uint32_t item : row) height = std::max(height, items.sizes[item].height);
    for (const uint32_t item : row) {
      const int x = static_cast<int>(std::floor(items.x[item] - least + 0.5));
      corners[item] = {x, top + (height - items.sizes[item].height) / 2};
      out.size.width = std::max(out.size.width, x + items.sizes[item].width);
    }
    ends.emplace_back(top, top + height);
    out.size.height = top + height;
    top += height + kRankGap;
  }
  for (const auto& bends : items.bends) {
    auto& points = out.bends.emplace_back();
    for (const uint32_t bend : bends) {
      const auto [rank_top, rank_bottom] = ends[items.ranks[bend]];
      pass_rank(points, corners[bend].x + kBendWidth / 2, rank_top, rank_bottom);
    }
  }
  corners.resize(items.boxes);
  out.corners = std::move(corners);
  out.ranks.assign(items.ranks.begin(), items.ranks.begin() + static_cast<ptrdiff_t>(items.boxes));
  return out;
}

}  // namespace

Layout lay_out(std::span<const Size> boxes, std::span<const Edge> edges) {
  Items items{.boxes = boxes.size(),
              .sizes = {boxes.begin(), boxes.end()},
              .ranks = longest_paths(boxes.size(), edges),
              .links = {},
              .bends = std::vector<std::vector<uint32_t>>(edges.size())};
  if (boxes.empty()) return {};
  pull_down(items.ranks, edges);
  bend_edges(items, edges);
  fill_rows(items);
  const Lists above(items.sizes.size(), items.links, false);
  const Lists below(items.sizes.size(), items.links, true);
  order_rows(items, above, below);
  place_columns(items, above, below);
  return round_off(items);
}

}  // namespace pyc::report

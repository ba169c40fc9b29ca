// Layouts of graphs: boxes apart, edges downwards, the same every time, soon.

#include "report/layout.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace pyc::report {
namespace {

struct Drawn {
  std::vector<Size> boxes;
  std::vector<Edge> edges;
};

// Nodes that read up to three of those before, most of them near.
Drawn random_graph(uint32_t seed, uint32_t count) {
  std::mt19937 random(seed);
  Drawn out;
  for (uint32_t i = 0; i < count; ++i) {
    out.boxes.push_back(
        {static_cast<int>(40 + random() % 160), static_cast<int>(20 + random() % 60)});
    const uint32_t reads = i == 0 ? 0 : random() % 4;
    for (uint32_t r = 0; r < reads; ++r) {
      const uint32_t back = random() % 8 == 0 ? random() % i : random() % std::min(i, 5u);
      out.edges.push_back({i - 1 - back, i});
    }
  }
  return out;
}

bool overlap(Point a, Size a_size, Point b, Size b_size) {
  return a.x < b.x + b_size.width && b.x < a.x + a_size.width && a.y < b.y + b_size.height &&
         b.y < a.y + a_size.height;
}

void expect_sound(const Drawn& g, const Layout& layout) {
  ASSERT_EQ(layout.corners.size(), g.boxes.size());
  ASSERT_EQ(layout.bends.size(), g.edges.size());
  for (size_t i = 0; i < g.boxes.size(); ++i) {
    EXPECT_GE(layout.corners[i].x, 0);
    EXPECT_GE(layout.corners[i].y, 0);
    EXPECT_LE(layout.corners[i].x + g.boxes[i].width, layout.size.width);
    EXPECT_LE(layout.corners[i].y + g.boxes[i].height, layout.size.height);
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(overlap(layout.corners[i], g.boxes[i], layout.corners[j], g.boxes[j]))
          << "boxes " << j << " and " << i;
    }
  }
}

void expect_downwards(const Drawn& g, const Layout& layout) {
  for (size_t e = 0; e < g.edges.size(); ++e) {
    const auto [from, to] = g.edges[e];
    EXPECT_LT(layout.ranks[from], layout.ranks[to]);
    int above = layout.corners[from].y + g.boxes[from].height;
    for (const Point& bend : layout.bends[e]) {
      EXPECT_GE(bend.y, above);
      above = bend.y;
      for (size_t b = 0; b < g.boxes.size(); ++b) {
        EXPECT_FALSE(overlap(bend, {1, 1}, layout.corners[b], g.boxes[b])) << "a bend in box " << b;
      }
    }
    EXPECT_GE(layout.corners[to].y, above);
  }
}

TEST(Layout, KeepsBoxesApartAndEdgesDownwards) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn g = random_graph(seed, 5 + seed * 3);
    const Layout layout = lay_out(g.boxes, g.edges);
    expect_sound(g, layout);
    expect_downwards(g, layout);
  }
}

TEST(Layout, RanksAreLongestPaths) {
  // 0 -> 1 -> 2 -> 3 and 0 -> 3; 4 is read by 3 alone, so it lies just above.
  const Drawn g{.boxes = std::vector<Size>(5, {50, 30}),
                .edges = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {4, 3}}};
  const Layout layout = lay_out(g.boxes, g.edges);
  EXPECT_EQ(layout.ranks, (std::vector<uint32_t>{0, 1, 2, 3, 2}));
  // The edge from 0 to 3 passes the two ranks between.
  ASSERT_GE(layout.bends[3].size(), 2u);
  EXPECT_EQ(layout.bends[3].front().y, layout.corners[1].y);
  EXPECT_EQ(layout.bends[3].back().y, layout.corners[2].y + 30);
  EXPECT_TRUE(layout.bends[0].empty());
}

TEST(Layout, AChainIsALine) {
  Drawn g{.boxes = {{80, 30}, {60, 30}, {120, 30}, {60, 30}}, .edges = {{0, 1}, {1, 2}, {2, 3}}};
  const Layout layout = lay_out(g.boxes, g.edges);
  for (size_t i = 0; i < g.boxes.size(); ++i) {
    EXPECT_EQ(2 * layout.corners[i].x + g.boxes[i].width, layout.size.width) << i;
  }
}

// Long edges beside a chain do not push it to the side, block after block.
TEST(Layout, AChainWithLongEdgesDoesNotDrift) {
  Drawn g;
  for (uint32_t i = 0; i < 400; ++i) {
    g.boxes.push_back({60, 30});
    if (i > 0) g.edges.push_back({i - 1, i});
    if (i > 0 && i % 4 == 0) g.edges.push_back({i - 4, i});
  }
  const Layout layout = lay_out(g.boxes, g.edges);
  expect_sound(g, layout);
  expect_downwards(g, layout);
  EXPECT_LT(layout.size.width, 400);
}

TEST(Layout, IsTheSameEveryTime) {
  const Drawn g = random_graph(7, 300);
  const Layout a = lay_out(g.boxes, g.edges);
  const Layout b = lay_out(g.boxes, g.edges);
  EXPECT_EQ(a.corners, b.corners);
  EXPECT_EQ(a.bends, b.bends);
}

TEST(Layout, TakesCirclesAndEdgesToThemselves) {
  const Drawn g{.boxes = std::vector<Size>(5, {50, 30}),
                .edges = {{0, 1}, {1, 2}, {2, 1}, {2, 3}, {3, 3}, {4, 4}, {3, 0}}};
  const Layout layout = lay_out(g.boxes, g.edges);
  expect_sound(g, layout);
  EXPECT_LT(layout.ranks[0], layout.ranks[1]);
  EXPECT_LT(layout.ranks[2], layout.ranks[3]);
}

TEST(Layout, TakesNothing) {
  EXPECT_EQ(lay_out({}, {}).size, Size{});
  const std::vector<Size> one = {{40, 20}};
  EXPECT_EQ(lay_out(one, {}).size, (Size{40, 20}));
}

// Every node reads the first one: slots for all edges would be quadratic.
TEST(Layout, SlotsAreLinear) {
  constexpr uint32_t kNodes = 3000;
  Drawn g;
  for (uint32_t i = 0; i < kNodes; ++i) {
    g.boxes.push_back({60, 30});
    if (i > 0) g.edges.push_back({i - 1, i});
    if (i > 1) g.edges.push_back({0, i});
  }
  const Layout layout = lay_out(g.boxes, g.edges);
  size_t slots = 0;
  size_t without = 0;
  for (size_t e = 0; e < g.edges.size(); ++e) {
    const size_t span = layout.ranks[g.edges[e].to] - layout.ranks[g.edges[e].from];
    if (span > 1) (layout.bends[e].empty() ? without : slots) += span - 1;
    EXPECT_LE(layout.bends[e].size(), 2 * (span - 1));
  }
  EXPECT_LE(slots, kSlotsPerItem * (g.boxes.size() + g.edges.size()));
  EXPECT_GT(slots, kNodes);
  EXPECT_GT(without, slots);
}

}  // namespace
}  // namespace pyc::report

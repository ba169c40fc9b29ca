#pragma once

// Where the boxes of a graph are drawn: in ranks from top to bottom, edges downwards.
//
// A box lies one rank below the lowest box it has an edge from (longest path); boxes without such
// edges lie just above the first that reads them. An edge passes the ranks between its ends
// straight down through slots that no box touches, as long as all slots are at most kSlotsPerItem
// times the boxes and edges; the longest edges go without. Time is linear in boxes, edges and slots
// but for sorting; memory is linear. Equal graphs have equal layouts.

#include <cstdint>
#include <span>
#include <vector>

namespace pyc::report {

struct Size {
  int width = 0;
  int height = 0;
  bool operator==(const Size&) const = default;
};

struct Point {
  int x = 0;
  int y = 0;
  bool operator==(const Point&) const = default;
};

struct Edge {
  uint32_t from = 0;
  uint32_t to = 0;
  bool operator==(const Edge&) const = default;
};

struct Layout {
  std::vector<Point> corners;             // the upper left one of each box
  std::vector<uint32_t> ranks;            // of each box
  std::vector<std::vector<Point>> bends;  // of each edge: from slot to slot
  Size size;
};

inline constexpr int kColumnGap = 18;  // between boxes of a rank
inline constexpr int kRankGap = 34;    // between ranks
inline constexpr size_t kSlotsPerItem = 4;

// Edges name boxes; those that close a circle or lead from a box to itself do not order ranks.
Layout lay_out(std::span<const Size> boxes, std::span<const Edge> edges);

}  // namespace pyc::report

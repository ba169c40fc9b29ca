#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "paths.h"

namespace probe {

// One block written out: its accumulator and its first products; the others are +0·+0.
struct EdgeCase {
  std::string group;
  std::string name;
  uint32_t acc = 0;
  std::vector<std::pair<uint16_t, uint16_t>> products;
};

// Cases of a half format or fp8 format, one question each.
std::vector<EdgeCase> edge_cases(Format format);

// Every case fills a whole tile, so that all positions are asked.
Tiles tiles_of(Format format, const std::vector<EdgeCase>& cases);

}  // namespace probe

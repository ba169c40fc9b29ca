#include "plan/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace pyc::plan {
namespace {

bool live_at(const Block& b, int step) { return b.first <= step && step <= b.last; }

int64_t most_live(const std::vector<Block>& blocks) {
  int64_t most = 0;
  for (const Block& at : blocks) {
    int64_t live = 0;
    for (const Block& b : blocks) {
      if (live_at(b, at.first)) live += b.size;
    }
    most = std::max(most, live);
  }
  return most;
}

// Places the blocks one after the other, each as low as it can be.
int64_t end_in_order(std::vector<Block> blocks, const std::vector<size_t>& order) {
  for (Block& b : blocks) b.offset = -1;
  int64_t end = 0;
  for (const size_t i : order) {
    Block& block = blocks[i];
    for (bool moved = true; moved;) {
      moved = false;
      for (const Block& other : blocks) {
        const int64_t at = std::max<int64_t>(block.offset, 0);
        if (&other == &block || other.offset < 0) continue;
        if (block.first > other.last || other.first > block.last) continue;
        if (at >= other.offset + other.size || other.offset >= at + block.size) continue;
        block.offset = other.offset + other.size;
        moved = true;
      }
    }
    block.offset = std::max<int64_t>(block.offset, 0);
    end = std::max(end, block.offset + block.size);
  }
  return end;
}

// The best of all orders of placing: some order gives the optimum.
int64_t least_end(const std::vector<Block>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  int64_t least = INT64_MAX;
  do {
    least = std::min(least, end_in_order(blocks, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

void expect_apart(const std::vector<Block>& blocks, int64_t end) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& a = blocks[i];
    ASSERT_GE(a.offset, 0);
    ASSERT_LE(a.offset + a.size, end);
    for (size_t j = 0; j < i; ++j) {
      const Block& b = blocks[j];
      if (a.first > b.last || b.first > a.last) continue;
      ASSERT_TRUE(a.offset >= b.offset + b.size || b.offset >= a.offset + a.size) << i << ' ' << j;
    }
  }
}

std::vector<Block> random_blocks(std::mt19937& random, size_t count, uint32_t steps) {
  std::vector<Block> blocks(count);
  for (Block& b : blocks) {
    b.size = 64 * static_cast<int64_t>(1 + random() % 7);
    b.first = static_cast<int>(random() % steps);
    b.last = std::min(static_cast<int>(steps) - 1, b.first + static_cast<int>(random() % 4));
  }
  return blocks;
}

TEST(Offsets, SmallCasesHaveTheLeastEndOfAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    std::vector<Block> blocks = random_blocks(random, 7, 8);
    const Packing packing = pack(blocks, most_live(blocks));
    expect_apart(blocks, packing.bytes);
    ASSERT_TRUE(packing.optimal);
    ASSERT_EQ(packing.bytes, least_end(blocks));
  }
}

// A case whose bound no offsets reach, which all 8! orders of placing show.
TEST(Offsets, ABoundOutOfReachIsProvenToBe) {
  std::vector<Block> blocks{{6, 6, 7},  {7, 6, 6},  {1, 7, 8}, {2, 6, 8},
                            {4, 8, 10}, {4, 7, 10}, {3, 8, 8}, {7, 10, 10}};
  ASSERT_EQ(most_live(blocks), 15);
  const Packing packing = pack(blocks, 15);
  EXPECT_EQ(packing.bytes, 16);
  EXPECT_TRUE(packing.optimal);
  EXPECT_EQ(least_end(blocks), 16);
  expect_apart(blocks, packing.bytes);
  EXPECT_FALSE(pack(blocks, 15, 0).optimal) << "without work nothing is proven";
}

// Cases of up to 40 blocks, some of which no greedy order solves.
TEST(Offsets, FortyBlocksReachTheirBound) {
  std::mt19937 random(11);
  int searched = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<Block> blocks = random_blocks(random, 20 + random() % 21, 24);
    const int64_t bound = most_live(blocks);
    std::vector<Block> greedy = blocks;
    const Packing unsearched = pack(greedy, bound, 0);
    const Packing packing = pack(blocks, bound);
    expect_apart(blocks, packing.bytes);
    expect_apart(greedy, unsearched.bytes);
    ASSERT_TRUE(packing.optimal);
    ASSERT_EQ(packing.bytes, bound);  // as it is in all of these
    ASSERT_GE(unsearched.bytes, bound);
    ASSERT_EQ(unsearched.placements, 0);
    if (packing.found_by == "branch_and_bound") ++searched;
  }
  EXPECT_GT(searched, 0);
}

TEST(Offsets, WhenTheWorkEndsTheGreedyOffsetsStay) {
  std::mt19937 random(11);
  int unproven = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<Block> blocks = random_blocks(random, 40, 24);
    const int64_t bound = most_live(blocks);
    const Packing packing = pack(blocks, bound, 500);
    expect_apart(blocks, packing.bytes);
    if (!packing.optimal) ++unproven;
  }
  EXPECT_GT(unproven, 0);
}

TEST(Offsets, NoBlocksNeedNothing) {
  std::vector<Block> none;
  const Packing packing = pack(none, 0);
  EXPECT_EQ(packing.bytes, 0);
  EXPECT_TRUE(packing.optimal);
}

}  // namespace
}  // namespace pyc::plan

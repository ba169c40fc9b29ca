#include "base/inline_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace pyc {
namespace {

using Item = std::pair<uint32_t, int64_t>;
using Short = InlineVector<Item, 3>;

std::vector<Item> items(const Short& all) { return {all.begin(), all.end()}; }

// What a std::vector would hold after the same calls, up to well beyond the elements that need no
// memory of their own.
TEST(InlineVector, HoldsWhatAVectorHolds) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Short made;
    std::vector<Item> expected;
    for (int step = 0; step < 40; ++step) {
      const Item item{random() % 5, static_cast<int64_t>(random() % 5)};
      const size_t at = expected.empty() ? 0 : random() % expected.size();
      switch (random() % 6) {
        case 0:
        case 1:
          made.push_back(item);
          expected.push_back(item);
          break;
        case 2:
          made.insert(made.begin() + at, item);
          expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), item);
          break;
        case 3:
          if (expected.empty()) break;
          made.erase(made.begin() + at);
          expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 4:
          if (expected.empty()) break;
          made.push_back(made[at]);  // an element of itself, which may move
          expected.push_back(Item(expected[at]));
          break;
        default:
          EXPECT_EQ(erase(made, item), std::erase(expected, item));
          break;
      }
      ASSERT_EQ(items(made), expected);
    }
    Short copy = made;
    EXPECT_EQ(copy, made);
    const Short moved = std::move(copy);
    EXPECT_EQ(items(moved), expected);
    Short shorter;
    shorter.push_back({7, 7});
    made = shorter;
    EXPECT_EQ(items(made), items(shorter));
    shorter = moved;
    EXPECT_EQ(items(shorter), expected);
  }
}

TEST(InlineVector, WhatWasMovedFromIsEmptyAndCanBeUsed) {
  for (const int count : {2, 9}) {
    Short from;
    for (int i = 0; i < count; ++i) from.emplace_back(static_cast<uint32_t>(i), i);
    Short to;
    to = std::move(from);
    EXPECT_EQ(to.size(), static_cast<size_t>(count));
    from.clear();
    EXPECT_TRUE(from.empty());
    for (int i = 0; i < 9; ++i) from.emplace_back(1U, i);
    EXPECT_EQ(from.back().second, 8);
  }
}

}  // namespace
}  // namespace pyc

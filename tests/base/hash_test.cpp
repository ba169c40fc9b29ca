#include "base/hash_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace pyc {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What `xxh128sum` of xxHash 0.8 prints.
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(hash128({}).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128(bytes_of("abc")).hex(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(hash128(bytes_of(std::string(1000, 'a'))).hex(), "b01da365eddaa29cb3e7af627147db7c");
}

TEST(Hash, PiecesAreTheSameAsTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  const Digest whole = hash128(bytes_of(text));
  for (const size_t piece : {1, 7, 64, 255, 256, 257, 4096}) {
    Hasher hasher;
    for (size_t at = 0; at < text.size(); at += piece) {
      hasher.update(bytes_of(std::string_view(text).substr(at, piece)));
    }
    EXPECT_EQ(hasher.finish(), whole) << piece;
  }
}

TEST(Hash, PiecesOfSeveralCoresAreThoseOfOne) {
  std::string text(2 * kHashPiece + 77, 'x');
  for (size_t i = 0; i < text.size(); i += 61) text[i] = static_cast<char>(i * 31);
  const auto all = bytes_of(text);
  Hasher one_after_the_other;
  for (size_t at = 0; at < all.size(); at += kHashPiece) {
    const Digest piece = hash128(all.subspan(at, std::min(kHashPiece, all.size() - at)));
    one_after_the_other.update(piece.hi).update(piece.lo);
  }
  const Digest whole = one_after_the_other.finish();
  EXPECT_EQ(hash_pieces(all), whole);
  for (const size_t cut : {size_t{0}, size_t{64}, kHashPiece - 1, kHashPiece, all.size()}) {
    const std::span<const std::byte> parts[] = {all.first(cut), {}, all.subspan(cut)};
    EXPECT_EQ(hash_pieces(parts), whole) << cut;
  }
  for (const size_t at : {size_t{0}, kHashPiece, text.size() - 1}) {
    text[at] ^= 1;
    EXPECT_NE(hash_pieces(all), whole) << at;
    text[at] ^= 1;
  }
}

TEST(Hash, EmptyHasherIsTheDigestOfNothing) { EXPECT_EQ(Hasher().finish(), hash128({})); }

TEST(Hash, TextCarriesItsLength) {
  EXPECT_NE(Hasher().update("ab").update("c").finish(), Hasher().update("a").update("bc").finish());
  EXPECT_NE(Hasher().update("").finish(), Hasher().finish());
}

TEST(Hash, IntegersAreHashedByValueAsLittleEndianWords) {
  const Digest minus_two = Hasher().update(-2).finish();
  EXPECT_EQ(Hasher().update(int8_t{-2}).finish(), minus_two);
  EXPECT_EQ(Hasher().update(int64_t{-2}).finish(), minus_two);
  EXPECT_EQ(hash128(bytes_of("\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF")), minus_two);
  EXPECT_EQ(Hasher().update(true).finish(), Hasher().update(uint64_t{1}).finish());
  EXPECT_NE(Hasher().update(uint32_t{0xFFFFFFFE}).finish(), minus_two);
}

TEST(Hash, FinishMayBeFollowedByMore) {
  Hasher hasher;
  hasher.update(1);
  const Digest first = hasher.finish();
  EXPECT_EQ(hasher.finish(), first);
  hasher.update(2);
  EXPECT_EQ(hasher.finish(), Hasher().update(1).update(2).finish());
}

TEST(Hash, CopiesGoOnIndependently) {
  const std::string prefix(1000, 'p');
  Hasher original;
  original.update(prefix);
  Hasher copy = original;
  original.update("x");
  copy.update("y");
  EXPECT_EQ(original.finish(), Hasher().update(prefix).update("x").finish());
  EXPECT_EQ(copy.finish(), Hasher().update(prefix).update("y").finish());
}

TEST(Hash, DigestsAreOrderedByTheirHexForm) {
  const Digest small = {1, ~uint64_t{0}};
  const Digest large = {2, 0};
  EXPECT_LT(small, large);
  EXPECT_LT(small.hex(), large.hex());
  EXPECT_EQ(small.hex(), "0000000000000001ffffffffffffffff");
  EXPECT_EQ((std::set<Digest>{large, small, large}.size()), 2U);
}

}  // namespace
}  // namespace pyc

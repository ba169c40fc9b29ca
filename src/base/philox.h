#pragma once

#include <array>
#include <cstdint>

namespace pyc {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): four random words
// that are a function of counter and key alone. Integer arithmetic only, the same on every machine.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Random word `index` of the sequence named by (seed, stream): word index mod 4 of the block whose
// counter is index div 4 (low half first) in words 0 and 1 and `stream` in words 2 and 3, under the
// key `seed`.
constexpr uint32_t philox_word(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t block = index / 4;
  const std::array<uint32_t, 4> counter = {
      static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
      static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  return philox4x32(counter, key)[index % 4];
}

// philox_word · 2^-32, exactly: a multiple of 2^-32 in [0, 1).
constexpr double philox_uniform01(uint64_t seed, uint64_t stream, uint64_t index) {
  return philox_word(seed, stream, index) * 0x1p-32;
}

}  // namespace pyc

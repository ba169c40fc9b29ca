#pragma once

// Values between the elements of the planes (dims behind batch and channels) of input 0.

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

// What a sampled place takes from one dim: an element and its weight; `inside` may be left out.
struct SampleTap {
  Expr at;
  Expr weight;
  Expr inside = {};
};
using SampleTaps = std::vector<SampleTap>;

// The two neighbours of `x`, elements outside of [0, size) marked.
SampleTaps linear_taps(LowerContext& context, Expr x, int64_t size);
// The weights of the four neighbours floor(x) - 1 … floor(x) + 2 at distance t = x - floor(x).
std::vector<Expr> cubic_weights(Expr t);

// Sums over the dims from the last to the first: each dim's taps times their weights, added in
// order. Elements outside count as 0.
Expr interpolate(LowerContext& context, Expr batch, Expr channel, std::span<const SampleTaps> dims);

}  // namespace pyc::ops

// wgmma of fp8: which guess about its block gives the device's bits.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data.h"
#include "edge_cases.h"
#include "hypothesis.h"
#include "support.h"

namespace probe {
namespace {

using pyc::Factor;

constexpr size_t kTile = size_t{kRows} * kColumns;
constexpr Kind kFp8Kinds[] = {Kind::kNormal,    Kind::kWide,    Kind::kCancel, Kind::kMixed,
                              Kind::kSubnormal, Kind::kAnyBits, Kind::kSparse, Kind::kEdges};

struct Seen {
  float acc;
  std::vector<Factor> a;
  std::vector<Factor> b;
  float result;
};

struct Sample {
  Tiles tiles;
  std::vector<float> got;

  Seen at(size_t i) const {
    return {tiles.c[i], factors(a_type(tiles.format), tiles.a_row(i), kStepBytes),
            factors(b_type(tiles.format), tiles.b_row(i), kStepBytes), got[i]};
  }
};

bool explains(const Hypothesis& h, const Seen& s) {
  const float model = h.add(s.acc, s.a, s.b);
  return bits_of(model) == bits_of(s.result) || (std::isnan(model) && std::isnan(s.result));
}

long matches(const Hypothesis& h, const std::vector<Seen>& all, size_t stride) {
  long count = 0;
  for (size_t i = 0; i < all.size(); i += stride) count += explains(h, all[i]) ? 1 : 0;
  return count;
}

std::vector<Hypothesis> guesses() {
  std::vector<Hypothesis> all;
  for (int fraction = 9; fraction <= 27; ++fraction)
    for (const int result :
         std::set<int>{23, 22, 14, 13, 12, fraction, fraction - 1, fraction + 1}) {
      if (result > 23 || result < 8) continue;
      for (const int block : {32, 16, 8, 4, 0})
        for (const Hypothesis::Align align :
             {Hypothesis::kTruncate, Hypothesis::kFloor, Hypothesis::kNearest})
          for (const Hypothesis::Align final : {Hypothesis::kTruncate, Hypothesis::kNearest})
            for (const bool normalised : {false, true})
              for (const auto accumulator :
                   {Hypothesis::kAligned, Hypothesis::kAddedNearest, Hypothesis::kAddedTruncated}) {
                Hypothesis h;
                h.fraction = fraction;
                h.result_fraction = result;
                h.interleaved = block == 0;
                h.block = block == 0 ? 16 : block;
                h.align = align;
                h.final = final;
                h.normalised = normalised;
                h.accumulator = accumulator;
                all.push_back(h);
              }
    }
  return all;
}

// Ranks the guesses, first on few blocks, the best of them on all.
std::vector<std::pair<long, Hypothesis>> ranked_guesses(const std::vector<Seen>& seen) {
  std::vector<Hypothesis> all = guesses();
  auto rank = [&](size_t stride, size_t keep) {
    std::vector<std::pair<long, size_t>> order(all.size());
    parallel(all.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) order[i] = {-matches(all[i], seen, stride), i};
    });
    std::sort(order.begin(), order.end());
    std::vector<std::pair<long, Hypothesis>> best;
    for (size_t i = 0; i < std::min(keep, order.size()); ++i)
      best.emplace_back(-order[i].first, all[order[i].second]);
    return best;
  };
  std::vector<Hypothesis> kept;
  for (const auto& [count, h] : rank(211, 400)) kept.push_back(h);
  all = kept;
  kept.clear();
  for (const auto& [count, h] : rank(17, 24)) kept.push_back(h);
  all = kept;
  return rank(1, 24);
}

// Single experiments from which bits can be read without any guess.
std::vector<EdgeCase> ladder(Format format) {
  std::vector<EdgeCase> cases;
  auto a = [&](double x) { return operand_bits(a_type(format), x); };
  auto b = [&](double x) { return operand_bits(b_type(format), x); };
  cases.push_back({"ladder", "acc 1.99999988 alone", bits_of(0x1.fffffep0F), {}});
  cases.push_back(
      {"ladder", "acc 1.99999988, 2^-6*2^-6", bits_of(0x1.fffffep0F), {{a(0x1p-6), b(0x1p-6)}}});
  for (int i = 9; i <= 26; ++i)
    cases.push_back(
        {"ladder", text("acc 2^-%d, 1*1", i), bits_of(std::ldexp(1.0F, -i)), {{a(1), b(1)}}});
  for (int i = 9; i <= 26; ++i)
    cases.push_back({"ladder",
                     text("acc 2^-%d, 1*1 - 1*1", i),
                     bits_of(std::ldexp(1.0F, -i)),
                     {{a(1), b(1)}, {a(-1), b(1)}}});
  for (int i = 9; i <= 16; ++i)
    cases.push_back({"ladder",
                     text("acc 2^-%d, 1.5*1.5 - 1.5*1.5", i),
                     bits_of(std::ldexp(1.0F, -i)),
                     {{a(1.5), b(1.5)}, {a(-1.5), b(1.5)}}});
  for (int i = 9; i <= 16; ++i) {
    EdgeCase c = {"ladder", text("acc 1, two of 2^-%d", i), bits_of(1.0F), {}};
    for (int n = 0; n < 2; ++n)
      c.products.emplace_back(a(std::ldexp(1.0, -(i - i / 2 - 2) - 2)),
                              b(std::ldexp(1.0, -(i / 2))));
    cases.push_back(c);
  }
  // Do the first and the last 16 products share one alignment?
  for (const int other : {1, 2, 4, 8, 16, 24, 31}) {
    EdgeCase c = {"ladder", text("256*1 at 0, -256*1 at %d, 2^-7 at 31 or 30", other), 0,
                  std::vector<std::pair<uint16_t, uint16_t>>(32)};
    c.products[0] = {a(256), b(1)};
    c.products[static_cast<size_t>(other)] = {a(-256), b(1)};
    c.products[other == 31 ? 30 : 31] = {a(0x1p-4), b(0x1p-3)};
    cases.push_back(c);
  }
  return cases;
}

std::string product_text(const Factor& a, const Factor& b) {
  const double x = std::ldexp(a.significand, a.exponent - 10);
  const double y = std::ldexp(b.significand, b.exponent - 10);
  return text("%s%g*%g", a.negative != b.negative ? "-" : "", x, y);
}

void show_cases(Format format, const std::vector<EdgeCase>& cases, const Hypothesis& best) {
  const Tiles tiles = tiles_of(format, cases);
  const std::vector<float> got = run_path(paths_of(format)[0], tiles);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto a = factors(a_type(format), tiles.a_row(i * kTile), kStepBytes);
    const auto b = factors(b_type(format), tiles.b_row(i * kTile), kStepBytes);
    const float model = best.add(tiles.c[i * kTile], a, b);
    const float device = got[i * kTile];
    std::printf("  %-8s%-44s device %08x %-22a best guess %08x%s\n", cases[i].group.c_str(),
                cases[i].name.c_str(), bits_of(device), device, bits_of(model),
                bits_of(model) == bits_of(device) ? "" : "  DIFFERS");
  }
}

// Drops products, then the accumulator, as long as the guess stays wrong.
void shrink(Format format, const Sample& sample, size_t index, const Hypothesis& h) {
  EdgeCase c = {"", "", bits_of(sample.tiles.c[index]), {}};
  for (size_t k = 0; k < 32; ++k)
    c.products.emplace_back(sample.tiles.a_row(index)[k], sample.tiles.b_row(index)[k]);
  for (int round = 0; round < 40; ++round) {
    std::vector<EdgeCase> tries;
    for (size_t k = 0; k < 32; ++k) {
      if (c.products[k].first == 0 && c.products[k].second == 0) continue;
      tries.push_back(c);
      tries.back().products[k] = {0, 0};
    }
    if (c.acc != 0) {
      tries.push_back(c);
      tries.back().acc = 0;
    }
    if (tries.empty()) break;
    const Tiles tiles = tiles_of(format, tries);
    const std::vector<float> got = run_path(paths_of(format)[0], tiles);
    size_t next = tries.size();
    for (size_t i = 0; i < tries.size() && next == tries.size(); ++i) {
      const Seen s = {tiles.c[i * kTile],
                      factors(a_type(format), tiles.a_row(i * kTile), kStepBytes),
                      factors(b_type(format), tiles.b_row(i * kTile), kStepBytes), got[i * kTile]};
      if (!explains(h, s)) next = i;
    }
    if (next == tries.size()) break;
    c = tries[next];
  }
  const Tiles tiles = tiles_of(format, {c});
  const float device = run_path(paths_of(format)[0], tiles)[0];
  const auto a = factors(a_type(format), tiles.a_row(0), kStepBytes);
  const auto b = factors(b_type(format), tiles.b_row(0), kStepBytes);
  const float model = h.add(tiles.c[0], a, b);
  std::printf("   smallest: acc %a device %a (%08x) guess %a (%08x) products", tiles.c[0], device,
              bits_of(device), model, bits_of(model));
  for (size_t k = 0; k < 32; ++k)
    if (a[k].significand != 0 && b[k].significand != 0)
      std::printf(" [%zu] %s", k, product_text(a[k], b[k]).c_str());
  std::printf("\n");
}

long wrong_chains(Format format, const Hypothesis& h, Kind kind, int steps) {
  const Tiles tiles = random_tiles(format, kind, 1, steps, false, 900);
  const std::vector<float> got = run_path(paths_of(format)[0], tiles);
  long wrong = 0;
  for (size_t i = 0; i < got.size(); i += 7) {
    const auto a = factors(a_type(format), tiles.a_row(i), tiles.row_bytes());
    const auto b = factors(b_type(format), tiles.b_row(i), tiles.row_bytes());
    float acc = 0;
    for (size_t k = 0; k < a.size(); k += 32)
      acc = h.add(acc, std::span(a).subspan(k, 32), std::span(b).subspan(k, 32));
    wrong += bits_of(acc) != bits_of(got[i]) ? 1 : 0;
  }
  return wrong;
}

void probe_format(Format format) {
  std::vector<Sample> samples;
  std::vector<Seen> seen;
  std::vector<std::pair<size_t, size_t>> origin;
  long paths_differ = 0;
  for (const Kind kind : kFp8Kinds) {
    Sample sample;
    sample.tiles = random_tiles(format, kind, 4, 1, true, 500 + static_cast<uint64_t>(kind));
    for (const Path path : paths_of(format)) {
      const std::vector<float> got = run_path(path, sample.tiles);
      if (sample.got.empty()) sample.got = got;
      for (size_t i = 0; i < got.size(); ++i)
        paths_differ += bits_of(got[i]) != bits_of(sample.got[i]) ? 1 : 0;
    }
    for (size_t i = 0; i < sample.got.size(); i += 5) {
      seen.push_back(sample.at(i));
      origin.emplace_back(samples.size(), i);
    }
    samples.push_back(std::move(sample));
  }
  std::printf("%s: results in which the paths differ: %ld\n", format_name(format), paths_differ);
  const auto ranked = ranked_guesses(seen);
  const Hypothesis best = ranked[0].second;
  std::printf("%s: guesses, share of %zu blocks explained\n", format_name(format), seen.size());
  for (size_t i = 0; i < std::min<size_t>(10, ranked.size()); ++i)
    std::printf("  %9.5f %%  %s\n",
                100.0 * static_cast<double>(ranked[i].first) / static_cast<double>(seen.size()),
                ranked[i].second.text().c_str());
  std::map<size_t, long> wrong;
  std::vector<size_t> bad;
  for (size_t i = 0; i < seen.size(); ++i)
    if (!explains(best, seen[i])) {
      ++wrong[origin[i].first];
      bad.push_back(i);
    }
  for (const auto& [k, count] : wrong)
    std::printf("  best guess wrong: %s %ld\n", kind_name(kFp8Kinds[k]), count);
  for (size_t i = 0; i < bad.size() && i < 6; ++i) {
    const size_t pick = bad[i * bad.size() / std::min<size_t>(6, bad.size())];
    shrink(format, samples[origin[pick].first], origin[pick].second, best);
  }
  show_cases(format, ladder(format), best);
  show_cases(format, edge_cases(format), best);
  long chains = 0;
  for (const Kind kind : {Kind::kNormal, Kind::kWide, Kind::kCancel})
    for (const int steps : {2, 5, 32, 128}) chains += wrong_chains(format, best, kind, steps);
  const double share = static_cast<double>(ranked[0].first) / static_cast<double>(seen.size());
  report().number(text("fp8.%s.best_share", format_name(format)), share);
  report().string(text("fp8.%s.best", format_name(format)), best.text());
  report().number(text("fp8.%s.chains_wrong", format_name(format)), static_cast<double>(chains));
  report().number(text("fp8.%s.paths_differ", format_name(format)),
                  static_cast<double>(paths_differ));
  conclude(text("fp8 %s: %.5f %% by %s; paths differ %ld; chains wrong %ld of %d",
                format_name(format), 100 * share, best.text().c_str(), paths_differ, chains,
                12 * 2341));
}

}  // namespace

void probe_fp8() {
  for (const Format format : {Format::kE4M3, Format::kE5M2, Format::kE4M3E5M2})
    probe_format(format);
}

}  // namespace probe

// What the device does where the integers of a block end, and which decisions say the same.

#include <algorithm>
#include <cmath>
#include <map>

#include "data.h"
#include "edge_cases.h"
#include "hypothesis.h"
#include "support.h"

namespace probe {
namespace {

using pyc::Factor;

// A block and what the device made of it.
struct Seen {
  float acc;
  std::vector<Factor> a;
  std::vector<Factor> b;
  float result;
};

Seen seen_at(const Tiles& tiles, size_t i, float result) {
  return {tiles.c[i], factors(a_type(tiles.format), tiles.a_row(i), kStepBytes),
          factors(b_type(tiles.format), tiles.b_row(i), kStepBytes), result};
}

bool equal_but_nan_bits(float x, float y) {
  return bits_of(x) == bits_of(y) || (std::isnan(x) && std::isnan(y));
}

long matches(const Hypothesis& h, const std::vector<Seen>& all) {
  long count = 0;
  for (const Seen& s : all) count += equal_but_nan_bits(h.add(s.acc, s.a, s.b), s.result) ? 1 : 0;
  return count;
}

// Runs the cases on every path; a result that depends on path or position is reported.
std::vector<Seen> run_cases(Format format, const std::vector<EdgeCase>& cases) {
  const Tiles tiles = tiles_of(format, cases);
  constexpr size_t kTile = size_t{kRows} * kColumns;
  std::vector<std::vector<float>> got;
  for (const Path path : paths_of(format)) got.push_back(run_path(path, tiles));
  std::vector<Seen> seen;
  std::string group;
  long unlike = 0;
  long unsteady = 0;
  std::map<uint32_t, long> nans;
  std::printf(
      "%s: case                                   acc      device   row sm90  (bits; a path or "
      "position that differs is named)\n",
      format_name(format));
  for (size_t i = 0; i < cases.size(); ++i) {
    const float result = got[0][i * kTile];
    seen.push_back(seen_at(tiles, i * kTile, result));
    const float model = pyc::kSm90Block.add(seen.back().acc, seen.back().a, seen.back().b);
    std::string other;
    for (size_t p = 0; p < got.size(); ++p)
      for (size_t j = 0; j < kTile && other.empty(); ++j)
        if (bits_of(got[p][i * kTile + j]) != bits_of(result))
          other = text("  %s at %zu gives %08x", path_name(paths_of(format)[p]), j,
                       bits_of(got[p][i * kTile + j]));
    const bool same = bits_of(model) == bits_of(result);
    unlike += same ? 0 : 1;
    unsteady += other.empty() ? 0 : 1;
    if (std::isnan(result)) ++nans[bits_of(result)];
    std::printf("  %-10s%-34s %08x %08x %08x %s%s\n", cases[i].group.c_str(), cases[i].name.c_str(),
                cases[i].acc, bits_of(result), bits_of(model), same ? "" : "DIFFERS",
                other.c_str());
    report().string(text("edges.%s.%s", format_name(format), cases[i].name.c_str()),
                    text("%08x", bits_of(result)));
  }
  std::string patterns;
  for (const auto& [bits, count] : nans) patterns += text(" %08x (%ld)", bits, count);
  conclude(text(
      "edges %s: %ld of %zu cases unlike the row, %ld depend on path or position; NaN results:%s",
      format_name(format), unlike, cases.size(), unsteady, patterns.c_str()));
  return seen;
}

struct Alternative {
  const char* name;
  void (*apply)(Hypothesis&);
};

const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all = {
      {"as the row", [](Hypothesis&) {}},
      {"overflow = largest", [](Hypothesis& h) { h.saturate = true; }},
      {"subnormal_result = flush", [](Hypothesis& h) { h.flush_result = true; }},
      {"zero_result = all_minus", [](Hypothesis& h) { h.zero = Hypothesis::kAllMinus; }},
      {"zero_result = sign of what was cut",
       [](Hypothesis& h) { h.zero = Hypothesis::kSignOfTiny; }},
      {"infinities = nan", [](Hypothesis& h) { h.infinity_is_nan = true; }},
      {"a product from 2^128 on is infinite",
       [](Hypothesis& h) { h.wide_product_is_infinite = true; }},
      {"zero products count for E", [](Hypothesis& h) { h.zero_products_count = true; }},
      {"subnormal factors are zeros", [](Hypothesis& h) { h.flush_factors = true; }},
      {"a subnormal accumulator is zero", [](Hypothesis& h) { h.flush_accumulator = true; }},
      {"E is at least -126", [](Hypothesis& h) { h.exponent_floor = -126; }},
      {"E is at least -132", [](Hypothesis& h) { h.exponent_floor = -132; }},
      {"E is at least -134", [](Hypothesis& h) { h.exponent_floor = -134; }},
      {"E has no floor", [](Hypothesis& h) { h.exponent_floor = Hypothesis::kNoFloor; }},
  };
  return all;
}

// All combinations of the decisions.
std::vector<Hypothesis> combinations() {
  std::vector<Hypothesis> all;
  std::vector<int> floors = {Hypothesis::kNoFloor};
  for (int e = -170; e <= -120; e += 1)
    if (e >= -136 || e % 4 == 0) floors.push_back(e);
  for (const int floor : floors)
    for (int flags = 0; flags < 128; ++flags)
      for (const Hypothesis::Zero zero :
           {Hypothesis::kPlus, Hypothesis::kAllMinus, Hypothesis::kSignOfTiny}) {
        Hypothesis h;
        h.exponent_floor = floor;
        h.zero = zero;
        h.saturate = (flags & 1) != 0;
        h.flush_result = (flags & 2) != 0;
        h.flush_factors = (flags & 4) != 0;
        h.flush_accumulator = (flags & 8) != 0;
        h.wide_product_is_infinite = (flags & 16) != 0;
        h.zero_products_count = (flags & 32) != 0;
        h.infinity_is_nan = (flags & 64) != 0;
        all.push_back(h);
      }
  return all;
}

void fit(Format format, const std::vector<Seen>& edges) {
  std::vector<Seen> sample = edges;
  std::vector<Seen> wide;
  for (const Kind kind :
       {Kind::kBottom, Kind::kFloor, Kind::kTop, Kind::kAnyBits, Kind::kSubnormal, Kind::kSparse}) {
    const Tiles tiles = random_tiles(format, kind, 2, 1, true, 4000 + static_cast<uint64_t>(kind));
    const std::vector<float> got = run_path(paths_of(format)[0], tiles);
    for (size_t i = 0; i < got.size(); i += 3) wide.push_back(seen_at(tiles, i, got[i]));
    for (size_t i = 0; i < got.size(); i += 163) sample.push_back(seen_at(tiles, i, got[i]));
  }
  std::printf(
      "%s: each decision by itself: edge cases and random blocks (bottom, floor, top, bits, "
      "subnormal, "
      "sparse) it explains\n",
      format_name(format));
  std::vector<long> random_hits(alternatives().size());
  parallel(alternatives().size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Hypothesis h;
      alternatives()[i].apply(h);
      random_hits[i] = matches(h, wide);
    }
  });
  for (size_t i = 0; i < alternatives().size(); ++i) {
    Hypothesis h;
    alternatives()[i].apply(h);
    std::printf("  %-38s %4ld of %zu   %8ld of %zu\n", alternatives()[i].name, matches(h, edges),
                edges.size(), random_hits[i], wide.size());
    report().number(text("decisions.%s.%s.random", format_name(format), alternatives()[i].name),
                    static_cast<double>(random_hits[i]));
  }
  const std::vector<Hypothesis> all = combinations();
  std::vector<std::pair<long, size_t>> ranked(all.size());
  parallel(all.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) ranked[i] = {-matches(all[i], sample), i};
  });
  std::sort(ranked.begin(), ranked.end());
  const long best = -ranked[0].first;
  std::printf("%s: best of %zu combinations (%zu blocks):\n", format_name(format), all.size(),
              sample.size());
  long ties = 0;
  for (const auto& [minus, i] : ranked) {
    if (-minus < best) break;
    if (++ties > 12) continue;
    std::printf("  %ld of %zu; all random blocks %ld of %zu: %s\n", best, sample.size(),
                matches(all[i], wide), wide.size(), all[i].text().c_str());
  }
  report().string(text("decisions.%s.best", format_name(format)), all[ranked[0].second].text());
  conclude(text("decisions %s: best explains %ld of %zu blocks (%ld combinations do): %s",
                format_name(format), best, sample.size(), ties,
                all[ranked[0].second].text().c_str()));
}

}  // namespace

void probe_edges() {
  for (const Format format : {Format::kBF16, Format::kF16})
    fit(format, run_cases(format, edge_cases(format)));
}

}  // namespace probe

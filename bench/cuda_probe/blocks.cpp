// Random blocks and chains of blocks: the device against src/base/matrix_unit.cpp, bit by bit.

#include <cmath>
#include <cstdlib>

#include "data.h"
#include "hypothesis.h"
#include "support.h"

namespace probe {
namespace {

// 64 tiles of 64 × 256 are 1,048,576 blocks a round; fewer where the device is simulated.
int tiles_a_round() {
  const char* wanted = std::getenv("PROBE_TILES");
  return wanted != nullptr ? std::atoi(wanted) : 64;
}

std::vector<float> expected_of(const Tiles& tiles, int segment) {
  pyc::MatrixUnit unit = *pyc::find_matrix_unit("sm90", a_type(tiles.format));
  unit.segment = segment;
  std::vector<float> expected(tiles.results());
  parallel(static_cast<size_t>(tiles.tiles) * kRows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const std::vector<pyc::Factor> a =
          factors(a_type(tiles.format), tiles.a_row(row * kColumns), tiles.row_bytes());
      for (size_t j = 0; j < kColumns; ++j) {
        const size_t at = row * kColumns + j;
        const std::vector<pyc::Factor> b =
            factors(b_type(tiles.format), tiles.b_row(at), tiles.row_bytes());
        expected[at] =
            tiles.c.empty() ? pyc::named_order_sum(unit, a, b) : unit.add_block(tiles.c[at], a, b);
      }
    }
  });
  return expected;
}

// The model of src/base against the probe's own, before the device is asked.
long self_check(const Tiles& tiles, const std::vector<float>& expected) {
  const Hypothesis same;
  long differ = 0;
  for (size_t i = 0; i < expected.size(); i += 257) {
    const auto a = factors(a_type(tiles.format), tiles.a_row(i), tiles.row_bytes());
    const auto b = factors(b_type(tiles.format), tiles.b_row(i), tiles.row_bytes());
    differ += bits_of(same.add(tiles.c[i], a, b)) != bits_of(expected[i]) ? 1 : 0;
  }
  return differ;
}

// At most 12 results unlike the model, in full.
void show_some(const Tiles& tiles, const std::vector<float>& expected,
               const std::vector<float>& got, const std::string& where) {
  int shown = 0;
  for (size_t i = 0; i < got.size() && shown < 12; ++i) {
    if (bits_of(got[i]) == bits_of(expected[i])) continue;
    ++shown;
    const float c = tiles.c.empty() ? 0.0F : tiles.c[i];
    std::printf("   %s: result %zu acc %a (%08x) device %a (%08x) model %a (%08x)\n     products",
                where.c_str(), i, c, bits_of(c), got[i], bits_of(got[i]), expected[i],
                bits_of(expected[i]));
    const auto a = factors(a_type(tiles.format), tiles.a_row(i), kStepBytes);
    const auto b = factors(b_type(tiles.format), tiles.b_row(i), kStepBytes);
    for (size_t k = 0; k < a.size(); ++k)
      std::printf(" %s%ue%d*%ue%d", a[k].negative != b[k].negative ? "-" : "", a[k].significand,
                  a[k].exponent - 10, b[k].significand, b[k].exponent - 10);
    std::printf("\n");
  }
}

long differing(const std::vector<float>& x, const std::vector<float>& y) {
  long count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += bits_of(x[i]) != bits_of(y[i]) ? 1 : 0;
  return count;
}

struct Tally {
  long blocks = 0;
  std::vector<long> wrong;
};

void one_round(Format format, Kind kind, uint64_t seed, Tally& tally) {
  const Tiles tiles = random_tiles(format, kind, tiles_a_round(), 1, true, seed);
  const std::vector<float> expected = expected_of(tiles, 1024);
  if (const long bad = self_check(tiles, expected); bad != 0)
    std::printf("   SELF CHECK: %ld of the two host models differ (%s %s)\n", bad,
                format_name(format), kind_name(kind));
  const std::vector<Path> paths = paths_of(format);
  tally.wrong.resize(paths.size());
  tally.blocks += static_cast<long>(tiles.results());
  for (size_t p = 0; p < paths.size(); ++p) {
    const std::vector<float> got = run_path(paths[p], tiles);
    const long wrong = differing(got, expected);
    if (wrong != 0 && tally.wrong[p] < 12 && p == 0)
      show_some(tiles, expected, got,
                text("%s %s %s", format_name(format), kind_name(kind), path_name(paths[p])));
    tally.wrong[p] += wrong;
  }
}

// The largest error of a path over the sum of |a·b|: is the data where the kernel looks for it?
double layout_error(const Tiles& tiles, const std::vector<float>& got) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const auto a = factors(a_type(tiles.format), tiles.a_row(i), tiles.row_bytes());
    const auto b = factors(b_type(tiles.format), tiles.b_row(i), tiles.row_bytes());
    double sum = 0;
    double size = 1e-30;
    for (size_t k = 0; k < a.size(); ++k) {
      const double product = std::ldexp(static_cast<double>(a[k].significand) * b[k].significand,
                                        a[k].exponent + b[k].exponent - 20);
      sum += a[k].negative != b[k].negative ? -product : product;
      size += product;
    }
    const double error = std::fabs(got[i] - sum) / size;
    if (!(error <= worst)) worst = std::isnan(error) ? 1e9 : error;
  }
  return worst;
}

}  // namespace

void probe_smoke() {
  bool good = true;
  for (const Format format :
       {Format::kBF16, Format::kF16, Format::kE4M3, Format::kE5M2, Format::kE4M3E5M2}) {
    for (const int steps : {1, 6}) {
      const Tiles tiles = random_tiles(format, Kind::kNormal, 1, steps, false, 5);
      for (const Path path : paths_of(format)) {
        const double error = layout_error(tiles, run_path(path, tiles));
        const bool wrong = error > (is_fp8(format) ? 2e-3 : 2e-6);
        if (wrong)
          std::printf("   %s %s, %d steps: error %g of the sum of |a*b|: WRONG LAYOUT\n",
                      format_name(format), path_name(path), steps, error);
        good = good && !wrong;
      }
    }
  }
  report().string("smoke", good ? "ok" : "wrong");
  conclude(good ? "smoke: every path of every format computes a product"
                : "smoke: WRONG, see above; later parts mean little");
}

void probe_blocks(double seconds) {
  for (const Format format : {Format::kBF16, Format::kF16}) {
    const double end = seconds_now() + seconds / 2;
    std::vector<Tally> tallies(std::size(kKinds));
    int rounds = 0;
    do {
      for (size_t i = 0; i < std::size(kKinds); ++i)
        one_round(format, kKinds[i], 1 + static_cast<uint64_t>(rounds) * 100 + i, tallies[i]);
      ++rounds;
    } while (seconds_now() < end);
    std::printf("%-5s %-10s %11s | results unlike the model:", format_name(format), "data",
                "blocks");
    for (const Path path : paths_of(format)) std::printf(" %s", path_name(path));
    std::printf("\n");
    long blocks = 0;
    long inside = 0;
    long ends = 0;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      const Tally& tally = tallies[i];
      std::printf("%-5s %-10s %11ld |", format_name(format), kind_name(kKinds[i]), tally.blocks);
      long sum = 0;
      for (size_t p = 0; p < tally.wrong.size(); ++p) {
        std::printf(" %ld", tally.wrong[p]);
        sum += tally.wrong[p];
        report().number(text("blocks.%s.%s.%s.wrong", format_name(format), kind_name(kKinds[i]),
                             path_name(paths_of(format)[p])),
                        static_cast<double>(tally.wrong[p]));
      }
      std::printf("%s\n", reaches_range_ends(kKinds[i]) ? "   (reaches the range's ends)" : "");
      blocks += tally.blocks;
      (reaches_range_ends(kKinds[i]) ? ends : inside) += sum;
    }
    report().number(text("blocks.%s.count", format_name(format)), static_cast<double>(blocks));
    conclude(
        text("blocks %s: %ld blocks on each of %zu paths: %ld results unlike the model inside the "
             "range, %ld at its ends",
             format_name(format), blocks, paths_of(format).size(), inside, ends));
  }
}

void probe_chains() {
  for (const Format format : {Format::kBF16, Format::kF16}) {
    long all = 0;
    long wrong = 0;
    for (const int k : {32, 48, 80, 256, 1024, 4096}) {
      for (const Kind kind : {Kind::kNormal, Kind::kWide, Kind::kCancel, Kind::kSparse}) {
        const Tiles tiles =
            random_tiles(format, kind, 2, k / 16, false, 77 + static_cast<uint64_t>(k));
        const std::vector<float> expected = expected_of(tiles, 1 << 20);
        std::printf("%-5s k %4d %-7s |", format_name(format), k, kind_name(kind));
        for (const Path path : paths_of(format)) {
          const std::vector<float> got = run_path(path, tiles);
          const long bad = differing(got, expected);
          std::printf(" %ld", bad);
          wrong += bad;
          all += static_cast<long>(got.size());
        }
        std::printf("\n");
      }
    }
    report().number(text("chains.%s.count", format_name(format)), static_cast<double>(all));
    report().number(text("chains.%s.wrong", format_name(format)), static_cast<double>(wrong));
    conclude(text("chains %s: %ld sums of k = 32 to 4096, all paths: %ld unlike the model",
                  format_name(format), all, wrong));
  }
}

}  // namespace probe

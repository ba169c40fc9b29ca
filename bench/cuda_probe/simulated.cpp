// A device that is a guess, for trying the probe where there is none: halves as sm90 with some
// other decisions, fp8 as a unit of 13 places. The probe should find exactly these.

#include "hypothesis.h"
#include "support.h"

namespace probe {

std::string device_name() { return "no device: simulated"; }

std::vector<float> run_path(Path, const Tiles& tiles) {
  Hypothesis guess;
  guess.nan_bits = 0x7FC00000;
  guess.saturate = true;
  if (is_fp8(tiles.format)) {
    guess.block = 32;
    guess.fraction = 13;
    guess.result_fraction = 13;
  }
  std::vector<float> results(tiles.results());
  const size_t step = static_cast<size_t>(kStepBytes / pyc::dtype_size(a_type(tiles.format)));
  parallel(results.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto a = factors(a_type(tiles.format), tiles.a_row(i), tiles.row_bytes());
      const auto b = factors(b_type(tiles.format), tiles.b_row(i), tiles.row_bytes());
      float acc = tiles.c.empty() ? 0.0F : tiles.c[i];
      for (size_t k = 0; k < a.size(); k += step)
        acc = guess.add(acc, std::span(a).subspan(k, step), std::span(b).subspan(k, step));
      results[i] = acc;
    }
  });
  return results;
}

void measure_segments(double) {}

}  // namespace probe

#include "host/suppression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "host/elements.h"

namespace pyc::host {
namespace {

struct Box {
  float x0, x1, y0, y1;
};

Box read_box(const double* at, bool centered) {
  std::array<float, 4> v;
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(at[i]);
  if (centered) {
    return {v[0] - v[2] / 2, v[0] + v[2] / 2, v[1] - v[3] / 2, v[1] + v[3] / 2};
  }
  return {std::min(v[1], v[3]), std::max(v[1], v[3]), std::min(v[0], v[2]), std::max(v[0], v[2])};
}

bool overlaps(const Box& a, const Box& b, float limit) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0) || !(height > 0)) return false;
  const float common = width * height;
  const float area_a = (a.x1 - a.x0) * (a.y1 - a.y0);
  const float area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
  const float whole = area_a + area_b - common;
  if (!(area_a > 0) || !(area_b > 0) || !(whole > 0)) return false;
  return common / whole > limit;
}

Status check(const SuppressionSpec& s) {
  PYC_TRY(check_numbers(s.boxes, "boxes"));
  PYC_TRY(check_numbers(s.scores, "scores"));
  PYC_TRY(check_rank(s.boxes, 3, "boxes"));
  PYC_TRY(check_rank(s.scores, 3, "scores"));
  if (s.boxes.shape[2] != 4 || s.boxes.shape[0] != s.scores.shape[0] ||
      s.boxes.shape[1] != s.scores.shape[2]) {
    return {Code::kShapeMismatch, fmt::format("boxes {} and scores {} do not fit",
                                              s.boxes.to_string(), s.scores.to_string())};
  }
  return {};
}

}  // namespace

Result<DynValue> suppress_overlaps(const SuppressionSpec& spec) {
  PYC_TRY(check(spec));
  const std::vector<double> boxes = to_doubles(spec.boxes);
  const std::vector<double> scores = to_doubles(spec.scores);
  const int64_t batches = spec.boxes.shape[0];
  const int64_t count = spec.boxes.shape[1];
  const int64_t classes = spec.scores.shape[1];
  Ints kept;
  if (scores.empty() || boxes.empty()) return tensor_of(DType::kI64, {0, 3}, kept);
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = scores.data() + (b * classes + c) * count;
      Ints candidates;
      for (int64_t i = 0; i < count; ++i) {
        if (score[i] == score[i] && (!spec.score || score[i] > *spec.score))
          candidates.push_back(i);
      }
      std::stable_sort(candidates.begin(), candidates.end(),
                       [&](int64_t x, int64_t y) { return score[x] > score[y]; });
      std::vector<Box> chosen;
      for (const int64_t i : candidates) {
        if (static_cast<int64_t>(chosen.size()) >= spec.most) break;
        const Box box = read_box(boxes.data() + (b * count + i) * 4, spec.centered);
        const bool covered = std::any_of(chosen.begin(), chosen.end(), [&](const Box& other) {
          return overlaps(box, other, static_cast<float>(spec.overlap));
        });
        if (covered) continue;
        chosen.push_back(box);
        kept.insert(kept.end(), {b, c, i});
      }
    }
  }
  const auto rows = static_cast<int64_t>(kept.size() / 3);
  return tensor_of(DType::kI64, {rows, 3}, kept);
}

}  // namespace pyc::host

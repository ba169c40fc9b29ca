#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "train/compose.h"

namespace pyc::train {
namespace {

constexpr DType kWide = DType::kF64;

ValueId number(StepComposer& c, double value) { return c.constant(kWide, {}, {value}); }

// How far the curve has come, from 0 to 1.
ValueId share(StepComposer& c, const Schedule& s, ValueId done) {
  const ValueId since = c.shift(done, -static_cast<double>(s.warmup));
  const ValueId share = c.scale(since, 1.0 / static_cast<double>(s.total - s.warmup));
  return c.op("clip", {share, number(c, 0.0), number(c, 1.0)});
}

// floor + (rate - floor)·height.
ValueId between(StepComposer& c, const Schedule& s, ValueId height) {
  return c.shift(c.scale(height, s.rate - s.floor), s.floor);
}

ValueId along(StepComposer& c, const Schedule& s, ValueId done) {
  switch (s.curve) {
    case Curve::kConstant:
      return number(c, s.rate);
    case Curve::kLinear:
      return between(c, s, c.sub(number(c, 1.0), share(c, s, done)));
    case Curve::kCosine: {
      const ValueId turn = c.op("cos", {c.scale(share(c, s, done), std::numbers::pi)});
      return between(c, s, c.scale(c.shift(turn, 1.0), 0.5));
    }
    case Curve::kSteps: {
      const ValueId times = c.op("floor", {c.scale(done, 1.0 / static_cast<double>(s.every))});
      return c.scale(c.op("pow", {number(c, s.factor), times}), s.rate);
    }
  }
  return ir::kNoId;
}

}  // namespace

Status check(const Schedule& s) {
  const auto refuse = [](std::string_view what) {
    return Status(Code::kInvalidArgument, fmt::format("schedule: {}", what));
  };
  if (!std::isfinite(s.rate) || s.rate < 0) return refuse("the rate must be 0 or more");
  if (s.warmup < 0) return refuse("warmup must be 0 or more steps");
  const bool ends = s.curve == Curve::kLinear || s.curve == Curve::kCosine;
  if (ends && s.total <= s.warmup) return refuse("the total must be over the warmup's steps");
  if (ends && !std::isfinite(s.floor)) return refuse("the floor must be finite");
  if (s.curve != Curve::kSteps) return {};
  if (s.every < 1) return refuse("steps must be 1 or more apart");
  if (!std::isfinite(s.factor) || s.factor <= 0) return refuse("the factor must be over 0");
  return {};
}

ValueId rate_of(StepComposer& c, const Schedule& s, ValueId done) {
  const ValueId rate = along(c, s, done);
  if (s.warmup == 0) return rate;
  const ValueId rising = c.scale(c.shift(done, 1.0), s.rate / static_cast<double>(s.warmup));
  const ValueId warm = number(c, static_cast<double>(s.warmup));
  return c.op("where", {c.op("less", {done, warm}), rising, rate});
}

}  // namespace pyc::train

#include <fmt/format.h>

#include <cmath>

#include "train/compose.h"

namespace pyc::train {
namespace {

bool is_decoupled(Rule rule) { return rule == Rule::kAdamW || rule == Rule::kLion; }

// keep·old + (1 - keep)·x.
ValueId average(StepComposer& c, double keep, ValueId old, ValueId x) {
  return c.add(c.scale(old, keep), c.scale(x, 1.0 - keep));
}

// 1 - base^number in f64.
ValueId bias(StepComposer& c, double base, ValueId number) {
  if (base == 0.0) return c.constant(DType::kF64, {}, {1.0});
  const ValueId log = c.op("log", {c.constant(DType::kF64, {}, {base})});
  return c.sub(c.scalar_like(number, 1.0), c.op("exp", {c.mul(number, log)}));
}

// p - rate·x, the rate rounded to p's dtype.
ValueId descend(StepComposer& c, ValueId p, ValueId rate, ValueId x) {
  return c.sub(p, c.mul(c.cast(rate, c.type(p).dtype), x));
}

ValueId by_root(StepComposer& c, ValueId x, ValueId square, double epsilon) {
  return c.div(x, c.shift(c.op("sqrt", {square}), epsilon));
}

// x / (sqrt(v / bias2) + epsilon) with the rate over bias1.
ValueId step_by_adam(StepComposer& c, const Optimizer& o, ValueId p, ValueId m, ValueId v,
                     ValueId rate, ValueId number) {
  const DType dtype = c.type(p).dtype;
  const ValueId scaled = c.div(rate, bias(c, o.beta1, number));
  const ValueId root = c.cast(c.op("sqrt", {bias(c, o.beta2, number)}), dtype);
  const ValueId under = c.shift(c.div(c.op("sqrt", {v}), root), o.epsilon);
  return descend(c, p, scaled, c.div(m, under));
}

}  // namespace

std::vector<std::string_view> kept_values(Rule rule) {
  switch (rule) {
    case Rule::kSgd:
      return {};
    case Rule::kAdam:
    case Rule::kAdamW:
      return {"first", "second"};
    case Rule::kMomentum:
    case Rule::kNesterov:
    case Rule::kAdagrad:
    case Rule::kRmsprop:
    case Rule::kLion:
      return {"first"};
  }
  return {};
}

Status check(const Optimizer& o) {
  const auto share = [](double x) { return x >= 0.0 && x < 1.0; };
  if (!share(o.momentum) || !share(o.beta1) || !share(o.beta2)) {
    return {Code::kInvalidArgument,
            fmt::format("optimizer: momentum {}, beta1 {} and beta2 {} must be from 0 to below 1",
                        o.momentum, o.beta1, o.beta2)};
  }
  if (!(o.epsilon >= 0.0) || !std::isfinite(o.epsilon) || !(o.decay >= 0.0) ||
      !std::isfinite(o.decay)) {
    return {
        Code::kInvalidArgument,
        fmt::format("optimizer: epsilon {} and decay {} must be 0 or more", o.epsilon, o.decay)};
  }
  return {};
}

std::vector<ValueId> update(StepComposer& c, const Optimizer& o, ValueId p, ValueId g,
                            const std::vector<ValueId>& kept, ValueId rate, ValueId number) {
  const DType dtype = c.type(p).dtype;
  if (o.decay != 0.0 && is_decoupled(o.rule)) {
    const ValueId keep = c.sub(c.scalar_like(rate, 1.0), c.scale(rate, o.decay));
    p = c.mul(p, c.cast(keep, dtype));
  } else if (o.decay != 0.0) {
    g = c.add(g, c.scale(p, o.decay));
  }
  switch (o.rule) {
    case Rule::kSgd:
      return {descend(c, p, rate, g)};
    case Rule::kMomentum:
    case Rule::kNesterov: {
      const ValueId b = c.add(c.scale(kept[0], o.momentum), g);
      const ValueId along = o.rule == Rule::kMomentum ? b : c.add(g, c.scale(b, o.momentum));
      return {descend(c, p, rate, along), b};
    }
    case Rule::kAdam:
    case Rule::kAdamW: {
      const ValueId m = average(c, o.beta1, kept[0], g);
      const ValueId v = average(c, o.beta2, kept[1], c.mul(g, g));
      return {step_by_adam(c, o, p, m, v, rate, number), m, v};
    }
    case Rule::kAdagrad: {
      const ValueId h = c.add(kept[0], c.mul(g, g));
      return {descend(c, p, rate, by_root(c, g, h, o.epsilon)), h};
    }
    case Rule::kRmsprop: {
      const ValueId v = average(c, o.beta2, kept[0], c.mul(g, g));
      return {descend(c, p, rate, by_root(c, g, v, o.epsilon)), v};
    }
    case Rule::kLion: {
      const ValueId along = c.op("sign", {average(c, o.beta1, kept[0], g)});
      return {descend(c, p, rate, along), average(c, o.beta2, kept[0], g)};
    }
  }
  return {};
}

}  // namespace pyc::train

#include "ops/support/cell_functions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "ops/support/refuse.h"

namespace pyc::ops {
namespace {

struct Known {
  std::string_view name;
  std::optional<double> alpha;  // the default, if it has one at all
  std::optional<double> beta;
};

constexpr std::array<Known, 11> kKnown = {{
    {"relu", {}, {}},
    {"tanh", {}, {}},
    {"sigmoid", {}, {}},
    {"affine", 1.0, 0.0},
    {"leakyrelu", 0.01, {}},
    {"thresholdedrelu", 1.0, {}},
    {"scaledtanh", 1.0, 1.0},
    {"hardsigmoid", 0.2, 0.5},
    {"elu", 1.0, {}},
    {"softsign", {}, {}},
    {"softplus", {}, {}},
}};

double take(const std::optional<double>& fallback, const std::vector<double>& given, size_t& next) {
  if (!fallback) return 0.0;
  return next < given.size() ? given[next++] : *fallback;
}

ValueId hard_sigmoid(Compose& c, double alpha, double beta, ValueId x) {
  const ValueId line = c.shift(c.scale(x, alpha), beta);
  const ValueId positive = c.op("max", {line, c.scalar_like(x, 0.0)});
  return c.op("min", {positive, c.scalar_like(x, 1.0)});
}

ValueId softplus(Compose& c, ValueId x) {
  const ValueId e = c.op("exp", {c.op("neg", {c.op("abs", {x})})});
  return c.add(c.op("relu", {x}), c.op("log", {c.shift(e, 1.0)}));
}

}  // namespace

Result<std::vector<ActivationSpec>> parse_activations(std::string_view names,
                                                      const std::vector<double>& alphas,
                                                      const std::vector<double>& betas) {
  std::vector<ActivationSpec> functions;
  size_t next_alpha = 0;
  size_t next_beta = 0;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    std::string name(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
    name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    const auto* known =
        std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.name == name; });
    if (known == kKnown.end()) {
      return refuse(Code::kInvalidArgument, "unknown activation \"", name, "\"");
    }
    const double alpha = take(known->alpha, alphas, next_alpha);
    functions.push_back({std::move(name), alpha, take(known->beta, betas, next_beta)});
  }
  return functions;
}

ValueId activate(Compose& c, const ActivationSpec& f, ValueId x) {
  const ValueId zero = c.scalar_like(x, 0.0);
  const auto below = [&](double limit) { return c.op("less", {x, c.scalar_like(x, limit)}); };
  if (f.name == "affine") return c.shift(c.scale(x, f.alpha), f.beta);
  if (f.name == "leakyrelu") return c.op("where", {below(0.0), c.scale(x, f.alpha), x});
  if (f.name == "thresholdedrelu") return c.op("where", {below(f.alpha), zero, x});
  if (f.name == "scaledtanh") return c.scale(c.op("tanh", {c.scale(x, f.beta)}), f.alpha);
  if (f.name == "hardsigmoid") return hard_sigmoid(c, f.alpha, f.beta, x);
  if (f.name == "elu") {
    const ValueId curve = c.scale(c.shift(c.op("exp", {x}), -1.0), f.alpha);
    return c.op("where", {below(0.0), curve, x});
  }
  if (f.name == "softsign") return c.div(x, c.shift(c.op("abs", {x}), 1.0));
  if (f.name == "softplus") return softplus(c, x);
  return c.op(f.name, {x});
}

}  // namespace pyc::ops

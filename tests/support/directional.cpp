#include "support/directional.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "autograd/gradient.h"
#include "base/philox.h"
#include "ops/registry.h"
#include "session/model.h"
#include "support/compare.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;
using Reals = std::vector<double>;

Reals reals_of(const Bytes& bytes) {
  Reals out(bytes.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(double));
  return out;
}
Bytes bytes_of(const Reals& values) {
  Bytes out(values.size() * sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// In [-1, 1).
double unit(uint64_t seed, uint64_t stream, uint64_t i) {
  return 2.0 * philox_uniform01(seed, stream, i) - 1.0;
}

// Ops with a root in them: where a result is 0 their slope may be infinite, and 0 times that is
// NaN.
bool is_steep_at_zero(std::string_view op) {
  return op == "adagrad" || op == "adam" || op == "pow" || op == "sqrt";
}

bool is_plain(const ir::Graph& graph) {
  for (const ir::Value& value : graph.values) {
    if (is_float(value.type.dtype) && value.type.dtype != DType::kF64) return false;
  }
  return true;
}

// A model that is run at several places.
class Runner {
 public:
  static Result<Runner> create(const ir::Graph& graph) {
    Runner r;
    PYC_ASSIGN(r.model_, session::compile(graph, plain_reference()));
    return r;
  }
  Result<std::vector<Bytes>> run(std::vector<Bytes> inputs) const {
    std::vector<runtime::TensorView> in;
    std::vector<runtime::TensorView> out;
    for (Bytes& b : inputs) b.resize(b.size() + 1);  // never empty, so never null
    for (size_t i = 0; i < inputs.size(); ++i) {
      const runtime::IoSpec& spec = model_->inputs()[i];
      in.push_back({inputs[i].data(), spec.dtype, spec.shape, spec.bytes});
    }
    std::vector<Bytes> results;
    for (const runtime::IoSpec& spec : model_->outputs()) {
      results.emplace_back(static_cast<size_t>(spec.bytes) + 1);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const runtime::IoSpec& spec = model_->outputs()[i];
      out.push_back({results[i].data(), spec.dtype, spec.shape, spec.bytes});
    }
    PYC_TRY(model_->run(in, out));
    for (Bytes& b : results) b.resize(b.size() - 1);
    return results;
  }

 private:
  std::shared_ptr<runtime::Model> model_;
};

struct Slope {
  double along = 0.0;  // by the gradient
  double size = 0.0;   // of its terms
  double loss = 0.0;
};

class Check {
 public:
  Check(const LossGraph& loss, uint64_t seed) : loss_(loss) {
    for (ValueId v : loss.wanted) {
      Reals direction(static_cast<size_t>(loss.graph.type(v).elements()));
      for (size_t i = 0; i < direction.size(); ++i) direction[i] = unit(seed, 77 + v, i);
      directions_.push_back(direction);
    }
  }

  Verdict run() {
    auto made = slope();
    if (!made.ok()) return {Agreement::kDiffers, made.status().to_string()};
    const Slope s = *made;
    if (!std::isfinite(s.loss) || !std::isfinite(s.along) || s.size > 1e7 ||
        std::fabs(s.loss) > 1e6) {
      return finite_loss_with_bad_gradient(s);
    }
    if (s.size == 0.0) return {Agreement::kUnfit, ""};
    auto runner = Runner::create(loss_.graph);
    if (!runner.ok()) return {Agreement::kDiffers, runner.status().to_string()};
    std::string tried;
    // The last one is for sums over many sorted values, neighbours of which change places.
    for (double h : {1e-5, 1e-6, 1e-4, 1e-7, 1e-8}) {
      const auto up = value(*runner, h);
      const auto down = value(*runner, -h);
      if (!up.ok() || !down.ok()) return {Agreement::kUnfit, ""};
      const double difference = (*up - *down) / (2 * h);
      const double allowed =
          1e-6 * (s.size + std::fabs(difference)) + 1e-14 * (std::fabs(s.loss) + 1.0) / h;
      if (std::fabs(difference - s.along) <= allowed) return {Agreement::kAgrees, ""};
      tried += fmt::format(" {:.12g} (h {:g})", difference, h);
    }
    return {Agreement::kDiffers, fmt::format("gradient {:.12g}, differences{}", s.along, tried)};
  }

 private:
  // A gradient that is not a number is a fault where everything on the way to the loss is finite,
  // slopes included.
  Verdict finite_loss_with_bad_gradient(const Slope& s) const {
    if (std::isfinite(s.loss) && std::isnan(s.along) && std::fabs(s.loss) < 1e6 && all_finite()) {
      return {Agreement::kDiffers, fmt::format("loss {} but gradient {}", s.loss, s.along)};
    }
    return {Agreement::kUnfit, ""};
  }

  bool all_finite() const {
    ir::Graph graph = loss_.graph;
    std::vector<bool> steep_at_zero{false};  // by output
    for (const ir::Node& node : graph.nodes) {
      for (ValueId v : node.outputs) {
        if (graph.type(v).dtype != DType::kF64) continue;
        graph.outputs.push_back(v);
        steep_at_zero.push_back(is_steep_at_zero(node.op->name));
      }
    }
    const auto runner = Runner::create(graph);
    if (!runner.ok()) return true;
    const auto found = runner->run(loss_.inputs);
    if (!found.ok()) return true;
    for (size_t o = 0; o < found->size(); ++o) {
      for (double x : reals_of((*found)[o])) {
        if (!std::isfinite(x) || (steep_at_zero[o] && x == 0.0)) return false;
      }
    }
    return true;
  }

  Result<Slope> slope() {
    PYC_ASSIGN(const DrawnGraph gradients, gradient_graph(loss_));
    PYC_ASSIGN(const Runner runner, Runner::create(gradients.graph));
    PYC_ASSIGN(const std::vector<Bytes> found, runner.run(loss_.inputs));
    Slope s;
    s.loss = reals_of(found[0])[0];
    for (size_t w = 0; w < loss_.wanted.size(); ++w) {
      const Reals gradient = reals_of(found[w + 1]);
      for (size_t i = 0; i < gradient.size(); ++i) {
        s.along += gradient[i] * directions_[w][i];
        s.size += std::fabs(gradient[i] * directions_[w][i]);
      }
    }
    return s;
  }

  Result<double> value(const Runner& runner, double h) const {
    std::vector<Bytes> inputs = loss_.inputs;
    for (size_t w = 0; w < loss_.wanted.size(); ++w) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (loss_.graph.inputs[i] != loss_.wanted[w]) continue;
        Reals moved = reals_of(inputs[i]);
        for (size_t k = 0; k < moved.size(); ++k) moved[k] += h * directions_[w][k];
        inputs[i] = bytes_of(moved);
      }
    }
    PYC_ASSIGN(const std::vector<Bytes> found, runner.run(std::move(inputs)));
    return reals_of(found[0])[0];
  }

  const LossGraph& loss_;
  std::vector<Reals> directions_;
};

// The sum of all elements of `v` times fixed weights.
Result<ValueId> weighted_sum(ir::GraphBuilder& builder, ValueId v, uint64_t seed) {
  const ir::TensorType type = builder.type(v);
  PYC_ASSIGN(const ValueId weights,
             builder.constant(type, ir::random_data(type, seed + 3 * v, -1.0, 1.0)));
  PYC_ASSIGN(const ValueId product, builder.op("mul", {v, weights}));
  return builder.op("reduce_sum", {product}, {{"keepdims", false}});
}

Result<LossGraph> joined(ir::Graph graph, std::vector<ValueId> parts, const LossGraph& like,
                         uint64_t seed) {
  graph.outputs.clear();
  ir::GraphBuilder builder(ops::all_ops(), std::move(graph));
  ValueId total = ir::kNoId;
  for (ValueId v : parts) {
    PYC_ASSIGN(const ValueId part, weighted_sum(builder, v, seed));
    if (total == ir::kNoId) {
      total = part;
    } else {
      PYC_ASSIGN(total, builder.op("add", {total, part}));
    }
  }
  PYC_TRY(builder.output(total));
  LossGraph result = like;
  result.loss = total;
  result.graph = std::move(builder).take();
  return result;
}

}  // namespace

std::optional<LossGraph> with_loss(const DrawnGraph& drawn, uint64_t seed) {
  if (!is_plain(drawn.graph)) return {};
  LossGraph result;
  result.inputs = drawn.inputs;
  for (size_t i = 0; i < drawn.graph.inputs.size(); ++i) {
    const ValueId v = drawn.graph.inputs[i];
    if (drawn.graph.type(v).dtype != DType::kF64) continue;
    result.wanted.push_back(v);
    Reals values = reals_of(drawn.inputs[i]);
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] *= 1.0 + 1e-2 * unit(seed, v, k);
    }
    result.inputs[i] = bytes_of(values);
  }
  std::vector<ValueId> parts;
  for (ValueId v : drawn.graph.outputs) {
    if (drawn.graph.type(v).dtype == DType::kF64) parts.push_back(v);
  }
  if (result.wanted.empty() || parts.empty()) return {};
  auto made = joined(drawn.graph, parts, result, seed);
  if (!made.ok()) return {};
  return std::move(*made);
}

Result<DrawnGraph> gradient_graph(const LossGraph& loss) {
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(loss.graph));
  PYC_ASSIGN(const ir::VerifiedGraph made,
             autograd::differentiate(verified, loss.loss, loss.wanted, ops::all_ops(),
                                     {.allow_unused = true}));
  return DrawnGraph{*made, loss.inputs, {}};
}

Verdict check_gradient(const LossGraph& loss, uint64_t seed) { return Check(loss, seed).run(); }

Verdict check_second(const LossGraph& loss, uint64_t seed) {
  auto first = gradient_graph(loss);
  if (!first.ok()) return {Agreement::kDiffers, first.status().to_string()};
  std::vector<ValueId> parts(first->graph.outputs.begin() + 1, first->graph.outputs.end());
  auto made = joined(first->graph, parts, loss, seed + 1);
  if (!made.ok()) return {Agreement::kDiffers, made.status().to_string()};
  return check_gradient(*made, seed);
}

}  // namespace pyc::test

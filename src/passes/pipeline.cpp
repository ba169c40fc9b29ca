#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "eval/node_evaluator.h"
#include "ir/check.h"
#include "ir/rules.h"

namespace pyc::passes {
namespace {

// Enough for what one rewrite opens up for another; a bound, so that no graph can take long.
constexpr int kMaxRounds = 4;

constexpr Pass kPasses[] = {
    {.name = "fold_batch_norm",
     .summary = "Batch norms after convolutions go into weights and bias.",
     .value_changing = true,
     .run = fold_batch_norm},
    {.name = "raise_attention",
     .summary = "Softmax between two products becomes attention.",
     .value_changing = true,
     .run = raise_attention},
    {.name = "integerize_qdq",
     .summary = "Products of dequantized integers become integer products.",
     .value_changing = true,
     .run = integerize_qdq},
    {.name = "narrow_products",
     .summary = "Products of f32 read operands of the precision asked for.",
     .value_changing = true,
     .run = narrow_products},
    {.name = "widen_half_chains",
     .summary = "Chains of half-precision ops are rounded once, at their end.",
     .value_changing = true,
     .run = widen_half_chains},
    {.name = "decompose",
     .summary = "Composite ops become the ops they are defined by.",
     .required = true,
     .run = decompose},
    {.name = "canonicalize",
     .summary = "One form for attributes, operand order and data movement.",
     .repeated = true,
     .run = canonicalize},
    {.name = "simplify",
     .summary = "Algebra that is exact on every bit.",
     .repeated = true,
     .run = simplify},
    {.name = "fold_constants",
     .summary = "What depends on constants alone is computed now.",
     .repeated = true,
     .run = fold_constants},
    {.name = "move_transposes",
     .summary = "Transposes move through elementwise ops and cancel.",
     .repeated = true,
     .run = move_transposes},
    {.name = "cse",
     .summary = "Equal nodes and equal constants become one.",
     .repeated = true,
     .run = cse},
    {.name = "join_products",
     .summary = "Products that share an input before attention become one, and roundings after it "
                "part of it.",
     .run = join_products},
    {.name = "isolate_outputs",
     .summary = "Every output becomes a node result of its own.",
     .required = true,
     .run = isolate_outputs},
    {.name = "eliminate_dead",
     .summary = "What no output depends on is removed.",
     .run = eliminate_dead},
};

// Runs passes on one graph, one after the other.
class Runner {
 public:
  Runner(ir::VerifiedGraph graph, const ir::OpSet& ops, const PassOptions& options,
         DecisionLog* log)
      : given_(std::move(graph)), graph_(*given_), ops_(ops), options_(options), log_(log) {}

  // Whether the pass changed the graph.
  Result<bool> run(const Pass& pass, int round) {
    if (is_off(pass)) {
      if (round == 1) decide(pass, "left_out", "caller", "");
      return false;
    }
    if (round > 1 && !options_.observer && has_left_alone(pass)) return false;
    const int64_t start = now_ns();
    const size_t before = graph_.nodes.size();
    DecisionLog details;
    Rewrites rewrites;
    auto changed = pass.run(graph_, context(details, rewrites));
    if (!changed.ok()) return failed(pass, std::move(changed).status());
    if (*changed) {
      Status broken =
          options_.observer ? ir::check_graph(graph_, &given_) : ir::check_structure(graph_);
      if (!broken.ok()) return failed(pass, std::move(broken));
      ++changes_;
      changed_by_.push_back(&pass);
    } else {
      left_alone_.insert_or_assign(&pass, changes_);
    }
    if (round == 1 || *changed) {
      decide(pass, *changed ? "changed" : "unchanged",
             pass.value_changing ? "value_changing" : "bit_preserving",
             fmt::format("{} -> {} nodes", before, graph_.nodes.size()));
    }
    for (Decision& d : details) add_once(std::move(d));
    if (options_.observer) {
      options_.observer({.pass = pass,
                         .round = round,
                         .changed = *changed,
                         .ns = now_ns() - start,
                         .nodes_before = before,
                         .rewrites = rewrites,
                         .after = graph_});
    }
    return *changed;
  }

  // Verified as a whole once more: passes that say they changed nothing had it in their hands too.
  Result<ir::VerifiedGraph> take() {
    if (changes_ == 0) return std::move(given_);
    auto verified = ir::verify_graph(std::move(graph_), &given_);
    if (verified.ok()) return verified;
    return named(std::move(verified).status());
  }

 private:
  PassContext context(DecisionLog& details, Rewrites& rewrites) {
    return {.ops = ops_,
            .log = details,
            .rewrites = rewrites,
            .evaluators = options_.evaluators == nullptr ? own_evaluators_ : *options_.evaluators,
            .precision = options_.precision,
            .join_products = options_.join_products};
  }

  // What is wrong with the graph, with the pass that made it so: those that changed it run again,
  // and all of what each leaves is checked.
  Status named(Status broken) {
    graph_ = *given_;
    for (const Pass* pass : changed_by_) {
      DecisionLog details;
      Rewrites rewrites;
      auto changed = pass->run(graph_, context(details, rewrites));
      if (!changed.ok()) return failed(*pass, std::move(changed).status());
      Status status = ir::check_graph(graph_, &given_);
      if (!status.ok()) return failed(*pass, std::move(status));
    }
    return broken;
  }

  bool is_off(const Pass& pass) const {
    return std::find(options_.off.begin(), options_.off.end(), pass.name) != options_.off.end();
  }

  // Whether the pass had nothing to do on this very graph: it would say the same again.
  bool has_left_alone(const Pass& pass) const {
    const auto left = left_alone_.find(&pass);
    return left != left_alone_.end() && left->second == changes_;
  }

  // What a repeated pass finds again in the next round is not said again.
  void add_once(Decision decision) {
    if (said_.insert(decision.to_string()).second) log_->push_back(std::move(decision));
  }

  static Status failed(const Pass& pass, Status status) {
    return std::move(status).with_context(fmt::format("pass {}", pass.name));
  }

  void decide(const Pass& pass, std::string chosen, std::string reason, std::string detail) {
    log_->push_back({.what = fmt::format("pass:{}", pass.name),
                     .chosen = std::move(chosen),
                     .reason = std::move(reason),
                     .detail = std::move(detail),
                     .alternatives = {}});
  }

  ir::VerifiedGraph given_;
  ir::Graph graph_;  // as the passes so far left it
  const ir::OpSet& ops_;
  const PassOptions& options_;
  DecisionLog* log_;
  std::set<std::string> said_;
  int changes_ = 0;                      // of the graph so far
  std::vector<const Pass*> changed_by_;  // a pass for each of them
  eval::Evaluators own_evaluators_;
  std::map<const Pass*, int> left_alone_;  // after how many changes the pass had nothing to do
};

// Passes run in the order of their turns; repeated neighbours share one.
size_t turn_of(const Pass& pass) {
  size_t turn = 0;
  for (const Pass* p = kPasses; p != &pass; ++p) {
    if (!p->repeated || !(p + 1)->repeated) ++turn;
  }
  return turn;
}

}  // namespace

void PassContext::decide(std::string_view pass, const std::string& subject, std::string chosen,
                         std::string reason, std::string detail) const {
  log.push_back({.what = fmt::format("{}:%{}", pass, subject),
                 .chosen = std::move(chosen),
                 .reason = std::move(reason),
                 .detail = std::move(detail),
                 .alternatives = {}});
}

void PassContext::count(std::string_view rule) const {
  const auto found = rewrites.find(rule);
  if (found != rewrites.end()) {
    ++found->second;
  } else {
    rewrites.emplace(rule, 1);
  }
}

std::shared_ptr<eval::Evaluators> make_evaluators() { return std::make_shared<eval::Evaluators>(); }

std::span<const Pass> pipeline() { return kPasses; }

Result<const Pass*> find_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
    names.push_back(pass.name);
  }
  return Status(Code::kUnknownOption, fmt::format("there is no pass '{}'{}", name,
                                                  ir::did_you_mean(ir::closest_name(name, names))));
}

Result<ir::VerifiedGraph> run_pipeline(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                       const PassOptions& options, DecisionLog* log) {
  for (const std::string& name : options.off) {
    PYC_ASSIGN(const Pass* pass, find_pass(name));
    if (!pass->required) continue;
    return Status(Code::kUnknownOption, fmt::format("pass '{}' cannot be left out", name));
  }
  Runner runner(std::move(graph), ops, options, log);
  const std::span<const Pass> all = pipeline();
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].repeated == all[begin].repeated) ++end;
    bool again = true;
    for (int round = 1; again && round <= (all[begin].repeated ? kMaxRounds : 1); ++round) {
      again = false;
      for (const Pass& pass : all.subspan(begin, end - begin)) {
        PYC_ASSIGN(const bool changed, runner.run(pass, round));
        again |= changed;
      }
    }
  }
  return runner.take();
}

Result<ir::VerifiedGraph> run_passes(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                     std::span<const std::string> names, const PassOptions& options,
                                     DecisionLog* log) {
  std::vector<const Pass*> passes;
  for (const std::string& name : names) {
    PYC_ASSIGN(const Pass* pass, find_pass(name));
    if (!passes.empty() && turn_of(*pass) < turn_of(*passes.back())) {
      return Status(Code::kUnknownOption,
                    fmt::format("pass '{}' runs before '{}': their order is fixed", name,
                                passes.back()->name));
    }
    passes.push_back(pass);
  }
  Runner runner(std::move(graph), ops, options, log);
  for (const Pass* pass : passes) {
    const auto changed = runner.run(*pass, 1);
    if (!changed.ok()) return changed.status();
  }
  return runner.take();
}

}  // namespace pyc::passes

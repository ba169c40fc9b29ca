#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

struct Op {
  pyc_op_info info;
  std::vector<pyc_attribute_info> attributes;
};

Op read_op(size_t index) {
  Op out{sized<pyc_op_info>(), {}};
  check([&](pyc_error** e) { return pyc_op(index, &out.info, e); });
  for (size_t i = 0; i < out.info.attribute_count; ++i) {
    out.attributes.push_back(sized<pyc_attribute_info>());
    check([&](pyc_error** e) { return pyc_op_attribute(index, i, &out.attributes.back(), e); });
  }
  return out;
}

std::string arity_text(const pyc_op_info& info) {
  if (info.max_inputs < 0) return fmt::format("{} or more", info.min_inputs);
  if (info.min_inputs == info.max_inputs) return fmt::format("{}", info.min_inputs);
  return fmt::format("{} to {}", info.min_inputs, info.max_inputs);
}

std::string attribute_text(const pyc_attribute_info& a) {
  return a.fallback == nullptr ? fmt::format("{}: {}", a.name, a.kind)
                               : fmt::format("{}: {} = {}", a.name, a.kind, a.fallback);
}

Json op_json(const Op& op) {
  Json out = {{"name", op.info.name},
              {"summary", op.info.summary},
              {"min_inputs", op.info.min_inputs},
              {"max_inputs", op.info.max_inputs < 0 ? Json(nullptr) : Json(op.info.max_inputs)},
              {"outputs", op.info.outputs},
              {"composite", op.info.composite != 0},
              {"no_gradient", op.info.no_gradient == nullptr ? Json(nullptr) : op.info.no_gradient},
              {"attributes", Json::array()}};
  for (const pyc_attribute_info& a : op.attributes) {
    out["attributes"].push_back({{"name", a.name},
                                 {"kind", a.kind},
                                 {"default", a.fallback == nullptr ? Json(nullptr) : a.fallback}});
  }
  return out;
}

std::string remarks(const pyc_op_info& info) {
  std::string text = info.composite != 0 ? " *Composite.*" : "";
  if (info.no_gradient != nullptr) text += fmt::format(" *No gradient: {}.*", info.no_gradient);
  return text;
}

void print_markdown(const std::vector<Op>& ops) {
  say("# Ops\n\n"
      "Written by `pyc ops --markdown` from the table of ops; a test keeps this page equal to it. "
      "An attribute with `=` may be\n"
      "left out. *Composite* ops stand for a graph of others. An op can be differentiated "
      "([training](training.md)) unless it\n"
      "says why not. Which dtypes each device computes: [capabilities](capabilities.md).\n\n"
      "| op | inputs | outputs | attributes | meaning |\n|---|---|---|---|---|\n");
  for (const Op& op : ops) {
    std::string attributes;
    for (const pyc_attribute_info& a : op.attributes) {
      attributes += fmt::format("{}`{}`", attributes.empty() ? "" : ", ", attribute_text(a));
    }
    say("| `{}` | {} | {} | {} | {}{} |\n", op.info.name, arity_text(op.info), op.info.outputs,
        attributes, op.info.summary, remarks(op.info));
  }
}

class Ops final : public Command {
 public:
  std::string name() const override { return "ops"; }
  std::string summary() const override { return "List the ops, or show one of them"; }
  std::string examples() const override {
    return "  pyc ops\n  pyc ops --name conv2d\n  pyc ops --markdown > docs/ops.md\n";
  }
  void declare(Options& options) override {
    options.text("--name", op_, "Show only this op");
    options.flag("--markdown", markdown_, "Print the page docs/ops.md");
  }

  int run() override {
    std::vector<Op> ops;
    if (op_.empty()) {
      for (size_t i = 0; i < pyc_op_count(); ++i) ops.push_back(read_op(i));
    } else {
      size_t index = 0;
      check([&](pyc_error** e) { return pyc_op_find(op_.c_str(), &index, e); });
      ops.push_back(read_op(index));
    }
    if (json) {
      Json report = Json::array();
      for (const Op& op : ops) report.push_back(op_json(op));
      print(report);
    } else if (markdown_) {
      print_markdown(ops);
    } else {
      for (const Op& op : ops) {
        say("{} ({} inputs): {}\n", op.info.name, arity_text(op.info), op.info.summary);
        for (const auto& a : op.attributes) say("    {}\n", attribute_text(a));
      }
    }
    return kExitOk;
  }

 private:
  std::string op_;
  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ops() { return std::make_unique<Ops>(); }

}  // namespace pyc::tool

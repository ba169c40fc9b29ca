// `pyc options`: the compile options, as the library lists them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.h"
#include "report.h"

namespace pyc::tool {
namespace {

std::string accepted(const pyc_option_info& o) {
  if (o.kind == PYC_OPTION_SWITCH) return "on, off";
  if (o.word_count > 0) return fmt::format("{}", fmt::join(o.words, o.words + o.word_count, ", "));
  if (o.kind == PYC_OPTION_INTEGER) {
    return o.hi == INT64_MAX ? fmt::format("{} or more", o.lo)
                             : fmt::format("{} to {}", o.lo, o.hi);
  }
  if (o.kind == PYC_OPTION_TEXT) return "text";
  return *o.form == '\0' ? "names" : o.form;
}

std::string flags_of(const pyc_option_info& o) {
  if (o.offer == PYC_OPTION_LIBRARY) return "none";
  return fmt::format("`{}`{}", flag_name(o),
                     o.offer == PYC_OPTION_AHEAD ? " of compile and dump" : "");
}

const char* effect_of(const pyc_option_info& o) {
  if (o.effect == PYC_OPTION_PROGRAM) return "yes";
  return o.effect == PYC_OPTION_LOAD ? "yes, free for a `.pycm`" : "no";
}

// The value of a switch that its flag gives, and that its help speaks of.
std::string flag_value(const pyc_option_info& o) {
  return o.initial == std::string("on") ? "off" : "on";
}

void print_markdown() {
  fmt::print(
      "# Compile options\n\n"
      "`pyc_compile_options_set(options, name, value, …)` and `CompileOptions::set(name, value)` "
      "take the names, commands that compile\n"
      "the flags. *key*: the option is part of what caches and artefacts go by; one that is not "
      "free was decided when a `.pycm` was\n"
      "compiled. *bits*: results may change with it. The decision log has the values of a compile "
      "under `options`. Written by\n"
      "`pyc options --markdown` from the table in `src/driver/compile_options.inc`; a test keeps "
      "this page equal to it.\n\n"
      "| name | flag | accepts | default | key | bits | what it does |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const pyc_option_info& o : compile_options()) {
    const std::string initial = o.initial;
    fmt::print("| `{}` | {} | {} | {} | {} | {} | {}{} |\n", o.name, flags_of(o), accepted(o),
               initial.empty() ? "" : fmt::format("`{}`", initial), effect_of(o),
               o.other_bits != 0 ? "may change" : "the same",
               o.kind == PYC_OPTION_SWITCH ? "`" + flag_value(o) + "`: " : "", o.help);
  }
}

class OptionsCommand final : public Command {
 public:
  std::string name() const override { return "options"; }
  std::string summary() const override { return "List the compile options"; }
  std::string examples() const override {
    return "  pyc options\n  pyc options --markdown > docs/options.md\n";
  }
  void declare(Options& options) override {
    options.flag("--markdown", markdown_, "Print the page docs/options.md");
  }

  int run() override {
    if (markdown_ && !json) {
      print_markdown();
      return kExitOk;
    }
    Json report = Json::array();
    for (const pyc_option_info& o : compile_options()) {
      report.push_back({{"name", o.name},
                        {"flag", o.offer == PYC_OPTION_LIBRARY ? "" : flag_name(o)},
                        {"accepts", accepted(o)},
                        {"default", o.initial},
                        {"key", o.effect != PYC_OPTION_RUN},
                        {"other_bits", o.other_bits != 0},
                        {"help", o.help}});
      if (!json) fmt::print("{:<14} {}; {} ({})\n", o.name, accepted(o), o.help, o.initial);
    }
    if (json) print(report);
    return kExitOk;
  }

 private:
  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_options() { return std::make_unique<OptionsCommand>(); }

}  // namespace pyc::tool

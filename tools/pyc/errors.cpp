#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

void print_markdown() {
  say("# Error codes\n\n"
      "Every refusal has one of these codes and a message that names what was expected and found. "
      "The last column is the exit\n"
      "code of the program. Written by `pyc errors --markdown` from the table of codes; a test "
      "keeps this page equal to it, and\n"
      "`tests/faults/codes_test.cpp` provokes each of them.\n\n"
      "| code | number | cause | cure | exit |\n|---|---|---|---|---|\n");
  for (pyc_status s = PYC_STATUS_OK; s <= PYC_STATUS_INTERNAL; ++s) {
    say("| `{}` | {} | {} | {} | {} |\n", pyc_status_name(s), s, pyc_status_cause(s),
        pyc_status_cure(s), exit_code(s));
  }
}

class Errors final : public Command {
 public:
  std::string name() const override { return "errors"; }
  std::string summary() const override { return "List the error codes: cause, cure, exit code"; }
  std::string examples() const override {
    return "  pyc errors\n  pyc errors --markdown > docs/errors.md\n";
  }
  void declare(Options& options) override {
    options.flag("--markdown", markdown_, "Print the page docs/errors.md");
  }

  int run() override {
    if (markdown_ && !json) {
      print_markdown();
      return kExitOk;
    }
    Json report = Json::array();
    for (pyc_status s = PYC_STATUS_OK; s <= PYC_STATUS_INTERNAL; ++s) {
      report.push_back({{"code", pyc_status_name(s)},
                        {"number", s},
                        {"cause", pyc_status_cause(s)},
                        {"cure", pyc_status_cure(s)},
                        {"exit", exit_code(s)}});
      if (json) continue;
      say("{} (exit code {}): {}\n", pyc_status_name(s), exit_code(s), pyc_status_cause(s));
      if (s != PYC_STATUS_OK) say("    {}\n", pyc_status_cure(s));
    }
    if (json) print(report);
    return kExitOk;
  }

 private:
  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_errors() { return std::make_unique<Errors>(); }

}  // namespace pyc::tool

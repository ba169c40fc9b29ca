// `pyc replay`: the decisions of the runtime controller again, from the readings in a log.

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

Json read_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(PYC_STATUS_NOT_FOUND, fmt::format("'{}' cannot be read", path), "");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::optional<Json> document = Json::parse(text);
  const bool nested = document && document->contains("log");
  if (!document || !(nested ? (*document)["log"] : *document).contains("decisions")) {
    throw Error(
        PYC_STATUS_PARSE_ERROR,
        fmt::format("'{}': expected a decision log as run and explain print with --json", path),
        "");
  }
  return nested ? (*document)["log"] : *document;
}

// "" where there is no such text.
std::string text_of(const Json& decision, std::string_view name) {
  if (!decision.contains(name)) return "";
  const auto* text = std::get_if<std::string>(&decision[name].value());
  return text == nullptr ? "" : *text;
}

class Replay final : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "Take the decisions of the runtime controller in a log again";
  }
  std::string examples() const override {
    return "  pyc replay log.json\n"
           "  pyc run tests/models/mlp.ir --rails on --repeat 1000 --json > log.json\n";
  }
  void declare(Options& options) override {
    options.positional("LOG", log_, "A decision log, as run and explain print it with --json");
  }

  int run() override {
    const Json log = read_log(log_);
    int64_t count = 0;
    for (const Json& d : log["decisions"].items()) {
      const std::string what = text_of(d, "what");
      const std::string chosen = text_of(d, "chosen");
      const std::string reason = text_of(d, "reason");
      const std::string detail = text_of(d, "detail");
      auto decision = sized<pyc_decision>();
      decision.what = what.c_str();
      decision.chosen = chosen.c_str();
      decision.reason = reason.c_str();
      decision.detail = detail.c_str();
      check([&](pyc_error** e) { return pyc_replay_decision(&decision, e); });
      count += what == "rails:window" ? 1 : 0;
    }
    if (json) {
      print({{"decisions", count}, {"equal", true}});
    } else {
      say("{} decisions of the controller, all the same again\n", count);
    }
    return kExitOk;
  }

 private:
  std::string log_;
};

}  // namespace

std::unique_ptr<Command> make_replay() { return std::make_unique<Replay>(); }

}  // namespace pyc::tool

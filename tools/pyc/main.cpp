#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "command.h"
#include "say.h"

namespace pyc::tool {
namespace {

using Maker = std::unique_ptr<Command> (*)();
constexpr Maker kCommands[] = {
    make_run,     make_train,        make_bench,       make_compile,    make_tune,
    make_explain, make_report,       make_what_if,     make_inspect,    make_compare,
    make_dump,    make_opt,          make_export,      make_reduce,     make_ops,
    make_options, make_errors,       make_reasons,     make_replay,     make_doctor,
    make_cache,   make_capabilities, make_conformance, make_completion, make_man};

void print_overview() {
  say("PyC {}: compiles and runs machine-learning models\n\nUsage: pyc COMMAND …\n\n",
      pyc_version());
  for (const auto& command : all_commands()) {
    say("  {:<13} {}\n", command->name(), command->summary());
  }
  say("\nExamples:\n"
      "  pyc run tests/models/mlp.ir\n"
      "  pyc bench tests/models/mlp.ir --threads 2\n"
      "  pyc doctor\n\n"
      "`pyc COMMAND --help` shows a command's options; --json makes any command print JSON.\n");
}

std::unique_ptr<Command> find_command(const std::string& name) {
  std::vector<std::string> names;
  for (auto& command : all_commands()) {
    if (command->name() == name) return std::move(command);
    names.push_back(command->name());
  }
  const std::string known = fmt::format("; known are {}", fmt::join(names, ", "));
  names.insert(names.end(), {"--help", "--version"});
  const std::string near = did_you_mean(name, names);
  throw Error(PYC_STATUS_UNKNOWN_OPTION,
              fmt::format("there is no command '{}'{}", name, near.empty() ? known : near), "");
}

Options options_of(Command& command) {
  Options options(command.name(), command.summary(), command.examples());
  command.declare(options);
  options.flag("--json", command.json, "Print JSON");
  options.flag("--quiet", command.quiet, "Show no progress");
  return options;
}

int run_command(std::vector<std::string> arguments) {
  if (arguments.size() > 1 && arguments[0] == "help") arguments = {arguments[1], "--help"};
  const std::string first = arguments.empty() ? "--help" : arguments[0];
  if (first == "--help" || first == "-h" || first == "help") {
    print_overview();
    return kExitOk;
  }
  if (first == "--version" || first == "-V") {
    say("pyc {}\nabi {}\n{}", pyc_version(), pyc_abi_version(), Lines{pyc_build_facts()});
    return kExitOk;
  }
  const auto command = find_command(first);
  Options options = options_of(*command);
  arguments.erase(arguments.begin());
  return options.parse(std::move(arguments)) ? command->run() : kExitOk;
}

int report(const Error& e, bool json) {
  if (json) {
    const Json error = {{"code", pyc_status_name(e.code())},
                        {"message", e.message()},
                        {"node", e.node()},
                        {"cure", e.cure()},
                        {"exit", exit_code(e.code())}};
    say("{}\n", Lines{Json{{"error", error}}.text(2)});
  } else {
    say(stderr, "error: {}\n", e.what());
    if (*e.cure() != '\0') say(stderr, "cure:  {}\n", e.cure());
  }
  return exit_code(e.code());
}

}  // namespace

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const Maker make : kCommands) commands.push_back(make());
  return commands;
}

std::vector<OptionText> declared_options(Command& command) { return options_of(command).texts(); }

}  // namespace pyc::tool

int main(int argc, char** argv) {
  using namespace pyc::tool;
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    return run_command(arguments);
  } catch (const pyc::Error& e) {
    return report(e, json);
  } catch (const std::exception& e) {
    return report(pyc::Error(PYC_STATUS_INTERNAL, e.what(), ""), json);
  }
}

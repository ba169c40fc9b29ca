// `pyc completion` and `pyc man`: what shells and readers of manuals see of the program, written
// from what the commands declare.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Between single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::vector<std::string> option_names(const std::vector<OptionText>& options) {
  std::vector<std::string> names;
  for (const OptionText& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& command : all_commands()) names.push_back(command->name());
  return names;
}

std::string bash_text() {
  std::string cases;
  for (const auto& command : all_commands()) {
    const std::vector<OptionText> options = declared_options(*command);
    cases += fmt::format("    {})\n      options={}\n", command->name(),
                         shell_quoted(fmt::format("{}", fmt::join(option_names(options), " "))));
    cases += "      case $before in\n";
    for (const OptionText& option : options) {
      if (option.words.empty()) continue;
      cases += fmt::format("        {}) words={} ;;\n", fmt::join(option.names, "|"),
                           shell_quoted(fmt::format("{}", fmt::join(option.words, " "))));
    }
    cases += "      esac ;;\n";
  }
  return fmt::format(
      "# Completions of pyc for bash: source <(pyc completion bash)\n"
      "_pyc() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= "
      "words=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  elif [[ $word == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _pyc pyc\n",
      shell_quoted(fmt::format("{}", fmt::join(command_names(), " "))), cases);
}

// A description in one of zsh's specifications: these end it.
std::string zsh_description(const std::string& text) {
  return replaced(replaced(replaced(text, "[", "\\["), "]", "\\]"), ":", "\\:");
}

std::string zsh_text() {
  std::string commands;
  std::string cases;
  for (const auto& command : all_commands()) {
    commands += "    " +
                shell_quoted(command->name() + ":" + replaced(command->summary(), ":", "\\:")) +
                "\n";
    cases += fmt::format("    {}) _arguments", command->name());
    for (const OptionText& option : declared_options(*command)) {
      for (const std::string& name : option.names) {
        std::string spec =
            (option.repeated ? "*" : "") + name + "[" + zsh_description(option.help) + "]";
        if (option.takes_value) {
          spec +=
              ":value:" +
              (option.words.empty() ? "_files" : fmt::format("({})", fmt::join(option.words, " ")));
        }
        cases += " \\\n      " + shell_quoted(spec);
      }
    }
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return fmt::format(
      "#compdef pyc\n"
      "# Completions of pyc for zsh: source <(pyc completion zsh)\n"
      "_pyc() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n{}  esac\n"
      "}}\n"
      "# As a file of completions it is the function's first call.\n"
      "if [[ $funcstack[1] == _pyc ]]; then _pyc \"$@\"; else compdef _pyc pyc; fi\n",
      commands, cases);
}

std::string fish_text() {
  std::string out = "# Completions of pyc for fish: pyc completion fish | source\n";
  const auto fish = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  for (const auto& command : all_commands()) {
    out += fmt::format("complete -c pyc -n __fish_use_subcommand -f -a {} -d {}\n", command->name(),
                       fish(command->summary()));
  }
  for (const auto& command : all_commands()) {
    for (const OptionText& option : declared_options(*command)) {
      out += fmt::format("complete -c pyc -n '__fish_seen_subcommand_from {}'", command->name());
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.words.empty()) {
        out += fmt::format(" -x -a {}", fish(fmt::format("{}", fmt::join(option.words, " "))));
      } else if (option.takes_value) {
        out += " -r";
      }
      out += fmt::format(" -d {}\n", fish(option.help));
    }
  }
  return out;
}

// All of the document, or its text alone.
void print_text(const Json& document, bool json) {
  if (json) {
    print(document);
  } else {
    say("{}", Lines{document["text"].string()});
  }
}

class Completion final : public Command {
 public:
  std::string name() const override { return "completion"; }
  std::string summary() const override { return "Print completions for a shell"; }
  std::string examples() const override {
    return "  pyc completion bash > ~/.local/share/bash-completion/completions/pyc\n"
           "  source <(pyc completion zsh)\n"
           "  pyc completion fish | source\n";
  }
  void declare(Options& options) override {
    options.positional("shell", shell_, "bash, zsh or fish");
  }

  int run() override {
    const std::vector<std::pair<std::string, std::string (*)()>> shells = {
        {"bash", bash_text}, {"zsh", zsh_text}, {"fish", fish_text}};
    std::vector<std::string> names;
    for (const auto& [name, text] : shells) {
      if (name == shell_) {
        print_text({{"shell", shell_}, {"text", text()}}, json);
        return kExitOk;
      }
      names.push_back(name);
    }
    throw Error(PYC_STATUS_UNKNOWN_OPTION,
                fmt::format("there are no completions for '{}'; there are for {}{}", shell_,
                            fmt::join(names, ", "), did_you_mean(shell_, names)),
                "");
  }

 private:
  std::string shell_;
};

// Text of a manual: a backslash begins a command, and so do . and ' at the start of a line.
std::string roff(const std::string& text) {
  std::string out = replaced(replaced(replaced(text, "…", "..."), "\\", "\\e"), "-", "\\-");
  for (const char* start : {".", "'"}) {
    if (out.starts_with(start)) out.insert(0, "\\&");
    out = replaced(out, std::string("\n") + start, std::string("\n\\&") + start);
  }
  return out;
}

std::string manual() {
  std::string out = fmt::format(
      ".TH PYC 1 \"\" \"PyC {}\" \"User Commands\"\n"
      ".SH NAME\npyc \\- compiles and runs machine\\-learning models\n"
      ".SH SYNOPSIS\n.B pyc\n.I COMMAND\n[\\fIARGUMENT\\fR]...\n"
      ".SH COMMANDS\n",
      pyc_version());
  for (const auto& command : all_commands()) {
    out += fmt::format(".SS pyc {}\n{}.\n", roff(command->name()), roff(command->summary()));
    for (const OptionText& option : declared_options(*command)) {
      out += fmt::format(".TP\n\\fB{}\\fR{}\n{}",
                         roff(fmt::format("{}", fmt::join(option.names, ", "))),
                         option.takes_value ? " \\fIVALUE\\fR" : "", roff(option.help));
      if (!option.words.empty()) {
        out += roff(fmt::format(": {}", fmt::join(option.words, ", ")));
      }
      out += "\n";
    }
    out += fmt::format(".PP\nExamples:\n.nf\n{}.fi\n", roff(command->examples()));
  }
  out += ".SH EXIT STATUS\n0 when all went well; else by the class of the error:\n";
  for (pyc_status code = 1; *pyc_status_cause(code) != '\0'; ++code) {
    out += fmt::format(".TP\n{}\n{}: {}\n", exit_code(code), roff(pyc_status_name(code)),
                       roff(pyc_status_cause(code)));
  }
  return out;
}

class Manual final : public Command {
 public:
  std::string name() const override { return "man"; }
  std::string summary() const override { return "Print the manual page"; }
  std::string examples() const override { return "  pyc man | man -l -\n  pyc man > pyc.1\n"; }
  void declare(Options& /*options*/) override {}
  int run() override {
    print_text({{"text", manual()}}, json);
    return kExitOk;
  }
};

}  // namespace

std::unique_ptr<Command> make_completion() { return std::make_unique<Completion>(); }
std::unique_ptr<Command> make_man() { return std::make_unique<Manual>(); }

}  // namespace pyc::tool

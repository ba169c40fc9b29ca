// The only file that knows the parser of the command line.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "command.h"
#include "say.h"

namespace pyc::tool {

namespace {

// "-o,--output".
std::vector<std::string> split_names(const std::string& names) {
  const size_t comma = names.find(',');
  if (comma == std::string::npos) return {names};
  return {names.substr(0, comma), names.substr(comma + 1)};
}

[[noreturn]] void refuse_value(const std::string& names, const std::string& expected,
                               const std::string& given) {
  throw Error(
      PYC_STATUS_INVALID_ARGUMENT,
      fmt::format("{}: expected {}, found '{}'", split_names(names).back(), expected, given), "");
}

// The parser's own words begin with the name of the option or argument.
std::string named_in(const std::string& message) {
  return message.substr(0, message.find_first_of(": "));
}

}  // namespace

struct Options::Impl {
  CLI::App app;
  std::vector<OptionText> texts = {{{"--help"}, "Show what the command takes", {}, false}};
  bool takes_model = false;
  std::vector<std::string>* rest = nullptr;

  explicit Impl(const std::string& summary) : app(summary) {}
};

Options::Options(const std::string& command, const std::string& summary,
                 const std::string& examples)
    : impl_(std::make_unique<Impl>(summary)) {
  CLI::App& app = impl_->app;
  app.name("pyc " + command);
  app.footer("\nExamples:\n" + examples + "\nExit codes and JSON: docs/cli.md\n");
  app.allow_extras();  // so that what is not known can be named with a suggestion
}
Options::~Options() = default;
Options::Options(Options&&) noexcept = default;

const std::vector<OptionText>& Options::texts() const { return impl_->texts; }

void Options::positional(const std::string& name, std::string& value, const std::string& help) {
  impl_->app.add_option(name, value, help)->required();
  impl_->takes_model = impl_->takes_model || name == "model";
}

void Options::text(const std::string& name, std::string& value, const std::string& help) {
  impl_->texts.push_back({split_names(name), help});
  impl_->app.add_option(name, value, help);
}

void Options::list(const std::string& name, std::vector<std::string>& values,
                   const std::string& help, bool greedy) {
  impl_->texts.push_back({split_names(name), help, {}, true, true});
  impl_->app.add_option(name, values, help)->allow_extra_args(greedy);
}

void Options::rest(const std::string& name, std::vector<std::string>& values,
                   const std::string& help) {
  impl_->app.footer(fmt::format("\n-- {}: {}\n{}", name, help, impl_->app.get_footer()));
  impl_->rest = &values;
}

void Options::choice(const std::string& name, std::string& value, const std::string& help,
                     const std::vector<std::string>& words) {
  impl_->texts.push_back({split_names(name), help, words});
  const auto check = [words, name](const std::string& given) -> std::string {
    if (std::find(words.begin(), words.end(), given) != words.end()) return "";
    return fmt::format("'{}' is not known; known are {}{}", given, fmt::join(words, ", "),
                       did_you_mean(given, words));
  };
  impl_->app.add_option(name, value, fmt::format("{}: {}", help, fmt::join(words, ", ")))
      ->check(CLI::Validator(check, "", ""))
      ->capture_default_str();
}

void Options::integer(const std::string& name, int64_t& value, const std::string& help, int64_t lo,
                      int64_t hi) {
  impl_->texts.push_back({split_names(name), help});
  const auto check = [name, lo, hi](const std::string& given) -> std::string {
    int64_t number = 0;
    if (CLI::detail::lexical_cast(given, number) && number >= lo && number <= hi) return "";
    refuse_value(name,
                 hi == INT64_MAX ? fmt::format("an integer of {} or more", lo)
                                 : fmt::format("an integer from {} to {}", lo, hi),
                 given);
  };
  impl_->app.add_option(name, value, help)
      ->check(CLI::Validator(check, "", ""))
      ->capture_default_str();
}

void Options::number(const std::string& name, double& value, const std::string& help, double hi) {
  impl_->texts.push_back({split_names(name), help});
  const auto check = [name, hi](const std::string& given) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(given, number) && number >= 0 && number <= hi) return "";
    refuse_value(name,
                 hi == kNoEnd ? "a number of 0 or more" : fmt::format("a number from 0 to {}", hi),
                 given);
  };
  impl_->app.add_option(name, value, help)
      ->check(CLI::Validator(check, "", ""))
      ->capture_default_str();
}

void Options::flag(const std::string& name, bool& value, const std::string& help) {
  impl_->texts.push_back({split_names(name), help, {}, false});
  impl_->app.add_flag(name, value, help);
}

bool Options::parse(std::vector<std::string> arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (impl_->rest != nullptr && dashes != arguments.end()) {
    impl_->rest->assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  std::vector<std::string> names;
  for (const OptionText& option : impl_->texts) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  if (impl_->takes_model) arguments = in_our_words(arguments, names);
  std::reverse(arguments.begin(), arguments.end());  // the order the parser takes them in
  try {
    impl_->app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    say("{}", Lines{impl_->app.help()});
    return false;
  } catch (const CLI::RequiredError& e) {
    throw Error(PYC_STATUS_INVALID_ARGUMENT,
                fmt::format("no {0} is given; `{1} --help` shows what '{1}' takes",
                            named_in(e.what()), impl_->app.get_name()),
                "");
  } catch (const CLI::ArgumentMismatch& e) {
    throw Error(PYC_STATUS_INVALID_ARGUMENT,
                fmt::format("{}: a value is missing", named_in(e.what())), "");
  } catch (const CLI::ParseError& e) {
    throw Error(PYC_STATUS_UNKNOWN_OPTION, e.what(), "");
  }
  const std::vector<std::string> extras = impl_->app.remaining();
  if (!extras.empty() && !extras[0].starts_with('-')) {
    throw Error(
        PYC_STATUS_INVALID_ARGUMENT,
        fmt::format("'{}' is one argument too many for '{}'", extras[0], impl_->app.get_name()),
        "");
  }
  if (!extras.empty()) {
    throw Error(PYC_STATUS_UNKNOWN_OPTION,
                fmt::format("'{}' is not an option of '{}'{}", extras[0], impl_->app.get_name(),
                            did_you_mean(extras[0], names)),
                "");
  }
  return true;
}

}  // namespace pyc::tool

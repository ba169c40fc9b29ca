// Options as flags: whatever the library lists.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "command.h"

namespace pyc::tool {

// An option and what the command line gave for it.
struct OptionFlags::Flag {
  pyc_option_info option;
  bool given = false;  // of a switch
  int64_t number = 0;
  double real = 0.0;
  std::string text;
  std::vector<std::string> items;
};

std::vector<pyc_option_info> compile_options() {
  std::vector<pyc_option_info> options;
  for (size_t i = 0; i < pyc_option_count(); ++i) {
    options.push_back(sized<pyc_option_info>());
    check([&](pyc_error** e) { return pyc_option(i, &options.back(), e); });
  }
  return options;
}

std::string flag_name(const pyc_option_info& option) {
  std::string name = option.name;
  std::replace(name.begin(), name.end(), '_', '-');
  const bool off = option.kind == PYC_OPTION_SWITCH && option.initial == std::string("on");
  return (off ? "--no-" : "--") + name;
}

void OptionFlags::declare(Options& options, const pyc_option_info& option) {
  flags_.push_back(std::make_shared<Flag>(Flag{option, false, 0, 0.0, option.initial, {}}));
  Flag& flag = *flags_.back();
  const std::string name = flag_name(option);
  if (option.kind == PYC_OPTION_SWITCH) {
    options.flag(name, flag.given, option.help);
  } else if (option.kind == PYC_OPTION_LIST) {
    options.list(name, flag.items, option.help, std::string(option.form).empty());
  } else if (option.word_count > 0) {
    options.choice(name, flag.text, option.help, {option.words, option.words + option.word_count});
  } else if (option.kind == PYC_OPTION_INTEGER) {
    flag.number = std::stoll(option.initial);
    options.integer(name, flag.number, option.help, option.lo, option.hi);
  } else if (option.kind == PYC_OPTION_NUMBER) {
    flag.real = std::stod(option.initial);
    options.number(name, flag.real, option.help);
  } else {
    options.text(name, flag.text, option.help);
  }
}

void OptionFlags::finish(
    const std::function<void(const std::string&, const std::string&)>& set) const {
  for (const auto& flag : flags_) {
    const pyc_option_info& option = flag->option;
    if (option.kind == PYC_OPTION_SWITCH) {
      if (flag->given) set(option.name, option.initial == std::string("off") ? "on" : "off");
    } else if (option.kind == PYC_OPTION_LIST) {
      for (const std::string& item : flag->items) set(option.name, item);
    } else if (option.kind == PYC_OPTION_INTEGER && option.word_count == 0) {
      set(option.name, std::to_string(flag->number));
    } else if (option.kind == PYC_OPTION_NUMBER) {
      set(option.name, fmt::format("{}", flag->real));
    } else {
      set(option.name, flag->text);
    }
  }
}

void CompileFlags::declare(Options& options,
                           const std::function<bool(const pyc_option_info&)>& wanted) {
  for (const pyc_option_info& option : compile_options()) {
    if (wanted(option)) flags_.declare(options, option);
  }
}

void CompileFlags::finish(CompileOptions& compile) const {
  flags_.finish(
      [&](const std::string& name, const std::string& value) { compile.set(name, value); });
}

void ShapeOptions::declare(Options& options) {
  flags_.declare(options, [](const pyc_option_info& option) {
    const std::string name = option.name;
    return name == "shape" || name == "dim";
  });
}

void ModelOptions::finish() {
  flags_.finish(compile);
  if (contract_.empty()) return;
  std::ifstream file(contract_, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    throw Error(PYC_STATUS_NOT_FOUND, "--contract: cannot read " + contract_, "");
  }
  compile.contract(text.str());
}

void ModelOptions::declare(Options& options, Offer offer) {
  options.positional("model", model, "Model file; its content says which format it has");
  options.text("--contract", contract_,
               "File of lines NAME = VALUE, options to be kept or the command is refused");
  flags_.declare(options, [&](const pyc_option_info& option) {
    if (offer == Offer::kNoDevice && option.name == std::string("device")) return false;
    return option.offer == PYC_OPTION_EVERYWHERE ||
           (option.offer == PYC_OPTION_AHEAD && offer == Offer::kAhead);
  });
}

}  // namespace pyc::tool

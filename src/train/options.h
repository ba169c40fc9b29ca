#pragma once

// What may be chosen about training, by name: one row an option. The C ABI, the command line and
// checkpoints, which keep every value, go by these rows.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compile_options.h"
#include "train/step.h"

namespace pyc::train {

struct TrainOption {
  std::string_view name;
  driver::OptionKind kind;
  bool number = false;  // a text that is a decimal number from 0 on
  std::string_view help;
  std::vector<std::string_view> (*words)() = nullptr;
  // The value as text; items of a list are lines.
  std::string (*text)(const StepSpec& spec);
  // From text; a list gets one more item. kInvalidArgument with what is expected.
  Status (*set)(StepSpec& spec, std::string_view text);
};

std::span<const TrainOption> train_options();
// kUnknownOption with the nearest name; otherwise as TrainOption::set, naming the option.
Status set_train_option(StepSpec& spec, std::string_view name, std::string_view text);
Result<std::string> train_option_text(const StepSpec& spec, std::string_view name);

}  // namespace pyc::train

#include "train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "ir/rules.h"

namespace pyc::train {
namespace {

using driver::OptionKind;

template <class T>
using Word = std::pair<std::string_view, T>;

// The words of each kind of choice.
constexpr std::array kLossWords = {
    Word<Loss>{"output", Loss::kOutput}, Word<Loss>{"mse", Loss::kMse},
    Word<Loss>{"l1", Loss::kL1},         Word<Loss>{"huber", Loss::kHuber},
    Word<Loss>{"bce", Loss::kBce},       Word<Loss>{"cross_entropy", Loss::kCrossEntropy}};
constexpr std::array kRuleWords = {
    Word<Rule>{"sgd", Rule::kSgd},           Word<Rule>{"momentum", Rule::kMomentum},
    Word<Rule>{"nesterov", Rule::kNesterov}, Word<Rule>{"adam", Rule::kAdam},
    Word<Rule>{"adamw", Rule::kAdamW},       Word<Rule>{"adagrad", Rule::kAdagrad},
    Word<Rule>{"rmsprop", Rule::kRmsprop},   Word<Rule>{"lion", Rule::kLion}};
constexpr std::array kCurveWords = {
    Word<Curve>{"constant", Curve::kConstant}, Word<Curve>{"linear", Curve::kLinear},
    Word<Curve>{"cosine", Curve::kCosine}, Word<Curve>{"steps", Curve::kSteps}};
constexpr std::array kNanWords = {Word<OnNan>{"stop", OnNan::kStop},
                                  Word<OnNan>{"skip", OnNan::kSkip}};

constexpr const auto& words_of(Loss) { return kLossWords; }
constexpr const auto& words_of(Rule) { return kRuleWords; }
constexpr const auto& words_of(Curve) { return kCurveWords; }
constexpr const auto& words_of(OnNan) { return kNanWords; }

template <class T>
std::vector<std::string_view> word_list() {
  std::vector<std::string_view> list;
  for (const auto& [word, value] : words_of(T())) list.push_back(word);
  return list;
}

Status expected(std::string_view what, std::string_view found) {
  return {Code::kInvalidArgument,
          fmt::format("expected {}, found '{}'", what, found.substr(0, 80))};
}

// Per type of a field: its text, and the way back.
std::string to_train_text(double value) { return fmt::format("{}", value); }
std::string to_train_text(int64_t value) { return fmt::format("{}", value); }
std::string to_train_text(bool value) { return value ? "on" : "off"; }
std::string to_train_text(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, "\n"));
}
template <class T>
  requires std::is_enum_v<T>
std::string to_train_text(T value) {
  for (const auto& [word, meant] : words_of(value)) {
    if (meant == value) return std::string(word);
  }
  return "";
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status from_train_text(std::string_view text, double& value) {
  double read = 0.0;
  if (!parse_whole(text, read) || !std::isfinite(read) || read < 0.0) {
    return expected("a number from 0 on", text);
  }
  value = read;
  return {};
}
Status from_train_text(std::string_view text, int64_t& value) {
  int64_t read = 0;
  if (!parse_whole(text, read) || read < 0) return expected("a whole number from 0 on", text);
  value = read;
  return {};
}
Status from_train_text(std::string_view text, bool& value) {
  if (text != "on" && text != "off") return expected("on or off", text);
  value = text == "on";
  return {};
}
Status from_train_text(std::string_view text, std::vector<std::string>& items) {
  if (text.empty()) return expected("a name", text);
  items.emplace_back(text);
  return {};
}
template <class T>
  requires std::is_enum_v<T>
Status from_train_text(std::string_view text, T& value) {
  for (const auto& [word, meant] : words_of(value)) {
    if (word != text) continue;
    value = meant;
    return {};
  }
  return expected(fmt::format("one of {}", fmt::join(word_list<T>(), ", ")), text);
}

// A row of the field that `Access` shows in a spec.
template <class Access>
TrainOption row(std::string_view name, std::string_view help, Access) {
  using T = std::remove_cvref_t<decltype(Access{}(std::declval<StepSpec&>()))>;
  TrainOption out{
      .name = name,
      .kind = OptionKind::kText,
      .number = std::is_same_v<T, double>,
      .help = help,
      .words = nullptr,
      .text = [](const StepSpec& s) { return to_train_text(Access{}(s)); },
      .set = [](StepSpec& s, std::string_view text) { return from_train_text(text, Access{}(s)); }};
  if constexpr (std::is_enum_v<T>) {
    out.kind = OptionKind::kWord;
    out.words = word_list<T>;
  }
  if constexpr (std::is_same_v<T, bool>) out.kind = OptionKind::kSwitch;
  if constexpr (std::is_same_v<T, int64_t>) out.kind = OptionKind::kInteger;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) out.kind = OptionKind::kList;
  return out;
}

#define PYC_TRAIN_ROW(name, field, help) row(name, help, [](auto& s) -> auto& { return s.field; })

std::vector<TrainOption> make_rows() {
  return {
      PYC_TRAIN_ROW("loss", loss, "What is made small; output: the model's first output itself"),
      PYC_TRAIN_ROW("optimizer", optimizer.rule, "How parameters follow their gradients"),
      PYC_TRAIN_ROW("lr", schedule.rate, "Learning rate"),
      PYC_TRAIN_ROW("momentum", optimizer.momentum, "momentum, nesterov: what the average keeps"),
      PYC_TRAIN_ROW("beta1", optimizer.beta1, "adam, adamw, lion: what the first average keeps"),
      PYC_TRAIN_ROW("beta2", optimizer.beta2,
                    "adam, adamw, rmsprop, lion: what the second average keeps"),
      PYC_TRAIN_ROW("epsilon", optimizer.epsilon, "Added where a root is divided by"),
      PYC_TRAIN_ROW("weight_decay", optimizer.decay,
                    "Decay of the parameters; decoupled in adamw and lion"),
      PYC_TRAIN_ROW("schedule", schedule.curve, "How the rate changes from step to step"),
      PYC_TRAIN_ROW("warmup", schedule.warmup, "Steps in which the rate rises to its value"),
      PYC_TRAIN_ROW("schedule_steps", schedule.total,
                    "linear, cosine: the step at which the floor is reached"),
      PYC_TRAIN_ROW("lr_floor", schedule.floor, "linear, cosine: the rate at the end"),
      PYC_TRAIN_ROW("lr_every", schedule.every, "steps: how many steps lie between two rates"),
      PYC_TRAIN_ROW("lr_factor", schedule.factor, "steps: the next rate over the one before"),
      PYC_TRAIN_ROW("clip_value", clip_value, "Bound of each element of a gradient; 0: none"),
      PYC_TRAIN_ROW("clip_norm", clip_norm, "Bound of the norm of all gradients; 0: none"),
      PYC_TRAIN_ROW("freeze", frozen,
                    "A parameter that stays as it is; NAME* is all that begin so"),
      PYC_TRAIN_ROW("allow_unused", allow_unused,
                    "Accept parameters that the loss does not depend on"),
      PYC_TRAIN_ROW("on_nan", on_nan, "What becomes of a step whose loss is not finite"),
      PYC_TRAIN_ROW("accumulate", accumulate,
                    "Micro-batches of a step, whose gradients are added in order"),
      PYC_TRAIN_ROW("loss_scale", loss_scale,
                    "The loss is multiplied by this before gradients are made, at first; 0: not"),
      PYC_TRAIN_ROW("loss_scale_every", scale_every,
                    "Good steps in a row that double the loss scale; 0: it never grows"),
  };
}

#undef PYC_TRAIN_ROW

Result<const TrainOption*> find_row(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TrainOption& option : train_options()) {
    if (option.name == name) return &option;
    names.push_back(option.name);
  }
  return Status(Code::kUnknownOption,
                fmt::format("there is no training option '{}'{}", name.substr(0, 80),
                            ir::did_you_mean(ir::closest_name(name, names))));
}

}  // namespace

std::span<const TrainOption> train_options() {
  static const std::vector<TrainOption> rows = make_rows();
  return rows;
}

Status set_train_option(StepSpec& spec, std::string_view name, std::string_view text) {
  PYC_ASSIGN(const TrainOption* option, find_row(name));
  return option->set(spec, text).with_context(name);
}

Result<std::string> train_option_text(const StepSpec& spec, std::string_view name) {
  PYC_ASSIGN(const TrainOption* option, find_row(name));
  return option->text(spec);
}

}  // namespace pyc::train

// What trtexec, benchmark_app and onnxruntime_perf_test call things, in PyC's words.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "command.h"

namespace pyc::tool {
namespace {

using Words = std::vector<std::string>;

// How a value is written here.
Words as_it_is(const std::string& value) { return {value}; }
// "CPU", "GPU".
Words as_device(const std::string& given) {
  std::string value = given;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return {value == "gpu" ? "cuda" : value};
}
Words split_at(const std::string& text, char at) {
  Words out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}
// "x:1x3x224x224,y:2x3".
Words as_shapes(const std::string& value) {
  Words out;
  for (std::string item : split_at(value, ',')) {
    const size_t colon = item.rfind(':');
    if (colon == std::string::npos) return {value};  // refused as it is
    std::replace(item.begin() + static_cast<std::ptrdiff_t>(colon), item.end(), 'x', ',');
    item[colon] = '=';
    out.push_back(std::move(item));
  }
  return out;
}
// "x[1,3],y[2,3]".
Words as_bracket_shapes(const std::string& value) {
  Words out;
  for (std::string item : split_at(value, ']')) {
    item.erase(0, item.find_first_not_of(", "));
    const size_t bracket = item.find('[');
    if (bracket == std::string::npos) return {value};
    item[bracket] = '=';
    out.push_back(std::move(item));
  }
  return out;
}
// "batch:4".
Words as_dim(const std::string& given) {
  std::string value = given;
  const size_t colon = value.rfind(':');
  if (colon != std::string::npos) value[colon] = '=';
  return {value};
}
// onnxruntime_perf_test's -m says how it measures, which the other options say already.
Words as_model(const std::string& value) {
  if (value == "times" || value == "duration") return {};
  return {value};
}

struct Habit {
  const char* spelling;
  const char* ours;                    // "": the value stands alone
  Words (*value)(const std::string&);  // null: it takes none
  const char* fixed = nullptr;         // what one that takes none means
};

constexpr Habit kHabits[] = {
    {"--onnx", "", as_it_is},
    {"--loadEngine", "", as_it_is},
    {"-m", "", as_model},
    {"--saveEngine", "--output", as_it_is},
    {"--shapes", "--shape", as_shapes},
    {"-shape", "--shape", as_bracket_shapes},
    {"-f", "--dim", as_dim},
    {"-d", "--device", as_device},
    {"-e", "--device", as_device},
    {"-t", "--seconds", as_it_is},
    {"--duration", "--seconds", as_it_is},
    {"-niter", "--runs", as_it_is},
    {"-r", "--runs", as_it_is},
    {"--iterations", "--runs", as_it_is},
    {"--warmUp", "--warmup-ms", as_it_is},
    {"-nthreads", "--threads", as_it_is},
    {"-x", "--threads", as_it_is},
    {"--fp16", "--precision", nullptr, "f16"},
    {"--bf16", "--precision", nullptr, "bf16"},
};

const Habit* find_habit(const std::string& name, const Words& declared) {
  for (const Habit& habit : kHabits) {
    if (name != habit.spelling) continue;
    const bool has = *habit.ours == '\0' ||
                     std::find(declared.begin(), declared.end(), habit.ours) != declared.end();
    return has ? &habit : nullptr;
  }
  return nullptr;
}

}  // namespace

Words in_our_words(const Words& arguments, const Words& declared) {
  Words out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& given = arguments[i];
    if (given == "--") {
      out.insert(out.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    const size_t equal = given.find('=');
    const std::string name = given.substr(0, equal);
    const bool is_ours = std::find(declared.begin(), declared.end(), name) != declared.end();
    const Habit* habit = is_ours ? nullptr : find_habit(name, declared);
    if (habit == nullptr) {
      out.push_back(given);
      continue;
    }
    Words values;
    if (habit->value == nullptr) {
      values = {habit->fixed};
    } else if (equal != std::string::npos) {
      values = habit->value(given.substr(equal + 1));
    } else if (i + 1 < arguments.size()) {
      values = habit->value(arguments[++i]);
    } else {
      throw Error(PYC_STATUS_INVALID_ARGUMENT, fmt::format("{}: a value is missing", name), "");
    }
    for (std::string& value : values) {
      if (*habit->ours != '\0') out.emplace_back(habit->ours);
      out.push_back(std::move(value));
    }
  }
  return out;
}

}  // namespace pyc::tool

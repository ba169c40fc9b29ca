// Inputs and shapes: from files, from options, from a seed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

// "NAME=TEXT" in two at the given place.
std::pair<std::string, std::string> split(const std::string& option, const std::string& given,
                                          const std::string& form, size_t equal) {
  if (equal == std::string::npos || equal == 0) {
    throw Error(PYC_STATUS_INVALID_ARGUMENT,
                fmt::format("{}: expected {}, found '{}'", option, form, given), "");
  }
  return {given.substr(0, equal), given.substr(equal + 1)};
}

// What the options choose, by name: "x=2,3" in lines.
std::vector<std::pair<std::string, Shape>> chosen(const CompileOptions& compile,
                                                  const std::string& option) {
  std::vector<std::pair<std::string, Shape>> out;
  std::istringstream lines(compile.text(option));
  for (std::string line; std::getline(lines, line);) {
    const size_t equal = line.rfind('=');
    Shape& shape = out.emplace_back(line.substr(0, equal), Shape()).second;
    std::istringstream sizes(line.substr(equal + 1));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
  }
  return out;
}

bool is_open(const pyc_value_info& info) {
  return info.rank < 0 ||
         std::find(info.shape, info.shape + info.rank, -1) != info.shape + info.rank;
}

bool has_shape(const pyc_value_info& info) {
  return info.type == PYC_TYPE_TENSOR || info.type == PYC_TYPE_STRINGS;
}

// The shape of a tensor of numbers or strings; nothing for other values.
std::optional<Shape> shape_of(const AnyValue& value) {
  const int32_t type = pyc_result_type(value.get());
  if (type != PYC_TYPE_TENSOR && type != PYC_TYPE_STRINGS) return std::nullopt;
  const int64_t* shape = nullptr;
  int64_t rank = 0;
  check([&](pyc_error** e) { return pyc_result_shape(value.get(), &shape, &rank, e); });
  return Shape(shape, shape + rank);
}

// Strings are the integers that the seed gives, so that models which read numbers take them.
AnyValue seeded_strings(const Shape& shape, uint64_t seed) {
  std::vector<std::string> strings;
  for (const double number : Tensor::random(PYC_DTYPE_I64, shape, seed).numbers()) {
    strings.push_back(fmt::format("{:.0f}", number));
  }
  return AnyValue(strings, shape);
}

// What an input is when no file gives it.
AnyValue seeded(const pyc_value_info& info, uint64_t seed) {
  if (info.type == PYC_TYPE_SEQUENCE) return AnyValue::sequence({});
  if (info.type == PYC_TYPE_OPTIONAL) return AnyValue();
  const Shape shape(info.shape, info.shape + std::max<int64_t>(info.rank, 0));
  if (info.type == PYC_TYPE_STRINGS) return seeded_strings(shape, seed);
  if (info.type == PYC_TYPE_TENSOR && info.dtype != PYC_DTYPE_ANY) {
    return AnyValue(Tensor::random(info.dtype, shape, seed));
  }
  throw Error(
      PYC_STATUS_UNSUPPORTED,
      fmt::format("input '{}' is {}: it cannot be made from a seed", info.name, info.type_text),
      info.name);
}

void note_stand_in(const pyc_value_info& info) {
  const char* what = info.type == PYC_TYPE_STRINGS    ? "small numbers as text"
                     : info.type == PYC_TYPE_SEQUENCE ? "an empty sequence"
                     : info.type == PYC_TYPE_OPTIONAL ? "nothing"
                                                      : nullptr;
  if (what == nullptr) return;
  say(stderr, "note: input '{}', {}, is taken as {} (--input {}=FILE.pb chooses)\n", info.name,
      info.type_text, what, info.name);
}

void note_scalar(const pyc_value_info& info, const AnyValue& value) {
  const std::optional<Shape> shape = shape_of(value);
  if (info.type != PYC_TYPE_TENSOR || info.rank != 0 || shape != Shape{1}) return;
  say(stderr, "note: input '{}' is declared as a scalar; the file's shape [1] is taken\n",
      info.name);
}

// One key for a dim wherever it is the same.
std::string key_of(const pyc_value_info& info, size_t d) {
  const std::string symbol = info.symbols[d];
  return symbol.empty() ? fmt::format("dim {} of input '{}'", d, info.name) : symbol;
}

std::vector<std::string> names_of(const ModelFile& file) {
  std::vector<std::string> names;
  for (size_t i = 0; i < file.input_count(); ++i) names.emplace_back(file.input(i).name);
  return names;
}

}  // namespace

ShapeChoice::ShapeChoice(const ModelFile& file, CompileOptions& compile, const InputOptions* inputs)
    : file_(file), compile_(compile), given_(chosen(compile, "shape")) {
  for (const auto& [name, size] : chosen(compile, "dim")) known_[name] = size.front();
  for (const auto& [name, shape] : given_) take(name, shape);
  for (size_t i = 0; i < file.input_count(); ++i) {
    const pyc_value_info info = file.input(i);
    const AnyValue* value = inputs == nullptr ? nullptr : inputs->given(info.name);
    const std::optional<Shape> shape = value == nullptr ? std::nullopt : shape_of(*value);
    if (!shape || !has_shape(info)) continue;
    take(info.name, *shape);
    if (is_open(info)) given_.emplace_back(info.name, *shape);
  }
  list_guesses();
  choices_.push_back({1, 1});
  if (guesses_.empty()) return;
  for (const int64_t size : {8, 32, 128, 512}) {
    choices_.push_back({1, size});
    choices_.push_back({size, size});
  }
  choices_.push_back({1, 1});
}

// What a tensor of that shape as that input says of the dims.
void ShapeChoice::take(const std::string& name, const Shape& shape) {
  for (size_t i = 0; i < file_.input_count(); ++i) {
    const pyc_value_info info = file_.input(i);
    if (info.name != name || info.rank != static_cast<int64_t>(shape.size())) continue;
    for (size_t d = 0; d < shape.size(); ++d) known_.try_emplace(key_of(info, d), shape[d]);
  }
}

bool ShapeChoice::is_given(const std::string& name) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& g) { return g.first == name; });
}

void ShapeChoice::list_guesses() {
  for (size_t i = 0; i < file_.input_count(); ++i) {
    const pyc_value_info info = file_.input(i);
    if (!has_shape(info) || !is_open(info)) continue;
    if (info.rank < 0) {  // a vector will do
      if (!is_given(info.name))
        guesses_[info.name] = {fmt::format("the shape of '{}'", info.name), false};
      continue;
    }
    for (size_t d = 0; static_cast<int64_t>(d) < info.rank; ++d) {
      const std::string key = key_of(info, d);
      if (info.shape[d] >= 0 || known_.contains(key)) continue;
      Guess& guess = guesses_[key];
      guess.name = key;
      guess.outermost = guess.outermost || d == 0;
    }
  }
}

// Every open input gets a whole shape, so that the model can be compiled before it runs.
void ShapeChoice::choose(size_t choice) {
  for (auto& [key, guess] : guesses_) {
    guess.size = guess.outermost ? choices_[choice].outermost : choices_[choice].others;
  }
  compile_.reset("shape");
  for (const auto& [name, shape] : given_) set_shape(name, shape);
  for (size_t i = 0; i < file_.input_count(); ++i) {
    const pyc_value_info info = file_.input(i);
    if (is_given(info.name) || !has_shape(info) || !is_open(info)) continue;
    if (info.rank < 0) {
      set_shape(info.name, {guesses_.at(info.name).size});
      continue;
    }
    Shape shape(info.shape, info.shape + info.rank);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const std::string key = key_of(info, d);
      const auto known = known_.find(key);
      shape[d] = known != known_.end() ? known->second : guesses_.at(key).size;
    }
    set_shape(info.name, shape);
  }
}

void ShapeChoice::set_shape(const std::string& name, const Shape& shape) {
  compile_.set("shape", fmt::format("{}={}", name, fmt::join(shape, ",")));
}

void ShapeChoice::note() const {
  if (guesses_.empty()) return;
  std::string text;
  for (const auto& [key, guess] : guesses_) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", guess.name, guess.size);
  }
  say(stderr, "note: open dims are taken as {} (--dim NAME=N, --shape INPUT=N,N choose)\n", text);
}

namespace {

// That another device than the one asked for took its place.
void note_device(const Model& model) {
  for_each_decision(model, [](const pyc_decision& d, const auto&) {
    if (std::string_view(d.what) == "device") {
      say(stderr, "note: runs on the {}: {}\n", d.chosen, d.detail);
    }
  });
}

}  // namespace

Model settled_model(const ModelFile& file, CompileOptions& compile, const InputOptions& inputs) {
  ShapeChoice shapes(file, compile, &inputs);
  Model settled = shapes.settle([&] {
    Model model = file.compile(compile);
    // Whether an open model takes the shapes shows when it runs.
    if (shapes.guessed() && model.is_open()) {
      model.run_values(inputs.make(model));
    }
    return model;
  });
  note_device(settled);
  return settled;
}

Graph settled_graph(const ModelFile& file, CompileOptions& compile) {
  return ShapeChoice(file, compile, nullptr).settle([&] {
    try {
      return file.graph(compile);
    } catch (const Error& e) {
      if (e.code() != PYC_STATUS_UNSUPPORTED || !file.unsupported().empty()) throw;
      throw Error(e.code(),
                  e.message() +
                      "; this command needs the model as one graph, while run, bench, explain and "
                      "report compile it in parts",
                  e.node());
    }
  });
}

void compile_settled(const ModelFile& file, CompileOptions& compile, const std::string& path) {
  ShapeChoice(file, compile, nullptr).settle([&] {
    file.compile_to_file(path, compile);
    return true;
  });
}

void InputOptions::declare(Options& options) {
  options.list("--input", files, "NAME=FILE: an input from a .npy or .pb file; may be repeated");
  options.integer("--seed", seed, "Seed of the inputs without a file", 0, INT64_MAX);
}

void InputOptions::read(const ModelFile& file) {
  const std::vector<std::string> names = names_of(file);
  for (const std::string& option : files) {
    const auto [name, path] = split("--input", option, "NAME=FILE", option.find('='));
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw Error(PYC_STATUS_INVALID_ARGUMENT,
                  fmt::format("--input: the model has no input '{}', it has {}{}", name,
                              fmt::join(names, ", "), did_you_mean(name, names)),
                  "");
    }
    const auto index = static_cast<size_t>(found - names.begin());
    AnyValue value = file.read_input(index, path);
    note_scalar(file.input(index), value);
    values_.insert_or_assign(name, std::move(value));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (given(names[i]) == nullptr) note_stand_in(file.input(i));
  }
}

const AnyValue* InputOptions::given(const std::string& name) const {
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

std::vector<AnyValue> InputOptions::make(const Model& model) const {
  std::vector<AnyValue> inputs;
  for (size_t i = 0; i < model.input_count(); ++i) {
    const pyc_value_info info = model.input(i);
    const AnyValue* value = given(info.name);
    inputs.push_back(value != nullptr ? *value : seeded(info, static_cast<uint64_t>(seed) + i));
  }
  return inputs;
}

std::optional<Graph> closed_graph(const ModelFile& file, const CompileOptions& options) {
  try {
    return file.graph(options);
  } catch (const Error& e) {
    if (e.code() != PYC_STATUS_UNSUPPORTED || !file.unsupported().empty()) throw;
    return std::nullopt;
  }
}

}  // namespace pyc::tool

// Inputs and shapes: from files, from options, from a seed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "command.h"

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

int64_t size_of(const std::string& option, std::string_view text) {
  int64_t size = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error == std::errc() && end == text.data() + text.size() && size >= 0) return size;
  throw Error(PYC_STATUS_INVALID_ARGUMENT,
              fmt::format("{}: expected a size of 0 or more, found '{}'", option, text), "");
}

// "2,3" or "2x3"; "" is the shape of a scalar.
Shape shape_of(std::string text) {
  std::replace(text.begin(), text.end(), 'x', ',');
  Shape shape;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    shape.push_back(size_of("--shape", std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
  return shape;
}

bool is_open(const pyc_value_info& info) {
  return info.rank < 0 ||
         std::find(info.shape, info.shape + info.rank, -1) != info.shape + info.rank;
}

Tensor copy_of(const Tensor& tensor) {
  const pyc_tensor_view from = tensor.view();
  Tensor copy(from.dtype, tensor.shape());
  std::copy_n(static_cast<const std::byte*>(from.data), from.bytes,
              static_cast<std::byte*>(copy.view().data));
  return copy;
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

void ShapeOptions::declare(Options& options) {
  options.list("--shape", shapes, "INPUT=2,3: the shape of an input that is open; may be repeated");
  options.list("--dim", dims, "NAME=4: the size of an open dim; may be repeated");
}

void ShapeOptions::finish(CompileOptions& compile) const {
  for (const std::string& given : shapes) {
    const auto [name, text] = split("--shape", given, "INPUT=2,3", given.rfind('='));
    compile.shapes.emplace_back(name, shape_of(text));
  }
  for (const std::string& given : dims) {
    const auto [name, text] = split("--dim", given, "NAME=4", given.rfind('='));
    compile.dims.emplace_back(name, size_of("--dim", text));
  }
}

ShapeChoice::ShapeChoice(const ModelFile& file, CompileOptions& compile, const InputOptions* inputs)
    : file_(file), compile_(compile), given_(compile.shapes) {
  for (const auto& [name, size] : compile.dims) known_[name] = size;
  for (const auto& [name, shape] : given_) take(name, shape);
  for (size_t i = 0; i < file.input_count(); ++i) {
    const pyc_value_info info = file.input(i);
    const Tensor* tensor = inputs == nullptr ? nullptr : inputs->given(info.name);
    if (tensor == nullptr) continue;
    take(info.name, tensor->shape());
    if (is_open(info)) given_.emplace_back(info.name, tensor->shape());
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
    if (info.type != PYC_TYPE_TENSOR || !is_open(info)) continue;
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
  compile_.shapes = given_;
  for (size_t i = 0; i < file_.input_count(); ++i) {
    const pyc_value_info info = file_.input(i);
    if (is_given(info.name) || info.type != PYC_TYPE_TENSOR || !is_open(info)) continue;
    if (info.rank < 0) {
      compile_.shapes.emplace_back(info.name, Shape{guesses_.at(info.name).size});
      continue;
    }
    Shape shape(info.shape, info.shape + info.rank);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const std::string key = key_of(info, d);
      const auto known = known_.find(key);
      shape[d] = known != known_.end() ? known->second : guesses_.at(key).size;
    }
    compile_.shapes.emplace_back(info.name, std::move(shape));
  }
}

void ShapeChoice::note() const {
  if (guesses_.empty()) return;
  std::string text;
  for (const auto& [key, guess] : guesses_) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", guess.name, guess.size);
  }
  fmt::print(stderr, "note: open dims are taken as {} (--dim NAME=N, --shape INPUT=N,N choose)\n",
             text);
}

Model settled_model(const ModelFile& file, CompileOptions& compile, const InputOptions& inputs) {
  ShapeChoice shapes(file, compile, &inputs);
  return shapes.settle([&] {
    Model model = file.compile(compile);
    // Whether an open model takes the shapes shows when it runs.
    if (shapes.guessed() && model.is_open()) {
      const std::vector<Tensor> tensors = inputs.make(model);
      model.run_dynamic(views_of(tensors));
    }
    return model;
  });
}

Graph settled_graph(const ModelFile& file, CompileOptions& compile) {
  return ShapeChoice(file, compile, nullptr).settle([&] { return file.graph(compile); });
}

void InputOptions::declare(Options& options) {
  options.list("--input", files, "NAME=FILE: an input from a .npy or .pb file; may be repeated");
  options.integer("--seed", seed, "Seed of the inputs that no file gives", 0, INT64_MAX);
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
    const pyc_value_info info = file.input(static_cast<size_t>(found - names.begin()));
    tensors_.insert_or_assign(name, Tensor::load(path, info.dtype));
  }
}

const Tensor* InputOptions::given(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

std::vector<Tensor> InputOptions::make(const Model& model) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < model.input_count(); ++i) {
    const pyc_value_info info = model.input(i);
    if (const Tensor* tensor = given(info.name)) {
      inputs.push_back(copy_of(*tensor));
      continue;
    }
    if (info.type != PYC_TYPE_TENSOR || info.dtype == PYC_DTYPE_ANY) {
      throw Error(
          PYC_STATUS_UNSUPPORTED,
          fmt::format("input '{}' is {}: it cannot be made from a seed", info.name, info.type_text),
          info.name);
    }
    inputs.push_back(Tensor::random(info.dtype, Shape(info.shape, info.shape + info.rank),
                                    static_cast<uint64_t>(seed) + i));
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

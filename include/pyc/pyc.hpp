// PyC for C++20: a header over the C ABI and nothing else.
//
//   pyc::ModelBuilder b("layer");
//   auto x = b.input("x", PYC_DTYPE_F32, {8, 64});
//   auto w = b.random("w", PYC_DTYPE_F32, {64, 32}, 1, -0.1, 0.1);
//   auto bias = b.scalar(PYC_DTYPE_F32, 0.5);
//   b.output(b.relu(b.matmul(x, w) + bias), "y");
//   pyc::Model model = b.compile();
//   std::vector<pyc::Tensor> outputs = model(pyc::Tensor::random(PYC_DTYPE_F32, {8, 64}, 7));
//
// Every refusal is thrown as pyc::Error, which carries what the C ABI says of it.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pyc/pyc.h"
#include "pyc/values.hpp"

namespace pyc {
// The names are those of this version of the header: they never meet others of the same spelling.
inline namespace api1 {

// Options of a compile by name (docs/options.md): CompileOptions().set("threads", 2).
class CompileOptions {
 public:
  CompileOptions() {
    check([&](pyc_error** e) { return pyc_compile_options_create(handle_.put(), e); });
  }
  CompileOptions(const CompileOptions& other) {
    check([&](pyc_error** e) { return pyc_compile_options_copy(other.get(), handle_.put(), e); });
  }
  CompileOptions(CompileOptions&& other) noexcept = default;
  CompileOptions& operator=(CompileOptions other) noexcept {
    handle_ = std::move(other.handle_);
    return *this;
  }
  ~CompileOptions() = default;

  // A list gets one more item.
  CompileOptions& set(const std::string& name, const std::string& value) {
    check([&](pyc_error** e) {
      return pyc_compile_options_set(get(), name.c_str(), value.c_str(), e);
    });
    return *this;
  }
  CompileOptions& set(const std::string& name, const char* value) {
    return set(name, std::string(value));
  }
  CompileOptions& set(const std::string& name, bool on) { return set(name, on ? "on" : "off"); }
  CompileOptions& set(const std::string& name, std::integral auto number) {
    return set(name, std::to_string(number));
  }
  // Back to the default.
  CompileOptions& reset(const std::string& name) {
    check([&](pyc_error** e) { return pyc_compile_options_reset(get(), name.c_str(), e); });
    return *this;
  }
  // Adds the clauses of a contract: lines NAME = VALUE.
  CompileOptions& contract(const std::string& text) {
    check([&](pyc_error** e) { return pyc_compile_options_contract(get(), text.c_str(), e); });
    return *this;
  }
  // Records what is compiled with them, and its runs; null: nothing.
  CompileOptions& trace(pyc_trace* trace) {
    check([&](pyc_error** e) { return pyc_compile_options_trace(get(), trace, e); });
    return *this;
  }
  // Calls `tell` after each kernel that was made: done, all. From any thread, several at once.
  CompileOptions& progress(std::function<void(int64_t, int64_t)> tell) {
    using Tell = std::function<void(int64_t, int64_t)>;
    auto user = std::make_unique<Tell>(std::move(tell));
    const auto call = [](void* opaque, int64_t done, int64_t all) {
      (*static_cast<Tell*>(opaque))(done, all);
    };
    const auto release = [](void* opaque) { delete static_cast<Tell*>(opaque); };
    check([&](pyc_error** e) {
      return pyc_compile_options_progress(get(), call, user.get(), release, e);
    });
    static_cast<void>(user.release());  // the options have it
    return *this;
  }
  // Graphs that differ in sizes alone share their code.
  CompileOptions& share_code() {
    check([&](pyc_error** e) { return pyc_compile_options_share_code(get(), e); });
    return *this;
  }
  // The items of a list are lines.
  std::string text(const std::string& name) const {
    return take_text([&](char** value, pyc_error** e) {
      return pyc_compile_options_get(get(), name.c_str(), value, e);
    });
  }
  pyc_compile_options* get() const { return handle_.get(); }

 private:
  Handle<pyc_compile_options, pyc_compile_options_destroy> handle_;
};

// What compiles and runs did, for Perfetto: CompileOptions().trace(trace.get()).
class Trace {
 public:
  Trace() {
    check([&](pyc_error** e) { return pyc_trace_create(handle_.put(), e); });
  }
  void stop() {
    check([&](pyc_error** e) { return pyc_trace_stop(get(), e); });
  }
  // Also those that are short beside what their records cost.
  void every_run() {
    check([&](pyc_error** e) { return pyc_trace_every_run(get(), e); });
  }
  struct Runs {
    int64_t recorded = 0;
    int64_t passed_over = 0;
  };
  Runs runs() const {
    Runs out;
    check([&](pyc_error** e) { return pyc_trace_runs(get(), &out.recorded, &out.passed_over, e); });
    return out;
  }
  std::string json() const {
    return take_text([&](char** text, pyc_error** e) { return pyc_trace_json(get(), text, e); });
  }
  pyc_trace* get() const { return handle_.get(); }

 private:
  Handle<pyc_trace, pyc_trace_destroy> handle_;
};

// A graph: built with ModelBuilder, read from text or a file.
class Graph {
 public:
  static Graph parse(std::string_view text) {
    Graph out;
    check([&](pyc_error** e) {
      return pyc_graph_parse(text.data(), text.size(), out.handle_.put(), e);
    });
    return out;
  }
  static Graph load(const std::string& path) {
    Graph out;
    check([&](pyc_error** e) { return pyc_graph_load_file(path.c_str(), out.handle_.put(), e); });
    return out;
  }
  explicit Graph(const std::string& name) {
    check([&](pyc_error** e) { return pyc_graph_create(name.c_str(), handle_.put(), e); });
  }
  Graph clone() const {
    Graph out;
    check([&](pyc_error** e) { return pyc_graph_clone(get(), out.handle_.put(), e); });
    return out;
  }
  // After the named passes, or all of them; `report` becomes a JSON document of what each did.
  Graph run_passes(const std::vector<std::string>& names = {},
                   std::string* report = nullptr) const {
    std::vector<const char*> c_names;
    for (const std::string& name : names) c_names.push_back(name.c_str());
    Graph out;
    const std::string text = take_text([&](char** json, pyc_error** e) {
      return pyc_report_passes(get(), c_names.data(), c_names.size(), out.handle_.put(), json, e);
    });
    if (report != nullptr) *report = text;
    return out;
  }
  // The smallest graph found for which `shows`, given its text, still returns true.
  Graph reduce(const std::function<bool(const std::string&)>& shows, int64_t max_tries) const {
    struct Context {
      const std::function<bool(const std::string&)>& shows;
      std::exception_ptr thrown;
    } context{shows, nullptr};
    const auto call = [](const pyc_graph* candidate, void* opaque) -> int32_t {
      auto* c = static_cast<Context*>(opaque);
      try {
        const std::string text = take_text(
            [&](char** out, pyc_error** e) { return pyc_graph_print(candidate, out, e); });
        return c->thrown == nullptr && c->shows(text) ? 1 : 0;
      } catch (...) {
        c->thrown = std::current_exception();
        return 0;
      }
    };
    Graph out;
    try {
      check([&](pyc_error** e) {
        return pyc_graph_reduce(get(), call, &context, max_tries, out.handle_.put(), e);
      });
    } catch (const Error&) {
      if (context.thrown == nullptr) throw;
    }
    if (context.thrown != nullptr) std::rethrow_exception(context.thrown);
    return out;
  }
  std::string print() const {
    return take_text([&](char** text, pyc_error** e) { return pyc_graph_print(get(), text, e); });
  }
  void export_onnx(const std::string& path) const {
    check([&](pyc_error** e) { return pyc_export_onnx(get(), path.c_str(), e); });
  }
  std::string fingerprint() const {
    return take_text(
        [&](char** text, pyc_error** e) { return pyc_graph_fingerprint(get(), text, e); });
  }
  std::string dump(const std::string& stage, const CompileOptions& options = {}) const {
    return take_text([&](char** text, pyc_error** e) {
      return pyc_dump(get(), options.get(), stage.c_str(), text, e);
    });
  }
  // Compiles ahead of time, for options.target.
  void compile_to_file(const std::string& path, const CompileOptions& options = {}) const {
    check(
        [&](pyc_error** e) { return pyc_compile_to_file(get(), options.get(), path.c_str(), e); });
  }
  void verify() const {
    check([&](pyc_error** e) { return pyc_graph_verify(get(), e); });
  }
  pyc_value_info value(pyc_value value) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_graph_value(get(), value, &info, e); });
    return info;
  }
  pyc_node_info node(size_t index) const {
    auto info = sized<pyc_node_info>();
    check([&](pyc_error** e) { return pyc_graph_node(get(), index, &info, e); });
    return info;
  }
  size_t value_count() const { return pyc_graph_value_count(get()); }
  size_t node_count() const { return pyc_graph_node_count(get()); }
  // The values the outputs name, in order.
  std::vector<pyc_value> outputs() const {
    std::vector<pyc_value> out(pyc_graph_output_count(get()));
    for (size_t i = 0; i < out.size(); ++i) {
      check([&](pyc_error** e) { return pyc_graph_get_output(get(), i, &out[i], e); });
    }
    return out;
  }
  void output(pyc_value value) {
    check([&](pyc_error** e) { return pyc_graph_output(get(), value, e); });
  }
  pyc_graph* get() const { return handle_.get(); }

 private:
  friend class ModelFile;
  friend class Trainer;
  Graph() = default;
  Handle<pyc_graph, pyc_graph_destroy> handle_;
};

// What of a model is not compiled whole.
class Breaks {
 public:
  pyc_break_summary summary() const {
    auto out = sized<pyc_break_summary>();
    check([&](pyc_error** e) { return pyc_breaks_summary(handle_.get(), &out, e); });
    return out;
  }
  std::vector<pyc_break_op> ops() const {
    std::vector<pyc_break_op> out;
    for (size_t i = 0; i < pyc_breaks_op_count(handle_.get()); ++i) {
      out.push_back(sized<pyc_break_op>());
      check([&](pyc_error** e) { return pyc_breaks_op(handle_.get(), i, &out.back(), e); });
    }
    return out;
  }
  // For calls of the C ABI that make one.
  pyc_breaks** put() { return handle_.put(); }

 private:
  Handle<pyc_breaks, pyc_breaks_destroy> handle_;
};

// A compiled model. Any number of threads may run it at once.
class Model {
 public:
  explicit Model(const Graph& graph, const CompileOptions& options = {}) {
    check([&](pyc_error** e) {
      return pyc_compile_model(graph.get(), options.get(), handle_.put(), e);
    });
  }
  static Model load(const std::string& path, const CompileOptions& options = {}) {
    Model out;
    check([&](pyc_error** e) {
      return pyc_compile_model_file(path.c_str(), options.get(), out.handle_.put(), e);
    });
    return out;
  }

  size_t input_count() const { return pyc_model_input_count(get()); }
  size_t output_count() const { return pyc_model_output_count(get()); }
  pyc_value_info input(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_model_input(get(), i, &info, e); });
    return info;
  }
  pyc_value_info output(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_model_output(get(), i, &info, e); });
    return info;
  }

  // What it keeps from one run to the next (the option `state`).
  size_t state_count() const { return pyc_model_state_count(get()); }
  pyc_value_info state(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_model_state(get(), i, &info, nullptr, e); });
    return info;
  }
  void set_state(size_t i, const pyc_tensor_view& from) {
    check([&](pyc_error** e) { return pyc_model_state_set(get(), i, &from, e); });
  }
  void get_state(size_t i, const pyc_tensor_view& to) {
    check([&](pyc_error** e) { return pyc_model_state_get(get(), i, &to, e); });
  }
  void clear_state(size_t i) {
    check([&](pyc_error** e) { return pyc_model_state_clear(get(), i, e); });
  }

  // Runs into memory that is there already: the way without an allocation.
  pyc_run_stats run(std::span<const pyc_tensor_view> inputs,
                    std::span<const pyc_tensor_view> outputs) {
    auto stats = sized<pyc_run_stats>();
    check([&](pyc_error** e) {
      return pyc_run_model(get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                           &stats, e);
    });
    return stats;
  }
  // Runs into memory that is made for what comes out, whatever that is.
  Results run_dynamic(std::span<const pyc_tensor_view> inputs, pyc_run_stats* stats = nullptr) {
    Results out;
    check([&](pyc_error** e) {
      return pyc_run_model_dynamic(get(), inputs.data(), inputs.size(), out.put(), stats, e);
    });
    return out;
  }
  // The same on values of any kind.
  Results run_values(std::span<const AnyValue> inputs, pyc_run_stats* stats = nullptr) {
    const auto list = AnyValue::pointers(inputs);
    Results out;
    check([&](pyc_error** e) {
      return pyc_run_model_values(get(), list.data(), list.size(), out.put(), stats, e);
    });
    return out;
  }
  // Runs into new tensors; not for open models.
  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    std::vector<pyc_tensor_view> in;
    for (const Tensor& tensor : inputs) in.push_back(tensor.view());
    std::vector<Tensor> outputs = make_outputs();
    std::vector<pyc_tensor_view> out;
    for (const Tensor& tensor : outputs) out.push_back(tensor.view());
    run(in, out);
    return outputs;
  }
  template <class... Tensors>
  std::vector<Tensor> operator()(Tensors&&... inputs) {
    std::vector<Tensor> list;
    (list.push_back(std::forward<Tensors>(inputs)), ...);
    return run(std::span<const Tensor>(list));
  }
  std::vector<Tensor> make_outputs() const {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < output_count(); ++i) {
      const pyc_value_info info = output(i);
      outputs.emplace_back(info.dtype, Shape(info.shape, info.shape + info.rank));
    }
    return outputs;
  }

  pyc_model_stats stats() const {
    auto stats = sized<pyc_model_stats>();
    check([&](pyc_error** e) { return pyc_model_get_stats(get(), &stats, e); });
    return stats;
  }
  pyc_memory_report memory() const {
    auto report = sized<pyc_memory_report>();
    check([&](pyc_error** e) { return pyc_model_get_memory(get(), &report, e); });
    return report;
  }
  // Whether shapes are only known when it runs, or parts of it are no tensor code.
  bool is_open() const { return pyc_model_is_open(get()) != 0; }
  Breaks breaks() const {
    Breaks out;
    check([&](pyc_error** e) { return pyc_model_get_breaks(get(), out.put(), e); });
    return out;
  }
  std::string decision_log() const {
    return take_text(
        [&](char** text, pyc_error** e) { return pyc_model_last_decision_log(get(), text, e); });
  }
  pyc_model* get() const { return handle_.get(); }

 private:
  friend class ModelFile;
  Model() = default;
  Handle<pyc_model, pyc_destroy_model> handle_;
};

// A model file before it is compiled.
class ModelFile {
 public:
  static ModelFile load(const std::string& path) {
    ModelFile out;
    check([&](pyc_error** e) { return pyc_model_file_load(path.c_str(), out.handle_.put(), e); });
    return out;
  }
  static ModelFile read(std::string_view bytes) {
    ModelFile out;
    check([&](pyc_error** e) {
      return pyc_model_file_load_bytes(bytes.data(), bytes.size(), out.handle_.put(), e);
    });
    return out;
  }

  size_t input_count() const { return pyc_model_file_input_count(get()); }
  size_t output_count() const { return pyc_model_file_output_count(get()); }
  pyc_value_info input(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_model_file_input(get(), i, &info, e); });
    return info;
  }
  pyc_value_info output(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_model_file_output(get(), i, &info, e); });
    return info;
  }
  // The value in a file (.npy, .pb) as that input takes it.
  AnyValue read_input(size_t i, const std::string& path) const {
    AnyValue out{Handle<pyc_result, pyc_result_destroy>()};
    check([&](pyc_error** e) {
      return pyc_model_file_read_input(get(), i, path.c_str(), out.handle_.put(), e);
    });
    return out;
  }
  // Nodes that PyC has no meaning for.
  std::vector<pyc_unsupported_node> unsupported() const {
    std::vector<pyc_unsupported_node> out;
    for (size_t i = 0; i < pyc_model_file_unsupported_count(get()); ++i) {
      out.push_back(sized<pyc_unsupported_node>());
      check([&](pyc_error** e) { return pyc_model_file_unsupported(get(), i, &out.back(), e); });
    }
    return out;
  }
  std::string describe() const {
    return take_text(
        [&](char** text, pyc_error** e) { return pyc_model_file_describe(get(), text, e); });
  }
  Model compile(const CompileOptions& options = {}) const {
    Model out;
    check([&](pyc_error** e) {
      return pyc_model_file_compile(get(), options.get(), out.handle_.put(), e);
    });
    return out;
  }
  Graph graph(const CompileOptions& options = {}) const {
    Graph out;
    check([&](pyc_error** e) {
      return pyc_model_file_graph(get(), options.get(), out.handle_.put(), e);
    });
    return out;
  }
  // The model as text: an open graph, or Graph IR.
  std::string text(const CompileOptions& options = {}) const {
    return take_text([&](char** text, pyc_error** e) {
      return pyc_model_file_text(get(), options.get(), text, e);
    });
  }
  void compile_to_file(const std::string& path, const CompileOptions& options = {}) const {
    check([&](pyc_error** e) {
      return pyc_model_file_compile_to_file(get(), options.get(), path.c_str(), e);
    });
  }
  // The programs of an open model and what the host does between them.
  std::string segments(const CompileOptions& options = {}) const {
    return take_text([&](char** text, pyc_error** e) {
      return pyc_model_file_segments(get(), options.get(), text, e);
    });
  }
  Breaks breaks(const CompileOptions& options = {}) const {
    Breaks out;
    check([&](pyc_error** e) {
      return pyc_model_file_get_breaks(get(), options.get(), out.put(), e);
    });
    return out;
  }
  pyc_model_file* get() const { return handle_.get(); }

 private:
  ModelFile() = default;
  Handle<pyc_model_file, pyc_model_file_destroy> handle_;
};

// What a file compiled ahead of time holds. Model::load runs it.
class Artifact {
 public:
  explicit Artifact(const std::string& path) {
    check([&](pyc_error** e) { return pyc_artifact_open(path.c_str(), handle_.put(), e); });
  }
  pyc_artifact_info info() const {
    auto info = sized<pyc_artifact_info>();
    check([&](pyc_error** e) { return pyc_artifact_get_info(handle_.get(), &info, e); });
    return info;
  }
  pyc_value_info input(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_artifact_input(handle_.get(), i, &info, e); });
    return info;
  }
  pyc_value_info output(size_t i) const {
    auto info = sized<pyc_value_info>();
    check([&](pyc_error** e) { return pyc_artifact_output(handle_.get(), i, &info, e); });
    return info;
  }

 private:
  Handle<pyc_artifact, pyc_artifact_destroy> handle_;
};

// The entries of the cache on disk.
class CacheFiles {
 public:
  // `folder` "": the one PYC_CACHE_DIR names.
  explicit CacheFiles(const std::string& folder, bool verify = false) {
    check([&](pyc_error** e) {
      return pyc_cache_files_read(folder.empty() ? nullptr : folder.c_str(), verify ? 1 : 0,
                                  handle_.put(), e);
    });
  }
  size_t size() const { return pyc_cache_files_count(handle_.get()); }
  pyc_cache_file operator[](size_t i) const {
    auto file = sized<pyc_cache_file>();
    check([&](pyc_error** e) { return pyc_cache_files_get(handle_.get(), i, &file, e); });
    return file;
  }
  static int64_t clear(const std::string& folder) {
    int64_t removed = 0;
    check([&](pyc_error** e) {
      return pyc_cache_files_clear(folder.empty() ? nullptr : folder.c_str(), &removed, e);
    });
    return removed;
  }

 private:
  Handle<pyc_cache_files, pyc_cache_files_destroy> handle_;
};

// An attribute's value; dtypes are written Dtype{PYC_DTYPE_F32}.
struct Dtype {
  pyc_dtype number;
};
using AttrValue = std::variant<int64_t, double, bool, std::string, Dtype, std::vector<int64_t>,
                               std::vector<double>>;
struct Attr {
  std::string name;
  AttrValue value;

  Attr(std::string n, AttrValue v) : name(std::move(n)), value(std::move(v)) {}
  Attr(std::string n, std::integral auto v) : name(std::move(n)), value(of(v)) {}
  Attr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}

 private:
  static AttrValue of(bool v) { return v; }
  static AttrValue of(std::integral auto v) { return static_cast<int64_t>(v); }
};

class ModelBuilder;

// A value of a graph under construction; + - * / build nodes.
class Value {
 public:
  Value(ModelBuilder* builder, pyc_value id) : builder_(builder), id_(id) {}
  pyc_value id() const { return id_; }
  ModelBuilder& builder() const { return *builder_; }

 private:
  ModelBuilder* builder_;
  pyc_value id_;
};

// Builds a graph op by op. It stays where it is: its values point to it.
class ModelBuilder {
 public:
  explicit ModelBuilder(const std::string& name = "main") : graph_(name) {}
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

  Value input(const std::string& name, pyc_dtype dtype, const Shape& shape) {
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_input(graph_.get(), name.c_str(), dtype, shape.data(), rank(shape), v, e);
    });
  }
  template <class T>
  Value constant(const std::string& name, pyc_dtype dtype, const Shape& shape,
                 const std::vector<T>& elements) {
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_constant(graph_.get(), name.c_str(), dtype, shape.data(), rank(shape),
                                elements.data(), elements.size() * sizeof(T), v, e);
    });
  }
  Value constant(const std::string& name, const Tensor& tensor) {
    const pyc_tensor_view t = tensor.view();
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_constant(graph_.get(), name.c_str(), t.dtype, t.shape, t.rank, t.data,
                                static_cast<size_t>(t.bytes), v, e);
    });
  }
  // A constant of another builder: both have it then, and models of both share what is made of it.
  Value constant_of(const std::string& name, const Value& constant) {
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_constant_of(graph_.get(), name.c_str(), constant.builder().graph_.get(),
                                   constant.id(), v, e);
    });
  }
  Value random(const std::string& name, pyc_dtype dtype, const Shape& shape, uint64_t seed,
               double lo, double hi) {
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_random(graph_.get(), name.c_str(), dtype, shape.data(), rank(shape), seed,
                              lo, hi, v, e);
    });
  }
  Value scalar(pyc_dtype dtype, double number) {
    return make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_scalar(graph_.get(), dtype, number, v, e);
    });
  }

  // Any op; gives its first output.
  Value op(const std::string& name, const std::vector<Value>& inputs,
           const std::vector<Attr>& attrs = {}, const std::string& value_name = "") {
    return ops(name, inputs, attrs, value_name).front();
  }
  // Any op; gives all its outputs.
  std::vector<Value> ops(const std::string& name, const std::vector<Value>& inputs,
                         const std::vector<Attr>& attrs = {}, const std::string& value_name = "") {
    std::vector<pyc_value> ids;
    for (const Value& value : inputs) ids.push_back(value.id());
    Handle<pyc_attrs, pyc_attrs_destroy> c_attrs;
    check([&](pyc_error** e) { return pyc_attrs_create(c_attrs.put(), e); });
    for (const Attr& attr : attrs) set(c_attrs.get(), attr);
    const Value first = make([&](pyc_value* v, pyc_error** e) {
      return pyc_graph_op(graph_.get(), name.c_str(), ids.data(), ids.size(), c_attrs.get(),
                          value_name.empty() ? nullptr : value_name.c_str(), v, e);
    });
    std::vector<Value> out;
    const size_t count = graph_.node(graph_.node_count() - 1).output_count;
    for (pyc_value i = 0; i < count; ++i) out.emplace_back(this, first.id() + i);
    return out;
  }

  Value matmul(Value a, Value b) { return op("matmul", {a, b}); }
  Value relu(Value x) { return op("relu", {x}); }
  Value gelu(Value x) { return op("gelu", {x}); }
  Value sigmoid(Value x) { return op("sigmoid", {x}); }
  Value tanh(Value x) { return op("tanh", {x}); }
  Value softmax(Value x, int64_t axis = -1) { return op("softmax", {x}, {{"axis", axis}}); }
  Value reshape(Value x, const Shape& shape) { return op("reshape", {x}, {{"shape", shape}}); }
  Value transpose(Value x, const std::vector<int64_t>& perm) {
    return op("transpose", {x}, {{"perm", perm}});
  }

  // Makes the value the next output; with a name, a copy of it under that name.
  void output(Value value, const std::string& name = "") {
    graph_.output(name.empty() ? value.id() : op("identity", {value}, {}, name).id());
  }

  const Graph& graph() const { return graph_; }
  Model compile(const CompileOptions& options = {}) const { return Model(graph_, options); }

 private:
  static int64_t rank(const Shape& shape) { return static_cast<int64_t>(shape.size()); }

  template <class Make>
  Value make(Make call) {
    pyc_value value = 0;
    check([&](pyc_error** e) { return call(&value, e); });
    return Value(this, value);
  }

  static void set(pyc_attrs* attrs, const Attr& attr) {
    const char* name = attr.name.c_str();
    check([&](pyc_error** e) { return std::visit(Setter{attrs, name, e}, attr.value); });
  }
  struct Setter {
    pyc_attrs* attrs;
    const char* name;
    pyc_error** error;
    pyc_status operator()(int64_t v) const { return pyc_attrs_set_int(attrs, name, v, error); }
    pyc_status operator()(double v) const { return pyc_attrs_set_float(attrs, name, v, error); }
    pyc_status operator()(bool v) const { return pyc_attrs_set_bool(attrs, name, v, error); }
    pyc_status operator()(const std::string& v) const {
      return pyc_attrs_set_string(attrs, name, v.c_str(), error);
    }
    pyc_status operator()(Dtype v) const {
      return pyc_attrs_set_dtype(attrs, name, v.number, error);
    }
    pyc_status operator()(const std::vector<int64_t>& v) const {
      return pyc_attrs_set_ints(attrs, name, v.data(), v.size(), error);
    }
    pyc_status operator()(const std::vector<double>& v) const {
      return pyc_attrs_set_floats(attrs, name, v.data(), v.size(), error);
    }
  };

  Graph graph_;
};

inline Value operator+(Value a, Value b) { return a.builder().op("add", {a, b}); }
inline Value operator-(Value a, Value b) { return a.builder().op("sub", {a, b}); }
inline Value operator*(Value a, Value b) { return a.builder().op("mul", {a, b}); }
inline Value operator/(Value a, Value b) { return a.builder().op("div", {a, b}); }

}  // namespace api1
}  // namespace pyc

#include "pyc/train.hpp"  // what trains, which needs the above

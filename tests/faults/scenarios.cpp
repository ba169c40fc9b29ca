#include "faults/scenarios.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "onnx/model_writer.h"

namespace pyc::faults {
namespace {

using onnx::test::Bytes;

constexpr int64_t kMaxBytes = 4096;
constexpr std::string_view kTextModel =
    "graph @g(%x: f32[2,3]) -> (%y, %z) {\n"
    "  %w = const f32[3,4] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %m = matmul(%x, %w)\n"
    "  %y = softmax(%m) {axis=1}\n"
    "  %t = transpose(%x) {perm=[1,0]}\n"
    "  %z = cumsum(%t) {axis=0}\n"
    "}\n";

constexpr std::string_view kSmallModel =
    "graph @g(%x: f32[2,3]) -> (%y, %z) {\n"
    "  %y = relu(%x)\n"
    "  %z = reduce_max(%x) {axes=[0]}\n"
    "}\n";

// Keeps the first refusal of a chain of calls.
class Calls {
 public:
  ~Calls() { pyc_error_destroy(error_); }
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // Whether to go on: `call` is given where to put its error.
  template <class Call>
  bool ok(Call call) {
    if (answer_.status != PYC_STATUS_OK) return false;
    answer_.status = call(&error_);
    if (answer_.status != PYC_STATUS_OK) say(pyc_error_message(error_));
    return answer_.status == PYC_STATUS_OK;
  }
  void say(const char* text) {
    const size_t used = std::strlen(answer_.text.data());
    std::snprintf(answer_.text.data() + used, answer_.text.size() - used, "%s ", text);
  }
  // Adds the text and destroys it.
  void say_and_free(char* text) {
    say(text);
    pyc_text_destroy(text);
  }
  const Answer& answer() const { return answer_; }

 private:
  Answer answer_;
  pyc_error* error_ = nullptr;
};

// Options that are made while faults may strike: without memory for them there are none.
class Options {
 public:
  Options(Calls& calls, const char* device, const char* threads) : calls_(calls) {
    calls_.ok([&](pyc_error** e) { return pyc_compile_options_create(&handle_, e); });
    set("device", device);
    set("threads", threads);
  }
  ~Options() { pyc_compile_options_destroy(handle_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void set(const char* name, const char* value) {
    calls_.ok([&](pyc_error** e) { return pyc_compile_options_set(handle_, name, value, e); });
  }
  const pyc_compile_options* get() const { return handle_; }

 private:
  Calls& calls_;
  pyc_compile_options* handle_ = nullptr;
};

// Runs the model on seeded inputs and says the digests of its outputs.
void run_model(Calls& calls, pyc_model* model) {
  constexpr size_t kMost = 4;
  alignas(64) static std::array<std::array<unsigned char, kMaxBytes>, 2 * kMost> memory;
  std::array<pyc_tensor_view, kMost> inputs{};
  std::array<pyc_tensor_view, kMost> outputs{};
  const size_t input_count = pyc_model_input_count(model);
  const size_t output_count = pyc_model_output_count(model);
  const auto describe = [&](bool is_input, size_t i, pyc_tensor_view& view) {
    pyc_value_info info{};
    info.struct_size = sizeof info;
    const auto ask = is_input ? pyc_model_input : pyc_model_output;
    if (!calls.ok([&](pyc_error** e) { return ask(model, i, &info, e); })) return;
    if (info.bytes > kMaxBytes) std::abort();
    auto& bytes = memory[is_input ? i : kMost + i];
    bytes.fill(0xA5);
    view = view_of(bytes.data(), info.shape, info.rank, info.bytes, info.dtype);
  };
  for (size_t i = 0; i < input_count; ++i) {
    describe(true, i, inputs[i]);
    calls.ok([&](pyc_error** e) { return pyc_tensor_fill_random(&inputs[i], 7 + i, e); });
  }
  for (size_t i = 0; i < output_count; ++i) describe(false, i, outputs[i]);
  pyc_run_stats stats{};
  stats.struct_size = sizeof stats;
  calls.ok([&](pyc_error** e) {
    return pyc_run_model(model, inputs.data(), input_count, outputs.data(), output_count, &stats,
                         e);
  });
  for (size_t i = 0; i < output_count; ++i) {
    char* digest = nullptr;
    if (!calls.ok([&](pyc_error** e) { return pyc_tensor_digest(&outputs[i], &digest, e); })) break;
    calls.say_and_free(digest);
  }
}

Answer compile_and_run_file(const std::string& path, const char* device, const char* threads,
                            const char* option = "cache", const char* value = "on") {
  Calls calls;
  Options o(calls, device, threads);
  o.set(option, value);
  pyc_model* model = nullptr;
  if (calls.ok([&](pyc_error** e) {
        return pyc_compile_model_file(path.c_str(), o.get(), &model, e);
      })) {
    run_model(calls, model);
  }
  pyc_destroy_model(model);
  pyc_cache_clear();
  return calls.answer();
}

Answer text_on_reference(const Files& files) {
  return compile_and_run_file(files.text_model, "reference", "1");
}
// Two kernels: one is compiled by a helper thread.
Answer two_kernels_on_cpu(const Files& files) {
  return compile_and_run_file(files.small_model, "cpu", "2");
}
Answer onnx_on_reference(const Files& files) {
  return compile_and_run_file(files.onnx_model, "reference", "2", "cache", "off");
}
Answer onnx_on_cpu(const Files& files) {
  return compile_and_run_file(files.onnx_model, "cpu", "1");
}

Answer tensor_files(const Files& files) {
  Calls calls;
  for (const std::string* path : {&files.npy, &files.pb}) {
    pyc_tensor* tensor = nullptr;
    pyc_tensor_view view = view_of(nullptr, nullptr, 0, 0, PYC_DTYPE_F32);
    char* digest = nullptr;
    calls.ok([&](pyc_error** e) {
      return pyc_tensor_load_file(path->c_str(), PYC_DTYPE_ANY, &tensor, e);
    });
    calls.ok([&](pyc_error** e) { return pyc_tensor_get_view(tensor, &view, e); });
    calls.ok([&](pyc_error** e) { return pyc_tensor_save_npy(&view, files.saved.c_str(), e); });
    if (calls.ok([&](pyc_error** e) { return pyc_tensor_digest(&view, &digest, e); })) {
      calls.say_and_free(digest);
    }
    pyc_tensor_destroy(tensor);
  }
  return calls.answer();
}

// Builds y = relu(x @ w + 0.5) into `graph`.
void build_graph(Calls& calls, pyc_graph* graph) {
  const std::array<int64_t, 2> x_shape = {2, 3};
  const std::array<int64_t, 2> w_shape = {3, 2};
  const std::array<float, 6> weights = {1, -1, 2, -2, 3, -3};
  pyc_value x{};
  pyc_value w{};
  pyc_value bias{};
  pyc_value product{};
  pyc_value sum{};
  pyc_value y{};
  calls.ok([&](pyc_error** e) {
    return pyc_graph_input(graph, "x", PYC_DTYPE_F32, x_shape.data(), 2, &x, e);
  });
  calls.ok([&](pyc_error** e) {
    return pyc_graph_constant(graph, "w", PYC_DTYPE_F32, w_shape.data(), 2, weights.data(),
                              sizeof weights, &w, e);
  });
  calls.ok([&](pyc_error** e) { return pyc_graph_scalar(graph, PYC_DTYPE_F32, 0.5, &bias, e); });
  const auto op = [&](const char* name, pyc_value a, pyc_value b, size_t count, pyc_value* out) {
    const std::array<pyc_value, 2> operands = {a, b};
    calls.ok([&](pyc_error** e) {
      return pyc_graph_op(graph, name, operands.data(), count, nullptr, nullptr, out, e);
    });
  };
  op("matmul", x, w, 2, &product);
  op("add", product, bias, 2, &sum);
  op("relu", sum, sum, 1, &y);
  calls.ok([&](pyc_error** e) { return pyc_graph_output(graph, y, e); });
}

// A refusal in the middle of a healthy life: it is what the caller asks for here.
void provoke_refusals(Calls& calls, pyc_model* model) {
  const auto refused = [&](pyc_status expected, auto call) {
    calls.ok([&](pyc_error** e) -> pyc_status {
      const pyc_status status = call(e);
      if (status != expected) return status == PYC_STATUS_OK ? PYC_STATUS_INTERNAL : status;
      pyc_error_destroy(*e);
      *e = nullptr;
      return PYC_STATUS_OK;
    });
  };
  refused(PYC_STATUS_UNKNOWN_OPTION, [&](pyc_error** e) {
    pyc_compile_options* none = nullptr;
    const pyc_status made = pyc_compile_options_create(&none, e);
    if (made != PYC_STATUS_OK) return made;
    const pyc_status status = pyc_compile_options_set(none, "device", "refrence", e);
    pyc_compile_options_destroy(none);
    return status;
  });
  refused(PYC_STATUS_INVALID_ARGUMENT,
          [&](pyc_error** e) { return pyc_run_model(model, nullptr, 0, nullptr, 0, nullptr, e); });
  refused(PYC_STATUS_PARSE_ERROR, [&](pyc_error** e) {
    pyc_graph* none = nullptr;
    constexpr std::string_view kText = "graph @g(%x: f32[2]) -> (%y) {\n  %y = relu(%x\n}\n";
    return pyc_graph_parse(kText.data(), kText.size(), &none, e);
  });
}

Answer builder_life(const Files&) {
  Calls calls;
  pyc_graph* graph = nullptr;
  pyc_model* model = nullptr;
  char* text = nullptr;
  const Options o(calls, "reference", "1");
  if (calls.ok([&](pyc_error** e) { return pyc_graph_create("layer", &graph, e); })) {
    build_graph(calls, graph);
  }
  if (calls.ok([&](pyc_error** e) { return pyc_graph_fingerprint(graph, &text, e); })) {
    calls.say_and_free(text);
  }
  if (calls.ok([&](pyc_error** e) { return pyc_compile_model(graph, o.get(), &model, e); })) {
    provoke_refusals(calls, model);
    run_model(calls, model);
    if (calls.ok([&](pyc_error** e) { return pyc_model_last_decision_log(model, &text, e); })) {
      pyc_text_destroy(text);
    }
    if (calls.ok([&](pyc_error** e) {
          return pyc_model_report(model, graph, nullptr, PYC_REPORT_HTML, &text, e);
        })) {
      pyc_text_destroy(text);
    }
    pyc_refusals* refusals = nullptr;
    calls.ok([&](pyc_error** e) { return pyc_model_get_refusals(model, &refusals, e); });
    pyc_refusals_destroy(refusals);
  }
  pyc_destroy_model(model);
  pyc_graph_destroy(graph);
  pyc_cache_clear();
  return calls.answer();
}

// A case that cannot be run has a verdict and no status: its reason is taken as one.
Answer open_shapes(const Files& files) {
  Calls calls;
  char* json = nullptr;
  const Options o(calls, "reference", "1");
  calls.ok([&](pyc_error** e) -> pyc_status {
    const pyc_status status =
        pyc_conformance_case(files.onnx_case.c_str(), o.get(), nullptr, &json, e);
    if (status != PYC_STATUS_OK) return status;
    for (const pyc_status s : {PYC_STATUS_OUT_OF_MEMORY, PYC_STATUS_IO_ERROR}) {
      if (std::strstr(json, pyc_status_name(s)) != nullptr) return s;
    }
    return status;
  });
  if (json != nullptr) calls.say_and_free(json);
  return calls.answer();
}

// Compiled ahead of time, loaded and run.
Answer artifact(const Files& files) {
  Calls calls;
  pyc_graph* graph = nullptr;
  pyc_model* model = nullptr;
  const Options o(calls, "cpu", "1");
  calls.ok(
      [&](pyc_error** e) { return pyc_graph_load_file(files.small_model.c_str(), &graph, e); });
  calls.ok([&](pyc_error** e) {
    return pyc_compile_to_file(graph, o.get(), files.artifact.c_str(), e);
  });
  pyc_graph_destroy(graph);
  if (calls.ok([&](pyc_error** e) {
        return pyc_compile_model_file(files.artifact.c_str(), o.get(), &model, e);
      })) {
    run_model(calls, model);
  }
  pyc_destroy_model(model);
  pyc_cache_clear();
  return calls.answer();
}

// A model whose shapes are known when it runs: results in memory of their own.
Answer open_model(const Files& files) {
  Calls calls;
  pyc_model* model = nullptr;
  pyc_results* results = nullptr;
  const pyc_result* first = nullptr;
  char* digest = nullptr;
  const Options o(calls, "reference", "1");
  std::array<float, 6> x = {1, -2, 3, -4, 5, -6};
  const std::array<int64_t, 2> shape = {2, 3};
  const pyc_tensor_view input = view_of(x.data(), shape.data(), 2, sizeof x, PYC_DTYPE_F32);
  pyc_tensor_view output = view_of(nullptr, nullptr, 0, 0, PYC_DTYPE_F32);
  calls.ok([&](pyc_error** e) {
    return pyc_compile_model_file(files.open_model.c_str(), o.get(), &model, e);
  });
  calls.ok(
      [&](pyc_error** e) { return pyc_run_model_dynamic(model, &input, 1, &results, nullptr, e); });
  calls.ok([&](pyc_error** e) { return pyc_results_get(results, 0, &first, e); });
  calls.ok([&](pyc_error** e) { return pyc_result_tensor(first, &output, e); });
  if (calls.ok([&](pyc_error** e) { return pyc_tensor_digest(&output, &digest, e); })) {
    calls.say_and_free(digest);
  }
  pyc_results_destroy(results);
  pyc_destroy_model(model);
  pyc_cache_clear();
  return calls.answer();
}

// Values of every kind, made, joined and copied; one of them is what a model runs on.
Answer values(const Files& files) {
  Calls calls;
  pyc_model* model = nullptr;
  pyc_results* results = nullptr;
  std::array<pyc_result*, 5> made{};
  const Options o(calls, "reference", "1");
  std::array<float, 6> x = {1, -2, 3, -4, 5, -6};
  const std::array<int64_t, 2> shape = {2, 3};
  const pyc_tensor_view input = view_of(x.data(), shape.data(), 2, sizeof x, PYC_DTYPE_F32);
  const pyc_string word = {"a word that is too long to be kept in place", 43};
  calls.ok([&](pyc_error** e) { return pyc_result_from_tensor(&input, &made[0], e); });
  calls.ok([&](pyc_error** e) { return pyc_result_from_strings(&word, nullptr, 0, &made[1], e); });
  calls.ok([&](pyc_error** e) { return pyc_result_nothing(&made[2], e); });
  calls.ok([&](pyc_error** e) { return pyc_result_from_items(made.data(), 3, &made[3], e); });
  calls.ok([&](pyc_error** e) { return pyc_result_copy(made[3], &made[4], e); });
  calls.ok([&](pyc_error** e) {
    return pyc_compile_model_file(files.open_model.c_str(), o.get(), &model, e);
  });
  if (calls.ok([&](pyc_error** e) {
        return pyc_run_model_values(model, made.data(), 1, &results, nullptr, e);
      })) {
    calls.say(pyc_result_type_text(made[4]));
  }
  for (pyc_result* value : made) pyc_result_destroy(value);
  pyc_results_destroy(results);
  pyc_destroy_model(model);
  pyc_cache_clear();
  return calls.answer();
}

// The same model twice, with a cache on disk, which is emptied again.
Answer disk_cache(const Files& files) {
  const auto run = [&] {
    return compile_and_run_file(files.small_model, "cpu", "1", "cache_dir", files.cache.c_str());
  };
  Answer answer = run();
  if (answer.status == PYC_STATUS_OK) answer = run();
  Calls calls;
  int64_t removed = 0;
  calls.ok([&](pyc_error** e) { return pyc_cache_files_clear(files.cache.c_str(), &removed, e); });
  return answer.status == PYC_STATUS_OK && calls.answer().status != PYC_STATUS_OK ? calls.answer()
                                                                                  : answer;
}

constexpr Scenario kScenarios[] = {
    {"text_on_reference", text_on_reference},
    {"two_kernels_on_cpu", two_kernels_on_cpu},
    {"onnx_on_reference", onnx_on_reference},
    {"onnx_on_cpu", onnx_on_cpu},
    {"tensor_files", tensor_files},
    {"builder_life", builder_life},
    {"open_shapes", open_shapes},
    {"open_model", open_model},
    {"values", values},
    {"artifact", artifact},
    {"disk_cache", disk_cache, true},
};

void write(const std::string& path, const Bytes& content) {
  std::ofstream(path, std::ios::binary) << content;
}

const std::vector<float> kWeights = {1, 2, 3, 4, 5, 6};

Bytes onnx_with_outside_weights() {
  using namespace onnx::test;
  Graph g;
  g.inputs = {value("x", kF32, {2, 3})};
  g.outputs = {value("y", kF32, {2, 2})};
  g.initializers = {external("w", kF32, {3, 2}, {{"location", "w.bin"}})};
  g.nodes = {node("MatMul", {"x", "w"}, {"m"}, {}, "product"), node("Relu", {"m"}, {"y"})};
  return model(g);
}

// y = x reshaped to the shape of a row of it: shapes are known when the inputs are.
Bytes onnx_of_unknown_shape() {
  using namespace onnx::test;
  Graph g;
  g.inputs = {value("x", tensor_type(kF32, {named("n"), fixed(3)}))};
  g.outputs = {value("y", tensor_type(kF32, {named("k")}))};
  g.nodes = {node("Relu", {"x"}, {"r"}), node("Size", {"x"}, {"s"}),
             node("Unsqueeze", {"s", "axis"}, {"shape"}), node("Reshape", {"r", "shape"}, {"y"})};
  g.initializers = {ints("axis", {0})};
  return model(g);
}

Bytes npy_of(const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
  header.resize(128 - 11, ' ');
  header += '\n';
  Bytes out("\x93NUMPY\x01", 7);
  out += '\0';
  out += static_cast<char>(header.size());
  out += '\0';
  return out + header + onnx::test::raw_of(values);
}

}  // namespace

Files::Files() {
  // In memory where there is a place for it: every run syncs files, and a disk may take its time.
  const std::filesystem::path memory = "/dev/shm";
  const bool usable = access(memory.c_str(), W_OK | X_OK) == 0;
  std::string name =
      (usable ? memory : std::filesystem::temp_directory_path()) / "pyc_faults_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  folder = name;
  text_model = folder + "/m.ir";
  small_model = folder + "/small.ir";
  onnx_model = folder + "/m.onnx";
  npy = folder + "/a.npy";
  pb = folder + "/a.pb";
  saved = folder + "/saved.npy";
  artifact = folder + "/m.pycm";
  cache = folder + "/cache";
  onnx_case = folder + "/case";
  open_model = onnx_case + "/model.onnx";
  const std::string data = onnx_case + "/test_data_set_0";
  std::filesystem::create_directories(data);
  write(text_model, Bytes(kTextModel));
  write(small_model, Bytes(kSmallModel));
  write(onnx_model, onnx_with_outside_weights());
  write(folder + "/w.bin", onnx::test::raw_of(kWeights));
  write(npy, npy_of(kWeights));
  write(pb, onnx::test::floats("a", {2, 3}, kWeights));
  write(onnx_case + "/model.onnx", onnx_of_unknown_shape());
  write(data + "/input_0.pb", onnx::test::floats("x", {2, 3}, kWeights));
  write(data + "/output_0.pb", onnx::test::floats("y", {6}, kWeights));
}

Files::~Files() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::span<const Scenario> scenarios() { return kScenarios; }

}  // namespace pyc::faults

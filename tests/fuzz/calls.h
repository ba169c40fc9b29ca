#pragma once

// A byte string as a sequence of calls of the C ABI: each call takes its arguments, right ones and
// wrong ones, from the bytes that follow. Handles are made, used and destroyed in any order the ABI
// allows; every call may fail, and nothing may be broken or lost by it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pyc/pyc.h"

namespace pyc::test {

class Calls {
 public:
  explicit Calls(const std::string& bytes) : bytes_(bytes) {}
  ~Calls() {
    destroy_model();
    pyc_compile_options_destroy(options_);
    pyc_attrs_destroy(attrs_);
    pyc_graph_destroy(graph_);
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // At most kMaxCalls calls; returns how many were made.
  int run() {
    int made = 0;
    for (; at_ < bytes_.size() && made < kMaxCalls; ++made) call();
    return made;
  }

 private:
  static constexpr int kMaxCalls = 64;
  static constexpr int64_t kMaxElements = 4096;

  uint8_t byte() { return at_ < bytes_.size() ? static_cast<uint8_t>(bytes_[at_++]) : 0; }
  bool often() { return byte() % 16 != 0; }
  // One in sixteen is NULL.
  template <class T>
  T* maybe(T* pointer) {
    return often() ? pointer : nullptr;
  }
  pyc_error** error() {
    pyc_error_destroy(error_);
    error_ = nullptr;
    return maybe(&error_);
  }

  const char* name() {
    static constexpr std::array<const char*, 8> kNames = {"x", "y", "w",        "axis",
                                                          "",  "a", "keepdims", "\x1b[2J\xff"};
    return maybe(kNames[byte() % kNames.size()]);
  }
  pyc_dtype dtype() { return often() ? byte() % 24 : -static_cast<pyc_dtype>(byte()); }
  pyc_value value() {
    return often() && values_ > 0 ? byte() % values_ : static_cast<pyc_value>(byte());
  }

  // Dims whose product stays small, or one that is wrong.
  int64_t shape(std::array<int64_t, 4>& dims) {
    const int64_t rank = byte() % 4;
    for (int64_t i = 0; i < rank; ++i) dims[static_cast<size_t>(i)] = byte() % 8;
    if (!often()) dims[0] = INT64_MAX - byte();
    return often() ? rank : -1;
  }

  void call() {
    switch (byte() % 16) {
      case 0:
        return new_graph();
      case 1:
        return add_input();
      case 2:
      case 3:
      case 4:
        return add_node();
      case 5:
        return add_constant();
      case 6:
        (void)pyc_graph_output(maybe(graph_), value(), error());
        return;
      case 7:
        return set_attribute();
      case 8:
        return set_option();
      case 9:
        return compile();
      case 10:
      case 11:
        return run_model();
      case 12:
        return look_at_model();
      case 13:
        return look_at_graph();
      case 14:
        destroy_model();
        return;
      default:
        return parse_rest();
    }
  }

  void new_graph() {
    pyc_graph* made = nullptr;
    if (pyc_graph_create(name(), maybe(&made), error()) != PYC_STATUS_OK) return;
    pyc_graph_destroy(graph_);
    graph_ = made;
    values_ = 0;
  }

  void count_values() { values_ = static_cast<uint32_t>(pyc_graph_value_count(graph_)); }

  void add_input() {
    std::array<int64_t, 4> dims{};
    const int64_t rank = shape(dims);
    pyc_value v = 0;
    (void)pyc_graph_input(maybe(graph_), name(), dtype(), maybe(dims.data()), rank, maybe(&v),
                          error());
    count_values();
  }

  void add_constant() {
    std::array<int64_t, 4> dims{};
    const int64_t rank = shape(dims);
    std::array<char, 256> data{};
    for (char& c : data) c = static_cast<char>(byte());
    pyc_value v = 0;
    (void)pyc_graph_constant(maybe(graph_), name(), dtype(), dims.data(), rank, data.data(),
                             byte() % (data.size() + 1), maybe(&v), error());
    count_values();
  }

  void add_node() {
    auto info = pyc_op_info{};
    info.struct_size = often() ? sizeof(info) : byte() % sizeof(info);
    if (pyc_op((byte() * size_t{256} + byte()) % pyc_op_count(), &info, error()) != PYC_STATUS_OK) {
      return;
    }
    std::array<pyc_value, 4> inputs{};
    for (pyc_value& v : inputs) v = value();
    pyc_value v = 0;
    (void)pyc_graph_op(maybe(graph_), info.name, inputs.data(), byte() % 5,
                       often() ? attrs_ : nullptr, nullptr, maybe(&v), error());
    count_values();
  }

  void set_attribute() {
    if (attrs_ == nullptr) (void)pyc_attrs_create(&attrs_, error());
    const std::array<int64_t, 3> ints = {byte() % 8, -1, byte()};
    switch (byte() % 4) {
      case 0:
        (void)pyc_attrs_set_int(maybe(attrs_), name(), byte() % 8 - 3, error());
        return;
      case 1:
        (void)pyc_attrs_set_ints(maybe(attrs_), name(), ints.data(), byte() % 4, error());
        return;
      case 2:
        pyc_attrs_destroy(attrs_);
        attrs_ = nullptr;
        return;
      default:
        (void)pyc_attrs_set_string(maybe(attrs_), name(), name(), error());
    }
  }

  void set_option() {
    if (options_ == nullptr) (void)pyc_compile_options_create(&options_, error());
    auto info = pyc_option_info{};
    info.struct_size = sizeof(info);
    if (pyc_option(byte() % (pyc_option_count() + 1), &info, error()) != PYC_STATUS_OK) return;
    const std::string option = info.name;
    if (option == "cache_dir" || option == "device") return;  // writes files; compiles for long
    static constexpr std::array<const char*, 8> kValues = {
        "on", "off", "0", "1", "-1", "4", "", "99999999999999999999"};
    (void)pyc_compile_options_set(maybe(options_), info.name,
                                  maybe(kValues[byte() % kValues.size()]), error());
    char* text = nullptr;
    if (pyc_compile_options_get(maybe(options_), info.name, maybe(&text), error()) ==
        PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
  }

  void compile() {
    if (options_ == nullptr) (void)pyc_compile_options_create(&options_, error());
    (void)pyc_compile_options_set(options_, "device", "reference", error());
    (void)pyc_compile_options_set(options_, "cache", "off", error());
    if (pyc_graph_value_count(graph_) > 0 && !small()) return;
    pyc_model* made = nullptr;
    if (pyc_compile_model(maybe(graph_), maybe(options_), maybe(&made), error()) != PYC_STATUS_OK) {
      return;
    }
    destroy_model();
    model_ = made;
  }

  // Whether all values together are small enough to be computed in no time.
  bool small() {
    int64_t all = 0;
    for (pyc_value v = 0; v < pyc_graph_value_count(graph_); ++v) {
      auto info = pyc_value_info{};
      info.struct_size = sizeof(info);
      if (pyc_graph_value(graph_, v, &info, error()) != PYC_STATUS_OK) return false;
      int64_t elements = 1;
      for (int64_t d = 0; d < info.rank && elements <= kMaxElements; ++d) elements *= info.shape[d];
      all += elements;
      if (all > kMaxElements) return false;
    }
    return true;
  }

  void run_model() {
    if (model_ == nullptr) return;
    std::vector<std::vector<char>> memory;
    const auto views = [&](size_t count, auto info_of) {
      std::vector<pyc_tensor_view> out;
      for (size_t i = 0; i < count; ++i) {
        auto info = pyc_value_info{};
        info.struct_size = sizeof(info);
        if (info_of(model_, i, &info, nullptr) != PYC_STATUS_OK) return out;
        int64_t bytes = pyc_dtype_size(info.dtype);
        for (int64_t d = 0; d < info.rank; ++d) bytes *= info.shape[d];
        memory.emplace_back(static_cast<size_t>(bytes < 0 ? 0 : bytes), static_cast<char>(byte()));
        auto view = pyc_tensor_view{};
        view.struct_size = often() ? sizeof(view) : byte();
        view.data = maybe(memory.back().data());
        view.bytes = often() ? bytes : byte() - 1;
        view.shape = maybe(info.shape);
        view.rank = often() ? info.rank : byte() - 1;
        view.dtype = often() ? info.dtype : dtype();
        view.device_type = often() ? 0 : byte();
        if (view.rank > info.rank) view.rank = info.rank;  // what shape points to ends there
        out.push_back(view);
      }
      return out;
    };
    const auto in = views(pyc_model_input_count(model_), pyc_model_input);
    const auto out = views(pyc_model_output_count(model_), pyc_model_output);
    // Views of another size cannot stand in one array.
    for (const auto* list : {&in, &out}) {
      for (const pyc_tensor_view& v : *list) {
        if (v.struct_size != sizeof(v)) return;
      }
    }
    auto stats = pyc_run_stats{};
    stats.struct_size = sizeof(stats);
    if (often()) {
      (void)pyc_run_model(model_, in.data(), in.size(), out.data(), out.size(), maybe(&stats),
                          error());
      return;
    }
    pyc_results* results = nullptr;
    if (pyc_run_model_dynamic(model_, in.data(), in.size(), &results, maybe(&stats), error()) ==
        PYC_STATUS_OK) {
      const pyc_result* result = nullptr;
      (void)pyc_results_get(results, byte() % 4, maybe(&result), error());
      pyc_results_destroy(results);
    }
  }

  void look_at_model() {
    char* json = nullptr;
    if (pyc_model_last_decision_log(maybe(model_), maybe(&json), error()) == PYC_STATUS_OK) {
      pyc_text_destroy(json);
    }
    // Takes no byte: what the corpus means stays.
    if (pyc_model_report(model_, graph_, nullptr, PYC_REPORT_JSON, &json, nullptr) ==
        PYC_STATUS_OK) {
      pyc_text_destroy(json);
    }
    auto report = pyc_memory_report{};
    report.struct_size = often() ? sizeof(report) : byte() % sizeof(report);
    (void)pyc_model_get_memory(maybe(model_), maybe(&report), error());
    auto kernel = pyc_kernel_info{};
    kernel.struct_size = sizeof(kernel);
    if (model_ != nullptr) (void)pyc_model_kernel(model_, byte(), &kernel, error());
  }

  void look_at_graph() {
    char* text = nullptr;
    if (pyc_graph_print(maybe(graph_), maybe(&text), error()) == PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
    (void)pyc_graph_verify(maybe(graph_), error());
    pyc_graph* copy = nullptr;
    if (pyc_graph_clone(maybe(graph_), maybe(&copy), error()) == PYC_STATUS_OK) {
      pyc_graph_destroy(copy);
    }
  }

  // What is left of the bytes, as a model of any kind.
  void parse_rest() {
    pyc_graph* made = nullptr;
    const size_t size = bytes_.size() - at_;
    if (size < (size_t{1} << 12) &&
        pyc_graph_parse(bytes_.data() + at_, size, &made, error()) == PYC_STATUS_OK) {
      pyc_graph_destroy(graph_);
      graph_ = made;
      count_values();
      at_ = bytes_.size();
    }
  }

  void destroy_model() {
    pyc_destroy_model(model_);
    model_ = nullptr;
    pyc_error_destroy(error_);
    error_ = nullptr;
  }

  const std::string& bytes_;
  size_t at_ = 0;
  pyc_graph* graph_ = nullptr;
  pyc_attrs* attrs_ = nullptr;
  pyc_compile_options* options_ = nullptr;
  pyc_model* model_ = nullptr;
  pyc_error* error_ = nullptr;
  uint32_t values_ = 0;
};

inline void fuzz_calls(const std::string& bytes) { (void)Calls(bytes).run(); }

}  // namespace pyc::test

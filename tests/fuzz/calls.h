#pragma once

// A byte string as a sequence of calls of the C ABI: each call takes its arguments, right ones and
// wrong ones, from the bytes that follow. Handles are made, used and destroyed in any order the ABI
// allows; every call may fail, and nothing may be broken or lost by it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyc/pyc.h"

namespace pyc::test {

class Calls {
 public:
  explicit Calls(std::string bytes) : bytes_(std::move(bytes)) {}
  ~Calls() {
    destroy_model();
    pyc_train_destroy(trainer_);
    pyc_train_options_destroy(train_options_);
    pyc_compile_options_destroy(options_);
    pyc_attrs_destroy(attrs_);
    pyc_graph_destroy(graph_);
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // At most kMaxCalls calls; returns how many were made.
  int run() {
    int made = 0;
    for (; at_ < bytes_.size() && made < kMaxCalls; ++made) {
      const size_t begin = at_;
      call();
      at_ = std::max(at_, begin + kRow);
    }
    return made;
  }

  // What was reached in the end.
  int64_t steps_done() const { return pyc_train_steps_done(trainer_); }
  size_t states() const { return pyc_model_state_count(model_); }

  // A call and its arguments have this many bytes, or more where they are its data, so that a byte
  // changed in one changes none of the others. A 1 is a right argument.
  static constexpr size_t kRow = 64;

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
    switch (byte() % 24) {
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
      case 15:
        return parse_rest();
      case 16:
        return take_graph();
      case 17:
        return use_state();
      case 18:
        return add_contract();
      case 19:
        return report();
      case 20:
        return set_train_option();
      case 21:
        return make_trainer();
      case 22:
        return train();
      default:
        return look_at_trainer();
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
    if (options_ == nullptr) (void)pyc_compile_options_create(&options_, nullptr);
    auto info = pyc_option_info{};
    info.struct_size = sizeof(info);
    if (pyc_option(byte() % (pyc_option_count() + 1), &info, error()) != PYC_STATUS_OK) return;
    const std::string option = info.name;
    if (option == "cache_dir" || option == "device") return;  // writes files; compiles for long
    static constexpr std::array<const char*, 9> kValues = {
        "on", "off", "0", "1", "-1", "4", "", "99999999999999999999", "sum=next"};
    (void)pyc_compile_options_set(maybe(options_), info.name,
                                  maybe(kValues[byte() % kValues.size()]), error());
    char* text = nullptr;
    if (pyc_compile_options_get(maybe(options_), info.name, maybe(&text), error()) ==
        PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
  }

  // Kept programs and one thread make most calls short.
  void set_safe_options() {
    if (options_ == nullptr) (void)pyc_compile_options_create(&options_, nullptr);
    (void)pyc_compile_options_set(options_, "device", "reference", error());
    (void)pyc_compile_options_set(options_, "cache", often() ? "on" : "off", error());
    if (often()) (void)pyc_compile_options_set(options_, "threads", "1", error());
  }

  void compile() {
    set_safe_options();
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

  using InfoOf = std::function<pyc_status(size_t, pyc_value_info*)>;

  // Memory and views for `count` values, right ones and wrong ones. None when they cannot stand in
  // one array, being of another size than the first.
  std::optional<std::vector<pyc_tensor_view>> views(size_t count, const InfoOf& info_of) {
    std::vector<pyc_tensor_view> out;
    bool one_size = true;
    for (size_t i = 0; i < count; ++i) {
      auto info = pyc_value_info{};
      info.struct_size = sizeof(info);
      if (info_of(i, &info) != PYC_STATUS_OK) break;
      int64_t bytes = pyc_dtype_size(info.dtype);
      for (int64_t d = 0; d < info.rank; ++d) bytes *= info.shape[d];
      memory_.emplace_back(static_cast<size_t>(bytes < 0 ? 0 : bytes), static_cast<char>(byte()));
      auto view = pyc_tensor_view{};
      view.struct_size = often() ? sizeof(view) : byte();
      view.data = maybe(memory_.back().data());
      view.bytes = often() ? bytes : byte() - 1;
      view.shape = maybe(info.shape);
      view.rank = often() ? info.rank : byte() - 1;
      view.dtype = often() ? info.dtype : dtype();
      view.device_type = often() ? 0 : byte();
      if (view.rank > info.rank) view.rank = info.rank;  // what shape points to ends there
      one_size = one_size && view.struct_size == sizeof(view);
      out.push_back(view);
    }
    if (!one_size) return std::nullopt;
    return out;
  }

  void run_model() {
    if (model_ == nullptr) return;
    memory_.clear();
    const auto in = views(pyc_model_input_count(model_), [&](size_t i, pyc_value_info* info) {
      return pyc_model_input(model_, i, info, nullptr);
    });
    const auto out = views(pyc_model_output_count(model_), [&](size_t i, pyc_value_info* info) {
      return pyc_model_output(model_, i, info, nullptr);
    });
    if (!in || !out) return;
    auto stats = pyc_run_stats{};
    stats.struct_size = sizeof(stats);
    if (often()) {
      (void)pyc_run_model(model_, in->data(), in->size(), out->data(), out->size(), maybe(&stats),
                          error());
      return;
    }
    pyc_results* results = nullptr;
    if (pyc_run_model_dynamic(model_, in->data(), in->size(), &results, maybe(&stats), error()) ==
        PYC_STATUS_OK) {
      const pyc_result* result = nullptr;
      (void)pyc_results_get(results, byte() % 4, maybe(&result), error());
      pyc_results_destroy(results);
    }
  }

  // One view of the state, read into it, written from it, or cleared; perhaps of a state that is
  // not there.
  void use_state() {
    const size_t count = pyc_model_state_count(maybe(model_));
    const size_t index = often() && count > 0 ? byte() % count : byte();
    auto info = pyc_value_info{};
    info.struct_size = often() ? sizeof(info) : byte() % sizeof(info);
    const char* output = nullptr;
    (void)pyc_model_state(maybe(model_), index, maybe(&info), maybe(&output), error());
    memory_.clear();
    const auto view = views(1, [&](size_t, pyc_value_info* into) {
      return pyc_model_state(model_, index, into, nullptr, nullptr);
    });
    if (!view) return;
    const pyc_tensor_view* given = view->empty() ? nullptr : maybe(view->data());
    switch (byte() % 3) {
      case 0:
        (void)pyc_model_state_set(maybe(model_), index, given, error());
        return;
      case 1:
        (void)pyc_model_state_get(maybe(model_), index, given, error());
        return;
      default:
        (void)pyc_model_state_clear(maybe(model_), index, error());
    }
  }

  void add_contract() {
    if (options_ == nullptr) (void)pyc_compile_options_create(&options_, nullptr);
    static constexpr std::array<const char*, 6> kContracts = {
        "memory_budget = 4096\nthreads = 1\n",
        "state = sum=next\n",
        "memory_budget = 1\n",
        "no_such_clause = 1\n",
        "# nothing\n\nthreads = \n",
        "compile_budget_ms = 1000\nthreads = 1\nthreads = 2"};
    std::string own;
    for (int n = byte() % 32; n > 0; --n) own += static_cast<char>(byte());
    const bool writes = own.find("cache_dir") != std::string::npos;
    const char* given = kContracts[byte() % kContracts.size()];
    if (!often() && !writes) given = own.c_str();
    (void)pyc_compile_options_contract(maybe(options_), maybe(given), error());
  }

  void report() {
    const std::array<int64_t, 8> times = {1, 2, 3, -1, 0, byte(), INT64_MAX, INT64_MIN};
    auto facts = pyc_report_facts{};
    facts.struct_size = often() ? sizeof(facts) : byte() % sizeof(facts);
    facts.title = name();
    facts.step_ns = maybe(times.data());
    facts.step_ns_count = often() ? pyc_model_step_count(model_) : byte() % (times.size() + 1);
    if (facts.step_ns_count > times.size()) facts.step_ns_count = 0;
    facts.flops_per_ns = byte() - 1;
    facts.bytes_per_ns = byte();
    char* text = nullptr;
    if (pyc_model_report(maybe(model_), maybe(graph_), maybe(&facts), byte() % 3, maybe(&text),
                         error()) == PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
  }

  void set_train_option() {
    if (train_options_ == nullptr) (void)pyc_train_options_create(&train_options_, nullptr);
    auto info = pyc_option_info{};
    info.struct_size = sizeof(info);
    const size_t index = byte() % (pyc_train_option_count() + 1);
    if (pyc_train_option(index, &info, error()) != PYC_STATUS_OK) return;
    static constexpr std::array<const char*, 12> kValues = {
        "mse", "cross_entropy", "output", "sgd", "adam", "0.1", "-1", "nan", "", "2", "skip", "w"};
    const char* given = often() ? kValues[byte() % kValues.size()] : info.initial;
    (void)pyc_train_options_set(maybe(train_options_), info.name, maybe(given), error());
    char* text = nullptr;
    if (pyc_train_options_get(maybe(train_options_), info.name, maybe(&text), error()) ==
        PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
  }

  void make_trainer() {
    set_safe_options();
    if (pyc_graph_value_count(graph_) > 0 && !small()) return;
    pyc_trainer* made = nullptr;
    if (pyc_train_create(maybe(graph_), maybe(train_options_), often() ? options_ : nullptr,
                         maybe(&made), error()) != PYC_STATUS_OK) {
      return;
    }
    pyc_train_destroy(trainer_);
    trainer_ = made;
  }

  void train() {
    if (trainer_ == nullptr) return;
    memory_.clear();
    const auto batch = views(pyc_train_batch_count(trainer_), [&](size_t i, pyc_value_info* info) {
      return pyc_train_batch(trainer_, i, info, nullptr);
    });
    if (!batch) return;
    const size_t count = often() ? batch->size() : byte() % (batch->size() + 1);
    auto result = pyc_train_result{};
    result.struct_size = often() ? sizeof(result) : byte() % sizeof(result);
    if (often()) {
      (void)pyc_train_step(maybe(trainer_), batch->data(), count, maybe(&result), error());
      return;
    }
    double loss = 0;
    (void)pyc_train_evaluate(maybe(trainer_), batch->data(), count, maybe(&loss), error());
  }

  // Of the trainer: a value of its state out and in, what it is, what it learned.
  void look_at_trainer() {
    const size_t count = pyc_train_state_count(maybe(trainer_));
    const size_t index = often() && count > 0 ? byte() % count : byte();
    auto info = pyc_value_info{};
    info.struct_size = often() ? sizeof(info) : byte() % sizeof(info);
    int32_t role = 0;
    (void)pyc_train_state(maybe(trainer_), index, maybe(&info), maybe(&role), error());
    std::array<char, 4096> data{};
    data.fill(static_cast<char>(byte()));
    const bool exact = often() && info.struct_size == sizeof(info);
    const size_t bytes = exact ? static_cast<size_t>(info.bytes) : byte();
    if (bytes <= data.size()) {
      (void)pyc_train_get_state(maybe(trainer_), index, maybe(data.data()), bytes, error());
      if (!often()) {
        (void)pyc_train_set_state(maybe(trainer_), index, maybe(data.data()), bytes, error());
      }
    }
    (void)pyc_train_batch(maybe(trainer_), byte(), maybe(&info), error());
    (void)pyc_train_steps_done(maybe(trainer_));
    char* text = nullptr;
    if (pyc_train_digest(maybe(trainer_), maybe(&text), error()) == PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
    pyc_graph* trained = nullptr;
    if (pyc_train_graph(maybe(trainer_), maybe(&trained), error()) == PYC_STATUS_OK) {
      pyc_graph_destroy(trained);
    }
    look_for_files();
  }

  // Of files and folders that are not there: nothing is written.
  void look_for_files() {
    static constexpr const char* kNowhere = "/dev/null/none";
    pyc_train_data* data = nullptr;
    (void)pyc_train_data_load(maybe(trainer_), maybe(kNowhere), byte(), byte(), maybe(&data),
                              error());
    pyc_train_data_destroy(data);
    int64_t step = 0;
    (void)pyc_train_last_checkpoint(maybe(kNowhere), maybe(&step), error());
    char* text = nullptr;
    if (pyc_train_resume(maybe(trainer_), nullptr, maybe(kNowhere), maybe(&text), error()) ==
        PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
    if (pyc_train_save(maybe(trainer_), nullptr, maybe(kNowhere), byte() - 1, maybe(&text),
                       error()) == PYC_STATUS_OK) {
      pyc_text_destroy(text);
    }
  }

  // A graph that can be trained, or run with a state.
  void take_graph() {
    static constexpr std::array<std::string_view, 3> kGraphs = {
        "graph @counter(%x: f32[4], %sum: f32[4]) -> (%y, %next) {\n"
        "  %next = add(%sum, %x)\n  %y = neg(%next)\n}\n",
        "graph @layer(%x: f32[2,3]) -> (%y) {\n  %w = const f32[3,2] splat(0.5)\n"
        "  %h = matmul(%x, %w)\n  %y = tanh(%h)\n}\n",
        "graph @loss(%x: f32[2,3]) -> (%y) {\n  %w = const f32[2,3] splat(0.5)\n"
        "  %h = mul(%x, %w)\n  %y = reduce_sum(%h) {axes=[0,1], keepdims=0}\n}\n"};
    const std::string_view text = kGraphs[byte() % kGraphs.size()];
    pyc_graph* made = nullptr;
    if (pyc_graph_parse(text.data(), text.size(), &made, error()) != PYC_STATUS_OK) return;
    pyc_graph_destroy(graph_);
    graph_ = made;
    count_values();
  }

  void look_at_model() {
    char* json = nullptr;
    if (pyc_model_last_decision_log(maybe(model_), maybe(&json), error()) == PYC_STATUS_OK) {
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

  const std::string bytes_;
  size_t at_ = 0;
  pyc_graph* graph_ = nullptr;
  pyc_attrs* attrs_ = nullptr;
  pyc_compile_options* options_ = nullptr;
  pyc_model* model_ = nullptr;
  pyc_train_options* train_options_ = nullptr;
  pyc_trainer* trainer_ = nullptr;
  std::vector<std::vector<char>> memory_;  // of views
  pyc_error* error_ = nullptr;
  uint32_t values_ = 0;
};

// Returns how many calls were made.
inline int fuzz_calls(const std::string& bytes) { return Calls(bytes).run(); }

}  // namespace pyc::test

#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/value_meter.h"
#include "driver/devices.h"
#include "driver/fallback.h"
#include "exec/executor.h"
#include "exec/run_values.h"
#include "open/segment.h"
#include "ops/registry.h"
#include "session/evaluate.h"
#include "session/model.h"
#include "session/two_programs.h"

namespace pyc::session {

// What the inputs have to be, in few bytes: a run reads it before all else, when nothing is in the
// caches. For each input its dtype, its rank and its dims; of each what is negative fits anything,
// but for dims below -1, which have a name: the same number, the same size.
struct InputGuards {
  static constexpr int64_t kAny = -1;
  static constexpr int64_t kFirstName = -2;
  static constexpr size_t kMostNames = 8;

  std::vector<int64_t> words;
  size_t inputs = 0;
  bool complete = false;  // false: some input is described otherwise
};

namespace {

using open::OpenGraph;
using open::OpenId;
using open::Segment;
using open::State;

bool is_complex_type(const open::OpenType& type) { return type.dtype && is_complex(*type.dtype); }

bool has_fixed_inputs(const OpenGraph& graph) {
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), [&](OpenId v) {
    const open::OpenType& type = graph.values[v].type;
    return type.is_static() && !is_complex_type(type);
  });
}

// A fixed type as a tensor without content.
DynValue type_of(const open::OpenType& type) {
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = *type.dtype;
  for (const open::OpenType::Dim& d : *type.shape) value.shape.push_back(d.value);
  return value;
}

// Closes a graph whose inputs are fixed, as one segment, by the inputs' types alone.
Result<Segment> close_by_types(const OpenGraph& graph) {
  State state = open::initial_state(graph);
  for (const OpenId v : graph.inputs) {
    state.values[v] = type_of(graph.values[v].type);
  }
  return open::close_whole(state, ops::all_ops(), evaluate);
}

// Declared shapes are often those of another batch; a declared dtype has to be what is computed.
template <class Found>
Status check_output(const open::OpenValue& declared, const Found& found) {
  const open::OpenType& type = declared.type;
  if (type.kind != open::OpenType::Kind::kTensor || !type.dtype || *type.dtype == found.dtype) {
    return {};
  }
  return {Code::kDtypeMismatch, fmt::format("output '{}': expected {}, found {}", declared.name,
                                            type.to_string(), found.to_string())};
}

Status check_closed_outputs(const OpenGraph& graph, const ir::Graph& closed) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    PYC_TRY(check_output(graph.values[graph.outputs[i]], closed.type(closed.outputs[i])));
  }
  return {};
}

// Whether no output is known to be something else, which no compiled program gives.
bool gives_tensors(const OpenGraph& graph) {
  return std::all_of(graph.outputs.begin(), graph.outputs.end(), [&](OpenId v) {
    const auto kind = graph.values[v].type.kind;
    const std::optional<DynValue>& constant = graph.values[v].constant;
    if (constant) return constant->is_tensor() && !is_complex(constant->dtype);
    if (is_complex_type(graph.values[v].type)) return false;
    return kind == open::OpenType::Kind::kTensor || kind == open::OpenType::Kind::kUnknown;
  });
}

std::vector<open::OpenValue> declared(const OpenGraph& graph, std::span<const OpenId> ids) {
  std::vector<open::OpenValue> values;
  for (const OpenId v : ids) {
    values.push_back({.name = graph.values[v].name, .type = graph.values[v].type, .constant = {}});
  }
  return values;
}

InputGuards guards_of(std::span<const open::OpenValue> inputs) {
  using Kind = open::OpenType::Kind;
  InputGuards out{.words = {}, .inputs = inputs.size(), .complete = true};
  std::map<std::string_view, int64_t> names;
  for (const open::OpenValue& input : inputs) {
    const open::OpenType& type = input.type;
    // Exporters write no dims for "anything" as well as for a scalar.
    const bool ranked = type.shape && !type.shape->empty();
    if (type.kind != Kind::kTensor) out.complete = false;
    out.words.push_back(type.dtype ? static_cast<int64_t>(*type.dtype) : InputGuards::kAny);
    out.words.push_back(ranked ? static_cast<int64_t>(type.shape->size()) : InputGuards::kAny);
    if (!ranked) continue;
    for (const open::OpenType::Dim& d : *type.shape) {
      int64_t word = d.value < 0 ? InputGuards::kAny : d.value;
      if (d.value < 0 && !d.symbol.empty()) {
        const auto next = InputGuards::kFirstName - static_cast<int64_t>(names.size());
        word = names.try_emplace(d.symbol, next).first->second;
      }
      out.words.push_back(word);
    }
  }
  out.complete = out.complete && names.size() <= InputGuards::kMostNames;
  return out;
}

// Whether every input is accepted and all dims of one name have one size: true only if there is
// nothing to refuse. Runs ask it before all else, so it takes no memory.
bool all_agree(const InputGuards& guards, std::span<const DynValue> found) {
  if (!guards.complete || guards.inputs != found.size()) return false;
  std::array<int64_t, InputGuards::kMostNames> sizes;
  sizes.fill(InputGuards::kAny);
  const int64_t* word = guards.words.data();
  for (const DynValue& value : found) {
    const int64_t dtype = *word++;
    const int64_t rank = *word++;
    if (!value.is_tensor()) return false;
    if (dtype >= 0 && dtype != static_cast<int64_t>(value.dtype)) return false;
    if (rank < 0) continue;
    if (rank != static_cast<int64_t>(value.shape.size())) return false;
    for (const int64_t size : value.shape) {
      const int64_t expected = *word++;
      if (expected == InputGuards::kAny || expected == size) continue;
      if (expected > InputGuards::kFirstName) return false;
      int64_t& named = sizes[static_cast<size_t>(InputGuards::kFirstName - expected)];
      if (named == InputGuards::kAny) named = size;
      if (named != size) return false;
    }
  }
  return true;
}

// Refuses the first input that does not fit.
Status check_inputs(std::span<const open::OpenValue> expected, std::span<const DynValue> found) {
  if (expected.size() != found.size()) {
    std::string names;
    for (const open::OpenValue& value : expected) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", value.name);
    }
    return {Code::kInvalidArgument, fmt::format("expected {} inputs, found {}: the inputs are {}",
                                                expected.size(), found.size(), names)};
  }
  open::SymbolSizes sizes;
  for (size_t i = 0; i < found.size(); ++i) {
    PYC_TRY(open::check_accepts(expected[i], found[i]).with_node(expected[i].name));
    PYC_TRY(sizes.take(expected[i], found[i]).with_node(expected[i].name));
  }
  return {};
}

bool are_tensors(std::span<const DynValue> values) {
  return std::all_of(values.begin(), values.end(), [](const DynValue& v) { return v.is_tensor(); });
}

// As the program's guards see it: [1] is taken for a scalar.
bool fits(std::span<const runtime::IoSpec> specs, std::span<const DynValue> values) {
  return std::equal(specs.begin(), specs.end(), values.begin(), values.end(),
                    [](const runtime::IoSpec& spec, const DynValue& value) {
                      const bool one = spec.shape.empty() && value.shape == ir::Shape{1};
                      return value.is_tensor() && value.dtype == spec.dtype &&
                             (value.shape == spec.shape || one);
                    });
}

}  // namespace

std::vector<open::OpenValue> declared(std::span<const runtime::IoSpec> specs) {
  std::vector<open::OpenValue> values;
  for (const runtime::IoSpec& spec : specs) {
    open::OpenValue value{.name = spec.name, .type = {}, .constant = {}};
    value.type.kind = open::OpenType::Kind::kTensor;
    value.type.dtype = spec.dtype;
    value.type.shape = std::vector<open::OpenType::Dim>(spec.shape.size());
    for (size_t i = 0; i < spec.shape.size(); ++i) (*value.type.shape)[i].value = spec.shape[i];
    values.push_back(std::move(value));
  }
  return values;
}

struct Session::Impl {
  std::shared_ptr<const OpenGraph> graph;  // null: given as a closed graph
  driver::CompileOptions options;
  std::vector<open::OpenValue> inputs;
  InputGuards guards;  // of the inputs
  std::vector<open::OpenValue> outputs;
  std::unique_ptr<runtime::Model> whole;
  std::string fingerprint;
  exec::GrowingLog log;
  std::unique_ptr<TwoPrograms> rails;        // null: the option is off, or cannot be served
  std::unique_ptr<exec::Executor> executor;  // null: given as a closed graph
  mutable std::mutex mutex;                  // guards everything below
  BreakReport foreseen;
  int64_t reported = 0;  // what the executor had made when breaks were logged last
  int64_t runs = 0;
  int64_t failed_runs = 0;
  int64_t guard_misses = 0;
  DecisionLog refusals;

  Status compile_whole(ir::Graph closed) {
    PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(closed)));
    fingerprint = ir::fingerprint(*given).hex();
    PYC_ASSIGN(whole, compile(given, options));
    log.add(whole->decisions());
    PYC_TRY(prepare_rails(std::move(given)));
    if (executor != nullptr) executor->hold(exec::own_bytes(*whole));
    return {};
  }
  Status prepare();
  Status prepare_states();
  Status prepare_rails(ir::VerifiedGraph given);
  void log_no_rails(std::string_view reason);
  bool for_whole(std::span<const DynValue> values) const {
    if (whole == nullptr) return false;
    return fits(whole->inputs(), values) || (executor == nullptr && are_tensors(values));
  }
  Result<std::vector<DynValue>> run_open(std::span<const DynValue> values,
                                         runtime::RunStats& measured);
  Result<std::vector<DynValue>> run_program(std::span<const DynValue> values,
                                            runtime::RunStats& measured);
  const runtime::Model* other() const { return rails == nullptr ? nullptr : rails->other(); }
  Status check_outputs(std::span<const DynValue> results) const;
  void record(const Status& status, bool guarded);
  void log_breaks();
};

void Session::Impl::log_no_rails(std::string_view reason) {
  log.add({.what = "rails",
           .chosen = "off",
           .reason = std::string(reason),
           .detail = "",
           .alternatives = {}});
}

// For a program that is there: what takes its place when runs get worse.
Status Session::Impl::prepare_rails(ir::VerifiedGraph given) {
  if (options.rails == driver::kRailsOff) return {};
  if (options.memory_budget > 0) {
    return {Code::kInvalidArgument,
            "rails: a second program would lie beside what memory_budget allows; leave out one of "
            "the two"};
  }
  if (!options.states.empty()) {
    return {Code::kUnsupported,
            "rails: what a model keeps belongs to one program; leave out rails or state"};
  }
  if (options.determinism == driver::Determinism::kStrict) {
    log_no_rails("strict_keeps_one_program");
    return {};
  }
  const int threads = driver::thread_count(options);
  if (threads < 2 || whole->program().places[0].backend != "cpu") {
    log_no_rails("no_other_program");
    return {};
  }
  driver::CompileOptions fewer = options;
  fewer.threads = threads / 2;
  const bool shadow = options.rails == driver::kRailsShadow;
  rails = std::make_unique<TwoPrograms>(
      *whole, [given = std::move(given), fewer] { return compile(given, fewer); }, shadow, log);
  return {};
}

// A model that keeps state is one program, whose inputs and outputs are fewer than the graph's.
Status Session::Impl::prepare_states() {
  const auto refuse = [](Status why) {
    return std::move(why).with_context("state: only a model that is one program keeps one");
  };
  if (!gives_tensors(*graph)) {
    return refuse({Code::kUnsupported, "an output is no tensor of real numbers"});
  }
  auto closed = close_model(*graph);
  if (!closed.ok()) return refuse(std::move(closed).status());
  executor = nullptr;
  foreseen = report_breaks(*graph, {});
  log.add(foreseen.decision());
  PYC_TRY(compile_whole(std::move(*closed)));
  inputs = declared(whole->inputs());
  outputs = declared(whole->outputs());
  return {};
}

// Compiles what can be compiled before the first run.
Status Session::Impl::prepare() {
  if (!options.states.empty()) return prepare_states();
  if (!has_fixed_inputs(*graph) || !gives_tensors(*graph)) {
    foreseen = report_breaks(*graph, certain_breaks(*graph), true);
    log.add(foreseen.decision());
    return {};
  }
  PYC_ASSIGN(Segment segment, close_by_types(*graph));
  foreseen = report_breaks(*graph, breaks_of(*graph, segment.breaks));
  log.add(foreseen.decision());
  if (!segment.breaks.empty()) return {};
  PYC_TRY(check_closed_outputs(*graph, segment.graph));
  PYC_TRY(compile_whole(std::move(segment.graph)));
  const std::vector<open::OpenValue> computed = declared(whole->outputs());
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].type = computed[i].type;
  return {};
}

void Session::Impl::record(const Status& status, bool guarded) {
  const std::scoped_lock lock(mutex);
  ++failed_runs;
  if (guarded) ++guard_misses;
  if (refusals.size() == runtime::Model::kMaxRefusals) refusals.erase(refusals.begin());
  refusals.push_back(
      {"run", "refused", std::string(code_name(status.code())), status.message(), {}});
}

// Once for everything new that the executor found.
void Session::Impl::log_breaks() {
  const int64_t made = executor->made();
  {
    const std::scoped_lock lock(mutex);
    if (reported == made) return;
    reported = made;
  }
  log.add(report_breaks(*graph, executor->breaks()).decision());
}

Result<std::vector<DynValue>> Session::Impl::run_open(std::span<const DynValue> values,
                                                      runtime::RunStats& measured) {
  {
    const std::scoped_lock lock(mutex);
    ++runs;
  }
  if (!all_agree(guards, values)) {
    Status guarded = check_inputs(inputs, values);
    if (!guarded.ok()) {
      record(guarded, true);
      return guarded;
    }
  }
  auto results = executor->run({values.begin(), values.end()}, measured);
  Status status = results.ok() ? check_outputs(*results) : results.status();
  if (!status.ok()) {
    record(status, false);
    return status;
  }
  log_breaks();
  return results;
}

Status Session::Impl::check_outputs(std::span<const DynValue> results) const {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_tensor()) continue;
    PYC_TRY(check_output(outputs[i], results[i]));
  }
  return {};
}

Result<ir::Graph> close_model(const OpenGraph& graph) {
  for (const OpenId v : graph.inputs) {
    const open::OpenValue& input = graph.values[v];
    if (is_complex_type(input.type)) {
      return Status(Code::kUnsupported, fmt::format("input '{}' is {}: graphs compute with real "
                                                    "numbers only",
                                                    input.name, input.type.to_string()));
    }
    if (input.type.is_static()) continue;
    return Status(
        Code::kUnsupported,
        fmt::format("input '{}' is {}: its shape must be chosen to have the model as one graph",
                    input.name, input.type.to_string()));
  }
  PYC_ASSIGN(Segment segment, close_by_types(graph));
  if (!segment.breaks.empty()) return exec::stuck(graph, segment);
  PYC_TRY(check_closed_outputs(graph, segment.graph));
  return std::move(segment.graph);
}

exec::ExecutorOptions executor_options(const driver::CompileOptions& options, bool any_size) {
  exec::ExecutorOptions out;
  out.ops = &ops::all_ops();
  out.evaluate = keeping_evaluate();
  driver::CompileOptions uncached = options;
  uncached.cache = false;  // the executor keeps its programs, and hashing weights takes time
  // What a compile holds until its parameters are in a file would be over the budget of all.
  uncached.stream_parameters = false;
  driver::CompileOptions interpreted = uncached;
  interpreted.device = "reference";
  interpreted.kernels.clear();
  const auto backend = driver::find_backend(options.device);
  if (any_size && backend.ok()) uncached.store = (*backend)->make_store();
  const auto code_by = [](const driver::CompileOptions& o) {
    return [o](ir::Graph graph, int64_t memory_budget) -> Result<exec::SegmentCode> {
      driver::CompileOptions within = o;
      within.memory_budget = memory_budget;
      PYC_ASSIGN(std::unique_ptr<runtime::Model> model, compile(std::move(graph), within));
      std::vector<runtime::IoSpec> outputs = model->outputs();
      const runtime::CompileBreakdown made = model->stats().compile;
      // Of a program from a folder it is not told; then it counts as one with code of its own.
      const bool told = made.kernels > 0;
      return exec::SegmentCode{.model = std::move(model),
                               .outputs = std::move(outputs),
                               .shared = o.store != nullptr && told && made.generated_kernels == 0,
                               .generated = made.generated_kernels};
    };
  };
  out.compile = code_by(uncached);
  out.interpret = code_by(interpreted);
  out.loop_limit = options.loop_limit;
  out.value_limit = options.value_limit > 0 ? options.value_limit : default_value_limit();
  out.memory_budget = options.memory_budget;
  return out;
}

Result<std::vector<DynValue>> input_types(const OpenGraph& graph) {
  std::vector<DynValue> types;
  for (const OpenId v : graph.inputs) {
    const open::OpenValue& input = graph.values[v];
    if (!input.type.is_static()) {
      return Status(Code::kUnsupported, fmt::format("input '{}' is {}: its shape must be chosen",
                                                    input.name, input.type.to_string()));
    }
    types.push_back(type_of(input.type));
  }
  return types;
}

Result<std::string> segments_text(const OpenGraph& graph, const driver::CompileOptions& options) {
  PYC_ASSIGN(std::vector<DynValue> types, input_types(graph));
  exec::GrowingLog log;
  exec::ExecutorOptions o = executor_options(options);
  o.keep_text = true;
  exec::Executor executor(graph, std::move(o), log);
  PYC_ASSIGN(const bool all, executor.foresee(std::move(types)));
  return executor.print() + (all ? "" : "the rest is made when runs need it\n");
}

Result<BreakReport> foresee_breaks(const OpenGraph& graph) {
  Breaks breaks = certain_breaks(graph);
  const bool known = std::all_of(graph.nodes.begin(), graph.nodes.end(),
                                 [](const open::OpenNode& n) { return n.op != nullptr; });
  if (!known || !has_fixed_inputs(graph) || !gives_tensors(graph)) {
    return report_breaks(graph, breaks, known && !has_fixed_inputs(graph));
  }
  PYC_ASSIGN(const Segment segment, close_by_types(graph));
  return report_breaks(graph, breaks_of(graph, segment.breaks));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const OpenGraph> graph,
                                                 driver::CompileOptions options, CodeSource code) {
  auto impl = std::make_unique<Impl>();
  if (Status refusal = driver::check_device(options); !refusal.ok()) {
    if (!driver::may_fall_back(options, refusal)) return refusal;
    impl->log.add(driver::fallback_decision(options, refusal));
    options = driver::on_cpu(std::move(options));
  }
  impl->inputs = declared(*graph, graph->inputs);
  impl->guards = guards_of(impl->inputs);
  impl->outputs = declared(*graph, graph->outputs);
  impl->graph = std::move(graph);
  impl->options = std::move(options);
  exec::ExecutorOptions means = executor_options(impl->options, !has_fixed_inputs(*impl->graph));
  if (code) means.compile = std::move(code);
  impl->executor = std::make_unique<exec::Executor>(*impl->graph, std::move(means), impl->log);
  PYC_TRY(impl->prepare());
  if (impl->whole == nullptr && impl->options.rails != driver::kRailsOff) {
    impl->log_no_rails("not_one_program");
  }
  if (impl->whole == nullptr && impl->options.latency_target_us > 0) {
    return Status(Code::kUnsupported,
                  "latency_target_us: a model that is compiled while it runs has no predicted "
                  "time; choose its shapes, or leave the target out");
  }
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::unique_ptr<Session>> Session::create(ir::Graph graph, driver::CompileOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->foreseen = report_whole(static_cast<int64_t>(graph.nodes.size()));
  PYC_TRY(impl->compile_whole(std::move(graph)));
  impl->inputs = declared(impl->whole->inputs());
  impl->outputs = declared(impl->whole->outputs());
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::unique_ptr<Session>> Session::of(std::unique_ptr<runtime::Model> whole,
                                             std::string fingerprint) {
  auto impl = std::make_unique<Impl>();
  impl->whole = std::move(whole);
  impl->fingerprint = std::move(fingerprint);
  impl->log.add(impl->whole->decisions());
  impl->foreseen = report_whole(static_cast<int64_t>(impl->whole->program().steps.size()));
  impl->inputs = declared(impl->whole->inputs());
  impl->outputs = declared(impl->whole->outputs());
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

runtime::Model* Session::whole() const { return impl_->whole.get(); }
const std::vector<open::OpenValue>& Session::inputs() const { return impl_->inputs; }
const std::vector<open::OpenValue>& Session::outputs() const { return impl_->outputs; }
const std::string& Session::fingerprint() const { return impl_->fingerprint; }
std::string Session::device() const {
  return impl_->whole != nullptr ? impl_->whole->program().places[0].backend
                                 : impl_->options.device;
}
const exec::GrowingLog& Session::log() const { return impl_->log; }

Status Session::run_whole(std::span<const runtime::TensorView> inputs,
                          std::span<const runtime::TensorView> outputs, runtime::RunStats* stats) {
  if (impl_->rails == nullptr) return impl_->whole->run(inputs, outputs, stats);
  runtime::Model& model = impl_->rails->current();
  runtime::RunStats measured;
  Status status = model.run(inputs, outputs, &measured);
  impl_->rails->note(model, measured.wall_ns, status);
  if (stats != nullptr) *stats = measured;
  return status;
}

// On values: the program, or the one that takes its place.
Result<std::vector<DynValue>> Session::Impl::run_program(std::span<const DynValue> values,
                                                         runtime::RunStats& measured) {
  const int64_t start = now_ns();
  runtime::Model& model = rails == nullptr ? *whole : rails->current();
  std::vector<const DynValue*> inputs;
  inputs.reserve(values.size());
  for (const DynValue& value : values) inputs.push_back(&value);
  auto outputs = exec::run_values(model, inputs, measured);
  if (rails != nullptr) rails->note(model, now_ns() - start, outputs.status());
  return outputs;
}

Result<std::vector<DynValue>> Session::run(std::span<const DynValue> inputs,
                                           runtime::RunStats* stats) {
  const int64_t start = now_ns();
  runtime::RunStats measured;
  auto outputs = impl_->for_whole(inputs) ? impl_->run_program(inputs, measured)
                                          : impl_->run_open(inputs, measured);
  measured.wall_ns = now_ns() - start;
  if (stats != nullptr) *stats = measured;
  return outputs;
}

Result<bool> Session::foresee(std::span<const DynValue> types) {
  PYC_TRY(check_inputs(impl_->inputs, types));
  if (impl_->for_whole(types)) return true;
  if (impl_->executor == nullptr) {
    return Status(Code::kShapeMismatch, "the model is compiled for other shapes");
  }
  return impl_->executor->foresee({types.begin(), types.end()});
}

// Runs of the whole program are counted by it, whichever way they came.
SessionStats Session::stats() const {
  SessionStats out;
  if (impl_->executor != nullptr) {
    const exec::ExecutorStats s = impl_->executor->stats();
    out.segments_run = s.segments_run;
    out.segments_compiled = s.segments_compiled;
    out.generated_kernels = s.generated_kernels;
    out.host_calls = s.host_calls;
    out.fallbacks = s.fallbacks;
    out.compile_ns = s.compile_ns;
    out.run_ns = s.run_ns;
    out.compile = s.compile;
  }
  if (impl_->whole != nullptr) {
    const runtime::ModelStats s = impl_->whole->stats();
    out.runs = s.runs;
    out.failed_runs = s.failed_runs;
    out.guard_misses = s.guard_misses;
    out.contexts = s.contexts;
    out.cache_hit = s.cache_hit;
    out.compile_ns += s.compile_ns;
    out.compile += s.compile;
    out.segments_compiled += 1;
    out.generated_kernels += s.compile.generated_kernels;
    out.segments_run += s.runs - s.failed_runs;
  }
  if (const runtime::Model* other = impl_->other(); other != nullptr) {
    const runtime::ModelStats s = other->stats();
    out.runs += s.runs;
    out.failed_runs += s.failed_runs;
    out.guard_misses += s.guard_misses;
    out.contexts += s.contexts;
    out.compile_ns += s.compile_ns;
    out.compile += s.compile;
    out.segments_compiled += 1;
    out.generated_kernels += s.compile.generated_kernels;
    out.segments_run += s.runs - s.failed_runs;
  }
  const std::scoped_lock lock(impl_->mutex);
  out.runs += impl_->runs;
  out.failed_runs += impl_->failed_runs;
  out.guard_misses += impl_->guard_misses;
  return out;
}

DecisionLog Session::refusals() const {
  DecisionLog all;
  if (impl_->whole != nullptr) all = impl_->whole->refusals();
  if (const runtime::Model* other = impl_->other(); other != nullptr) {
    const DecisionLog more = other->refusals();
    all.insert(all.end(), more.begin(), more.end());
  }
  const std::scoped_lock lock(impl_->mutex);
  all.insert(all.end(), impl_->refusals.begin(), impl_->refusals.end());
  return all;
}

BreakReport Session::breaks() const {
  if (impl_->whole != nullptr) return impl_->foreseen;
  const bool ran = impl_->executor->stats().made > 0;
  return ran ? report_breaks(*impl_->graph, impl_->executor->breaks()) : impl_->foreseen;
}

runtime::MemoryReport Session::memory() const {
  if (impl_->whole == nullptr) return impl_->executor->memory();
  runtime::MemoryReport out = impl_->whole->memory();
  if (const runtime::Model* other = impl_->other(); other != nullptr) {
    out.peak_bytes += exec::own_bytes(*other);
  }
  return out;
}

}  // namespace pyc::session

#include "cuda/case_runs.h"

#include <filesystem>
#include <random>
#include <utility>

#include "base/aligned_buffer.h"
#include "eval/interpreter.h"
#include "lower/lower.h"
#include "passes/pipeline.h"

namespace pyc::test {
namespace {

namespace fs = std::filesystem;

// Runs one group over the values; returns the fault.
Result<int32_t> interpret_group(const lower::Group& group, const ir::Graph& graph,
                                std::map<ir::ValueId, Bytes>& values) {
  PYC_ASSIGN(auto interpreter, eval::Interpreter::create(group.kernel));
  PYC_ASSIGN(AlignedBuffer scratch,
             AlignedBuffer::create(static_cast<size_t>(group.kernel.scratch_bytes()) + 64,
                                   AlignedBuffer::Mode::kPlain));
  std::vector<void*> pointers;
  for (const ir::ValueId v : group.buffer_values) {
    if (v == ir::kNoId) {
      pointers.push_back(nullptr);
      continue;
    }
    Bytes& bytes = values[v];
    bytes.resize(static_cast<size_t>(bytes_of(graph, v)));
    pointers.push_back(bytes.data());
  }
  int32_t fault = 0;
  pyc_kernel_args args{.buffers = pointers.data(),
                       .dims = nullptr,
                       .scratch = scratch.data(),
                       .self = interpreter.get(),
                       .fault = &fault,
                       .thread = 0,
                       .threads = 1};
  interpreter->run(args, 0, group.kernel.parallel_size());
  return fault;
}

Status interpret_groups(CaseRun& run) {
  const ir::Graph& graph = *run.lowered.graph;
  std::map<ir::ValueId, Bytes> values = run.given;
  for (size_t g = 0; g < run.lowered.groups.size(); ++g) {
    PYC_ASSIGN(run.fault, interpret_group(run.lowered.groups[g], graph, values));
    run.faulty_group = g;
    if (run.fault != 0) return {};
  }
  for (const ir::ValueId v : run.lowered.output_values) run.results[v] = values[v];
  return {};
}

Result<CaseRun> interpret_case(const Case& c, const std::string& op) {
  PYC_ASSIGN(CaseRun run, lower_text(op + ":" + c.name, graph_text(c, false)));
  const ir::Graph& graph = *run.lowered.graph;
  const std::vector<Tensor> inputs = parse_tensors(c.inputs);
  for (size_t i = 0; i < graph.inputs.size(); ++i) run.given[graph.inputs[i]] = inputs[i].bytes;
  PYC_TRY(interpret_groups(run));
  return run;
}

bool is_chosen(const CaseChoice& choice, int of_op, int of_all) {
  if (choice.per_op == 0 || of_op < choice.per_op) return true;
  return choice.rest > 0 && of_all % choice.rest == choice.rest_from % choice.rest;
}

}  // namespace

Result<CaseRun> lower_text(const std::string& name, const std::string& text) {
  PYC_ASSIGN(ir::Graph parsed, ir::parse(text, ops::all_ops()));
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(parsed)));
  DecisionLog log;
  PYC_ASSIGN(ir::VerifiedGraph canonical,
             passes::run_pipeline(std::move(given), ops::all_ops(), {}, &log));
  // Kernel texts take every buffer to be aligned to 16 bytes.
  lower::LowerOptions options;
  options.offsets_in_references = false;
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(canonical, options));
  CaseRun run{.name = name, .lowered = std::move(lowered)};
  const ir::Graph& graph = *run.lowered.graph;
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.value(v);
    if (value.kind == ir::ValueKind::kConstant) run.given[v] = value.constant->bytes.copy();
  }
  return run;
}

Result<CaseRun> interpret_graph(const std::string& name, const std::string& text) {
  PYC_ASSIGN(CaseRun run, lower_text(name, text));
  const ir::Graph& graph = *run.lowered.graph;
  std::mt19937 random(1);
  for (const ir::ValueId v : graph.inputs) {
    const ir::TensorType& type = graph.type(v);
    const int64_t size = dtype_size(type.dtype);
    Bytes& bytes = run.given[v];
    bytes.resize(static_cast<size_t>(type.elements() * size));
    for (int64_t i = 0; i < type.elements(); ++i) {
      // Signed, near 1 and of many magnitudes below: sums round, products stay finite.
      const double x = (static_cast<double>(random() % 4001) - 2000.0) / 1000.0;
      const Word word = word_from_double(is_float(type.dtype) ? x : 50 * x, type.dtype);
      store_word(bytes.data() + i * size, type.dtype, word);
    }
  }
  PYC_TRY(interpret_groups(run));
  return run;
}

int64_t bytes_of(const ir::Graph& graph, ir::ValueId value) {
  const ir::TensorType& type = graph.type(value);
  return type.elements() * dtype_size(type.dtype);
}

Result<std::vector<CaseRun>> interpret_cases(const CaseChoice& choice) {
  std::vector<std::string> ops;
  for (const auto& entry : fs::directory_iterator(choice.folder)) {
    const std::string op = entry.path().stem().string();
    const bool wanted = choice.only.empty() || choice.only == op;
    if (entry.path().extension() == ".cases" && wanted) ops.push_back(op);
  }
  std::sort(ops.begin(), ops.end());
  if (ops.empty()) return Status(Code::kNotFound, "no cases in " + choice.folder);
  std::vector<CaseRun> runs;
  int of_all = 0;
  for (const std::string& op : ops) {
    int of_op = 0;
    for (const Case& c : read_cases(choice.folder + "/" + op + ".cases")) {
      if (c.refusal && !c.refusal->at_run) continue;
      if (!is_chosen(choice, of_op++, of_all++)) continue;
      auto run = interpret_case(c, op);
      if (!run.ok()) return std::move(run).status().with_context(op + ":" + c.name);
      runs.push_back(std::move(*run));
    }
  }
  return runs;
}

}  // namespace pyc::test

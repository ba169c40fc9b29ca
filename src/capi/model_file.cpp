#include "pyc/model_file.h"

#include <map>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/json.h"
#include "capi/options.h"
#include "session/artifacts.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

open::OpenValue open_value(const ir::Value& value) {
  open::OpenValue out{.name = value.name, .type = {}, .constant = {}};
  out.type.kind = open::OpenType::Kind::kTensor;
  out.type.dtype = value.type.dtype;
  out.type.shape.emplace();
  for (const int64_t d : value.type.shape) out.type.shape->push_back({.value = d, .symbol = ""});
  return out;
}

void declare_all(const std::vector<open::OpenValue>& inputs,
                 const std::vector<open::OpenValue>& outputs, pyc_model_file& out) {
  for (const open::OpenValue& input : inputs) out.input_types.push_back(input.type);
  out.inputs = declare(inputs, PYC_VALUE_INPUT);
  out.outputs = declare(outputs, PYC_VALUE_RESULT);
}

void declare_open(const open::OpenGraph& graph, pyc_model_file& out) {
  std::vector<open::OpenValue> inputs;
  std::vector<open::OpenValue> outputs;
  for (const open::OpenId v : graph.inputs) inputs.push_back(graph.values[v]);
  for (const open::OpenId v : graph.outputs) outputs.push_back(graph.values[v]);
  declare_all(inputs, outputs, out);
}

void declare_closed(const ir::Graph& graph, pyc_model_file& out) {
  std::vector<open::OpenValue> inputs;
  std::vector<open::OpenValue> outputs;
  for (const ir::ValueId v : graph.inputs) inputs.push_back(open_value(graph.value(v)));
  for (const ir::ValueId v : graph.outputs) outputs.push_back(open_value(graph.value(v)));
  declare_all(inputs, outputs, out);
}

void declare_compiled(const runtime::Program& program, pyc_model_file& out) {
  declare_all(session::declared(program.inputs), session::declared(program.outputs), out);
}

Status give_file(Result<model_file::LoadedModel> model, pyc_model_file** out) {
  PYC_TRY(require(out, "file"));
  if (!model.ok()) return std::move(model).status();
  auto file = std::make_unique<pyc_model_file>();
  if (model->open != nullptr) {
    declare_open(*model->open, *file);
  } else if (model->artifact != nullptr) {
    declare_compiled(model->artifact->program, *file);
  } else {
    PYC_TRY(ir::verify_graph(*model->graph).status());
    declare_closed(*model->graph, *file);
  }
  file->model = std::move(*model);
  *out = file.release();
  return {};
}

void write_declared(JsonWriter& json, const Declared& value) {
  constexpr const char* kTypes[] = {"tensor",   "strings", "sequence",
                                    "optional", "nothing", "unknown"};
  const pyc_value_info& info = value.info;
  json.begin_object();
  json.key("name").text(value.name);
  json.key("dtype");
  info.dtype < 0 ? json.null() : json.text(pyc_dtype_name(info.dtype));
  json.key("shape");
  if (info.rank < 0) {
    json.null();
  } else {
    json.begin_array();
    for (const int64_t d : value.shape) json.integer(d);
    json.end_array();
  }
  json.key("bytes");
  info.bytes < 0 ? json.null() : json.integer(info.bytes);
  json.key("type").text(kTypes[info.type]);
  json.key("symbols").begin_array();
  for (const std::string& symbol : value.symbols) json.text(symbol);
  json.end_array();
  json.key("text").text(value.type_text);
  json.end_object();
}

void write_counts(JsonWriter& json, const std::map<std::string, int64_t>& numbers) {
  json.begin_object();
  for (const auto& [name, number] : numbers) json.key(name).integer(number);
  json.end_object();
}

// Of equal keys the last counts.
void write_metadata(JsonWriter& json, const onnx::ModelInfo& info) {
  std::map<std::string_view, std::string_view> lines;
  for (const auto& [key, value] : info.metadata) lines[key] = value;
  json.key("metadata").begin_object();
  for (const auto& [key, value] : lines) json.key(key).text(value);
  json.end_object();
}

template <class T>
void write_list(JsonWriter& json, std::string_view key, const std::vector<T>& values) {
  json.key(key).begin_array();
  for (const T& value : values) write_declared(json, *value);
  json.end_array();
}

struct Counts {
  std::map<std::string, int64_t> ops;
  int64_t constants = 0;
  int64_t constant_bytes = 0;
};

Counts count(const model_file::LoadedModel& model) {
  Counts out;
  if (model.open != nullptr) {
    out.ops = model.info.ops;
    out.constant_bytes = model.info.parameter_bytes;
    for (const open::OpenValue& v : model.open->values) out.constants += v.constant ? 1 : 0;
    return out;
  }
  if (model.artifact != nullptr) {
    out.constants = static_cast<int64_t>(model.artifact->program.parameters.size());
    for (const auto& p : model.artifact->program.parameters) out.constant_bytes += p.bytes;
    return out;
  }
  for (const ir::Node& node : model.graph->nodes) ++out.ops[std::string(node.op->name)];
  for (const ir::Value& v : model.graph->values) {
    if (v.kind != ir::ValueKind::kConstant) continue;
    ++out.constants;
    out.constant_bytes += v.type.bytes();
  }
  return out;
}

void write_unsupported(JsonWriter& json, const onnx::ModelInfo& info) {
  json.key("unsupported").begin_array();
  for (const auto& node : info.unsupported) {
    json.begin_object();
    json.key("name").text(node.name);
    json.key("op").text(node.op);
    json.key("domain").text(node.domain);
    json.key("opset").integer(node.opset);
    json.key("nearest").text(node.nearest);
    json.end_object();
  }
  json.end_array();
}

std::string description(const pyc_model_file& file) {
  const model_file::LoadedModel& model = file.model;
  const Counts counts = count(model);
  int64_t nodes = 0;
  for (const auto& [op, n] : counts.ops) nodes += n;
  JsonWriter json(2);
  json.begin_object();
  json.key("format").text(model.format);
  write_list(json, "inputs", file.inputs);
  write_list(json, "outputs", file.outputs);
  json.key("nodes").integer(nodes);
  json.key("constants").integer(counts.constants);
  json.key("constant_bytes").integer(counts.constant_bytes);
  json.key("ops");
  write_counts(json, counts.ops);
  write_unsupported(json, model.info);
  if (model.format == "onnx") {
    json.key("ir_version").integer(model.info.ir_version);
    json.key("producer").text(model.info.producer);
    json.key("graph").text(model.info.graph_name);
    json.key("domain").text(model.info.domain);
    json.key("version").integer(model.info.version);
    json.key("description").text(model.info.description);
    write_metadata(json, model.info);
    json.key("opsets");
    write_counts(json, model.info.opsets);
  }
  json.end_object();
  return std::move(json).take();
}

}  // namespace

pyc_status pyc_model_file_load(const char* path, pyc_model_file** file, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    return give_file(model_file::load_model_file(path), file);
  });
}

pyc_status pyc_model_file_load_bytes(const void* data, size_t size, pyc_model_file** file,
                                     pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(data, size, "data"));
    return give_file(model_file::load_model({static_cast<const char*>(data), size}), file);
  });
}

void pyc_model_file_destroy(pyc_model_file* file) { delete file; }

size_t pyc_model_file_input_count(const pyc_model_file* file) {
  return file == nullptr ? 0 : file->inputs.size();
}

size_t pyc_model_file_output_count(const pyc_model_file* file) {
  return file == nullptr ? 0 : file->outputs.size();
}

pyc_status pyc_model_file_input(const pyc_model_file* file, size_t index, pyc_value_info* info,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    return describe(file->inputs, index, "input", info);
  });
}

pyc_status pyc_model_file_output(const pyc_model_file* file, size_t index, pyc_value_info* info,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    return describe(file->outputs, index, "output", info);
  });
}

pyc_status pyc_model_file_read_input(const pyc_model_file* file, size_t index, const char* path,
                                     pyc_result** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(path, "path"));
    PYC_TRY(require(result, "result"));
    PYC_TRY(require_index(index, file->input_types.size(), "input"));
    auto value = io::read_value(path, file->input_types[index]);
    if (!value.ok()) return std::move(value).status().with_node(file->inputs[index]->name);
    *result = std::make_unique<pyc_result>(to_result(std::move(*value))).release();
    return {};
  });
}

size_t pyc_model_file_unsupported_count(const pyc_model_file* file) {
  return file == nullptr ? 0 : file->model.info.unsupported.size();
}

pyc_status pyc_model_file_unsupported(const pyc_model_file* file, size_t index,
                                      pyc_unsupported_node* node, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(check_out_struct(node, "pyc_unsupported_node", sizeof(pyc_unsupported_node)));
    PYC_TRY(require_index(index, file->model.info.unsupported.size(), "unsupported node"));
    const auto& found = file->model.info.unsupported[index];
    pyc_unsupported_node out{};
    out.name = found.name.c_str();
    out.op = found.op.c_str();
    out.domain = found.domain.c_str();
    out.opset = found.opset;
    out.nearest = found.nearest.c_str();
    write_struct(node, out);
    return {};
  });
}

pyc_status pyc_model_file_describe(const pyc_model_file* file, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    // Names come from files and may be no UTF-8.
    return give_text(description(*file), json);
  });
}

pyc_status pyc_model_file_compile(const pyc_model_file* file, const pyc_compile_options* options,
                                  pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    driver::CompileOptions chosen = to_options(options);
    const open::ShapeChoice shapes = to_shapes(options);
    auto session = model_file::make_session(file->model, shapes, chosen);
    return give_model(std::move(session), chosen, model);
  });
}

pyc_status pyc_model_file_graph(const pyc_model_file* file, const pyc_compile_options* options,
                                pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(graph, "graph"));
    const open::ShapeChoice shapes = to_shapes(options);
    return give_graph(model_file::graph_of(file->model, shapes), graph);
  });
}

pyc_status pyc_model_file_text(const pyc_model_file* file, const pyc_compile_options* options,
                               char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    const open::ShapeChoice shapes = to_shapes(options);
    PYC_ASSIGN(const std::string printed, model_file::text_of(file->model, shapes));
    return give_text(printed, text);
  });
}

pyc_status pyc_model_file_compile_to_file(const pyc_model_file* file,
                                          const pyc_compile_options* options, const char* path,
                                          pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(path, "path"));
    PYC_ASSIGN(const artifact::Artifact made,
               model_file::compile_model(file->model, to_shapes(options), to_options(options)));
    return session::write_artifact(made, path);
  });
}

pyc_status pyc_model_file_segments(const pyc_model_file* file, const pyc_compile_options* options,
                                   char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    const open::ShapeChoice shapes = to_shapes(options);
    PYC_ASSIGN(const std::string printed,
               model_file::segments_of(file->model, shapes, to_options(options)));
    return give_text(printed, text);
  });
}

pyc_status pyc_model_file_get_breaks(const pyc_model_file* file, const pyc_compile_options* options,
                                     pyc_breaks** breaks, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(breaks, "breaks"));
    const open::ShapeChoice shapes = to_shapes(options);
    PYC_ASSIGN(session::BreakReport report, model_file::breaks_of_model(file->model, shapes));
    *breaks = new pyc_breaks{std::move(report)};
    return {};
  });
}

pyc_status pyc_model_get_breaks(const pyc_model* model, pyc_breaks** breaks, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(require(breaks, "breaks"));
    *breaks = new pyc_breaks{model->session->breaks()};
    return {};
  });
}

void pyc_breaks_destroy(pyc_breaks* breaks) { delete breaks; }

pyc_status pyc_breaks_summary(const pyc_breaks* breaks, pyc_break_summary* summary,
                              pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(breaks, "breaks"));
    PYC_TRY(check_out_struct(summary, "pyc_break_summary", sizeof(pyc_break_summary)));
    const session::BreakReport& r = breaks->report;
    pyc_break_summary out{};
    out.nodes = r.nodes;
    out.compiled = r.open_shapes ? -1 : r.compiled;
    out.break_count = r.breaks;
    out.compilability_score = r.compilability_score();
    out.first_node = r.first_node.c_str();
    out.first_op = r.first_op.c_str();
    out.first_reason = r.first_reason.c_str();
    out.summary = r.summary.c_str();
    write_struct(summary, out);
    return {};
  });
}

size_t pyc_breaks_op_count(const pyc_breaks* breaks) {
  return breaks == nullptr ? 0 : breaks->report.ops.size();
}

pyc_status pyc_breaks_op(const pyc_breaks* breaks, size_t index, pyc_break_op* op,
                         pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(breaks, "breaks"));
    PYC_TRY(check_out_struct(op, "pyc_break_op", sizeof(pyc_break_op)));
    PYC_TRY(require_index(index, breaks->report.ops.size(), "op"));
    const auto it = std::next(breaks->report.ops.begin(), static_cast<std::ptrdiff_t>(index));
    pyc_break_op out{};
    out.op = it->first.c_str();
    out.count = it->second;
    write_struct(op, out);
    return {};
  });
}

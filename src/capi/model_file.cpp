#include "pyc/model_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

using Json = nlohmann::ordered_json;

ir::OpenValue open_value(const ir::Value& value) {
  ir::OpenValue out{.name = value.name, .type = {}, .constant = {}};
  out.type.kind = ir::OpenType::Kind::kTensor;
  out.type.dtype = value.type.dtype;
  out.type.shape.emplace();
  for (const int64_t d : value.type.shape) out.type.shape->push_back({.value = d, .symbol = ""});
  return out;
}

void declare_open(const ir::OpenGraph& graph, pyc_model_file& out) {
  std::vector<ir::OpenValue> inputs;
  std::vector<ir::OpenValue> outputs;
  for (const ir::OpenId v : graph.inputs) inputs.push_back(graph.values[v]);
  for (const ir::OpenId v : graph.outputs) outputs.push_back(graph.values[v]);
  out.inputs = declare(inputs, PYC_VALUE_INPUT);
  out.outputs = declare(outputs, PYC_VALUE_RESULT);
}

void declare_closed(const ir::Graph& graph, pyc_model_file& out) {
  std::vector<ir::OpenValue> inputs;
  std::vector<ir::OpenValue> outputs;
  for (const ir::ValueId v : graph.inputs) inputs.push_back(open_value(graph.value(v)));
  for (const ir::ValueId v : graph.outputs) outputs.push_back(open_value(graph.value(v)));
  out.inputs = declare(inputs, PYC_VALUE_INPUT);
  out.outputs = declare(outputs, PYC_VALUE_RESULT);
}

void declare_compiled(const runtime::Program& program, pyc_model_file& out) {
  out.inputs = declare(driver::declared(program.inputs), PYC_VALUE_INPUT);
  out.outputs = declare(driver::declared(program.outputs), PYC_VALUE_RESULT);
}

Status give_file(Result<driver::LoadedModel> model, pyc_model_file** out) {
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

Json to_json(const Declared& value) {
  constexpr const char* kTypes[] = {"tensor",   "strings", "sequence",
                                    "optional", "nothing", "unknown"};
  const pyc_value_info& info = value.info;
  return {{"name", value.name},
          {"dtype", info.dtype < 0 ? Json(nullptr) : Json(pyc_dtype_name(info.dtype))},
          {"shape", info.rank < 0 ? Json(nullptr) : Json(value.shape)},
          {"bytes", info.bytes < 0 ? Json(nullptr) : Json(info.bytes)},
          {"type", kTypes[info.type]},
          {"symbols", value.symbols},
          {"text", value.type_text}};
}

struct Counts {
  std::map<std::string, int64_t> ops;
  int64_t constants = 0;
  int64_t constant_bytes = 0;
};

const char* format_of(const driver::LoadedModel& model) {
  if (model.artifact != nullptr) return "pycm";
  return model.open != nullptr ? "onnx" : "text";
}

Counts count(const driver::LoadedModel& model) {
  Counts out;
  if (model.open != nullptr) {
    out.ops = model.info.ops;
    out.constant_bytes = model.info.parameter_bytes;
    for (const ir::OpenValue& v : model.open->values) out.constants += v.constant ? 1 : 0;
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

Json description(const pyc_model_file& file) {
  const driver::LoadedModel& model = file.model;
  const bool onnx = model.open != nullptr;
  const Counts counts = count(model);
  int64_t nodes = 0;
  for (const auto& [op, n] : counts.ops) nodes += n;
  Json out = {{"format", format_of(model)},
              {"inputs", Json::array()},
              {"outputs", Json::array()},
              {"nodes", nodes},
              {"constants", counts.constants},
              {"constant_bytes", counts.constant_bytes},
              {"ops", counts.ops},
              {"unsupported", Json::array()}};
  for (const auto& value : file.inputs) out["inputs"].push_back(to_json(*value));
  for (const auto& value : file.outputs) out["outputs"].push_back(to_json(*value));
  for (const auto& node : model.info.unsupported) {
    out["unsupported"].push_back({{"name", node.name},
                                  {"op", node.op},
                                  {"domain", node.domain},
                                  {"opset", node.opset},
                                  {"nearest", node.nearest}});
  }
  if (onnx) {
    out["ir_version"] = model.info.ir_version;
    out["producer"] = model.info.producer;
    out["opsets"] = model.info.opsets;
  }
  return out;
}

}  // namespace

pyc_status pyc_model_file_load(const char* path, pyc_model_file** file, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    return give_file(driver::load_model_file(path), file);
  });
}

pyc_status pyc_model_file_load_bytes(const void* data, size_t size, pyc_model_file** file,
                                     pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(data, size, "data"));
    return give_file(driver::load_model({static_cast<const char*>(data), size}), file);
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
    return give_text(description(*file).dump(2, ' ', false, Json::error_handler_t::replace), json);
  });
}

pyc_status pyc_model_file_compile(const pyc_model_file* file, const pyc_compile_options* options,
                                  pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_ASSIGN(driver::CompileOptions chosen, to_options(options));
    PYC_ASSIGN(const driver::ShapeChoice shapes, to_shapes(options));
    auto session = driver::make_session(file->model, shapes, chosen);
    return give_model(std::move(session), chosen, model);
  });
}

pyc_status pyc_model_file_graph(const pyc_model_file* file, const pyc_compile_options* options,
                                pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(graph, "graph"));
    PYC_ASSIGN(const driver::ShapeChoice shapes, to_shapes(options));
    return give_graph(driver::graph_of(file->model, shapes), graph);
  });
}

pyc_status pyc_model_file_get_breaks(const pyc_model_file* file, const pyc_compile_options* options,
                                     pyc_breaks** breaks, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(file, "file"));
    PYC_TRY(require(breaks, "breaks"));
    PYC_ASSIGN(const driver::ShapeChoice shapes, to_shapes(options));
    PYC_ASSIGN(driver::BreakReport report, driver::breaks_of_model(file->model, shapes));
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
    const driver::BreakReport& r = breaks->report;
    pyc_break_summary out{};
    out.nodes = r.nodes;
    out.compiled = r.compiled;
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

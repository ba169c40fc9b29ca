#include "pyc/ir.h"

#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "ir/rules.h"
#include "model_file/export.h"
#include "model_file/load.h"
#include "tooling/reduce.h"
#include "tooling/tables.h"

using namespace pyc;
using namespace pyc::capi;

namespace pyc::capi {

Status give_graph(Result<ir::Graph> graph, pyc_graph** out) {
  if (!graph.ok()) return std::move(graph).status();
  *out = new pyc_graph{ir::GraphBuilder(tooling::known_ops(), std::move(*graph))};
  return {};
}

}  // namespace pyc::capi

namespace {

Result<ir::Graph> closed(Result<model_file::LoadedModel> model) {
  if (!model.ok()) return std::move(model).status();
  return model_file::graph_of(*model, {});
}

Status give_value(const Result<ir::ValueId>& made, pyc_value* value) {
  if (!made.ok()) return made.status();
  *value = *made;
  return {};
}

pyc_status set_attr(pyc_attrs* attrs, const char* name, ir::Attr value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(attrs, "attrs"));
    PYC_TRY(require(name, "name"));
    attrs->attrs.insert_or_assign(name, std::move(value));
    return {};
  });
}

template <class T>
pyc_status set_list(pyc_attrs* attrs, const char* name, const T* values, size_t count,
                    pyc_error** error) {
  std::vector<T> list;
  const pyc_status status = guard(error, [&]() -> Status {
    PYC_TRY(require_list(values, count, "values"));
    if (count > 0) list.assign(values, values + count);
    return {};
  });
  return status == PYC_STATUS_OK ? set_attr(attrs, name, std::move(list), error) : status;
}

// A constant's type, which is that of so many bytes.
Result<ir::TensorType> constant_type(const char* name, pyc_dtype dtype, const int64_t* shape,
                                     int64_t rank, size_t bytes) {
  PYC_ASSIGN(ir::TensorType type, to_type(dtype, shape, rank));
  if (static_cast<size_t>(type.bytes()) == bytes) return type;
  return Status(Code::kSizeMismatch,
                fmt::format("constant '{}': expected {} bytes for {}, found {}", to_text(name),
                            type.bytes(), type.to_string(), bytes))
      .with_node(to_text(name));
}

Status check_new_value(const pyc_graph* graph, const pyc_value* value) {
  PYC_TRY(require(graph, "graph"));
  return require(value, "value");
}

}  // namespace

pyc_status pyc_graph_create(const char* name, pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    *graph = new pyc_graph{
        ir::GraphBuilder(tooling::known_ops(), name == nullptr ? "main" : std::string(name))};
    return {};
  });
}

pyc_status pyc_graph_parse(const char* text, size_t size, pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require_list(text, size, "text"));
    return give_graph(driver::parse_model({text, size}), graph);
  });
}

pyc_status pyc_graph_load_bytes(const void* data, size_t size, pyc_graph** graph,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require_list(data, size, "data"));
    return give_graph(closed(model_file::load_model({static_cast<const char*>(data), size})),
                      graph);
  });
}

pyc_status pyc_graph_load_file(const char* path, pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(path, "path"));
    return give_graph(closed(model_file::load_model_file(path)), graph);
  });
}

pyc_status pyc_graph_clone(const pyc_graph* graph, pyc_graph** copy, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(copy, "copy"));
    return give_graph(ir::Graph(graph->graph()), copy);
  });
}

void pyc_graph_destroy(pyc_graph* graph) { delete graph; }

pyc_status pyc_graph_input(pyc_graph* graph, const char* name, pyc_dtype dtype,
                           const int64_t* shape, int64_t rank, pyc_value* value,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require(name, "name"));
    Result<ir::TensorType> type = to_type(dtype, shape, rank);
    if (!type.ok()) return std::move(type).status().with_node(name);
    return give_value(graph->builder.input(name, std::move(*type)), value).with_node(name);
  });
}

pyc_status pyc_graph_constant(pyc_graph* graph, const char* name, pyc_dtype dtype,
                              const int64_t* shape, int64_t rank, const void* data, size_t bytes,
                              pyc_value* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require_list(data, bytes, "data"));
    PYC_ASSIGN(ir::TensorType type, constant_type(name, dtype, shape, rank, bytes));
    const auto* first = static_cast<const std::byte*>(data);
    std::vector<std::byte> copy(first, first + bytes);
    return give_value(graph->builder.constant(std::move(type), ir::dense_data(std::move(copy)),
                                              to_text(name)),
                      value)
        .with_node(to_text(name));
  });
}

pyc_status pyc_graph_constant_borrowed(pyc_graph* graph, const char* name, pyc_dtype dtype,
                                       const int64_t* shape, int64_t rank, const void* data,
                                       size_t bytes, void* user, void (*release)(void* user),
                                       pyc_value* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    // Owns nothing itself; its end is the elements' release.
    const std::shared_ptr<const void> owner(user, [release](void* held) {
      if (release != nullptr) release(held);
    });
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require_list(data, bytes, "data"));
    PYC_ASSIGN(ir::TensorType type, constant_type(name, dtype, shape, rank, bytes));
    SharedBytes elements(owner, {static_cast<const std::byte*>(data), bytes});
    return give_value(graph->builder.constant(std::move(type), ir::dense_data(std::move(elements)),
                                              to_text(name)),
                      value)
        .with_node(to_text(name));
  });
}

pyc_status pyc_graph_constant_of(pyc_graph* graph, const char* name, const pyc_graph* other,
                                 pyc_value constant, pyc_value* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require(other, "other"));
    const ir::Graph& source = other->graph();
    if (constant >= source.values.size() || source.value(constant).constant == nullptr) {
      return Status(Code::kInvalidArgument,
                    fmt::format("value {} is no constant of the other graph", constant));
    }
    const ir::Value& found = source.value(constant);
    return give_value(graph->builder.constant(found.type, found.constant, to_text(name)), value)
        .with_node(to_text(name));
  });
}

pyc_status pyc_graph_scalar(pyc_graph* graph, pyc_dtype dtype, double number, pyc_value* value,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_ASSIGN(const DType type, to_dtype(dtype));
    return give_value(graph->builder.scalar(type, number), value);
  });
}

pyc_status pyc_graph_random(pyc_graph* graph, const char* name, pyc_dtype dtype,
                            const int64_t* shape, int64_t rank, uint64_t seed, double lo, double hi,
                            pyc_value* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_ASSIGN(ir::TensorType type, to_type(dtype, shape, rank));
    PYC_TRY(ir::check_random_range(lo, hi));
    if (type.bytes() > ir::kMaxGeneratedBytes) {
      return Status(Code::kBudgetExceeded,
                    fmt::format("random constant {}: over the limit of {} bytes", type.to_string(),
                                ir::kMaxGeneratedBytes));
    }
    auto data = ir::random_data(type, seed, lo, hi);
    return give_value(graph->builder.constant(std::move(type), std::move(data), to_text(name)),
                      value)
        .with_node(to_text(name));
  });
}

pyc_status pyc_attrs_create(pyc_attrs** attrs, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(attrs, "attrs"));
    *attrs = new pyc_attrs{};
    return {};
  });
}

void pyc_attrs_destroy(pyc_attrs* attrs) { delete attrs; }

pyc_status pyc_attrs_set_int(pyc_attrs* attrs, const char* name, int64_t value, pyc_error** error) {
  return set_attr(attrs, name, value, error);
}

pyc_status pyc_attrs_set_float(pyc_attrs* attrs, const char* name, double value,
                               pyc_error** error) {
  return set_attr(attrs, name, value, error);
}

pyc_status pyc_attrs_set_bool(pyc_attrs* attrs, const char* name, int32_t value,
                              pyc_error** error) {
  return set_attr(attrs, name, value != 0, error);
}

pyc_status pyc_attrs_set_string(pyc_attrs* attrs, const char* name, const char* value,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(attrs, "attrs"));
    PYC_TRY(require(name, "name"));
    PYC_TRY(require(value, "value"));
    attrs->attrs.insert_or_assign(name, std::string(value));
    return {};
  });
}

pyc_status pyc_attrs_set_dtype(pyc_attrs* attrs, const char* name, pyc_dtype value,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(attrs, "attrs"));
    PYC_TRY(require(name, "name"));
    PYC_ASSIGN(const DType dtype, to_dtype(value));
    attrs->attrs.insert_or_assign(name, dtype);
    return {};
  });
}

pyc_status pyc_attrs_set_ints(pyc_attrs* attrs, const char* name, const int64_t* values,
                              size_t count, pyc_error** error) {
  return set_list(attrs, name, values, count, error);
}

pyc_status pyc_attrs_set_floats(pyc_attrs* attrs, const char* name, const double* values,
                                size_t count, pyc_error** error) {
  return set_list(attrs, name, values, count, error);
}

pyc_status pyc_graph_op(pyc_graph* graph, const char* op, const pyc_value* inputs,
                        size_t input_count, const pyc_attrs* attrs, const char* name,
                        pyc_value* value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require(op, "op"));
    PYC_TRY(require_list(inputs, input_count, "inputs"));
    std::vector<ir::ValueId> ids;
    if (input_count > 0) ids.assign(inputs, inputs + input_count);
    return give_value(
               graph->builder.op(op, std::move(ids), attrs == nullptr ? ir::Attrs() : attrs->attrs,
                                 to_text(name)),
               value)
        .with_node(name == nullptr ? op : name);
  });
}

pyc_status pyc_graph_output(pyc_graph* graph, pyc_value value, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    return graph->builder.output(value);
  });
}

size_t pyc_graph_output_count(const pyc_graph* graph) {
  return graph == nullptr ? 0 : graph->graph().outputs.size();
}

pyc_status pyc_graph_get_output(const pyc_graph* graph, size_t index, pyc_value* value,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require_index(index, graph->graph().outputs.size(), "output"));
    *value = graph->graph().outputs[index];
    return {};
  });
}

size_t pyc_graph_value_count(const pyc_graph* graph) {
  return graph == nullptr ? 0 : graph->graph().values.size();
}

pyc_status pyc_graph_value(const pyc_graph* graph, pyc_value value, pyc_value_info* info,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(check_out_struct(info, "pyc_value_info", kFirstValueInfo));
    PYC_TRY(require_index(value, graph->graph().values.size(), "value"));
    const ir::Value& v = graph->graph().value(value);
    write_struct(info, value_info(v.name, v.type.dtype, v.type.shape, v.type.bytes(),
                                  static_cast<int32_t>(v.kind)));
    return {};
  });
}

pyc_status pyc_graph_find_value(const pyc_graph* graph, const char* name, pyc_value* value,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_new_value(graph, value));
    PYC_TRY(require(name, "name"));
    std::vector<std::string_view> known;
    const auto& values = graph->graph().values;
    for (ir::ValueId id = 0; id < values.size(); ++id) {
      if (values[id].name == name) {
        *value = id;
        return {};
      }
      known.push_back(values[id].name);
    }
    return {Code::kNotFound, fmt::format("there is no value '{}'{}", name,
                                         ir::did_you_mean(ir::closest_name(name, known)))};
  });
}

size_t pyc_graph_node_count(const pyc_graph* graph) {
  return graph == nullptr ? 0 : graph->graph().nodes.size();
}

pyc_status pyc_graph_node(const pyc_graph* graph, size_t index, pyc_node_info* info,
                          pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(check_out_struct(info, "pyc_node_info", sizeof(pyc_node_info)));
    PYC_TRY(require_index(index, graph->graph().nodes.size(), "node"));
    const ir::Node& node = graph->graph().nodes[index];
    pyc_node_info out{};
    out.op = node.op->name.data();
    out.location = node.loc.c_str();
    out.inputs = node.inputs.data();
    out.input_count = node.inputs.size();
    out.outputs = node.outputs.data();
    out.output_count = node.outputs.size();
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_graph_print(const pyc_graph* graph, char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    return give_text(ir::print(graph->graph()), text);
  });
}

pyc_status pyc_graph_verify(const pyc_graph* graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    return ir::verify_graph(graph->graph()).status();
  });
}

pyc_status pyc_graph_fingerprint(const pyc_graph* graph, char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(graph->graph()));
    return give_text(ir::fingerprint(*verified).hex(), text);
  });
}

pyc_status pyc_export_onnx(const pyc_graph* graph, const char* path, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(path, "path"));
    return model_file::export_onnx(graph->graph(), path);
  });
}

pyc_status pyc_graph_reduce(const pyc_graph* graph, pyc_reduce_check check, void* context,
                            int64_t max_tries, pyc_graph** reduced, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(reinterpret_cast<const void*>(check), "check"));
    PYC_TRY(require(reduced, "reduced"));
    const auto shows = [&](const ir::Graph& candidate) {
      const pyc_graph handle{ir::GraphBuilder(tooling::known_ops(), candidate)};
      return check(&handle, context) != 0;
    };
    return give_graph(tooling::reduce_graph(graph->graph(), shows, max_tries), reduced);
  });
}

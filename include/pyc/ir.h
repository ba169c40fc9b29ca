/* Graphs: built op by op, read from text or a file, printed, verified. docs/IR.md is their
 * reference. */
#ifndef PYC_IR_H_
#define PYC_IR_H_

#include "pyc/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_graph pyc_graph;
/* A value of one graph: numbers from 0 on, in the order the values were made. */
typedef uint32_t pyc_value;

/* An empty graph to build on. `name` may be NULL. */
PYC_API pyc_status pyc_graph_create(const char* name, pyc_graph** graph, pyc_error** error);
/* From text IR. */
PYC_API pyc_status pyc_graph_parse(const char* text, size_t size, pyc_graph** graph,
                                   pyc_error** error);
/* From a model's bytes or file; their content says which format they have. */
PYC_API pyc_status pyc_graph_load_bytes(const void* data, size_t size, pyc_graph** graph,
                                        pyc_error** error);
PYC_API pyc_status pyc_graph_load_file(const char* path, pyc_graph** graph, pyc_error** error);
PYC_API pyc_status pyc_graph_clone(const pyc_graph* graph, pyc_graph** copy, pyc_error** error);
PYC_API void pyc_graph_destroy(pyc_graph* graph);

/* A model input. Names are unique among all values of a graph. */
PYC_API pyc_status pyc_graph_input(pyc_graph* graph, const char* name, pyc_dtype dtype,
                                   const int64_t* shape, int64_t rank, pyc_value* value,
                                   pyc_error** error);
/* A constant whose row-major elements are copied; `bytes` is what dtype and shape say. `name` may
 * be NULL. */
PYC_API pyc_status pyc_graph_constant(pyc_graph* graph, const char* name, pyc_dtype dtype,
                                      const int64_t* shape, int64_t rank, const void* data,
                                      size_t bytes, pyc_value* value, pyc_error** error);
/* The same without a copy: the elements stay where they are, unchanged, until nothing made of the
 * graph reads them any more; then `release`, if not NULL, is called with `user`, by whichever
 * thread it is. It is called at once when the constant is refused. */
PYC_API pyc_status pyc_graph_constant_borrowed(pyc_graph* graph, const char* name, pyc_dtype dtype,
                                               const int64_t* shape, int64_t rank, const void* data,
                                               size_t bytes, void* user,
                                               void (*release)(void* user), pyc_value* value,
                                               pyc_error** error);
/* A constant of another graph, which both have then: what is made of its elements for programs is
 * made once for all of them. */
PYC_API pyc_status pyc_graph_constant_of(pyc_graph* graph, const char* name, const pyc_graph* other,
                                         pyc_value constant, pyc_value* value, pyc_error** error);
/* A constant of rank 0. */
PYC_API pyc_status pyc_graph_scalar(pyc_graph* graph, pyc_dtype dtype, double number,
                                    pyc_value* value, pyc_error** error);
/* A constant with elements uniform in [lo, hi), the same for the same seed everywhere. */
PYC_API pyc_status pyc_graph_random(pyc_graph* graph, const char* name, pyc_dtype dtype,
                                    const int64_t* shape, int64_t rank, uint64_t seed, double lo,
                                    double hi, pyc_value* value, pyc_error** error);

/* Attributes of a node. Setting a name again replaces its value. */
typedef struct pyc_attrs pyc_attrs;
PYC_API pyc_status pyc_attrs_create(pyc_attrs** attrs, pyc_error** error);
PYC_API void pyc_attrs_destroy(pyc_attrs* attrs);
PYC_API pyc_status pyc_attrs_set_int(pyc_attrs* attrs, const char* name, int64_t value,
                                     pyc_error** error);
PYC_API pyc_status pyc_attrs_set_float(pyc_attrs* attrs, const char* name, double value,
                                       pyc_error** error);
PYC_API pyc_status pyc_attrs_set_bool(pyc_attrs* attrs, const char* name, int32_t value,
                                      pyc_error** error);
PYC_API pyc_status pyc_attrs_set_string(pyc_attrs* attrs, const char* name, const char* value,
                                        pyc_error** error);
PYC_API pyc_status pyc_attrs_set_dtype(pyc_attrs* attrs, const char* name, pyc_dtype value,
                                       pyc_error** error);
PYC_API pyc_status pyc_attrs_set_ints(pyc_attrs* attrs, const char* name, const int64_t* values,
                                      size_t count, pyc_error** error);
PYC_API pyc_status pyc_attrs_set_floats(pyc_attrs* attrs, const char* name, const double* values,
                                        size_t count, pyc_error** error);

/* One node. `attrs` may be NULL; `name`, which may be NULL, names the first output. Gives the first
 * output; the others have the numbers that follow. kernel_registry.h lists the ops. */
PYC_API pyc_status pyc_graph_op(pyc_graph* graph, const char* op, const pyc_value* inputs,
                                size_t input_count, const pyc_attrs* attrs, const char* name,
                                pyc_value* value, pyc_error** error);
/* Makes the value the next output of the model. */
PYC_API pyc_status pyc_graph_output(pyc_graph* graph, pyc_value value, pyc_error** error);
PYC_API size_t pyc_graph_output_count(const pyc_graph* graph);
PYC_API pyc_status pyc_graph_get_output(const pyc_graph* graph, size_t index, pyc_value* value,
                                        pyc_error** error);

PYC_API size_t pyc_graph_value_count(const pyc_graph* graph);
PYC_API pyc_status pyc_graph_value(const pyc_graph* graph, pyc_value value, pyc_value_info* info,
                                   pyc_error** error);
PYC_API pyc_status pyc_graph_find_value(const pyc_graph* graph, const char* name, pyc_value* value,
                                        pyc_error** error);

typedef struct pyc_node_info {
  size_t struct_size;
  const char* op;
  const char* location; /* where it came from: an ONNX node name, a text line; "" when unknown */
  const pyc_value* inputs;
  size_t input_count;
  const pyc_value* outputs;
  size_t output_count;
} pyc_node_info;
PYC_API size_t pyc_graph_node_count(const pyc_graph* graph);
/* Pointers in `info` are good until the graph is changed. */
PYC_API pyc_status pyc_graph_node(const pyc_graph* graph, size_t index, pyc_node_info* info,
                                  pyc_error** error);

/* Text IR that pyc_graph_parse reads back. */
PYC_API pyc_status pyc_graph_print(const pyc_graph* graph, char** text, pyc_error** error);
/* Whether it keeps every rule of Graph IR; compiling asks the same. */
PYC_API pyc_status pyc_graph_verify(const pyc_graph* graph, pyc_error** error);
/* 32 hexadecimal digits that cover everything that can change results. */
PYC_API pyc_status pyc_graph_fingerprint(const pyc_graph* graph, char** text, pyc_error** error);
/* Writes an ONNX model; values keep their names. PYC_STATUS_UNSUPPORTED names every node that ONNX
   cannot express; no file is written then. */
PYC_API pyc_status pyc_export_onnx(const pyc_graph* graph, const char* path, pyc_error** error);

/* Whether a graph, which is valid, still shows what is looked for: nonzero while it does. */
typedef int32_t (*pyc_reduce_check)(const pyc_graph* graph, void* context);
/* The smallest graph that still shows it, found with at most `max_tries` calls of the check: fewer
 * outputs, nodes and elements. Nodes that are cut leave inputs in their place. */
PYC_API pyc_status pyc_graph_reduce(const pyc_graph* graph, pyc_reduce_check check, void* context,
                                    int64_t max_tries, pyc_graph** reduced, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif

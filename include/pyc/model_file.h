/* Model files before they are compiled: what they declare, what is not supported, what breaks. */
#ifndef PYC_MODEL_FILE_H_
#define PYC_MODEL_FILE_H_

#include "pyc/results.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model as it was read. It may hold nodes that PyC has no meaning for: then it can be looked at,
 * but not compiled. */
typedef struct pyc_model_file pyc_model_file;
PYC_API pyc_status pyc_model_file_load(const char* path, pyc_model_file** file, pyc_error** error);
PYC_API pyc_status pyc_model_file_load_bytes(const void* data, size_t size, pyc_model_file** file,
                                             pyc_error** error);
PYC_API void pyc_model_file_destroy(pyc_model_file* file);

PYC_API size_t pyc_model_file_input_count(const pyc_model_file* file);
PYC_API size_t pyc_model_file_output_count(const pyc_model_file* file);
PYC_API pyc_status pyc_model_file_input(const pyc_model_file* file, size_t index,
                                        pyc_value_info* info, pyc_error** error);
PYC_API pyc_status pyc_model_file_output(const pyc_model_file* file, size_t index,
                                         pyc_value_info* info, pyc_error** error);

/* The value in a file, as the model declares that input: a tensor of numbers from .npy or an ONNX
 * TensorProto, strings from a TensorProto, a sequence from a SequenceProto, an optional from an
 * OptionalProto or a file of what it may hold. */
PYC_API pyc_status pyc_model_file_read_input(const pyc_model_file* file, size_t index,
                                             const char* path, pyc_result** result,
                                             pyc_error** error);

/* A node for whose op PyC has no meaning. */
typedef struct pyc_unsupported_node {
  size_t struct_size;
  const char* name;
  const char* op;
  const char* domain; /* "": the standard's own */
  int64_t opset;
  const char* nearest; /* the known op that is nearest by name, or "" */
} pyc_unsupported_node;
/* All of them, those of regions included. */
PYC_API size_t pyc_model_file_unsupported_count(const pyc_model_file* file);
PYC_API pyc_status pyc_model_file_unsupported(const pyc_model_file* file, size_t index,
                                              pyc_unsupported_node* node, pyc_error** error);

/* Everything about the file as JSON: format, inputs, outputs, nodes, ops, unsupported nodes,
 * constants and, of ONNX files, opsets, producer and IR version; docs/cli.md (inspect) has the
 * keys. */
PYC_API pyc_status pyc_model_file_describe(const pyc_model_file* file, char** json,
                                           pyc_error** error);

/* Compiles it, as pyc_compile_model_file does. */
PYC_API pyc_status pyc_model_file_compile(const pyc_model_file* file,
                                          const pyc_compile_options* options, pyc_model** model,
                                          pyc_error** error);
/* The model as one graph with the shapes that `options` chooses, which may be NULL.
 * PYC_STATUS_UNSUPPORTED names what is open or is no tensor code. */
PYC_API pyc_status pyc_model_file_graph(const pyc_model_file* file,
                                        const pyc_compile_options* options, pyc_graph** graph,
                                        pyc_error** error);
/* The model as text (docs/IR.md): an open graph with the shapes that `options` chooses, which may
 * be NULL, or Graph IR when the file holds that. PYC_STATUS_UNSUPPORTED for a compiled model. */
PYC_API pyc_status pyc_model_file_text(const pyc_model_file* file,
                                       const pyc_compile_options* options, char** text,
                                       pyc_error** error);
/* Compiles the model ahead of time with the shapes that `options` chooses and writes a .pycm file,
 * all or nothing: one program where the model is one, else its open graph with the programs that
 * types tell of; runs compile what is missing where there is a compiler. */
PYC_API pyc_status pyc_model_file_compile_to_file(const pyc_model_file* file,
                                                  const pyc_compile_options* options,
                                                  const char* path, pyc_error** error);
/* The programs that an open model is made of with the shapes that `options` chooses, and what the
 * host does between them, as far as types tell before any run. Compiles them.
 * PYC_STATUS_UNSUPPORTED for a model that is one program, and for open shapes. */
PYC_API pyc_status pyc_model_file_segments(const pyc_model_file* file,
                                           const pyc_compile_options* options, char** text,
                                           pyc_error** error);

/* What of a model is not compiled whole. */
typedef struct pyc_breaks pyc_breaks;
typedef struct pyc_break_summary {
  size_t struct_size;
  int64_t nodes;    /* of the model's graph that an output needs; a node's regions are part of it */
  int64_t compiled; /* of those: the ones that become code; -1: shapes are open and nothing ran yet,
                       so that it is not known */
  int64_t break_count; /* nodes, certain ones where shapes are open, at which code ends: run on the
                          host, without a meaning, or in need of values that are computed first */
  double compilability_score; /* compiled / nodes, 0 to 1; 1 without nodes; NaN: not known */
  const char* first_node;     /* the first break; "" when there is none */
  const char* first_op;
  const char* first_reason; /* host_function, waits_for_value, open_region, not_a_tensor,
                               complex_numbers, no_rule */
  const char* summary;      /* one line */
} pyc_break_summary;
typedef struct pyc_break_op {
  size_t struct_size;
  const char* op; /* "onnx.NonZero"; "unknown" for all ops without a meaning */
  int64_t count;  /* of its breaks */
} pyc_break_op;
/* As far as the file and the shapes that `options` chooses tell, without running it. */
PYC_API pyc_status pyc_model_file_get_breaks(const pyc_model_file* file,
                                             const pyc_compile_options* options,
                                             pyc_breaks** breaks, pyc_error** error);
/* As the runs so far found them; before the first, as pyc_model_file_get_breaks. */
PYC_API pyc_status pyc_model_get_breaks(const pyc_model* model, pyc_breaks** breaks,
                                        pyc_error** error);
PYC_API void pyc_breaks_destroy(pyc_breaks* breaks);
PYC_API pyc_status pyc_breaks_summary(const pyc_breaks* breaks, pyc_break_summary* summary,
                                      pyc_error** error);
/* By op, in the order of their names. */
PYC_API size_t pyc_breaks_op_count(const pyc_breaks* breaks);
PYC_API pyc_status pyc_breaks_op(const pyc_breaks* breaks, size_t index, pyc_break_op* op,
                                 pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif

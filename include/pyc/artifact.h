/* Artefacts (.pycm): models compiled ahead of time, as files. pyc_compile_model_file and _bytes
 * take them like any model; running one needs no compiler. An artefact holds machine code: load
 * only files you trust like a program. */
#ifndef PYC_ARTIFACT_H_
#define PYC_ARTIFACT_H_

#include "pyc/common.h"
#include "pyc/compiler_api.h"
#include "pyc/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The machines that code can be made for, by name: "x86_avx2". NULL beyond the last. */
PYC_API size_t pyc_target_count(void);
PYC_API const char* pyc_target_name(size_t index);

/* Compiles a graph and writes the artefact to `path`, all or nothing. Equal graphs and options give
 * equal bytes. The option target is the machine to make code for; by default the widest of the
 * named ones that this machine runs. Only the device "cpu" makes code that can be kept. */
PYC_API pyc_status pyc_compile_to_file(const pyc_graph* graph, const pyc_compile_options* options,
                                       const char* path, pyc_error** error);

/* What an artefact holds; also of one that this machine cannot run. */
typedef struct pyc_artifact pyc_artifact;
/* Refuses files that are none, cut off, damaged or of another version of PyC. */
PYC_API pyc_status pyc_artifact_open(const char* path, pyc_artifact** artifact, pyc_error** error);
PYC_API void pyc_artifact_destroy(pyc_artifact* artifact);

typedef struct pyc_artifact_info {
  size_t struct_size;
  const char* version;     /* of the PyC that made it and of its numerics */
  const char* target;      /* a name of pyc_target_name; "": any machine */
  const char* determinism; /* "strict", "balanced" or "fast" */
  const char* fingerprint; /* of the graph, as pyc_graph_fingerprint gives it */
  const char* missing;     /* why this machine cannot run it; "" when it can */
  int64_t file_bytes;
  int64_t code_bytes;
  int64_t parameter_bytes;
  int64_t peak_bytes; /* of everything a run on one thread needs */
  size_t step_count;
  size_t decision_count;
  size_t input_count;
  size_t output_count;
  const char* device; /* a name of pyc_device: whose engine runs it */
  /* 1; of an open model how many were compiled, which all counts above are about, the peak being
     that of the largest; its inputs and outputs are those of the open graph (model_file.h). */
  size_t program_count;
} pyc_artifact_info;
PYC_API pyc_status pyc_artifact_get_info(const pyc_artifact* artifact, pyc_artifact_info* info,
                                         pyc_error** error);
PYC_API pyc_status pyc_artifact_input(const pyc_artifact* artifact, size_t index,
                                      pyc_value_info* info, pyc_error** error);
PYC_API pyc_status pyc_artifact_output(const pyc_artifact* artifact, size_t index,
                                       pyc_value_info* info, pyc_error** error);

/* The cache of artefacts in a folder (the option cache_dir); `folder` NULL: the one that
 * PYC_CACHE_DIR names. */
typedef struct pyc_cache_files pyc_cache_files;
typedef struct pyc_cache_file {
  size_t struct_size;
  const char* name;
  int64_t bytes;
  int64_t used_ns;     /* written or last found, since 1970 */
  const char* problem; /* why it cannot be used; "" when it can or was not checked */
} pyc_cache_file;
/* The entries, those not used for longest first. `verify` other than 0: each is read and checked.
 */
PYC_API pyc_status pyc_cache_files_read(const char* folder, int32_t verify, pyc_cache_files** files,
                                        pyc_error** error);
PYC_API size_t pyc_cache_files_count(const pyc_cache_files* files);
PYC_API pyc_status pyc_cache_files_get(const pyc_cache_files* files, size_t index,
                                       pyc_cache_file* file, pyc_error** error);
PYC_API void pyc_cache_files_destroy(pyc_cache_files* files);
/* Removes all entries and nothing else; `removed` may be NULL. */
PYC_API pyc_status pyc_cache_files_clear(const char* folder, int64_t* removed, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif

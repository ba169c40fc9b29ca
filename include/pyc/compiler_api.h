/* Models: compile, run, destroy; what happened and why. */
#ifndef PYC_COMPILER_API_H_
#define PYC_COMPILER_API_H_

#include "pyc/common.h"
#include "pyc/compile_options.h"
#include "pyc/ir.h"
#include "pyc/runtime_allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pyc_model pyc_model;

/* Compiles a graph, which stays the caller's. `options` NULL asks for the defaults. */
PYC_API pyc_status pyc_compile_model(const pyc_graph* graph, const pyc_compile_options* options,
                                     pyc_model** model, pyc_error** error);
/* The same for a model's bytes or file; their content says which format they have. A model with
 * open shapes, or with parts that are no tensor code, is compiled piece by piece when it runs:
 * pyc_model_is_open. One compiled ahead of time (artifact.h) is loaded; of the options it takes
 * those that are PYC_OPTION_LOAD or _RUN, and a determinism that is not stricter than its own. */
PYC_API pyc_status pyc_compile_model_bytes(const void* data, size_t size,
                                           const pyc_compile_options* options, pyc_model** model,
                                           pyc_error** error);
PYC_API pyc_status pyc_compile_model_file(const char* path, const pyc_compile_options* options,
                                          pyc_model** model, pyc_error** error);
/* Ignores NULL and handles that were destroyed already. No run of the model may be under way. */
PYC_API void pyc_destroy_model(pyc_model* model);

/* 1: the model runs as one program or several that are made when the shapes of a run are known;
 * 0: everything was compiled at once and every shape is fixed. */
PYC_API int32_t pyc_model_is_open(const pyc_model* model);
PYC_API size_t pyc_model_input_count(const pyc_model* model);
PYC_API size_t pyc_model_output_count(const pyc_model* model);
PYC_API pyc_status pyc_model_input(const pyc_model* model, size_t index, pyc_value_info* info,
                                   pyc_error** error);
PYC_API pyc_status pyc_model_output(const pyc_model* model, size_t index, pyc_value_info* info,
                                    pyc_error** error);

/* One run. */
typedef struct pyc_run_stats {
  size_t struct_size;
  int64_t wall_ns;     /* from entry to return, the checks of the tensors included */
  int64_t steps;       /* kernels that ran to their end */
  int64_t allocations; /* blocks of memory made for this run; 0 unless more runs overlap than ever
                          before */
  /* Of an open model: bytes of the values the run made, by itself and for its outputs. Inputs and
   * constants are not among them; neither is what the plan of a program accounts for. A tensor
   * counts its bytes, a string its bytes and those of a std::string, an item of a sequence its
   * content and its handle. */
  int64_t value_bytes; /* held when the run ended: outputs, and contents that shaped programs */
  int64_t value_peak_bytes; /* held at a time, at most */
  int64_t staged_views;     /* inputs and outputs that were copied: not row-major, or not aligned */
  int64_t staged_bytes;     /* of their elements */
  int64_t copied_bytes; /* of states that no kernel could write where they lie, and of parameters
                           that stay in a file */
  int64_t recomputed_steps; /* of `steps`: run again so that the memory budget is kept */
  int64_t sent_bytes;       /* from the host's memory to a device's; 0 for tensors that lie there */
  int64_t fetched_bytes;    /* and back */
} pyc_run_stats;

/* Runs the model once: reads the inputs, fills the outputs, in the order of pyc_model_input and
 * _output. The bytes from an output's first to its last element overlap neither inputs nor other
 * outputs; outputs of an open model have the shapes the run gives. A refusal leaves the model
 * usable; after PYC_STATUS_RUNTIME_FAILED, _OUT_OF_MEMORY and _INTERNAL the outputs are void, after
 * any other untouched. `stats` may be NULL; it is filled in any case. */
PYC_API pyc_status pyc_run_model(pyc_model* model, const pyc_tensor_view* inputs,
                                 size_t input_count, const pyc_tensor_view* outputs,
                                 size_t output_count, pyc_run_stats* stats, pyc_error** error);
/* The same with outputs in memory of their own, of whatever shape and kind they turn out to have:
 * results.h reads them. Inputs may have any shape that fits what the model declares;
 * PYC_STATUS_SHAPE_MISMATCH names both inputs when they give one dim two sizes. Inputs that are
 * strings or sequences are for pyc_run_model_values (results.h): PYC_STATUS_UNSUPPORTED names the
 * first. */
typedef struct pyc_results pyc_results;
PYC_API pyc_status pyc_run_model_dynamic(pyc_model* model, const pyc_tensor_view* inputs,
                                         size_t input_count, pyc_results** results,
                                         pyc_run_stats* stats, pyc_error** error);
/* Runs it once and gives the nanoseconds of each step; `count` is pyc_model_step_count. Models that
 * are not open only. */
PYC_API pyc_status pyc_profile_model(pyc_model* model, const pyc_tensor_view* inputs,
                                     size_t input_count, const pyc_tensor_view* outputs,
                                     size_t output_count, int64_t* step_ns, size_t count,
                                     pyc_error** error);

/* What the model keeps from one run to the next: the inputs that the compile option `state` names.
 * A run finds there what the run before left, and leaves there what the pair's output is; neither
 * is among the inputs and outputs of a run. States begin as zeros. A run that fails half way leaves
 * them void: the next one is refused with PYC_STATUS_INVALID_ARGUMENT until all were set or
 * cleared. Runs of such a model go one at a time; a run, or a call below, that finds another run
 * under way is refused with PYC_STATUS_INVALID_ARGUMENT and changes nothing. */
/* 0 for a model without state. */
PYC_API size_t pyc_model_state_count(const pyc_model* model);
/* The state as the input it is; `output`, which may be NULL, becomes the name of the output. Both
 * live as long as the model. */
PYC_API pyc_status pyc_model_state(const pyc_model* model, size_t index, pyc_value_info* info,
                                   const char** output, pyc_error** error);
/* Copies the caller's elements into the state; a NaN becomes the one NaN that outputs have. */
PYC_API pyc_status pyc_model_state_set(pyc_model* model, size_t index, const pyc_tensor_view* from,
                                       pyc_error** error);
/* Copies the state into the caller's memory; refused while the state is void. */
PYC_API pyc_status pyc_model_state_get(pyc_model* model, size_t index, const pyc_tensor_view* to,
                                       pyc_error** error);
/* Zeros. */
PYC_API pyc_status pyc_model_state_clear(pyc_model* model, size_t index, pyc_error** error);

/* All runs of a model so far, and its compile. */
typedef struct pyc_model_stats {
  size_t struct_size;
  int64_t runs;        /* calls of pyc_run_model and pyc_profile_model, whatever came of them */
  int64_t failed_runs; /* of those: the ones that were not PYC_STATUS_OK */
  int64_t guard_miss_count; /* of those: the ones refused at entry for their tensors */
  int64_t fallback_count;   /* nodes that ran on the host, though their op becomes code where its
                               inputs allow it; part of host_calls */
  int64_t contexts;         /* memory of runs made: one per concurrent run at the peak */
  int64_t compile_ns;
  int32_t cache_hit; /* 1: the compile cache of this process had it */
  int32_t reserved;
  /* Parts of compile_ns; zeros after a cache hit. */
  int64_t passes_ns;
  int64_t lower_ns;
  int64_t select_ns;
  int64_t plan_ns;
  int64_t code_ns; /* machine code and packed weights */
  int64_t assemble_ns;
  int64_t kernels; /* asked for; equal ones are compiled once */
  int64_t distinct_kernels;
  int64_t slowest_kernel_ns; /* processor time */
  int64_t segments_compiled; /* programs made so far; 1 for a model that is not open */
  int64_t segments_run;
  int64_t host_calls; /* of functions that are no tensor code */
} pyc_model_stats;
PYC_API pyc_status pyc_model_get_stats(const pyc_model* model, pyc_model_stats* stats,
                                       pyc_error** error);

/* Bytes by what they are for. Planned before the run; measured is what was allocated. Of an open
 * model: the sum over the programs that are kept. */
typedef struct pyc_memory_report {
  size_t struct_size;
  int64_t peak_bytes; /* inputs + parameters + outputs + states + arena + scratch */
  int64_t input_bytes;
  int64_t parameter_bytes; /* weights as the kernels read them */
  int64_t temporary_bytes; /* sum over all temporaries, before reuse */
  int64_t output_bytes;
  int64_t workspace_bytes;      /* sum over all workspaces, before reuse */
  int64_t arena_bytes;          /* temporaries and workspaces after reuse */
  int64_t scratch_bytes;        /* all threads together */
  int64_t measured_arena_bytes; /* allocated for one run: arena and scratch */
  int64_t
      staging_bytes;  /* held for copies of views that cannot be used in place; beside the peak */
  int64_t code_bytes; /* of the program, beside the peak; 0 for an open model */
  int64_t kept_program_bytes; /* code and parameters that the compile cache of this process keeps */
  int64_t state_bytes;        /* kept from run to run, planned and allocated alike */
  int64_t mapped_bytes; /* of parameters that stay in a mapped file for the memory budget; beside
                           the peak */
} pyc_memory_report;
PYC_API pyc_status pyc_model_get_memory(const pyc_model* model, pyc_memory_report* report,
                                        pyc_error** error);

/* A kernel call of the model's run. */
typedef struct pyc_step_info {
  size_t struct_size;
  const char* name;    /* its group */
  double flops;        /* arithmetic, roughly */
  int64_t bytes_moved; /* read and written at least */
  int64_t parallel;    /* independent pieces of work */
} pyc_step_info;
/* 0 for an open model. */
PYC_API size_t pyc_model_step_count(const pyc_model* model);
PYC_API pyc_status pyc_model_step(const pyc_model* model, size_t index, pyc_step_info* info,
                                  pyc_error** error);

/* Something the compiler chose, and why. */
typedef struct pyc_decision {
  size_t struct_size;
  const char* what; /* stage and subject: "kernel:g0" */
  const char* chosen;
  const char* reason; /* a stable code in lower_snake_case */
  const char* detail; /* for people */
  size_t alternative_count;
} pyc_decision;
typedef struct pyc_alternative {
  size_t struct_size;
  const char* name;
  const char* rejected; /* why it was not applicable; "" when it was */
  double cost_ns;       /* estimated; of applicable ones only */
  double measured_ns;   /* of one run, by pyc_tune; 0: nobody measured it */
} pyc_alternative;
/* The decision log of the compile, in the order the decisions were made. That of an open model
 * grows with its runs. */
PYC_API size_t pyc_model_decision_count(const pyc_model* model);
PYC_API pyc_status pyc_model_decision(const pyc_model* model, size_t index, pyc_decision* decision,
                                      pyc_error** error);
PYC_API pyc_status pyc_model_alternative(const pyc_model* model, size_t decision, size_t index,
                                         pyc_alternative* alternative, pyc_error** error);
/* The log as one JSON document: device, mode (determinism), fingerprint, contract, fallback, guard
 * misses, decisions and the runs refused lately. docs/decision_log.schema.json is its schema. */
PYC_API pyc_status pyc_model_last_decision_log(const pyc_model* model, char** json,
                                               pyc_error** error);
/* Takes a decision of the runtime controller (option rails) again, from the reading that stands in
 * its detail: PYC_STATUS_VERIFY_FAILED when it would be another, _PARSE_ERROR when there is no
 * reading. Nothing is done for other decisions. */
PYC_API pyc_status pyc_replay_decision(const pyc_decision* decision, pyc_error** error);
/* The reason codes of decisions and of alternatives that were out (docs/reasons.md), by number from
 * 0: the code, what decisions with it are about, and what it means. "" for other numbers. The names
 * of refusals' codes (pyc_status_name) are reasons too. */
PYC_API size_t pyc_reason_count(void);
PYC_API const char* pyc_reason_name(size_t index);
PYC_API const char* pyc_reason_where(size_t index);
PYC_API const char* pyc_reason_meaning(size_t index);

/* Runs that were refused or failed, oldest first, at most the latest 64. The log is copied when the
 * list is made. */
typedef struct pyc_refusals pyc_refusals;
PYC_API pyc_status pyc_model_get_refusals(const pyc_model* model, pyc_refusals** refusals,
                                          pyc_error** error);
PYC_API size_t pyc_refusals_count(const pyc_refusals* refusals);
PYC_API pyc_status pyc_refusals_get(const pyc_refusals* refusals, size_t index,
                                    pyc_decision* decision, pyc_error** error);
PYC_API void pyc_refusals_destroy(pyc_refusals* refusals);

/* The text of one stage of a compile: graph, passes, groups, dot, loop, plan, llvm or asm. */
PYC_API pyc_status pyc_dump(const pyc_graph* graph, const pyc_compile_options* options,
                            const char* stage, char** text, pyc_error** error);

/* The compile cache of this process. */
typedef struct pyc_cache_stats {
  size_t struct_size;
  int64_t entries;
  int64_t capacity; /* the entry least recently used goes beyond it */
  int64_t hits;
  int64_t misses;
} pyc_cache_stats;
PYC_API pyc_status pyc_cache_get_stats(pyc_cache_stats* stats, pyc_error** error);
/* Models made from its entries live on. */
PYC_API void pyc_cache_clear(void);

#ifdef __cplusplus
}
#endif

#endif

/* Training: a graph, a loss and an optimizer become steps; data, checkpoints, the trained graph.
 * docs/training.md says what a step computes. A trainer and its data are used by one thread at a
 * time. */
#ifndef PYC_TRAIN_H_
#define PYC_TRAIN_H_

#include "pyc/common.h"
#include "pyc/compile_options.h"
#include "pyc/ir.h"
#include "pyc/runtime_allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What may be chosen about training, by name: "loss", "optimizer", "lr", …; pyc_train_option lists
 * all. Values are written as those of compile options, numbers in decimal. */
typedef struct pyc_train_options pyc_train_options;
PYC_API pyc_status pyc_train_options_create(pyc_train_options** options, pyc_error** error);
PYC_API void pyc_train_options_destroy(pyc_train_options* options);
/* Sets one option; a list gets one more item. PYC_STATUS_UNKNOWN_OPTION, with the nearest, for a
 * name that is none; PYC_STATUS_INVALID_ARGUMENT for another value than it takes. */
PYC_API pyc_status pyc_train_options_set(pyc_train_options* options, const char* name,
                                         const char* value, pyc_error** error);
/* The value as pyc_train_options_set takes it; the items of a list are lines. */
PYC_API pyc_status pyc_train_options_get(const pyc_train_options* options, const char* name,
                                         char** value, pyc_error** error);
/* The options there are; what is in `info` lives as long as the process. */
PYC_API size_t pyc_train_option_count(void);
PYC_API pyc_status pyc_train_option(size_t index, pyc_option_info* info, pyc_error** error);

/* A training run: the compiled step and its state, which are parameters, the optimizer's values and
 * the number of steps done. */
typedef struct pyc_trainer pyc_trainer;
/* The graph, whose float constants are trained, stays the caller's. NULL options are the defaults.
 * PYC_STATUS_INVALID_ARGUMENT for a loss that does not fit the graph's first output, a parameter
 * the loss does not depend on, and nothing to train; PYC_STATUS_UNSUPPORTED, naming the node, for
 * what has no gradient; and the refusals of a compile. */
PYC_API pyc_status pyc_train_create(const pyc_graph* graph, const pyc_train_options* options,
                                    const pyc_compile_options* compile, pyc_trainer** trainer,
                                    pyc_error** error);
PYC_API void pyc_train_destroy(pyc_trainer* trainer);

/* The value of an option as the run has it: "loss_scale" is chosen where nobody said one and
 * products are of f16. */
PYC_API pyc_status pyc_train_get_option(const pyc_trainer* trainer, const char* name, char** value,
                                        pyc_error** error);

/* The tensors a micro-batch has: the graph's inputs, then "target" unless the loss is "output". A
 * step is over "accumulate" of them, usually one. */
PYC_API size_t pyc_train_batch_count(const pyc_trainer* trainer);
PYC_API pyc_status pyc_train_batch(const pyc_trainer* trainer, size_t index, pyc_value_info* info,
                                   pyc_error** error);

typedef struct pyc_train_result {
  size_t struct_size;
  double loss;
  double norm;     /* of all gradients */
  int64_t step;    /* steps done, this one included */
  int32_t skipped; /* 1: not finite, and skipped as "on_nan" or "loss_scale" has it */
  int32_t reserved;
} pyc_train_result;
/* One step over a batch: the tensors of its micro-batches, one behind the other. A step that is
 * refused leaves everything as it was before it; PYC_STATUS_RUNTIME_FAILED, with the number of the
 * step and the node that made it, when loss or norm is not finite. `result` may be NULL. */
PYC_API pyc_status pyc_train_step(pyc_trainer* trainer, const pyc_tensor_view* batch, size_t count,
                                  pyc_train_result* result, pyc_error** error);
/* The loss of a micro-batch with the parameters as they are; nothing changes. */
PYC_API pyc_status pyc_train_evaluate(pyc_trainer* trainer, const pyc_tensor_view* batch,
                                      size_t count, double* loss, pyc_error** error);
/* 0 for NULL. */
PYC_API int64_t pyc_train_steps_done(const pyc_trainer* trainer);

/* What a value of the state is. */
enum {
  PYC_TRAIN_PARAMETER = 0,
  PYC_TRAIN_OPTIMIZER = 1,
  PYC_TRAIN_STEP = 2,
  PYC_TRAIN_SCALE = 3 /* of the loss, and good steps since it changed */
};
PYC_API size_t pyc_train_state_count(const pyc_trainer* trainer);
/* `role`, which may be NULL, becomes PYC_TRAIN_PARAMETER, … */
PYC_API pyc_status pyc_train_state(const pyc_trainer* trainer, size_t index, pyc_value_info* info,
                                   int32_t* role, pyc_error** error);
/* Copies the elements out or in; `bytes` must be those of the value. */
PYC_API pyc_status pyc_train_get_state(const pyc_trainer* trainer, size_t index, void* data,
                                       size_t bytes, pyc_error** error);
PYC_API pyc_status pyc_train_set_state(pyc_trainer* trainer, size_t index, const void* data,
                                       size_t bytes, pyc_error** error);
/* The graph with the parameters as they are. */
PYC_API pyc_status pyc_train_graph(const pyc_trainer* trainer, pyc_graph** graph,
                                   pyc_error** error);
/* What is compiled: 0 is the step, 1 that of a micro-batch where there are several. `states` gets
 * the pairs of the compile option "state", one a line: with them the graph is compiled, explained
 * and timed like any other. */
PYC_API pyc_status pyc_train_step_graph(const pyc_trainer* trainer, size_t index, pyc_graph** graph,
                                        char** states, pyc_error** error);
/* 32 hexadecimal digits: a digest of the parameters' names, types and bits. */
PYC_API pyc_status pyc_train_digest(const pyc_trainer* trainer, char** text, pyc_error** error);

/* Rows of a .npz file (a .safetensors file, a .npy file, a folder of .npy files) as batches for a
 * trainer: for each tensor of a batch the array of its name (a .npy file's is that of its array),
 * the first dim counting rows. Rows that do not fill a batch at the end of a pass are dropped. */
typedef struct pyc_train_data pyc_train_data;
/* `shuffled` not 0: in each pass another order, which follows from the seed; else as they are.
 * Refusals name the array and what is expected of it. */
PYC_API pyc_status pyc_train_data_load(const pyc_trainer* trainer, const char* path,
                                       int32_t shuffled, uint64_t seed, pyc_train_data** data,
                                       pyc_error** error);
PYC_API void pyc_train_data_destroy(pyc_train_data* data);
typedef struct pyc_train_data_info {
  size_t struct_size;
  int64_t rows;
  int64_t batch_rows;
  int64_t batches;    /* of a pass */
  int64_t position;   /* batches taken by pyc_train_step_data */
  const char* digest; /* of all arrays */
} pyc_train_data_info;
PYC_API pyc_status pyc_train_data_get_info(const pyc_train_data* data, pyc_train_data_info* info,
                                           pyc_error** error);
/* One step over the next batch, or as many as "accumulate" says. */
PYC_API pyc_status pyc_train_step_data(pyc_trainer* trainer, pyc_train_data* data,
                                       pyc_train_result* result, pyc_error** error);
/* The mean loss of the batches of one pass, in order; nothing changes. */
PYC_API pyc_status pyc_train_evaluate_data(pyc_trainer* trainer, pyc_train_data* data, double* loss,
                                           pyc_error** error);

/* Writes a checkpoint, a safetensors file, into the folder, which is made, and then removes all but
 * the `keep` newest. `data` is what the run takes its batches from, or NULL; `path` may be NULL. A
 * failure leaves earlier checkpoints as they were. */
PYC_API pyc_status pyc_train_save(const pyc_trainer* trainer, const pyc_train_data* data,
                                  const char* folder, int64_t keep, char** path, pyc_error** error);
/* Goes on from the newest good checkpoint of the folder: puts it into the trainer and its place
 * into `data`, which may be NULL. PYC_STATUS_INVALID_ARGUMENT, naming the difference, for one of
 * another training. `report` becomes {"checkpoint": path or null where there is none, "step",
 * "passed_over": ["FILE: why", …]}. */
PYC_API pyc_status pyc_train_resume(pyc_trainer* trainer, pyc_train_data* data, const char* folder,
                                    char** report, pyc_error** error);
/* The steps done in the newest checkpoint of the folder by its name; -1: there is none. */
PYC_API pyc_status pyc_train_last_checkpoint(const char* folder, int64_t* step, pyc_error** error);

#ifdef __cplusplus
}
#endif

#endif

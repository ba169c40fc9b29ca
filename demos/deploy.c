/* Runs a compiled model from C: no Python, no compiler, only libpyc. `pyc compile MODEL -o
 * model.pycm` makes the file.
 *
 *   cc demos/deploy.c $(pkg-config --cflags --libs pyc) -o deploy && ./deploy model.pycm
 */
#include <pyc/pyc.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST 8

static void require(pyc_status status, pyc_error* error, const char* what) {
  if (status == PYC_STATUS_OK) return;
  fprintf(stderr, "%s: %s (%s)\n", what, pyc_error_message(error), pyc_error_cure(error));
  pyc_error_destroy(error);
  exit(1);
}

/* Memory for an input or output, all elements 1. */
static pyc_tensor_view make(const pyc_value_info* info) {
  pyc_tensor_view view = {.struct_size = sizeof(view),
                          .bytes = (size_t)info->bytes,
                          .shape = info->shape,
                          .rank = info->rank,
                          .dtype = info->dtype};
  if (info->dtype != PYC_DTYPE_F32) {
    fprintf(stderr, "%s is not f32\n", info->name);
    exit(1);
  }
  float* elements = malloc(view.bytes);
  for (size_t i = 0; i < view.bytes / sizeof(float); ++i) elements[i] = 1;
  view.data = elements;
  return view;
}

int main(int argc, char** argv) {
  pyc_error* error = NULL;
  pyc_model* model = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: deploy MODEL.pycm\n");
    return 2;
  }
  require(pyc_compile_model_file(argv[1], NULL, &model, &error), error, argv[1]);
  const size_t inputs = pyc_model_input_count(model);
  const size_t outputs = pyc_model_output_count(model);
  pyc_tensor_view in[LARGEST], out[LARGEST];
  pyc_value_info info = {.struct_size = sizeof(info)};
  if (inputs > LARGEST || outputs > LARGEST) return 1;
  for (size_t i = 0; i < inputs; ++i) {
    require(pyc_model_input(model, i, &info, &error), error, "input");
    in[i] = make(&info);
  }
  for (size_t i = 0; i < outputs; ++i) {
    require(pyc_model_output(model, i, &info, &error), error, "output");
    out[i] = make(&info);
  }
  pyc_run_stats stats = {.struct_size = sizeof(stats)};
  require(pyc_run_model(model, in, inputs, out, outputs, &stats, &error), error, "run");
  for (size_t i = 0; i < outputs; ++i) {
    const float* elements = out[i].data;
    require(pyc_model_output(model, i, &info, &error), error, "output");
    printf("%s:", info.name);
    for (size_t j = 0; j < out[i].bytes / sizeof(float) && j < LARGEST; ++j) {
      printf(" %g", elements[j]);
    }
    printf("\n");
  }
  printf("%lld steps in %lld ns\n", (long long)stats.steps, (long long)stats.wall_ns);
  for (size_t i = 0; i < inputs; ++i) free(in[i].data);
  for (size_t i = 0; i < outputs; ++i) free(out[i].data);
  pyc_destroy_model(model);
  return 0;
}

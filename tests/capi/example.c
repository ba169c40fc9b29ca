/* y = relu(x @ w + b) through the C ABI: build, compile, run, ask, destroy. */
#include <pyc/pyc.h>
#include <stdio.h>
#include <stdlib.h>

static void require(pyc_status status, pyc_error* error, const char* what) {
  if (status == PYC_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s (%s)\n", what, pyc_status_name(status), pyc_error_message(error),
          pyc_error_cure(error));
  pyc_error_destroy(error);
  exit(1);
}

static pyc_graph* build(void) {
  const int64_t x_shape[] = {2, 3};
  const int64_t w_shape[] = {3, 2};
  const float weights[] = {1, -1, 2, -2, 3, -3};
  pyc_error* error = NULL;
  pyc_graph* graph = NULL;
  pyc_value x, w, bias, product, sum, y;
  require(pyc_graph_create("layer", &graph, &error), error, "create");
  require(pyc_graph_input(graph, "x", PYC_DTYPE_F32, x_shape, 2, &x, &error), error, "input");
  require(pyc_graph_constant(graph, "w", PYC_DTYPE_F32, w_shape, 2, weights, sizeof weights, &w,
                             &error),
          error, "constant");
  require(pyc_graph_scalar(graph, PYC_DTYPE_F32, 0.5, &bias, &error), error, "scalar");
  {
    const pyc_value operands[] = {x, w};
    require(pyc_graph_op(graph, "matmul", operands, 2, NULL, NULL, &product, &error), error,
            "matmul");
  }
  {
    const pyc_value operands[] = {product, bias};
    require(pyc_graph_op(graph, "add", operands, 2, NULL, NULL, &sum, &error), error, "add");
  }
  require(pyc_graph_op(graph, "relu", &sum, 1, NULL, "y", &y, &error), error, "relu");
  require(pyc_graph_output(graph, y, &error), error, "output");
  return graph;
}

int main(void) {
  const int64_t x_shape[] = {2, 3};
  const int64_t y_shape[] = {2, 2};
  float x[] = {1, 2, 3, -1, -2, -3};
  float y[4] = {0};
  const float expected[] = {14.5f, 0, 0, 14.5f};
  pyc_error* error = NULL;
  pyc_graph* graph = build();
  pyc_compile_options* options = NULL;
  pyc_run_stats stats = {.struct_size = sizeof stats};
  pyc_memory_report memory = {.struct_size = sizeof memory};
  pyc_model* model = NULL;
  const pyc_tensor_view input = {.struct_size = sizeof input,
                                 .data = x,
                                 .bytes = sizeof x,
                                 .shape = x_shape,
                                 .rank = 2,
                                 .dtype = PYC_DTYPE_F32};
  const pyc_tensor_view output = {.struct_size = sizeof output,
                                  .data = y,
                                  .bytes = sizeof y,
                                  .shape = y_shape,
                                  .rank = 2,
                                  .dtype = PYC_DTYPE_F32};

  require(pyc_compile_options_create(&options, &error), error, "options");
  require(pyc_compile_options_set(options, "device", "cpu", &error), error, "device");
  require(pyc_compile_options_set(options, "determinism", "strict", &error), error, "determinism");
  require(pyc_compile_model(graph, options, &model, &error), error, "compile");
  pyc_compile_options_destroy(options);
  pyc_graph_destroy(graph);
  require(pyc_run_model(model, &input, 1, &output, 1, &stats, &error), error, "run");
  for (int i = 0; i < 4; ++i) {
    if (y[i] != expected[i]) {
      fprintf(stderr, "y[%d]: expected %g, found %g\n", i, expected[i], y[i]);
      return 1;
    }
  }
  require(pyc_model_get_memory(model, &memory, &error), error, "memory");
  printf("ran %lld steps in %lld ns, peak %lld bytes, %zu decisions\n", (long long)stats.steps,
         (long long)stats.wall_ns, (long long)memory.peak_bytes, pyc_model_decision_count(model));
  pyc_destroy_model(model);
  pyc_destroy_model(model);
  return 0;
}

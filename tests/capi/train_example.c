/* A line through points, fitted through the C ABI: train, look, save, resume, run. */
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

static const char* const kModel =
    "graph @line(%x: f32[4,1]) -> (%y) {\n"
    "  %w = const f32[1,1] splat(0.0)\n"
    "  %b = const f32[1] splat(0.0)\n"
    "  %p = matmul(%x, %w)\n"
    "  %y = add(%p, %b)\n"
    "}\n";

static size_t length(const char* text) {
  size_t n = 0;
  while (text[n] != '\0') ++n;
  return n;
}

int main(int argc, char** argv) {
  const int64_t shape[] = {4, 1};
  float x[] = {-1, 0, 1, 2};
  float y[] = {-5, -2, 1, 4}; /* 3x - 2 */
  float w = 0;
  pyc_error* error = NULL;
  pyc_graph* graph = NULL;
  pyc_graph* trained = NULL;
  pyc_train_options* options = NULL;
  pyc_trainer* trainer = NULL;
  pyc_train_result result = {.struct_size = sizeof result};
  char* report = NULL;
  char* text = NULL;
  const pyc_tensor_view batch[] = {{.struct_size = sizeof batch[0],
                                    .data = x,
                                    .bytes = sizeof x,
                                    .shape = shape,
                                    .rank = 2,
                                    .dtype = PYC_DTYPE_F32},
                                   {.struct_size = sizeof batch[0],
                                    .data = y,
                                    .bytes = sizeof y,
                                    .shape = shape,
                                    .rank = 2,
                                    .dtype = PYC_DTYPE_F32}};
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  require(pyc_graph_parse(kModel, length(kModel), &graph, &error), error, "parse");
  require(pyc_train_options_create(&options, &error), error, "options");
  require(pyc_train_options_set(options, "loss", "mse", &error), error, "loss");
  require(pyc_train_options_set(options, "optimizer", "momentum", &error), error, "optimizer");
  require(pyc_train_options_set(options, "lr", "0.05", &error), error, "lr");
  require(pyc_train_create(graph, options, NULL, &trainer, &error), error, "create");
  require(pyc_train_resume(trainer, NULL, argv[1], &report, &error), error, "resume");
  printf("%s\n", report);
  while (pyc_train_steps_done(trainer) < 200) {
    require(pyc_train_step(trainer, batch, 2, &result, &error), error, "step");
    if (result.step % 100 == 0) {
      require(pyc_train_save(trainer, NULL, argv[1], 1, NULL, &error), error, "save");
    }
  }
  require(pyc_train_get_state(trainer, 1, &w, sizeof w, &error), error, "state");
  require(pyc_train_graph(trainer, &trained, &error), error, "graph");
  require(pyc_graph_print(trained, &text, &error), error, "print");
  printf("steps %d, w %.3f, loss below 1e-6: %s\n", (int)pyc_train_steps_done(trainer), (double)w,
         result.loss < 1e-6 ? "yes" : "no");
  pyc_text_destroy(report);
  pyc_text_destroy(text);
  pyc_graph_destroy(trained);
  pyc_train_destroy(trainer);
  pyc_train_options_destroy(options);
  pyc_graph_destroy(graph);
  return 0;
}

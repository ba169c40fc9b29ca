/* The same program in C, from text. */
#include <pyc/pyc.h>
#include <stdio.h>
#include <string.h>

static const char* const kText =
    "graph @layer(%x: f32[1,4]) -> (%y) {\n"
    "  %w = const f32[4,3] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %b = const f32[] splat(0.25)\n"
    "  %product = matmul(%x, %w)\n"
    "  %sum = add(%product, %b)\n"
    "  %y = relu(%sum)\n"
    "}\n";

static int fail(pyc_error* error) {
  fprintf(stderr, "%s\n", pyc_error_message(error));
  pyc_error_destroy(error);
  return 1;
}

int main(void) {
  pyc_error* error = NULL;
  pyc_model* model = NULL;
  if (pyc_compile_model_bytes(kText, strlen(kText), NULL, &model, &error) != PYC_STATUS_OK) {
    return fail(error);
  }
  float ones[4] = {1, 1, 1, 1};
  float y[3];
  const int64_t in_shape[] = {1, 4};
  const int64_t out_shape[] = {1, 3};
  pyc_tensor_view in = {.struct_size = sizeof(in),
                        .data = ones,
                        .bytes = sizeof(ones),
                        .shape = in_shape,
                        .rank = 2,
                        .dtype = PYC_DTYPE_F32};
  pyc_tensor_view out = {.struct_size = sizeof(out),
                         .data = y,
                         .bytes = sizeof(y),
                         .shape = out_shape,
                         .rank = 2,
                         .dtype = PYC_DTYPE_F32};
  char* digest = NULL;
  if (pyc_run_model(model, &in, 1, &out, 1, NULL, &error) != PYC_STATUS_OK ||
      pyc_tensor_digest(&out, &digest, &error) != PYC_STATUS_OK) {
    return fail(error);
  }
  printf("%s\n", digest);
  pyc_text_destroy(digest);
  pyc_destroy_model(model);
  return 0;
}

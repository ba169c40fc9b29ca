// Every error code, provoked through the C ABI, and what docs/errors.md says of it.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <map>

#include "capi/guard.h"
#include "faults/inject.h"
#include "faults/scenarios.h"
#include "pyc/pyc.hpp"

namespace pyc::faults {
namespace {

using Call = std::function<pyc_status(pyc_error**)>;

CompileOptions options(const char* device) {
  return CompileOptions().set("device", device).set("threads", 1).set("cache", false);
}

pyc_status parse(const char* text, pyc_error** e) {
  pyc_graph* graph = nullptr;
  const pyc_status status = pyc_graph_parse(text, std::strlen(text), &graph, e);
  pyc_graph_destroy(graph);
  return status;
}

pyc_status compile(const char* text, const CompileOptions& o, pyc_error** e) {
  pyc_model* model = nullptr;
  const pyc_status status = pyc_compile_model_bytes(text, std::strlen(text), o.get(), &model, e);
  pyc_destroy_model(model);
  return status;
}

// Runs `text` on tensors of `size` bytes and elements of `dtype`, `shift` bytes off alignment.
pyc_status run(const char* text, std::vector<int64_t> shape, int64_t bytes, pyc_dtype dtype,
               size_t shift, pyc_error** e) {
  alignas(64) std::array<unsigned char, 256> in{};
  alignas(64) std::array<unsigned char, 256> out{};
  in.fill(0x7f);  // a large index, a finite number
  pyc_model* model = nullptr;
  const CompileOptions o = options("reference").set("strict_views", true);
  pyc_status status = pyc_compile_model_bytes(text, std::strlen(text), o.get(), &model, e);
  if (status == PYC_STATUS_OK) {
    pyc_value_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(pyc_model_output(model, 0, &info, nullptr), PYC_STATUS_OK);
    const pyc_tensor_view input =
        view_of(in.data() + shift, shape.data(), static_cast<int64_t>(shape.size()), bytes, dtype);
    const pyc_tensor_view output =
        view_of(out.data(), info.shape, info.rank, info.bytes, info.dtype);
    status = pyc_run_model(model, &input, 1, &output, 1, nullptr, e);
  }
  pyc_destroy_model(model);
  return status;
}

constexpr const char* kRelu = "graph @g(%x: f32[4]) -> (%y) {\n  %y = relu(%x)\n}\n";
constexpr const char* kGather =
    "graph @g(%i: i64[4]) -> (%y) {\n"
    "  %w = const f32[3] random(seed=1, lo=0.0, hi=1.0)\n"
    "  %y = gather(%w, %i) {axis=0}\n"
    "}\n";
// What nothing computes is no output.
constexpr const char* kNoOutput = "graph @g(%x: f32[4]) -> () {\n  %y = relu(%x)\n}\n";

pyc_status load(const std::string& path, pyc_error** e) {
  pyc_tensor* tensor = nullptr;
  const pyc_status status = pyc_tensor_load_file(path.c_str(), PYC_DTYPE_ANY, &tensor, e);
  pyc_tensor_destroy(tensor);
  return status;
}

std::map<pyc_status, Call> provocations(const Files& files) {
  const auto set = [](const char* name, const char* value) {
    return [=](pyc_error** e) {
      return pyc_compile_options_set(options("reference").get(), name, value, e);
    };
  };
  const auto with = [](const char* name, const char* value) {
    return [=](pyc_error** e) { return compile(kRelu, options("reference").set(name, value), e); };
  };
  const auto run_relu = [](std::vector<int64_t> shape, int64_t bytes, pyc_dtype dtype,
                           size_t shift) {
    return [=](pyc_error** e) { return run(kRelu, shape, bytes, dtype, shift, e); };
  };
  return {
      {PYC_STATUS_INVALID_ARGUMENT, set("threads", "-1")},
      {PYC_STATUS_PARSE_ERROR, [](pyc_error** e) { return parse("graph @g(", e); }},
      {PYC_STATUS_VERIFY_FAILED,
       [](pyc_error** e) { return compile(kNoOutput, options("reference"), e); }},
      {PYC_STATUS_SHAPE_MISMATCH, run_relu({5}, 16, PYC_DTYPE_F32, 0)},
      {PYC_STATUS_DTYPE_MISMATCH, run_relu({4}, 16, PYC_DTYPE_I32, 0)},
      {PYC_STATUS_RANK_MISMATCH, run_relu({2, 2}, 16, PYC_DTYPE_F32, 0)},
      {PYC_STATUS_SIZE_MISMATCH, run_relu({4}, 12, PYC_DTYPE_F32, 0)},
      {PYC_STATUS_MISALIGNED, run_relu({4}, 16, PYC_DTYPE_F32, 1)},
      {PYC_STATUS_NULL_POINTER,
       [](pyc_error** e) { return pyc_compile_model(nullptr, nullptr, nullptr, e); }},
      {PYC_STATUS_UNKNOWN_OPTION, set("device", "abacus")},
      {PYC_STATUS_UNKNOWN_OP,
       [](pyc_error** e) {
         return parse("graph @g(%x: f32[4]) -> (%y) {\n  %y = rleu(%x)\n}\n", e);
       }},
      {PYC_STATUS_UNSUPPORTED, with("target", "x86_avx2")},
      {PYC_STATUS_BUDGET_EXCEEDED, with("memory_budget", "1")},
      {PYC_STATUS_OUT_OF_MEMORY,
       [](pyc_error** e) {
         const CompileOptions o = options("reference");
         arm(1);
         const pyc_status status = compile(kRelu, o, e);
         disarm();
         return status;
       }},
      {PYC_STATUS_COMPILE_FAILED,
       [](pyc_error** e) {
         forbid_execution(true);
         const pyc_status status = compile(kRelu, options("cpu"), e);
         forbid_execution(false);
         return status;
       }},
      {PYC_STATUS_RUNTIME_FAILED,
       [](pyc_error** e) { return run(kGather, {4}, 32, PYC_DTYPE_I64, 0, e); }},
      {PYC_STATUS_IO_ERROR, [&](pyc_error** e) { return load(files.folder, e); }},
      {PYC_STATUS_NOT_FOUND, [&](pyc_error** e) { return load(files.folder + "/none", e); }},
      // No call is known that breaks an invariant: one is broken by hand.
      {PYC_STATUS_INTERNAL,
       [](pyc_error** e) {
         return capi::guard(e, []() -> Status {
           PYC_CHECK(1 + 1 == 3, "a broken invariant");
           return {};
         });
       }},
  };
}

TEST(Codes, EachIsProvokedAndExplained) {
  const Files files;
  const std::map<pyc_status, Call> calls = provocations(files);
  for (pyc_status status = PYC_STATUS_OK + 1; status <= PYC_STATUS_INTERNAL; ++status) {
    ASSERT_TRUE(calls.contains(status)) << pyc_status_name(status);
    pyc_error* error = nullptr;
    const pyc_status found = calls.at(status)(&error);
    EXPECT_STREQ(pyc_status_name(found), pyc_status_name(status)) << pyc_error_message(error);
    EXPECT_EQ(pyc_error_code(error), status);
    EXPECT_STRNE(pyc_error_message(error), "") << pyc_status_name(status);
    EXPECT_STRNE(pyc_status_cause(status), "") << pyc_status_name(status);
    EXPECT_STRNE(pyc_status_cure(status), "") << pyc_status_name(status);
    pyc_error_destroy(error);
  }
  EXPECT_STREQ(pyc_status_name(PYC_STATUS_INTERNAL + 1), "unknown");
  EXPECT_STREQ(pyc_status_cause(-1), "");
}

}  // namespace
}  // namespace pyc::faults

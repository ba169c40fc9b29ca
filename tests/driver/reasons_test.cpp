// Every reason code (base/reasons.inc) is one that some compile gives: models and settings that
// provoke them, and the tests that provoke the rest.

#include "base/reasons.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "driver/compile.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/front.h"
#include "lower/lower.h"
#include "model_file/load.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "support/verified.h"
#include "tooling/optimize.h"
#include "tooling/tables.h"

namespace pyc::driver {
namespace {

const std::string kTests = std::string(PYC_SOURCE_DIR) + "/tests/";

// The codes of all logs that were shown to it.
class Seen {
 public:
  void add(const DecisionLog& log) {
    const Status sound = check_decisions(log);
    EXPECT_TRUE(sound.ok()) << sound.to_string();
    for (const Decision& d : log) {
      codes_.insert(d.reason);
      for (const Alternative& a : d.alternatives) codes_.insert(a.rejected);
    }
  }
  void plan(ir::Graph graph, const CompileOptions& options) {
    const auto front = plan_graph(test::verified(std::move(graph)), options, TimeLimit(options));
    if (front.ok()) add(front->log);
  }
  void plan(std::string_view text, const CompileOptions& options) {
    auto graph = parse_model(text);
    ASSERT_TRUE(graph.ok()) << graph.status().to_string() << "\n" << text;
    plan(std::move(*graph), options);
  }
  void compile(std::string_view text, const CompileOptions& options) {
    auto model = session::compile(parse_model(text).value(), options);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    add((*model)->decisions());
  }
  const std::set<std::string>& codes() const { return codes_; }

 private:
  std::set<std::string> codes_;
};

CompileOptions on(const char* device) { return {.device = device, .threads = 2, .cache = false}; }

// The graphs of tests/passes, each under the passes it is about.
void look_at_passes(Seen& seen) {
  for (const auto& entry : std::filesystem::directory_iterator(kTests + "passes")) {
    if (entry.path().extension() != ".ir") continue;
    const std::string text = read_file(entry.path().string(), 1 << 20).value();
    constexpr std::string_view kHead = "# passes ";
    auto graph = parse_model(text.substr(0, text.find("--- expect")));
    if (!text.starts_with(kHead) || !graph.ok()) continue;
    const std::string line = text.substr(kHead.size(), text.find('\n') - kHead.size());
    const size_t space = std::min(line.find(' '), line.size());
    const DType precision = line.substr(space) == " f16" ? DType::kF16 : DType::kF32;
    const std::vector<std::string> names = {line.substr(0, space)};
    const auto made = tooling::run_passes(std::move(*graph), names, false, precision);
    if (made.ok()) seen.add(made->log);
  }
}

void look_at_examples(Seen& seen) {
  for (const ir::OpDef* op : tooling::known_ops().all()) {
    for (const DType dtype : {DType::kF32, DType::kI64}) {
      auto graph = tooling::example_graph(*op, dtype);
      if (!graph.ok()) continue;
      for (const char* device : {"cpu", "cuda"}) seen.plan(*graph, on(device));
    }
  }
}

struct Setting {
  std::string_view text;
  CompileOptions options = on("cpu");
};

constexpr std::string_view kLinear = R"(graph @g(%x: f32[4,8]) -> (%y) {
  %w = const f32[8,16] random(seed=1, lo=-0.5, hi=0.5)
  %p = matmul(%x, %w)
  %y = relu(%p)
}
)";
constexpr std::string_view kHalves = R"(graph @g(%x: f16[4,8], %w: f16[8,16]) -> (%y) {
  %y = matmul(%x, %w)
}
)";

std::vector<Setting> settings() {
  CompileOptions cuda = on("cuda");
  CompileOptions fast = cuda;
  fast.determinism = Determinism::kFast;
  CompileOptions unfused = on("cpu");
  unfused.fuse = false;
  unfused.reuse = false;
  CompileOptions excluded = on("cpu");
  excluded.kernels = {"f32_matmul"};
  CompileOptions left_out = on("cpu");
  left_out.passes_off = {"cse"};
  CompileOptions unit = on("cpu");
  unit.matrix_unit = "sm90";
  return {
      {kLinear},
      {kLinear, cuda},
      {kLinear, unfused},
      {kLinear, excluded},
      {kLinear, left_out},
      {kHalves, unit},
      {kHalves, cuda},
      {kHalves, fast},
      // Bytes that two products become before they are added.
      {R"(graph @g(%x: u8[4,6], %w: i8[6,8], %k: i8[6,8], %s: f32[]) -> (%y) {
  %z = const u8[] splat(3)
  %m = matmul_integer(%x, %w)
  %mf = cast(%m) {to=f32}
  %mq = quantize(%mf, %s, %z) {to=u8}
  %md = dequantize(%mq, %s, %z) {to=f32}
  %n = matmul_integer(%x, %k)
  %nf = cast(%n) {to=f32}
  %nq = quantize(%nf, %s, %z) {to=u8}
  %nd = dequantize(%nq, %s, %z) {to=f32}
  %y = add(%md, %nd)
}
)"},
      // Constants.
      {R"(graph @g(%x: f32[1024,1024]) -> (%y) {
  %s = const f32[] splat(2.0)
  %e = expand(%s) {shape=[1024, 1024]}
  %y = add(%x, %e)
}
)"},
      {R"(graph @g(%x: f32[80000000]) -> (%y) {
  %c = const f32[80000000] splat(2.0)
  %n = exp(%c)
  %y = add(%x, %n)
}
)"},
      {R"(graph @g(%x: f32[512,512]) -> (%y) {
  %a = const f32[512,512] splat(2.0)
  %b = matmul(%a, %a)
  %y = add(%x, %b)
}
)"},
      {R"(graph @g(%x: f32[4,256]) -> (%y) {
  %w = const f32[512,256] random(seed=1, lo=-0.5, hi=0.5)
  %t = transpose(%w) {perm=[1,0]}
  %y = matmul(%x, %t)
}
)"},
      {R"(graph @g(%x: f32[300,100]) -> (%y) {
  %w = const f32[300,100] random(seed=1, lo=-0.5, hi=0.5)
  %i = const i64[300] splat(1)
  %t = gather(%w, %i) {axis=0}
  %y = add(%x, %t)
}
)"},
      {R"(graph @g(%x: f32[2]) -> (%y) {
  %w = const f32[3] splat(1.0)
  %i = const i64[2] splat(7)
  %t = gather(%w, %i) {axis=0}
  %y = add(%x, %t)
}
)"},
      // Norms that stay behind their convolution.
      {R"(graph @g(%x: f32[1,1,2,2], %w: f32[1,1,1,1], %g: f32[1]) -> (%a, %b, %c) {
  %k = const f32[1,1,1,1] splat(2.0)
  %one = const f32[1] splat(1.0)
  %inf = const f32[1] splat(inf)
  %ca = conv(%x, %w)
  %a = batch_norm(%ca, %one, %one, %one, %one)
  %cb = conv(%x, %k)
  %b = batch_norm(%cb, %g, %one, %one, %one)
  %cc = conv(%x, %k)
  %c = batch_norm(%cc, %inf, %one, %one, %one)
}
)"},
      // What looks like attention and is none.
      {R"(graph @g(%q: f32[1,2,4,8], %kt: f32[1,2,8,4], %v: f32[1,2,4,8], %c: bool[4,4], %f: f32[], %m: f64[4,4], %w: f64[1,2,4,8]) -> (%a, %b, %d, %e, %h) {
  %inf = const f32[] splat(inf)
  %three = const f32[3,1,1,1] splat(2.0)
  %sa = matmul(%q, %kt)
  %ma = mul(%sa, %inf)
  %pa = softmax(%ma) {axis=-1}
  %a = matmul(%pa, %v)
  %sb = matmul(%q, %kt)
  %mb = mul(%sb, %three)
  %pb = softmax(%mb) {axis=-1}
  %b = matmul(%pb, %v)
  %sd = matmul(%q, %kt)
  %md = where(%c, %sd, %f)
  %pd = softmax(%md) {axis=-1}
  %d = matmul(%pd, %v)
  %se = matmul(%q, %kt)
  %ce = cast(%se) {to=f64}
  %me = add(%ce, %m)
  %pe = softmax(%me) {axis=-1}
  %xe = cast(%pe) {to=f32}
  %e = matmul(%xe, %v)
  %sh = matmul(%q, %kt)
  %ph = softmax(%sh) {axis=-1}
  %ch = cast(%ph) {to=f64}
  %h = matmul(%ch, %w)
}
)"},
      {R"(graph @g(%q: f32[1,2,4,8], %kt: f32[2,2,8,4], %v: f32[2,2,4,8], %u: f32[1,1,2,4,8], %ut: f32[1,1,2,8,4], %o: f32[2,4,8]) -> (%a, %b, %c) {
  %sa = matmul(%q, %kt)
  %pa = softmax(%sa) {axis=-1}
  %a = matmul(%pa, %v)
  %sb = matmul(%u, %ut)
  %pb = softmax(%sb) {axis=-1}
  %b = matmul(%pb, %u)
  %sc = matmul(%q, %kt)
  %pc = softmax(%sc) {axis=-1}
  %rc = reshape(%pc) {shape=[2,8,4]}
  %c = matmul(%rc, %o)
}
)"},
      {R"(graph @g(%x: f32[4,8], %w: f32[20,16], %i: i64[8]) -> (%y) {
  %r = gather(%w, %i) {axis=0}
  %y = matmul(%x, %r)
}
)"},
      // Groups.
      {R"(graph @g(%x: f32[4,4]) -> (%y, %z) {
  %a = exp(%x)
  %t = transpose(%a) {perm=[1,0]}
  %s = softmax(%t) {axis=-1}
  %u = transpose(%s) {perm=[1,0]}
  %y = add(%a, %u)
  %r = exp(%x)
  %z = reshape(%r) {shape=[16]}
}
)"},
      {R"(graph @g(%p: f32[2,4,5], %v: f32[2,5,3], %w: f32[6,8]) -> (%y) {
  %c = matmul(%p, %v)
  %t = transpose(%c) {perm=[1, 0, 2]}
  %joined = reshape(%t) {shape=[4, 6]}
  %y = matmul(%joined, %w)
}
)"},
      {R"(graph @g(%x: f32[4,8], %w: f32[8,16]) -> (%y, %z) {
  %e = exp(%x)
  %y = matmul(%e, %w)
  %f = tanh(%x)
  %z = cumsum(%f) {axis=1}
}
)"},
      {R"(graph @g(%x: f32[2,4]) -> (%y, %z) {
  %e = exp(%x)
  %y = pad(%e) {pads=[1,1,1,1]}
  %m = neg(%x)
  %r = reduce_sum(%m) {axes=[0]}
  %z = relu(%r)
}
)"},
      {R"(graph @g(%x: f32[2,200000]) -> (%y) {
  %y = softmax(%x) {axis=-1}
}
)"},
      {R"(graph @g(%x: f32[0,4]) -> (%y, %z) {
  %e = exp(%x)
  %y = reduce_sum(%e) {axes=[1]}
  %z = softmax(%x) {axis=-1}
}
)"},
      {R"(graph @g(%x: f32[4,8]) -> (%y, %z) {
  %s = reduce_sum(%x) {axes=[1], keepdims=true}
  %d = div(%x, %s)
  %f = slice(%d) {starts=[0], ends=[1], axes=[1]}
  %y = add(%f, %s)
  %r = reshape(%d) {shape=[8,4]}
  %z = reduce_sum(%r) {axes=[1]}
}
)"},
      // Products of every form.
      {R"(graph @g(%x: f32[1,3,8,8], %w: f32[4,3,3,3], %v: f32[64], %u: f32[64]) -> (%y, %d, %i) {
  %y = conv(%x, %w) {pads=[1,1,1,1]}
  %d = contract(%v, %u) {equation="i,i->"}
  %i = contract(%x) {equation="nchw->n"}
}
)"},
      {R"(graph @g(%x: f32[4,0], %w: f32[0,8], %a: f32[0,4], %b: f32[4,8]) -> (%y, %z) {
  %y = matmul(%x, %w)
  %z = matmul(%a, %b)
}
)"},
      {R"(graph @g(%x: f32[4,0], %w: f32[0,8], %a: f32[0,4], %b: f32[4,8]) -> (%y, %z) {
  %y = matmul(%x, %w)
  %z = matmul(%a, %b)
}
)",
       cuda},
      {R"(graph @g(%x: f64[4,8], %w: f64[8,16], %v: f64[64], %t: f32[200,8], %s: f32[8,16]) -> (%y, %d, %z) {
  %y = matmul(%x, %w)
  %d = contract(%v, %v) {equation="i,i->"}
  %z = matmul(%t, %s)
}
)",
       cuda},
  };
}

// Attention that a kernel does not take.
std::string attention(std::string_view dtype, int64_t keys, int64_t depth, int64_t columns) {
  return fmt::format(
      "graph @g(%q: {0}[1,1,4,{2}], %k: {0}[1,1,{1},{2}], %v: {0}[1,1,{1},{3}]) -> (%y) {{\n"
      "  %y, %key, %value, %scores = attention(%q, %k, %v)\n}}\n",
      dtype, keys, depth, columns);
}

// Attention whose queries lie in memory column by column.
constexpr std::string_view kTurned =
    R"(graph @g(%t: f32[1,1,8,4], %k: f32[1,1,4,8], %v: f32[1,1,4,8]) -> (%y) {
  %q = transpose(%t) {perm=[0,1,3,2]}
  %y, %key, %value, %scores = attention(%q, %k, %v)
}
)";

std::string product(std::string_view dtype, int64_t m, int64_t k, int64_t n) {
  return fmt::format(
      "graph @g(%x: {0}[{1},{2}], %w: {0}[{2},{3}]) -> (%y) {{\n  %y = matmul(%x, %w)\n}}\n", dtype,
      m, k, n);
}

// A product with so many values added to it.
std::string sum_of(int count) {
  std::string inputs = "%x: f32[4,8], %w: f32[8,16]";
  std::string body = "  %s0 = matmul(%x, %w)\n";
  for (int i = 0; i < count; ++i) {
    inputs += fmt::format(", %i{}: f32[4,16]", i);
    body += fmt::format("  %s{} = add(%s{}, %i{})\n", i + 1, i, i);
  }
  return fmt::format("graph @g({}) -> (%s{}) {{\n{}}}\n", inputs, count, body);
}

// Rows that every CPU packs in a step of their own.
constexpr const char* kRowsApart = R"(graph @g(%x: f32[2048,9]) -> (%y) {
  %w = const f32[2048,260] random(seed=1, lo=-1.0, hi=1.0)
  %t = transpose(%x) {perm=[1,0]}
  %y = matmul(%t, %w)
})";

// Sizes at and beyond what kernels take, without making code.
void look_at_sizes(Seen& seen) {
  for (const char* device : {"cpu", "cuda"}) {
    for (const char* dtype : {"f32", "f16"}) {
      seen.plan(product(dtype, 0, 8, 16), on(device));
      seen.plan(product(dtype, 200'000, 8, 200'000), on(device));
      seen.plan(product(dtype, int64_t{1} << 31, 1, 8), on(device));
    }
    CompileOptions small = on(device);
    small.mode = kMemoryFirst;
    seen.plan(product("f32", 8, 4096, 512), small);
    seen.plan(kRowsApart, small);
    seen.plan(sum_of(40), on(device));
    seen.plan(sum_of(600), on(device));
    seen.plan(kTurned, on(device));
    for (const char* model : {"cnn.ir", "unet.ir", "decoder_step.ir", "transformer_block.ir"}) {
      seen.plan(read_file(kTests + "models/" + model, 1 << 20).value(), on(device));
    }
  }
}

// A device that has a kernel of another order of products beside those of the cpu.
class OtherOrder final : public backends::Backend {
 public:
  explicit OtherOrder(const backends::Backend& cpu) : cpu_(cpu) {}
  std::string_view name() const override { return "planted"; }
  backends::Capabilities capabilities() const override { return cpu_.capabilities(); }
  std::vector<backends::Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                              const backends::BackendOptions& o) const override {
    std::vector<backends::Candidate> out = cpu_.candidates(graph, group, o);
    out.push_back(out.back());
    out.back().name = "planted";
    out.back().rejected.clear();
    out.back().order = "backwards";
    out.back().cost_ns = 0;
    return out;
  }
  Result<std::vector<backends::CompiledGroup>> compile(
      const lower::LoweredGraph& lowered, std::span<const backends::Candidate> chosen,
      const backends::BackendOptions& o, backends::CompileStats* stats) const override {
    return cpu_.compile(lowered, chosen, o, stats);
  }
  const runtime::Loader& loader() const override { return cpu_.loader(); }
  Result<std::string> dump(const lower::LoweredGraph&, size_t, const backends::Candidate&,
                           const backends::BackendOptions&, std::string_view) const override {
    return std::string();
  }

 private:
  const backends::Backend& cpu_;
};

void look_at_orders(Seen& seen) {
  const OtherOrder device(*find_backend("cpu").value());
  const auto lowered = lower::lower_graph(test::verified(parse_model(kLinear).value()), {}).value();
  seen.add(select_kernels(lowered, device, {}, {}, false).value().decisions);
}

// Open models compiled ahead of time.
void look_at_files(Seen& seen) {
  constexpr std::string_view kShaped =
      R"(open graph @g(%x: f32[2,4], %s: i64[2]) -> (%y) {
  %r = onnx.Reshape[14](%x, %s)
  %y = onnx.Relu[14](%r)
}
)";
  open::ShapeChoice shapes;
  shapes.dims["N"] = 2;
  const auto branches = model_file::load_model_file(kTests + "open_models/branch_loop.ir");
  seen.add(model_file::compile_model(branches.value(), shapes, on("cpu")).value().log);
  const auto shaped = model_file::load_model(kShaped);
  seen.add(model_file::compile_model(shaped.value(), {}, on("cpu")).value().log);
}

// Lowering as its caller wants it.
void look_at_lowering(Seen& seen) {
  const ir::VerifiedGraph graph = test::verified(parse_model(R"(graph @g(%x: f32[4,8]) -> (%y) {
  %a = exp(%x)
  %b = reduce_sum(%a) {axes=[0], keepdims=true}
  %y = add(%a, %b)
}
)")
                                                     .value());
  lower::LowerOptions apart;
  apart.keep_apart = [](const ir::Graph&, ir::ValueId) { return true; };
  seen.add(lower::lower_graph(graph, apart).value().decisions);
  lower::LowerOptions laid;
  laid.layout_chooser = [](const ir::Graph& g, const lower::LayoutFacts&) {
    lower::Layouts layouts;
    for (ir::ValueId v = 0; v < g.values.size(); ++v) {
      if (lower::may_have_layout(g, v) && g.type(v).rank() == 2) layouts.set(v, {1, 0});
    }
    return layouts;
  };
  seen.add(lower::lower_graph(graph, laid).value().decisions);
  std::string deep = "graph @g(%x: f32[8]) -> (%y) {\n  %v0 = exp(%x)\n";
  for (int i = 1; i < 60; ++i) {
    deep += fmt::format("  %v{} = {}(%v{})\n", i, i % 2 == 0 ? "exp" : "tanh", i - 1);
  }
  seen.plan(deep + "  %y = neg(%v59)\n}\n", on("cpu"));
}

void look_at_states(Seen& seen) {
  CompileOptions kept = on("cpu");
  kept.states = {{"s", "n"}};
  for (const char* body : {"%n = add(%x, %x)\n  %z = reduce_sum(%s) {axes=[0]}",
                           "%n = add(%x, %x)\n  %z = matmul(%n, %s)",
                           "%n = transpose(%s) {perm=[1,0]}\n  %z = exp(%x)"}) {
    seen.plan(fmt::format("graph @g(%x: f32[4,4], %s: f32[4,4]) -> (%n, %z) {{\n  {}\n}}\n", body),
              kept);
  }
}

void look_at_contracts(Seen& seen) {
  CompileOptions elsewhere = on("cpu");
  elsewhere.fallback = kFallbackAllowed;
  ASSERT_TRUE(add_contract(elsewhere, "device = cuda\n").ok());
  seen.compile(kLinear, elsewhere);
  CompileOptions shared = on("cpu");
  shared.store = find_backend("cpu").value()->make_store();
  seen.compile(kLinear, shared);
  CompileOptions options = on("cpu");
  ASSERT_TRUE(add_contract(options,
                           "memory_budget = 1000000\nthreads = 2\nreuse = on\n"
                           "latency_target_us = 100000\n")
                  .ok());
  seen.compile(kLinear, options);
}

// Codes that other tests ask for, by file.
const std::map<std::string, std::string> kElsewhere = {
    {"work_budget_spent", "passes/pipeline_test.cpp"},
    {"only_order", "plan/plan_test.cpp"},
    {"no_smaller_arena", "plan/plan_test.cpp"},
    {"smaller_arena", "plan/plan_test.cpp"},
    {"reaches_lower_bound", "plan/plan_test.cpp"},
    {"smallest_tried", "plan/arenas.h"},
    {"over_budget", "plan/recompute_test.cpp"},
    {"fresh_memory", "plan/plan_test.cpp"},
    {"reuses_memory", "plan/plan_test.cpp"},
    {"in_place", "plan/plan_test.cpp"},
    {"kernel_allows_it", "cli/commands_test.cpp"},
    {"open_shapes", "golden/graph_breaks.txt"},
    {"compiled_whole", "golden/graph_breaks.txt"},
    {"host_function", "golden/graph_breaks.txt"},
    {"waits_for_value", "golden/graph_breaks.txt"},
    {"no_rule", "golden/graph_breaks.txt"},
    {"complex_numbers", "onnx/complex_test.cpp"},
    {"storm", "onnx/budget_test.cpp"},
    {"memory_budget", "onnx/budget_test.cpp"},
    {"compiled_ahead", "artifact/artifact_test.cpp"},
    {"found", "driver/disk_cache_test.cpp"},
    {"unusable_entry", "driver/disk_cache_test.cpp"},
    {"chosen_by_policy", "policy/policy_test.cpp"},
    {"tuned", "tune/tune_test.cpp"},
    {"tuned_kernel_missing", "tune/tune_test.cpp"},
    {"computed_operands", "driver/convolution_test.cpp"},
    {"latency_breach", "rails/controller_test.cpp"},
    {"throughput_breach", "rails/controller_test.cpp"},
    {"pressure_breach", "rails/controller_test.cpp"},
    {"hard_failure", "rails/controller_test.cpp"},
    {"worse_than_norm", "rails/controller_test.cpp"},
    {"strict_keeps_one_program", "rails/two_programs_test.cpp"},
    {"no_other_program", "rails/two_programs_test.cpp"},
    {"not_one_program", "cli/explain_test.cpp"},
    {"open_region", "cli/explain_test.cpp"},
    {"segment_not_256", "backends/cpu_matmul_test.cpp"},
    {"no_contraction", "backends/cpu_matmul_test.cpp"},
    {"reduces_rows", "driver/obstacles_test.cpp"},
    {"no_reduction", "driver/obstacles_test.cpp"},
    {"terms_are_checked", "driver/obstacles_test.cpp"},
    {"has_scratch", "driver/obstacles_test.cpp"},
    {"has_checks", "driver/obstacles_test.cpp"},
    {"lanes_not_supported", "driver/obstacles_test.cpp"},
    {"too_many_buffers", "driver/obstacles_test.cpp"},
    {"block_of_keys_too_long", "driver/obstacles_test.cpp"},
    {"no_byte_unit", "driver/obstacles_test.cpp"},
    {"factors_not_halves", "driver/obstacles_test.cpp"},
    {"operands_not_strided", "driver/obstacles_test.cpp"},
    {"result_not_by_16_bytes", "driver/obstacles_test.cpp"},
    {"skips_terms_of_a_computed_factor", "driver/obstacles_test.cpp"},
    {"sums_not_f32", "driver/obstacles_test.cpp"},
    {"too_many_tiles", "driver/obstacles_test.cpp"},
    {"too_little_to_gain", "driver/chosen_layouts_test.cpp"},
    {"not_evaluable", "passes/pipeline_test.cpp"},
    {"other_output_read", "passes/narrow_products_test.cpp"},
    {"fewer_copied_bytes", "plan/states_test.cpp"},
    {"proven_smallest", "plan/plan_test.cpp"},
    {"no_room_on_device", "cuda/offload_test.cpp"},
    {"not_a_tensor", "onnx/breaks_test.cpp"},
};

TEST(Reasons, EachIsProvoked) {
  Seen seen;
  look_at_passes(seen);
  look_at_examples(seen);
  look_at_contracts(seen);
  look_at_lowering(seen);
  look_at_states(seen);
  look_at_sizes(seen);
  look_at_orders(seen);
  look_at_files(seen);
  for (const Setting& s : settings()) seen.plan(s.text, s.options);
  for (const char* device : {"cpu", "cuda"}) {
    seen.plan(attention("f32", 4, 8, 8), on(device));
    seen.plan(attention("f64", 4, 8, 8), on(device));
    seen.plan(attention("f32", 0, 8, 8), on(device));
    seen.plan(attention("f32", 4, 300, 8), on(device));
    seen.plan(attention("f32", 4, 8, 3000), on(device));
    for (const int64_t depth : {8, 12, 136}) {
      seen.plan(attention("bf16", 4, depth, 8), on(device));
      CompileOptions narrow = on(device);
      narrow.precision = DType::kBF16;
      seen.plan(attention("f32", 4, depth, 8), narrow);
    }
  }
  for (const char* rows : {"f32[4,70]", "f64[4,70]", "f32[1,5000000]"}) {
    seen.plan(fmt::format("graph @g(%x: {}) -> (%y) {{\n  %y = cumsum(%x) {{axis=1}}\n}}\n", rows),
              on("cuda"));
    seen.plan(fmt::format("graph @g(%x: {}) -> (%y) {{\n  %y = softmax(%x) {{axis=1}}\n}}\n", rows),
              on("cuda"));
  }
  // Rows that many blocks could share: too many of them, and one that is too much to write out.
  seen.plan("graph @g(%x: f32[2000,40000]) -> (%y) {\n  %y = reduce_sum(%x) {axes=[1]}\n}\n",
            on("cuda"));
  std::string long_row = "graph @g(%x: f32[1,40000]) -> (%y) {\n  %v0 = exp(%x)\n";
  for (int i = 1; i < 12; ++i) long_row += fmt::format("  %v{} = tanh(%v{})\n", i, i - 1);
  seen.plan(long_row + "  %y = reduce_sum(%v11) {axes=[1]}\n}\n", on("cuda"));
  for (const ReasonInfo& reason : reason_table()) {
    const std::string code(reason.code);
    const auto elsewhere = kElsewhere.find(code);
    if (elsewhere != kElsewhere.end()) {
      const std::string text = read_file(kTests + elsewhere->second, 1 << 20).value();
      EXPECT_NE(text.find(code), std::string::npos) << code << " in " << elsewhere->second;
      continue;
    }
    const bool expected = code != "replaced_as_allowed" || !check_runs("cuda").ok();
    EXPECT_TRUE(seen.codes().contains(code) || !expected) << code << " (" << reason.where << ")";
  }
}

TEST(Reasons, ATableOfDistinctCodesWithMeanings) {
  std::set<std::string_view> codes;
  for (const ReasonInfo& reason : reason_table()) {
    EXPECT_TRUE(codes.insert(reason.code).second) << reason.code;
    EXPECT_TRUE(is_reason(reason.code));
    EXPECT_FALSE(reason.where.empty()) << reason.code;
    EXPECT_FALSE(reason.meaning.empty()) << reason.code;
    EXPECT_FALSE(reason.meaning.ends_with('.')) << reason.code;
    EXPECT_TRUE(std::ranges::all_of(reason.code, [](char c) {
      return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    })) << reason.code;
  }
}

TEST(Reasons, ADecisionWithoutOneIsFound) {
  const Decision sound{"kernel:g0", "loop", "least_cost", "", {{"other", 0, "other_order"}}};
  EXPECT_TRUE(check_decisions({sound}).ok());
  EXPECT_TRUE(is_reason("unsupported"));
  EXPECT_FALSE(is_reason("ok"));
  for (const auto change :
       {+[](Decision& d) { d.what = ""; }, +[](Decision& d) { d.chosen = ""; },
        +[](Decision& d) { d.reason = ""; }, +[](Decision& d) { d.reason = "because"; },
        +[](Decision& d) { d.alternatives[0].name = ""; },
        +[](Decision& d) { d.alternatives[0].rejected = "a message"; }}) {
    Decision changed = sound;
    change(changed);
    EXPECT_EQ(check_decisions({sound, changed}).code(), Code::kInternal) << changed.to_string();
  }
}

}  // namespace
}  // namespace pyc::driver

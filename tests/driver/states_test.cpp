// Models that keep state, against the same models with the state passed by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/files.h"
#include "driver/compile.h"
#include "session/artifacts.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

using StateBytes = std::vector<std::byte>;

Result<std::unique_ptr<runtime::Model>> compiled_text(const std::string& text,
                                                      const CompileOptions& options) {
  PYC_ASSIGN(ir::Graph graph, parse_model(text));
  return session::compile(std::move(graph), options);
}

std::unique_ptr<runtime::Model> model_of(const std::string& text, const CompileOptions& options) {
  auto model = compiled_text(text, options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? std::move(*model) : nullptr;
}

runtime::TensorView view_as(StateBytes& bytes, const runtime::IoSpec& spec) {
  return {bytes.data(), spec.dtype, spec.shape, spec.bytes};
}

// Runs with these inputs; `stats` may be null.
Result<std::vector<StateBytes>> run(runtime::Model& model, std::vector<StateBytes> inputs,
                                    runtime::RunStats* stats = nullptr) {
  std::vector<runtime::TensorView> in;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(view_as(inputs[i], model.inputs()[i]));
  std::vector<StateBytes> outputs;
  for (const runtime::IoSpec& spec : model.outputs()) {
    outputs.emplace_back(static_cast<size_t>(spec.bytes));
  }
  std::vector<runtime::TensorView> out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.push_back(view_as(outputs[i], model.outputs()[i]));
  }
  PYC_TRY(model.run(in, out, stats));
  return outputs;
}

StateBytes state_of(runtime::Model& model, size_t index) {
  const runtime::IoSpec& spec = model.state_specs()[index].input;
  StateBytes bytes(static_cast<size_t>(spec.bytes));
  const Status got = model.states().get(index, view_as(bytes, spec));
  EXPECT_TRUE(got.ok()) << got.to_string();
  return bytes;
}

template <class T>
StateBytes as_bytes(const std::vector<T>& values) {
  StateBytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string decoder_text() {
  auto text = read_file(std::string(PYC_SOURCE_DIR) + "/tests/models/decoder_step.ir", 1 << 20);
  EXPECT_TRUE(text.ok());
  return *text;
}

const StatePairs kCaches = {{"keys", "keys.next"}, {"values", "values.next"}};

std::string chosen(const runtime::Model& model, const std::string& what) {
  for (const Decision& d : model.decisions()) {
    if (d.what == what) return d.chosen + " " + d.reason;
  }
  return "none";
}

// 25 steps of a model with state against the reference with the caches passed by hand.
void expect_as_by_hand(const CompileOptions& options, int64_t copied_bytes) {
  constexpr int64_t kSteps = 25;
  const auto kept = model_of(decoder_text(), options);
  const auto by_hand = model_of(decoder_text(), {.device = "reference", .threads = 1});
  ASSERT_NE(kept, nullptr);
  ASSERT_NE(by_hand, nullptr);
  ASSERT_EQ(kept->inputs().size(), 2u);
  ASSERT_EQ(kept->outputs().size(), 1u);
  StateBytes keys(static_cast<size_t>(by_hand->inputs()[2].bytes));
  StateBytes values = keys;
  for (int64_t step = 0; step < kSteps; ++step) {
    const StateBytes token = as_bytes<int64_t>({step * 7 % 24});
    const StateBytes position = as_bytes<int64_t>({step});
    const auto expected = run(*by_hand, {token, position, keys, values});
    runtime::RunStats stats;
    const auto found = run(*kept, {token, position}, &stats);
    ASSERT_TRUE(expected.ok() && found.ok()) << found.status().to_string();
    EXPECT_EQ((*found)[0], (*expected)[0]) << "logits of step " << step;
    keys = (*expected)[1];
    values = (*expected)[2];
    EXPECT_EQ(state_of(*kept, 0), keys) << "keys of step " << step;
    EXPECT_EQ(state_of(*kept, 1), values) << "values of step " << step;
    EXPECT_EQ(stats.copied_bytes, copied_bytes);
    EXPECT_EQ(stats.allocations, 0);
  }
  const runtime::MemoryReport memory = kept->memory();
  const int64_t cache = by_hand->inputs()[2].bytes;
  EXPECT_EQ(memory.class_bytes[static_cast<size_t>(BufferClass::kState)], 2 * cache);
  EXPECT_EQ(memory.measured_state_bytes, 2 * cache);
  EXPECT_EQ(memory.measured_arena_bytes, memory.arena_bytes + memory.scratch_bytes);
}

TEST(States, ADecoderKeepsItsCachesAndCopiesNothing) {
  for (const int threads : {1, 2}) {
    expect_as_by_hand({.threads = threads, .states = kCaches}, 0);
  }
  expect_as_by_hand({.threads = 1, .fuse = false, .states = kCaches}, 0);
  expect_as_by_hand({.threads = 1, .layouts = false, .states = kCaches}, 0);
}

TEST(States, ADecoderWithoutPairsInPlaceCopiesItsCachesHome) {
  constexpr int64_t kCacheBytes = 2 * 32 * 8 * 4;
  expect_as_by_hand({.threads = 2, .reuse = false, .states = kCaches}, 2 * kCacheBytes);
  expect_as_by_hand({.device = "reference", .threads = 1, .states = kCaches}, 2 * kCacheBytes);
}

// Of the cache nothing is stored but the rows of the step.
TEST(States, OnlyWhatAStepWritesIsStored) {
  auto graph = parse_model(decoder_text());
  ASSERT_TRUE(graph.ok());
  auto given = ir::verify_graph(std::move(*graph));
  ASSERT_TRUE(given.ok());
  const auto loops = [&](const StatePairs& states) {
    auto text = dump(*given, {.threads = 1, .states = states}, "loop");
    EXPECT_TRUE(text.ok()) << text.status().to_string();
    return *text;
  };
  const auto scatters = [](const std::string& text) {
    int count = 0;
    for (size_t at = text.find("loop v1 < 32 {"); at != std::string::npos;
         at = text.find("loop v1 < 32 {", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(scatters(loops({})), 2) << loops({});
  const std::string kept = loops(kCaches);
  EXPECT_EQ(scatters(kept), 0) << kept;
  EXPECT_NE(kept.find("write in_place"), std::string::npos) << kept;
}

constexpr const char* kReversed = R"(
  graph @g(%x: f32[64], %past: f32[64]) -> (%y, %next) {
    %back = reverse(%past) {axes=[0]}
    %next = add(%back, %x)
    %y = mul(%next, %x)
  })";

TEST(States, AReversedStateIsCopiedHome) {
  const auto kept = model_of(kReversed, {.threads = 2, .states = {{"past", "next"}}});
  const auto by_hand = model_of(kReversed, {.device = "reference", .threads = 1});
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(chosen(*kept, "state:past"), "copied kernel_reads_what_it_overwrote");
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.37F;
  StateBytes past(64 * 4);
  for (int step = 0; step < 5; ++step) {
    const auto expected = run(*by_hand, {as_bytes(x), past});
    runtime::RunStats stats;
    const auto found = run(*kept, {as_bytes(x)}, &stats);
    ASSERT_TRUE(expected.ok() && found.ok());
    EXPECT_EQ((*found)[0], (*expected)[0]);
    past = (*expected)[1];
    EXPECT_EQ(state_of(*kept, 0), past);
    EXPECT_EQ(stats.copied_bytes, 64 * 4);
  }
}

// Scatters by index write over what they read, too.
TEST(States, ScattersWriteOnlyTheirUpdates) {
  for (const char* op : {"scatter_nd(%past, %at, %x)", "scatter_elements(%past, %where, %rows)"}) {
    const std::string text = std::string(R"(
      graph @g(%x: f32[1,8], %at: i64[1,1], %past: f32[16,8]) -> (%next) {
        %where = expand(%at) {shape=[1,8]}
        %rows = relu(%x)
        %next = )") + op + "\n}";
    const auto kept = model_of(text, {.threads = 2, .states = {{"past", "next"}}});
    const auto by_hand = model_of(text, {.device = "reference", .threads = 1});
    ASSERT_NE(kept, nullptr);
    ASSERT_NE(by_hand, nullptr);
    EXPECT_EQ(chosen(*kept, "state:past"), "in_place kernel_allows_it") << op;
    StateBytes past(16 * 8 * 4);
    for (int64_t step = 0; step < 12; ++step) {
      std::vector<float> x(8, static_cast<float>(step) + 0.5F);
      const StateBytes at = as_bytes<int64_t>({step * 5 % 16});
      const auto expected = run(*by_hand, {as_bytes(x), at, past});
      const auto found = run(*kept, {as_bytes(x), at});
      ASSERT_TRUE(expected.ok() && found.ok()) << found.status().to_string();
      past = (*expected)[0];
      EXPECT_EQ(state_of(*kept, 0), past) << op << " step " << step;
    }
  }
}

// A state that a run only reads stays what it is.
TEST(States, AStateMayStayAsItIs) {
  const std::string text = "graph @g(%x: f32[4], %w: f32[4]) -> (%y, %w) { %y = mul(%x, %w) }";
  const auto kept = model_of(text, {.threads = 1, .states = {{"w", "w"}}});
  ASSERT_NE(kept, nullptr);
  StateBytes w = as_bytes<float>({1.0F, 2.0F, 3.0F, 4.0F});
  ASSERT_TRUE(kept->states().set(0, view_as(w, kept->state_specs()[0].input)).ok());
  for (int i = 0; i < 2; ++i) {
    runtime::RunStats stats;
    const auto y = run(*kept, {as_bytes<float>({2.0F, 2.0F, 2.0F, 2.0F})}, &stats);
    ASSERT_TRUE(y.ok()) << y.status().to_string();
    EXPECT_EQ((*y)[0], as_bytes<float>({2.0F, 4.0F, 6.0F, 8.0F}));
    EXPECT_EQ(state_of(*kept, 0), w);
    EXPECT_EQ(stats.copied_bytes, 0);
  }
}

// An element that no step writes is as if it had gone through an output.
TEST(States, NansAreThoseOfOutputs) {
  const std::string text = R"(
    graph @g(%x: f32[1,1,4], %past: f32[1,8,4]) -> (%next) {
      %next = tensor_scatter(%past, %x) {axis=1, mode="linear"}
    })";
  const auto kept = model_of(text, {.threads = 1, .states = {{"past", "next"}}});
  const auto by_hand = model_of(text, {.device = "reference", .threads = 1});
  ASSERT_NE(kept, nullptr);
  const std::vector<float> odd(32, std::bit_cast<float>(0xFFC12345U));
  StateBytes past = as_bytes(odd);
  ASSERT_TRUE(kept->states().set(0, view_as(past, kept->state_specs()[0].input)).ok());
  const StateBytes x = as_bytes<float>({1.0F, 2.0F, 3.0F, 4.0F});
  const auto expected = run(*by_hand, {x, past});
  ASSERT_TRUE(expected.ok());
  ASSERT_TRUE(run(*kept, {x}).ok());
  EXPECT_EQ(state_of(*kept, 0), (*expected)[0]);
}

// The check of the position is part of the step that writes.
TEST(States, AFailedRunLeavesThemVoid) {
  const std::string text = R"(
    graph @g(%x: f32[1,1,4], %position: i64[1], %past: f32[1,8,4]) -> (%next) {
      %next = tensor_scatter(%past, %x, %position) {axis=1, mode="linear"}
    })";
  const auto model = model_of(text, {.threads = 1, .states = {{"past", "next"}}});
  ASSERT_NE(model, nullptr);
  const StateBytes x = as_bytes<float>({1.0F, 2.0F, 3.0F, 4.0F});
  EXPECT_EQ(run(*model, {x, as_bytes<int64_t>({8})}).status().code(), Code::kRuntimeFailed);
  const Status refused = run(*model, {x, as_bytes<int64_t>({0})}).status();
  EXPECT_EQ(refused.to_string(),
            "invalid_argument: state 'past' is void since a run failed: set or clear it before the "
            "next run");
  EXPECT_EQ(refused.node(), "past");
  ASSERT_TRUE(model->states().clear(0).ok());
  EXPECT_TRUE(run(*model, {x, as_bytes<int64_t>({0})}).ok());
}

// A position that there is none of is found before anything is written.
TEST(States, ARunThatFailsBeforeItWritesLeavesThemAsTheyWere) {
  const auto model = model_of(decoder_text(), {.threads = 1, .states = kCaches});
  ASSERT_NE(model, nullptr);
  const StateBytes token = as_bytes<int64_t>({1});
  ASSERT_TRUE(run(*model, {token, as_bytes<int64_t>({0})}).ok());
  const StateBytes keys = state_of(*model, 0);
  EXPECT_EQ(run(*model, {token, as_bytes<int64_t>({32})}).status().code(), Code::kRuntimeFailed);
  EXPECT_EQ(state_of(*model, 0), keys);
  EXPECT_TRUE(run(*model, {token, as_bytes<int64_t>({1})}).ok());
}

TEST(States, ModelsOfOneProgramHaveStatesOfTheirOwn) {
  const CompileOptions options{.threads = 1, .states = kCaches};
  const auto one = model_of(decoder_text(), options);
  const auto two = model_of(decoder_text(), options);
  ASSERT_TRUE(two->stats().cache_hit);
  const StateBytes before = state_of(*two, 0);
  ASSERT_TRUE(run(*one, {as_bytes<int64_t>({1}), as_bytes<int64_t>({0})}).ok());
  EXPECT_NE(state_of(*one, 0), before);
  EXPECT_EQ(state_of(*two, 0), before);
  // Without the option it is another program.
  EXPECT_EQ(model_of(decoder_text(), {.threads = 1})->inputs().size(), 4u);
}

TEST(States, AnArtefactKeepsThemToo) {
  auto graph = parse_model(decoder_text());
  auto given = ir::verify_graph(std::move(*graph));
  for (const bool reuse : {true, false}) {
    auto made =
        session::compile_artifact(*given, {.threads = 1, .reuse = reuse, .states = kCaches});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    auto pieces = artifact::encode(*made);
    ASSERT_TRUE(pieces.ok());
    StateBytes file;
    for (const SharedBytes& piece : *pieces) file.insert(file.end(), piece.begin(), piece.end());
    auto loaded = session::load_artifact(SharedBytes(file), {.threads = 2});
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    const auto fresh = model_of(decoder_text(), {.threads = 1, .states = kCaches});
    for (int64_t step = 0; step < 3; ++step) {
      const std::vector<StateBytes> inputs = {as_bytes<int64_t>({step + 3}),
                                              as_bytes<int64_t>({step})};
      EXPECT_EQ(*run(*loaded->model, inputs), *run(*fresh, inputs));
    }
    EXPECT_EQ(state_of(*loaded->model, 1), state_of(*fresh, 1));
    EXPECT_EQ(loaded->model->state_specs()[1].output, "values.next");
    const auto decided =
        session::load_artifact(SharedBytes(file), {.threads = 1, .states = kCaches});
    EXPECT_EQ(decided.status().code(), Code::kInvalidArgument);
  }
}

TEST(States, WhatIsNoStateIsRefused) {
  const std::string text = R"(
    graph @g(%x: f32[4], %i: i32[4], %m: f32[2,2], %w: f32[5]) -> (%y, %z) {
      %y = relu(%x)
      %z = neg(%x)
    })";
  const auto refusal = [&](const StatePairs& states, const std::string& device = "cpu") {
    CompileOptions options;
    options.device = device;
    options.threads = 1;
    options.states = states;
    auto model = compiled_text(text, options);
    return model.ok() ? "" : model.status().to_string();
  };
  EXPECT_EQ(refusal({{"past", "y"}}), "unknown_option: state: 'past' is no input of the model");
  EXPECT_EQ(refusal({{"x", "yy"}}),
            "unknown_option: state: 'yy' is no output of the model, did you mean 'y'?");
  EXPECT_EQ(refusal({{"x", "y"}, {"x", "z"}}),
            "invalid_argument: state 'x=z': the input 'x' is another state's already");
  EXPECT_EQ(refusal({{"x", "y"}, {"w", "y"}}),
            "invalid_argument: state 'w=y': the output 'y' is another state's already");
  EXPECT_EQ(refusal({{"i", "y"}}),
            "dtype_mismatch: state 'i=y': expected an output of the input's type i32[4], found "
            "f32[4]");
  EXPECT_EQ(refusal({{"m", "y"}}).substr(0, 13), "rank_mismatch");
  EXPECT_EQ(refusal({{"w", "y"}}).substr(0, 14), "shape_mismatch");
}

TEST(States, ADeviceThatKeepsNothingIsRefused) {
  auto graph = parse_model(decoder_text());
  auto given = ir::verify_graph(std::move(*graph));
  CompileOptions options;
  options.device = "cuda";
  options.threads = 1;
  options.states = kCaches;
  EXPECT_EQ(dump(*given, options, "plan").status().to_string(),
            "unsupported: state: device 'cuda' keeps nothing from one run to the next; leave out "
            "the option, or choose the device cpu");
}

TEST(States, TheOptionIsPairsOfNames) {
  CompileOptions options;
  ASSERT_TRUE(set_option(options, "state", "past=present").ok());
  ASSERT_TRUE(set_option(options, "state", "a=b=c").ok());
  EXPECT_EQ(options.states, (StatePairs{{"past", "present"}, {"a=b", "c"}}));
  EXPECT_EQ(options_summary(options), "state=past=present,a=b=c");
  for (const char* wrong : {"", "past", "=present", "past="}) {
    EXPECT_EQ(set_option(options, "state", wrong).code(), Code::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace pyc::driver

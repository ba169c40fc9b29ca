// Open models as files: written, read and run without compiling what types told.

#include "model_file/open_artifacts.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "host/elements.h"
#include "model_file/load.h"
#include "session/artifacts.h"

namespace pyc::driver {
namespace {

const std::string kModel = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";

model_file::LoadedModel branch_loop() {
  auto model = model_file::load_model_file(kModel);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

artifact::Artifact compiled(const CompileOptions& options = {}) {
  open::ShapeChoice shapes;
  shapes.dims["N"] = 2;
  auto made = model_file::compile_model(branch_loop(), shapes, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

SharedBytes bytes_of(const artifact::Artifact& artifact) {
  const auto pieces = artifact::encode(artifact);
  EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
  std::vector<std::byte> all;
  for (const SharedBytes& piece : *pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

std::string_view text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<DynValue> inputs(bool positive, int64_t trips, int64_t rows) {
  std::vector<double> x;
  for (int64_t i = 0; i < rows * 4; ++i) x.push_back(static_cast<double>(i) - 3.0);
  return {DynValue::of_bool(positive), DynValue::of_int(trips),
          *host::tensor_of(DType::kF32, {rows, 4}, x)};
}

std::vector<double> run(session::Session& session, const std::vector<DynValue>& values) {
  const auto found = session.run(values);
  EXPECT_TRUE(found.ok()) << found.status().to_string();
  return found.ok() ? to_doubles(found->at(0)) : std::vector<double>();
}

std::unique_ptr<session::Session> loaded(const SharedBytes& file, CompileOptions options = {}) {
  const auto model = model_file::load_model(text_of(file));
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  auto session = model_file::make_session(*model, {}, options);
  EXPECT_TRUE(session.ok()) << session.status().to_string();
  return std::move(*session);
}

TEST(OpenArtifacts, RunWithoutACompileAndWithTheBitsOfTheModel) {
  const artifact::Artifact made = compiled();
  EXPECT_EQ(made.parts.size(), 4U);  // both sides, what is behind the loop, its body
  const auto session = loaded(bytes_of(made));
  CompileOptions options;
  const auto direct = model_file::make_session(branch_loop(), {}, options);
  ASSERT_TRUE(direct.ok());
  for (const bool positive : {true, false}) {
    for (const int64_t trips : {0, 1, 5}) {
      EXPECT_EQ(run(*session, inputs(positive, trips, 2)),
                run(**direct, inputs(positive, trips, 2)));
    }
  }
  EXPECT_EQ(session->stats().segments_compiled, 0);
  // A shape that was not told is compiled here.
  EXPECT_EQ(run(*session, inputs(true, 1, 3)), run(**direct, inputs(true, 1, 3)));
  EXPECT_GT(session->stats().segments_compiled, 0);
}

TEST(OpenArtifacts, EqualModelsGiveEqualBytes) {
  EXPECT_EQ(bytes_of(compiled()), bytes_of(compiled()));
}

// What an unseen shape is compiled with is in the file.
TEST(OpenArtifacts, OptionsOfTheCompileHoldForLaterCompiles) {
  CompileOptions options;
  options.determinism = Determinism::kStrict;
  options.fuse = false;
  options.kernels = {"f32_matmul", "loop_pairs"};
  const artifact::Artifact made = compiled(options);
  const auto model = model_file::load_model(text_of(bytes_of(made)));
  ASSERT_TRUE(model.ok());
  CompileOptions taken;
  ASSERT_TRUE(model_file::make_session(*model, {}, taken).ok());
  EXPECT_EQ(taken.determinism, Determinism::kStrict);
  EXPECT_FALSE(taken.fuse);
  EXPECT_EQ(taken.kernels, options.kernels);
}

TEST(OpenArtifacts, DecidedOptionsAreRefused) {
  const auto model = model_file::load_model(text_of(bytes_of(compiled())));
  ASSERT_TRUE(model.ok());
  CompileOptions options;
  options.fuse = false;
  const auto session = model_file::make_session(*model, {}, options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), Code::kInvalidArgument);
}

TEST(OpenArtifacts, ShapesThatAreOpenMustBeChosen) {
  const auto made = model_file::compile_model(branch_loop(), {}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("input 'x' is f32[N,4]"), std::string::npos)
      << made.status().to_string();
}

TEST(OpenArtifacts, EveryDamagedByteIsRefused) {
  const SharedBytes file = bytes_of(compiled());
  for (size_t at = 0; at < file.size(); at += 97) {
    std::vector<std::byte> other(file.begin(), file.end());
    other[at] ^= std::byte{1};
    EXPECT_FALSE(artifact::decode(std::move(other)).ok()) << at;
  }
}

// Digests that fit and a content that does not: texts, places and programs are checked all the
// same.
TEST(OpenArtifacts, NonsenseUnderGoodDigestsIsRefused) {
  artifact::Artifact made = compiled();
  made.graph = "open graph @g(";
  EXPECT_EQ(model_file::load_model(text_of(bytes_of(made))).status().code(), Code::kParseError);
  made = compiled();
  made.graph.replace(made.graph.find("splat(0.25)"), 11, "stored(7)  ");
  EXPECT_EQ(model_file::load_model(text_of(bytes_of(made))).status().code(), Code::kParseError);
  made = compiled();
  made.options = {{"fuse", "perhaps"}};
  const auto model = model_file::load_model(text_of(bytes_of(made)));
  ASSERT_TRUE(model.ok());
  CompileOptions options;
  EXPECT_EQ(model_file::make_session(*model, {}, options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pyc::driver

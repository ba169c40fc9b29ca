// Artefacts through the C ABI.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "capi/calls.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

TEST(Artifacts, CompiledLoadedAndRun) {
  const TempFolder folder;
  const std::string path = folder.file("m.pycm");
  small_graph().compile_to_file(path);
  Model loaded = Model::load(path);
  Model compiled = small_model();
  const auto run = [](Model& model) {
    return model(Tensor::random(PYC_DTYPE_F32, {2, 3}, 5))[0].digest();
  };
  EXPECT_EQ(run(loaded), run(compiled));
  EXPECT_NE(loaded.decision_log().find("compiled_ahead"), std::string::npos);

  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  pyc_model* from_bytes = nullptr;
  ASSERT_EQ(
      pyc_compile_model_bytes(text.str().data(), text.str().size(), nullptr, &from_bytes, nullptr),
      PYC_STATUS_OK);
  EXPECT_EQ(pyc_model_input_count(from_bytes), 1u);
  pyc_destroy_model(from_bytes);
}

TEST(Artifacts, AreDescribed) {
  const TempFolder folder;
  const std::string path = folder.file("m.pycm");
  const Graph graph = small_graph();
  for (size_t i = 0; i < pyc_target_count(); ++i) {
    CompileOptions options;
    options.set("target", pyc_target_name(i));
    options.set("determinism", "strict");
    graph.compile_to_file(path, options);
    const Artifact artifact(path);
    const pyc_artifact_info info = artifact.info();
    EXPECT_EQ(info.version, std::string(pyc_version()) + " numerics 2");
    EXPECT_EQ(info.target, options.text("target"));
    EXPECT_STREQ(info.determinism, "strict");
    EXPECT_EQ(info.fingerprint, graph.fingerprint());
    EXPECT_EQ(info.file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
    EXPECT_GT(info.code_bytes, 0);
    EXPECT_GT(info.parameter_bytes, 0);
    EXPECT_GT(info.step_count, 0u);
    EXPECT_GT(info.decision_count, 0u);
    ASSERT_EQ(info.input_count, 1u);
    EXPECT_STREQ(artifact.input(0).name, "x");
    EXPECT_STREQ(artifact.output(0).name, "y");
    EXPECT_THROW(artifact.output(1), Error);
    if (*info.missing == '\0') {
      EXPECT_NO_THROW(Model::load(path));
    } else {
      EXPECT_THROW(Model::load(path), Error);
    }
  }
  EXPECT_EQ(pyc_target_name(pyc_target_count()), nullptr);
}

TEST(Artifacts, WrongCallsAreRefused) {
  const Graph graph = small_graph();
  EXPECT_EQ(refusal([&](pyc_error** e) {
              return pyc_compile_to_file(nullptr, nullptr, "f.pycm", e);
            }).status,
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(refusal([&](pyc_error** e) {
              return pyc_compile_to_file(graph.get(), nullptr, nullptr, e);
            }).status,
            PYC_STATUS_NULL_POINTER);
  pyc_artifact* artifact = nullptr;
  EXPECT_EQ(refusal([&](pyc_error** e) {
              return pyc_artifact_open("/no/such.pycm", &artifact, e);
            }).status,
            PYC_STATUS_NOT_FOUND);
  const Refusal text = refusal([&](pyc_error** e) {
    return pyc_artifact_open(PYC_SOURCE_DIR "/tests/models/mlp.ir", &artifact, e);
  });
  EXPECT_EQ(text.status, PYC_STATUS_PARSE_ERROR);
  EXPECT_NE(text.message.find("not an artefact"), std::string::npos);
  EXPECT_EQ(artifact, nullptr);
  pyc_artifact_destroy(nullptr);
  auto info = sized<pyc_artifact_info>();
  EXPECT_EQ(refusal([&](pyc_error** e) { return pyc_artifact_get_info(nullptr, &info, e); }).status,
            PYC_STATUS_NULL_POINTER);
}

}  // namespace
}  // namespace pyc::test

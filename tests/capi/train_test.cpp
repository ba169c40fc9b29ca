// Training through the C ABI and pyc.hpp.

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "capi/calls.h"
#include "io/named_tensors.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

Graph line() {
  return Graph::parse(
      "graph @line(%x: f32[4,3]) -> (%y) {\n"
      "  %w = const f32[3,1] dense(0.5, -0.25, 0.125)\n"
      "  %b = const f32[1] dense(0.1)\n"
      "  %p = matmul(%x, %w)\n"
      "  %y = add(%p, %b)\n"
      "}\n");
}

// 10 rows of y = x·(1, 2, 3) - 1.
std::string data_file(const TempFolder& folder, const std::string& target = "target") {
  std::vector<float> x;
  std::vector<float> y;
  for (int r = 0; r < 10; ++r) {
    float sum = -1.0F;
    for (int i = 0; i < 3; ++i) {
      x.push_back(static_cast<float>((r * 7 + i * 5) % 11) / 5.0F - 1.0F);
      sum += x.back() * static_cast<float>(i + 1);
    }
    y.push_back(sum);
  }
  const std::vector<io::NamedBytes> arrays = {
      {"x", {DType::kF32, {10, 3}}, std::as_bytes(std::span(x))},
      {target, {DType::kF32, {10, 1}}, std::as_bytes(std::span(y))}};
  std::string path = folder.file("data.npz");
  EXPECT_TRUE(write_file_atomic(path, *io::npz_bytes(arrays)).ok());
  return path;
}

TrainOptions adam() {
  TrainOptions options;
  options.set("loss", "mse").set("optimizer", "adam").set("lr", "0.05");
  return options;
}

TEST(TrainAbi, TrainsSavesResumesAndExports) {
  const TempFolder folder;
  const std::string path = data_file(folder);
  Trainer trainer(line(), adam());
  TrainData data(trainer, path, 7);
  EXPECT_EQ(data.info().rows, 10);
  EXPECT_EQ(data.info().batches, 2);
  const double before = trainer.evaluate(data);
  for (int i = 0; i < 100; ++i) {
    const pyc_train_result result = trainer.step(data);
    EXPECT_EQ(result.step, i + 1);
    EXPECT_EQ(result.skipped, 0);
    EXPECT_GT(result.norm, 0.0);
    if (i == 49) trainer.save(folder.file("run"), 2, &data);
  }
  EXPECT_LT(trainer.evaluate(data), before / 10);
  EXPECT_EQ(data.info().position, 100);

  Trainer again(line(), adam());
  TrainData rest(again, path, 7);
  const std::string report = again.resume(folder.file("run"), &rest);
  EXPECT_NE(report.find("step-000000000050.safetensors"), std::string::npos) << report;
  EXPECT_NE(report.find("\"step\":50"), std::string::npos) << report;
  EXPECT_EQ(rest.info().position, 50);
  while (again.steps_done() < 100) again.step(rest);
  EXPECT_EQ(again.digest(), trainer.digest());

  again.graph().export_onnx(folder.file("trained.onnx"));
  const Graph read = Graph::load(folder.file("trained.onnx"));
  EXPECT_EQ(Trainer(read, adam()).evaluate(data), trainer.evaluate(data));
}

TEST(TrainAbi, ShowsBatchAndState) {
  Trainer trainer(line(), adam());
  const auto batch = trainer.batch();
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_STREQ(batch[1].name, "target");
  EXPECT_EQ(batch[1].bytes, 16);
  ASSERT_EQ(pyc_train_state_count(trainer.get()), 7U);
  auto info = sized<pyc_value_info>();
  int32_t role = -1;
  ASSERT_EQ(pyc_train_state(trainer.get(), 0, &info, &role, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(info.name, "step");
  EXPECT_EQ(role, PYC_TRAIN_STEP);
  ASSERT_EQ(pyc_train_state(trainer.get(), 1, &info, &role, nullptr), PYC_STATUS_OK);
  EXPECT_STREQ(info.name, "w");
  EXPECT_EQ(role, PYC_TRAIN_PARAMETER);
  float w[3] = {9, 8, 7};
  const std::string digest = trainer.digest();
  ASSERT_EQ(pyc_train_set_state(trainer.get(), 1, &w[0], sizeof w, nullptr), PYC_STATUS_OK);
  EXPECT_NE(trainer.digest(), digest);
  float read[3] = {};
  ASSERT_EQ(pyc_train_get_state(trainer.get(), 1, &read[0], sizeof read, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(std::memcmp(&read[0], &w[0], sizeof w), 0);
  const Refusal size =
      refusal([&](pyc_error** e) { return pyc_train_get_state(trainer.get(), 1, &read[0], 4, e); });
  EXPECT_EQ(size.status, PYC_STATUS_SIZE_MISMATCH);
  EXPECT_NE(size.message.find("state 'w'"), std::string::npos);
}

TEST(TrainAbi, ListsItsOptions) {
  ASSERT_GT(pyc_train_option_count(), 10U);
  TrainOptions options;
  for (size_t i = 0; i < pyc_train_option_count(); ++i) {
    auto info = sized<pyc_option_info>();
    ASSERT_EQ(pyc_train_option(i, &info, nullptr), PYC_STATUS_OK);
    EXPECT_EQ(options.text(info.name), info.initial);
    EXPECT_FALSE(std::string(info.help).empty());
    if (info.kind != PYC_OPTION_LIST) {
      EXPECT_NO_THROW(options.set(info.name, info.initial));
    }
    EXPECT_EQ(info.word_count > 1, info.kind == PYC_OPTION_WORD) << info.name;
  }
  auto info = sized<pyc_option_info>();
  EXPECT_EQ(pyc_train_option(pyc_train_option_count(), &info, nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  const Refusal unknown = refusal(
      [&](pyc_error** e) { return pyc_train_options_set(options.get(), "learnrate", "1", e); });
  EXPECT_EQ(unknown.status, PYC_STATUS_UNKNOWN_OPTION);
}

TEST(TrainAbi, RefusesWithANameAndChangesNothing) {
  const TempFolder folder;
  Trainer trainer(line(), adam());
  const auto status_of = [&](auto call) { return refusal(call); };
  const Refusal array = status_of([&](pyc_error** e) {
    pyc_train_data* data = nullptr;
    return pyc_train_data_load(trainer.get(), data_file(folder, "y").c_str(), 0, 0, &data, e);
  });
  EXPECT_EQ(array.status, PYC_STATUS_NOT_FOUND);
  EXPECT_NE(array.message.find("data.npz: the data has no array 'target'"), std::string::npos)
      << array.message;
  float x[12] = {};
  float y[4] = {0, NAN, 0, 0};
  const int64_t x_shape[] = {4, 3};
  const int64_t y_shape[] = {4, 1};
  auto views = std::vector(2, sized<pyc_tensor_view>());
  views[0].data = &x[0];
  views[0].bytes = sizeof x;
  views[0].shape = &x_shape[0];
  views[1].data = &y[0];
  views[1].bytes = sizeof y;
  views[1].shape = &y_shape[0];
  for (auto& view : views) {
    view.rank = 2;
    view.dtype = PYC_DTYPE_F32;
  }
  const std::string digest = trainer.digest();
  const Refusal nan = status_of([&](pyc_error** e) {
    return pyc_train_step(trainer.get(), views.data(), views.size(), nullptr, e);
  });
  EXPECT_EQ(nan.status, PYC_STATUS_RUNTIME_FAILED);
  EXPECT_NE(nan.message.find("step 1: the loss is nan"), std::string::npos) << nan.message;
  EXPECT_NE(nan.message.find("%target, which the step takes"), std::string::npos) << nan.message;
  const Refusal count = status_of(
      [&](pyc_error** e) { return pyc_train_step(trainer.get(), views.data(), 1, nullptr, e); });
  EXPECT_EQ(count.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(trainer.digest(), digest);
  EXPECT_EQ(trainer.steps_done(), 0);
  y[1] = 1;
  EXPECT_EQ(trainer.step(views).step, 1);

  const Refusal none = status_of([&](pyc_error** e) {
    pyc_trainer* out = nullptr;
    return pyc_train_create(Graph::parse("graph @g(%x: f32[2]) -> (%x) {\n}\n").get(), adam().get(),
                            nullptr, &out, e);
  });
  EXPECT_EQ(none.status, PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(none.message.find("nothing to train"), std::string::npos) << none.message;
}

TEST(TrainAbi, SaysWhichCheckpointIsTheLast) {
  const TempFolder folder;
  int64_t step = 0;
  ASSERT_EQ(pyc_train_last_checkpoint(folder.path().c_str(), &step, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(step, -1);
  Trainer trainer(line(), adam());
  const std::string report = trainer.resume(folder.path());
  EXPECT_EQ(report, "{\"checkpoint\":null,\"step\":0,\"passed_over\":[]}");
  EXPECT_TRUE(trainer.save(folder.path()).ends_with("step-000000000000.safetensors"));
  ASSERT_EQ(pyc_train_last_checkpoint(folder.path().c_str(), &step, nullptr), PYC_STATUS_OK);
  EXPECT_EQ(step, 0);
}

TEST(TrainAbi, ShowsWhatItCompiles) {
  TrainOptions options = adam();
  options.set("accumulate", "2");
  const Trainer trainer(line(), options);
  EXPECT_EQ(trainer.option("accumulate"), "2");
  EXPECT_EQ(trainer.option("loss_scale"), "0");
  std::string states;
  const Graph step = trainer.step_graph(0, states);
  EXPECT_EQ(std::count(states.begin(), states.end(), '\n'), 7);
  EXPECT_NE(states.find("w="), std::string::npos) << states;
  EXPECT_NE(step.print().find("%w.first: f32[3,1]"), std::string::npos) << step.print();
  trainer.step_graph(1, states);
  EXPECT_EQ(states.substr(0, 9), "loss.sum=") << states;
  const Refusal none = refusal([&](pyc_error** e) {
    pyc_graph* graph = nullptr;
    char* text = nullptr;
    return pyc_train_step_graph(trainer.get(), 2, &graph, &text, e);
  });
  EXPECT_EQ(none.status, PYC_STATUS_INVALID_ARGUMENT);
}

TEST(TrainAbi, TakesNullWhereItSaysSo) {
  pyc_train_destroy(nullptr);
  pyc_train_data_destroy(nullptr);
  pyc_train_options_destroy(nullptr);
  EXPECT_EQ(pyc_train_steps_done(nullptr), 0);
  EXPECT_EQ(pyc_train_batch_count(nullptr), 0U);
  EXPECT_EQ(pyc_train_state_count(nullptr), 0U);
  EXPECT_EQ(pyc_train_create(nullptr, nullptr, nullptr, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_train_step(nullptr, nullptr, 0, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_train_save(nullptr, nullptr, nullptr, 1, nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
}

}  // namespace
}  // namespace pyc::test

// Checkpoints: a run that goes on from one ends with the bits of the run that was never stopped,
// and nothing that is damaged, or of another training, is taken.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "base/files.h"
#include "driver/compile.h"
#include "io/named_tensors.h"
#include "support/temp_folder.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/options.h"

namespace pyc::train {
namespace {

constexpr const char* kModel =
    "graph @mlp(%x: f32[4,6]) -> (%y) {\n"
    "  %w1 = const f32[6,8] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %b1 = const f32[8] splat(0.0)\n"
    "  %w2 = const f32[8,3] random(seed=2, lo=-0.5, hi=0.5)\n"
    "  %h = matmul(%x, %w1)\n  %a = add(%h, %b1)\n  %r = relu(%a)\n  %y = matmul(%r, %w2)\n}\n";

StepSpec spec_of(std::initializer_list<std::pair<const char*, const char*>> options = {}) {
  StepSpec spec;
  spec.loss = Loss::kCrossEntropy;
  spec.optimizer.rule = Rule::kAdamW;
  for (const auto& [name, value] : options) {
    const Status status = set_train_option(spec, name, value);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  return spec;
}

std::unique_ptr<Trainer> run_of(const StepSpec& spec, const std::string& model = kModel,
                                int threads = 1) {
  driver::CompileOptions options;
  options.threads = threads;
  auto made = Trainer::create(*driver::parse_model(model), spec, options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

std::vector<io::NamedTensor> arrays(int64_t rows) {
  NewTensor x = *new_tensor(DType::kF32, {rows, 6});
  NewTensor y = *new_tensor(DType::kI64, {rows});
  for (int64_t i = 0; i < rows * 6; ++i) {
    const float value = static_cast<float>((i * 37) % 23) / 10.0F - 1.0F;
    std::memcpy(x.data + i * 4, &value, 4);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t label = (i * i) % 3;
    std::memcpy(y.data + i * 8, &label, 8);
  }
  return {{"target", y.value}, {"x", x.value}};
}

Dataset data_for(const Trainer& trainer, uint64_t seed = 5) {
  auto made = Dataset::create(arrays(23), trainer.batch(), seed);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

DataPlace place_in(const Dataset& data, int64_t position) {
  return {*data.seed(), position, data.digest()};
}

void train(Trainer& trainer, Dataset& data, int64_t& position, int64_t until) {
  for (; trainer.steps_done() < until; ++position) {
    const auto result = trainer.step(data.batch(position));
    ASSERT_TRUE(result.ok()) << result.status().to_string();
  }
}

std::string contents(const std::string& path) { return *read_file(path, 1 << 20); }
void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Saves at each of the given steps; the last path.
std::string save_at(const std::string& folder, std::initializer_list<int64_t> steps,
                    const StepSpec& spec = spec_of()) {
  const auto trainer = run_of(spec);
  Dataset data = data_for(*trainer);
  int64_t position = 0;
  std::string path;
  for (const int64_t step : steps) {
    train(*trainer, data, position, step);
    const auto saved = save_checkpoint(folder, *trainer, place_in(data, position), 10);
    EXPECT_TRUE(saved.ok()) << saved.status().to_string();
    path = *saved;
  }
  return path;
}

TEST(Checkpoints, GoOnWithTheBitsOfTheRunThatWasNeverStopped) {
  for (const int threads : {1, 2, 7}) {
    const TempFolder folder;
    const auto whole = run_of(spec_of());
    Dataset data = data_for(*whole);
    int64_t position = 0;
    train(*whole, data, position, 20);
    save_at(folder.path(), {3, 11});
    const auto resumed = run_of(spec_of(), kModel, threads);
    const auto from = resume_checkpoint(folder.path(), *resumed, place_in(data, 0));
    ASSERT_TRUE(from.ok()) << from.status().to_string();
    ASSERT_TRUE(from->has_value());
    EXPECT_TRUE((**from).path.ends_with("step-000000000011.safetensors"));
    EXPECT_TRUE((**from).passed_over.empty());
    EXPECT_EQ(resumed->steps_done(), 11);
    EXPECT_EQ((**from).place.position, 11);
    Dataset again = data_for(*resumed);
    position = (**from).place.position;
    train(*resumed, again, position, 20);
    EXPECT_EQ(resumed->weights_digest(), whole->weights_digest());
    for (size_t i = 0; i < whole->state().size(); ++i) {
      EXPECT_TRUE(std::equal(whole->bytes(i).begin(), whole->bytes(i).end(),
                             resumed->bytes(i).begin(), resumed->bytes(i).end()))
          << whole->state()[i].name;
    }
  }
}

TEST(Checkpoints, HoldWeightsThatAnyReaderOfTheFormatFinds) {
  const TempFolder folder;
  const auto file = io::parse_safetensors(contents(save_at(folder.path(), {2})));
  ASSERT_TRUE(file.ok());
  std::vector<std::string> names;
  for (const auto& tensor : file->tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"w1", "w1.first", "w1.second", "b1", "b1.first",
                                             "b1.second", "w2", "w2.first", "w2.second"}));
  EXPECT_EQ(file->tensors[0].value.to_string(), "f32[6,8]");
  EXPECT_EQ(file->metadata.at("pyc.step"), "2");
  EXPECT_EQ(file->metadata.at("pyc.seed"), "5");
  EXPECT_EQ(file->metadata.at("pyc.data_position"), "2");
  EXPECT_EQ(file->metadata.at("pyc.option.optimizer"), "adamw");
  EXPECT_EQ(file->metadata.at("pyc.option.beta2"), "0.999");
  EXPECT_EQ(file->metadata.at("pyc.digest").size(), 32U);
}

TEST(Checkpoints, KeepTheLastOnes) {
  const TempFolder folder;
  const auto trainer = run_of(spec_of());
  Dataset data = data_for(*trainer);
  int64_t position = 0;
  // Of a run that came further and was damaged there: not what this run counts.
  put(folder.file("step-000000000099.safetensors"), "damaged");
  put(folder.file("notes.txt"), "mine");
  for (int64_t step = 1; step <= 5; ++step) {
    train(*trainer, data, position, step);
    ASSERT_TRUE(save_checkpoint(folder.path(), *trainer, place_in(data, position), 2).ok());
  }
  EXPECT_EQ(*checkpoint_steps(folder.path()), (std::vector<int64_t>{4, 5, 99}));
  EXPECT_EQ(folder.entries(), 4);
  EXPECT_EQ(save_checkpoint(folder.path(), *trainer, {}, 0).status().code(),
            Code::kInvalidArgument);
}

// Each way of damage: the one before is taken, and it is said which was passed over and why.
TEST(Checkpoints, ThatAreDamagedArePassedOver) {
  const TempFolder source;
  const std::string path = save_at(source.path(), {2, 4, 6});
  const std::string good = contents(path);
  const auto expect_passed = [&](const std::string& bytes, const std::string& words) {
    put(path, bytes);
    put(source.file(".pyc-tmp.1.0"), "half of one");
    const auto trainer = run_of(spec_of());
    const auto from = resume_checkpoint(source.path(), *trainer, {});
    ASSERT_TRUE(from.ok()) << from.status().to_string();
    ASSERT_EQ((**from).passed_over.size(), 1U) << words;
    EXPECT_NE((**from).passed_over[0].find("step-000000000006.safetensors: "), std::string::npos);
    EXPECT_NE((**from).passed_over[0].find(words), std::string::npos) << (**from).passed_over[0];
    EXPECT_EQ(trainer->steps_done(), 4);
    EXPECT_EQ(source.entries(), 3);
  };
  expect_passed("", "ends within the length");
  expect_passed(good.substr(0, 20), "ends within its header");
  expect_passed(good.substr(0, good.size() - 1), "end beyond the file");
  for (const size_t at : {size_t{40}, good.size() / 2, good.size() - 1}) {
    std::string flipped = good;
    flipped[at] ^= 1;
    put(path, flipped);
    const auto trainer = run_of(spec_of());
    const auto from = resume_checkpoint(source.path(), *trainer, {});
    ASSERT_TRUE(from.ok()) << from.status().to_string();
    EXPECT_EQ((**from).passed_over.size(), 1U) << at;
    EXPECT_EQ(trainer->steps_done(), 4);
  }
  std::string flipped = good;
  flipped.back() ^= 1;
  expect_passed(flipped, "it is damaged: its digest is");
  expect_passed(contents(source.file("step-000000000002.safetensors")), "holds step 2");
  // A file of the format that is no checkpoint.
  expect_passed(io::safetensors_header({}, {})->bytes, "no digest");
}

TEST(Checkpoints, AreRefusedWhenAllAreDamaged) {
  const TempFolder folder;
  const auto trainer = run_of(spec_of());
  EXPECT_FALSE(resume_checkpoint(folder.path(), *trainer, {})->has_value());
  EXPECT_FALSE(resume_checkpoint(folder.path() + "/none", *trainer, {})->has_value());
  put(folder.file("step-000000000001.safetensors"), "x");
  const auto from = resume_checkpoint(folder.path(), *trainer, {});
  ASSERT_FALSE(from.ok());
  EXPECT_EQ(from.status().code(), Code::kParseError);
  EXPECT_NE(from.status().message().find("none of the 1 checkpoints"), std::string::npos);
}

TEST(Checkpoints, OfAnotherTrainingAreRefusedByName) {
  const TempFolder folder;
  save_at(folder.path(), {3});
  const auto expect_refused = [&](const StepSpec& spec, const std::string& model,
                                  const DataPlace& place, const std::string& words) {
    const auto trainer = run_of(spec, model);
    const auto from = resume_checkpoint(folder.path(), *trainer, place);
    ASSERT_FALSE(from.ok()) << words;
    EXPECT_EQ(from.status().code(), Code::kInvalidArgument) << from.status().to_string();
    EXPECT_NE(from.status().message().find(words), std::string::npos) << from.status().to_string();
    EXPECT_EQ(trainer->steps_done(), 0);
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string model = kModel;
    for (size_t at = model.find(from); at != std::string::npos; at = model.find(from, at + 1)) {
      model.replace(at, from.size(), to);
    }
    return model;
  };
  expect_refused(spec_of({{"optimizer", "lion"}}), kModel, {},
                 "optimizer: it has 'adamw', this run 'lion'");
  expect_refused(spec_of({{"lr", "0.5"}}), kModel, {}, "lr: it has '0.01', this run '0.5'");
  expect_refused(spec_of({{"loss", "mse"}}), kModel, {}, "loss: it has 'cross_entropy'");
  expect_refused(spec_of(), changed("b1", "bias"), {}, "bias: it has 'no such tensor'");
  expect_refused(spec_of(), changed("%b1 = const f32[8]", "%b1 = const f32[1]"), {},
                 "b1: it has 'f32[8]', this run 'f32[1]'");
  expect_refused(spec_of(), changed("relu", "tanh"), {}, "the model: it has");
  const auto trainer = run_of(spec_of());
  const Dataset data = data_for(*trainer);
  expect_refused(spec_of(), kModel, {5, 0, "another"}, "the data: it has '" + data.digest());
  expect_refused(spec_of(), kModel, {6, 0, data.digest()}, "the seed: it has '5', this run '6'");
  ASSERT_TRUE(resume_checkpoint(folder.path(), *trainer, {5, 0, data.digest()}).ok());
}

// A parameter that the checkpoint has and the model has not.
TEST(Checkpoints, WithMoreThanTheModelHasAreRefused) {
  const TempFolder folder;
  save_at(folder.path(), {3});
  const auto trainer = run_of(spec_of(),
                              "graph @mlp(%x: f32[4,6]) -> (%y) {\n"
                              "  %w1 = const f32[6,8] splat(0.1)\n"
                              "  %w2 = const f32[8,3] splat(0.1)\n"
                              "  %h = matmul(%x, %w1)\n  %y = matmul(%h, %w2)\n}\n");
  const auto from = resume_checkpoint(folder.path(), *trainer, {});
  ASSERT_FALSE(from.ok());
  EXPECT_NE(from.status().message().find("b1: it has 'f32[8]', this run 'no such parameter'"),
            std::string::npos)
      << from.status().to_string();
}

// A full disk, played by the largest size of a file.
TEST(Checkpoints, ThatDoNotFitOnTheDiskLeaveTheLastGoodOne) {
  const TempFolder folder;
  const std::string path = save_at(folder.path(), {2});
  const std::string good = contents(path);
  const auto trainer = run_of(spec_of());
  ASSERT_TRUE(resume_checkpoint(folder.path(), *trainer, {}).ok());
  Dataset data = data_for(*trainer);
  int64_t position = 2;
  train(*trainer, data, position, 3);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{2048, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto saved = save_checkpoint(folder.path(), *trainer, place_in(data, position), 1);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.status().code(), Code::kIoError);
  EXPECT_NE(saved.status().message().find("the checkpoint of step 3 is not written"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(contents(path), good);
  EXPECT_TRUE(save_checkpoint(folder.path(), *trainer, place_in(data, position), 1).ok());
  EXPECT_EQ(*checkpoint_steps(folder.path()), (std::vector<int64_t>{3}));
}

}  // namespace
}  // namespace pyc::train

// `pyc train`: what it writes, how it goes on, what it refuses.

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/program.h"

namespace pyc::test {
namespace {

const std::string kBlobs = std::string(PYC_SOURCE_DIR) + "/tests/train/models/blobs.ir";

// A folder with data for the model and a command that trains it.
class Training : public testing::Test {
 protected:
  Training() : data_(folder_.file("data.npz")) {
    const Outcome made = shell("python3 " + std::string(PYC_SOURCE_DIR) +
                               "/scripts/train_data.py " + data_ + " 200 1 2>&1");
    EXPECT_EQ(made.exit, 0) << made.text;
  }
  std::string command(const std::string& options) const {
    return "train " + kBlobs + " --data " + data_ +
           " --loss cross_entropy --optimizer adamw --lr 0.01 " + options;
  }
  Outcome train(const std::string& options) const { return pyc(command(options)); }
  static std::string weights(const Outcome& o) {
    const size_t at = o.text.find("weights ");
    EXPECT_NE(at, std::string::npos) << o.text;
    return at == std::string::npos ? "" : o.text.substr(at + 8, 32);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(folder_.file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void expect_refused(const std::string& options, int exit, const std::string& words) const {
    const Outcome o = train(options);
    EXPECT_EQ(o.exit, exit) << options << "\n" << o.text;
    EXPECT_TRUE(has(o, words)) << o.text;
  }

  TempFolder folder_;
  std::string data_;
};

TEST_F(Training, WritesMetricsCheckpointsAndTheModel) {
  const std::string onnx = folder_.file("trained.onnx");
  const Outcome o = train("--steps 40 --checkpoint-every 10 --keep 2 --checkpoint-dir " +
                          folder_.file("run") + " --metrics " + folder_.file("m.jsonl") +
                          " --eval-data " + data_ + " --eval-every 20 --export " + onnx);
  ASSERT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "step 20: eval loss ")) << o.text;
  EXPECT_TRUE(has(o, "40 steps, loss ")) << o.text;
  EXPECT_TRUE(std::filesystem::exists(folder_.file("run/step-000000000030.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(folder_.file("run/step-000000000040.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("run/step-000000000020.safetensors")));
  const std::string metrics = content("m.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 42);
  EXPECT_TRUE(metrics.starts_with("{\"step\":1,\"loss\":")) << metrics.substr(0, 100);
  EXPECT_NE(metrics.find("{\"step\":20,\"eval_loss\":"), std::string::npos);
  EXPECT_TRUE(has(pyc("run " + onnx), "scores: f32[32,4]"));
  const std::string pycm = folder_.file("trained.pycm");
  ASSERT_EQ(train("--steps 2 --export " + pycm).exit, 0);
  EXPECT_TRUE(has(pyc("run " + pycm), "scores: f32[32,4]"));
}

TEST_F(Training, HasTheSameBitsAtEveryThreadCount) {
  const std::string expected = weights(train("--steps 30 --threads 1"));
  EXPECT_EQ(weights(train("--steps 30 --threads 2")), expected);
  EXPECT_EQ(weights(train("--steps 30 --threads 7")), expected);
  EXPECT_EQ(weights(train("--steps 30 --threads 1 --device reference")), expected);
  EXPECT_NE(weights(train("--steps 30 --seed 4")), expected);
}

// The mask of a step is that of its number, whoever computes it.
TEST_F(Training, DropsTheSameElementsAtEveryThreadCountAndAfterAResume) {
  const std::string model = std::string(PYC_SOURCE_DIR) + "/tests/train/models/dropout.ir";
  const auto run = [&](const std::string& options) {
    return pyc("train " + model + " --data " + data_ +
               " --loss cross_entropy --optimizer adamw --lr 0.01 " + options);
  };
  const std::string expected = weights(run("--steps 30 --threads 1"));
  EXPECT_EQ(weights(run("--steps 30 --threads 2")), expected);
  EXPECT_EQ(weights(run("--steps 30 --threads 7")), expected);
  EXPECT_EQ(weights(run("--steps 30 --threads 1 --device reference")), expected);
  const std::string parts = " --resume --checkpoint-dir " + folder_.file("dropped");
  ASSERT_EQ(run("--steps 11 --threads 2" + parts).exit, 0);
  const Outcome rest = run("--steps 30 --threads 7" + parts);
  EXPECT_TRUE(has(rest, "step-000000000011.safetensors")) << rest.text;
  EXPECT_EQ(weights(rest), expected);
}

TEST_F(Training, GoesThroughBranchesLoopsAndScans) {
  const auto run = [&](const std::string& options) {
    return pyc("train " + std::string(PYC_SOURCE_DIR) + "/tests/train/models/regions.ir --data " +
               data_ + " --batch 32 --loss cross_entropy --optimizer adamw --lr 0.01 " + options);
  };
  const Outcome once = run("--steps 60 --threads 2 --json");
  ASSERT_EQ(once.exit, 0) << once.text;
  const Outcome first = run("--steps 1 --threads 2 --json");
  const auto loss = [](const Outcome& o) {
    const size_t at = o.text.find("\"loss\"");
    return at == std::string::npos ? 0.0 : std::stod(o.text.substr(o.text.find(':', at) + 1));
  };
  EXPECT_LT(loss(once), 0.5 * loss(first)) << once.text << first.text;
  EXPECT_EQ(weights(run("--steps 10 --threads 2")),
            weights(run("--steps 10 --threads 1 --device reference")));
}

TEST_F(Training, GoesOnAsIfItHadNeverStopped) {
  const std::string whole = " --steps 40 --checkpoint-every 7";
  const Outcome once = train(whole + " --checkpoint-dir " + folder_.file("a") + " --metrics " +
                             folder_.file("a.jsonl") + " --eval-data " + data_ + " --eval-every 5");
  const std::string parts = " --checkpoint-every 7 --checkpoint-dir " + folder_.file("b") +
                            " --metrics " + folder_.file("b.jsonl") + " --eval-data " + data_ +
                            " --eval-every 5 --resume";
  const Outcome first = train("--steps 17" + parts);
  EXPECT_TRUE(has(first, "begins at step 0")) << first.text;
  const Outcome second = train("--steps 40" + parts);
  EXPECT_TRUE(has(second, "goes on from " + folder_.file("b/step-000000000017.safetensors")))
      << second.text;
  EXPECT_EQ(weights(second), weights(once));
  // The first half evaluated at its own end as well.
  std::string metrics = content("b.jsonl");
  const size_t extra = metrics.find("{\"step\":17,\"eval_loss\"");
  ASSERT_NE(extra, std::string::npos);
  metrics.erase(extra, metrics.find('\n', extra) + 1 - extra);
  EXPECT_EQ(metrics, content("a.jsonl"));
  EXPECT_EQ(content("a/step-000000000040.safetensors"), content("b/step-000000000040.safetensors"));
  const Outcome again = train("--steps 40" + parts);
  EXPECT_EQ(weights(again), weights(once));
}

TEST_F(Training, SaysWhichCheckpointsItPassedOver) {
  const std::string run = " --checkpoint-every 5 --checkpoint-dir " + folder_.file("run") +
                          " --metrics " + folder_.file("m.jsonl");
  ASSERT_EQ(train("--steps 10" + run).exit, 0);
  std::filesystem::resize_file(folder_.file("run/step-000000000010.safetensors"), 100);
  const Outcome o = train("--steps 12 --resume" + run);
  EXPECT_EQ(o.exit, 0);
  EXPECT_TRUE(has(o, "checkpoint passed over: step-000000000010.safetensors: ")) << o.text;
  EXPECT_TRUE(has(o, "step-000000000005.safetensors")) << o.text;
  // Steps 6 to 10 were done again, and stand in the metrics once.
  ASSERT_EQ(train("--steps 12 --metrics " + folder_.file("whole.jsonl")).exit, 0);
  EXPECT_EQ(content("m.jsonl"), content("whole.jsonl"));
  expect_refused("--steps 12" + run, 2, "holds checkpoints up to step 12: --resume");
  expect_refused("--steps 12 --resume --weight-decay 0.5" + run, 2,
                 "weight_decay: it has '0', this run '0.5'");
}

TEST_F(Training, StopsWhenTheLossIsNotFinite) {
  const std::string run = "--checkpoint-every 1 --checkpoint-dir " + folder_.file("run");
  const Outcome o = pyc("train " + kBlobs + " --data " + data_ +
                        " --loss cross_entropy --optimizer sgd --lr 1e30 --steps 50 " + run);
  EXPECT_EQ(o.exit, 8) << o.text;
  EXPECT_TRUE(has(o, "the loss is ")) << o.text;
  const size_t at = o.text.find("step ");
  ASSERT_NE(at, std::string::npos);
  const int64_t bad = std::stoll(o.text.substr(at + 5));
  EXPECT_TRUE(std::filesystem::exists(
      folder_.file("run/step-00000000000" + std::to_string(bad - 1) + ".safetensors")))
      << o.text;
}

TEST_F(Training, AddsMicroBatchesUpAndGoesOnBetweenSteps) {
  const std::string options = " --accumulate 3 --checkpoint-every 4 --metrics ";
  const Outcome once = train("--steps 12" + options + folder_.file("a.jsonl"));
  ASSERT_EQ(once.exit, 0) << once.text;
  const std::string parts =
      options + folder_.file("b.jsonl") + " --resume --checkpoint-dir " + folder_.file("b");
  ASSERT_EQ(train("--steps 5" + parts).exit, 0);
  const Outcome rest = train("--steps 12 --threads 7" + parts);
  EXPECT_TRUE(has(rest, "step-000000000005.safetensors")) << rest.text;
  EXPECT_EQ(weights(rest), weights(once));
  EXPECT_EQ(content("a.jsonl"), content("b.jsonl"));
  expect_refused("--steps 12 --resume --checkpoint-dir " + folder_.file("b"), 2,
                 "accumulate: it has '3', this run '1'");
}

TEST_F(Training, TakesHalvesByName) {
  const std::string run = " --checkpoint-dir " + folder_.file("run");
  const Outcome half = train("--steps 20 --precision f16" + run);
  ASSERT_EQ(half.exit, 0) << half.text;
  EXPECT_NE(weights(half), weights(train("--steps 20")));
  expect_refused("--steps 30 --resume --loss-scale 65536" + run, 2,
                 "precision: it has 'f16', this run 'f32'");
  expect_refused("--steps 20 --precision f16 --determinism strict", 2, "set loss_scale");
}

TEST_F(Training, ExplainsItsStep) {
  const Outcome o =
      pyc("train " + kBlobs + " --loss cross_entropy --optimizer adamw --precision f16 --explain");
  EXPECT_EQ(o.exit, 0) << o.text;
  // 16×64, 64, 64×4 and 4 parameters; two kept values each, steps, the scale and its count.
  for (const char* words :
       {"step: loss_scale 65536",
        "memory: parameters 5392, optimizer state 10804, gradients 5392, activations ",
        ", workspace ", "group g0 ", "state:w1 -> in_place", "operands in f16"}) {
    EXPECT_TRUE(has(o, words)) << words << "\n" << o.text;
  }
}

TEST_F(Training, WritesItsStepAsAModel) {
  const std::string path = folder_.file("step.ir");
  ASSERT_EQ(pyc("train " + kBlobs + " --loss cross_entropy --write-step " + path).exit, 0);
  const std::string text = content("step.ir");
  EXPECT_TRUE(text.starts_with("# --state step=")) << text.substr(0, 100);
  std::istringstream lines(text);
  std::string states;
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    states += line.substr(1);
  }
  const Outcome o = pyc("explain " + path + states);
  EXPECT_TRUE(has(o, "state:w2 -> in_place")) << o.text;
  EXPECT_EQ(pyc("train " + kBlobs + " --loss cross_entropy --write-step /nowhere/s.ir").exit, 9);
}

TEST_F(Training, PrintsJson) {
  const Outcome o = pyc_out(command("--steps 3 --json"));
  EXPECT_EQ(o.exit, 0) << o.text;
  for (const char* key : {"\"steps\": 3", "\"first_step\": 0", "\"loss\": ", "\"eval_loss\": null",
                          "\"steps_per_second\": ", "\"step_ms\": ", "\"weights\": "}) {
    EXPECT_TRUE(has(o, key)) << key << "\n" << o.text;
  }
}

// A loop of known trips is trained as what it repeats: one weight, read by every iteration.
TEST_F(Training, TrainsThroughALoop) {
  const std::string head =
      "  %w = const f32[16,16] random(seed=1, lo=-0.25, hi=0.25)\n"
      "  %w2 = const f32[16,4] random(seed=2, lo=-0.25, hi=0.25)\n";
  std::ofstream(folder_.file("loop.ir"))
      << "open graph @loop(%x: f32[32,16]) -> (%y) {\n"
      << head
      << "  %trips = const i64[] dense(3)\n"
         "  %go = const bool[] dense(true)\n"
         "  %h = onnx.Loop[18](%trips, %go, %x) {body=region @step(%i: i64[], %g: bool[], %c: "
         "f32[32,16]) captures (%v = %w) -> (%g, %next) {\n"
         "    %next = onnx.MatMul[18](%c, %v)\n  }}\n"
         "  %y = onnx.MatMul[18](%h, %w2)\n}\n";
  std::ofstream(folder_.file("straight.ir"))
      << "graph @straight(%x: f32[32,16]) -> (%y) {\n"
      << head
      << "  %a = matmul(%x, %w)\n  %b = matmul(%a, %w)\n  %h = matmul(%b, %w)\n"
         "  %y = matmul(%h, %w2)\n}\n";
  const auto losses = [&](const std::string& model) {
    const std::string metrics = folder_.file(model + ".jsonl");
    const Outcome o =
        pyc("train " + folder_.file(model + ".ir") + " --data " + data_ +
            " --loss cross_entropy --optimizer adamw --lr 0.01 --steps 20 --metrics " + metrics);
    EXPECT_EQ(o.exit, 0) << o.text;
    return content(model + ".jsonl");
  };
  const std::string found = losses("loop");
  EXPECT_EQ(found, losses("straight"));
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 20);
}

TEST_F(Training, RefusesWithACure) {
  EXPECT_TRUE(has(pyc("train " + kBlobs + " --steps 1"), "--data FILE.npz"));
  expect_refused("", 2, "--steps N");
  expect_refused("--steps 1 --resume", 2, "--checkpoint-dir D");
  expect_refused("--steps 1 --eval-every 1", 2, "--eval-data FILE.npz");
  expect_refused("--steps 1 --batch 16", 2, "'x' is f32[32,16]");
  expect_refused("--steps 1 --schedule cosin", 2, "did you mean 'cosine'");
  expect_refused("--steps 1 --eval-data " + kBlobs, 3, "not a .npz file");
  expect_refused("--steps 1 --eval-data /nowhere.npz", 9, "/nowhere.npz");
  expect_refused("--steps 1 --freeze 'v*'", 2, "'v*'");
  expect_refused("--steps 1 --memory-budget 1000", 6, "budget");
  expect_refused("--steps 1 --metrics /nowhere/m.jsonl", 9, "/nowhere/m.jsonl");
  expect_refused("--steps 1 --checkpoint-dir /proc/nowhere", 9, "/proc/nowhere");
}

// The batch fills a first dim that the model leaves open.
TEST_F(Training, ChoosesTheBatchOfAnOpenModel) {
  const std::string open = write_model("open_blobs.ir",
                                       "open graph @open(%x: f32[N,16]) -> (%y) {\n"
                                       "  %w = const f32[16,4] splat(0.125)\n"
                                       "  %y = onnx.MatMul[18](%x, %w)\n"
                                       "}\n");
  const std::string rest = " --data " + data_ + " --loss cross_entropy --steps 5 --batch ";
  const Outcome o = pyc("train " + open + rest + "8");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "5 steps, loss ")) << o.text;
  const Outcome large = pyc("train " + open + rest + "201");
  EXPECT_TRUE(has(large, "the data has 200 rows, a batch takes 201")) << large.text;
}

}  // namespace
}  // namespace pyc::test

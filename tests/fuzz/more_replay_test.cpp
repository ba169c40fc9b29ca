// The fuzz targets beside ONNX on their seeds and on damaged copies of them. PYC_FUZZ_SECONDS makes
// it go on for that long with changes drawn from PYC_FUZZ_SEED, target by target, and print how
// many inputs each had (scripts/soak
// --plain); PYC_CORPUS has the seeds written there, for libFuzzer to start from.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "driver/compile.h"
#include "fuzz/calls.h"
#include "fuzz/more_targets.h"
#include "model_file/load.h"
#include "onnx/seeds.h"
#include "session/artifacts.h"
#include "support/verified.h"

namespace pyc::test {
namespace {

constexpr std::string_view kGraph = R"(graph @g(%x: f32[2,3], %i: i64[2]) -> (%y, %z) {
  %w = const f32[3,4] random(seed=1, lo=-0.5, hi=0.5)
  %b = const f32[4] dense(0.5, -1.0, nan, 0x7f800000)
  %h = matmul(%x, %w)
  %a = add(%h, %b)
  %y = softmax(%a) {axis=-1}
  %z = gather(%w, %i) {axis=0}
}
)";

using Seeds = std::vector<Bytes>;

constexpr std::string_view kCounter =
    R"(graph @counter(%x: f32[4], %sum: f32[4]) -> (%y, %next) {
  %next = add(%sum, %x)
  %y = neg(%next)
}
)";

Bytes file_of(const Result<artifact::Artifact>& made) {
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  Bytes file;
  const std::vector<SharedBytes> pieces = artifact::encode(*made).value();
  for (const SharedBytes& piece : pieces) {
    file.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return file;
}

// A program, one that keeps a state, and an open model with its programs.
Seeds artifact_seeds() {
  driver::CompileOptions options;
  options.threads = 1;
  const auto compiled = [&](std::string_view text) {
    return session::compile_artifact(test::verified(driver::parse_model(text).value()), options);
  };
  Seeds seeds = {file_of(compiled(kGraph))};
  options.device = "reference";
  seeds.push_back(file_of(compiled(kGraph)));
  const auto model = model_file::load_model_file(std::string(PYC_SOURCE_DIR) +
                                                 "/tests/open_models/branch_loop.ir");
  open::ShapeChoice shapes;
  shapes.dims["N"] = 2;
  seeds.push_back(file_of(model_file::compile_model(*model, shapes, options)));
  options.states = {{"sum", "next"}};
  seeds.push_back(file_of(compiled(kCounter)));
  return seeds;
}

Seeds text_seeds() {
  Seeds seeds = {Bytes(kGraph)};
  for (const char* folder : {"/tests/models", "/tests/lower", "/tests/open_models"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(PYC_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".ir" || entry.file_size() > 4096) continue;
      std::ifstream file(entry.path());
      seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      const size_t end = seeds.back().find("--- expect");
      if (end != Bytes::npos) seeds.back().resize(end);
      const bool small = ir::parse(seeds.back(), ops::all_ops(), kMaxTextConstants).ok() ||
                         open::parse_open(seeds.back(), onnx::open_ops(), kMaxTextConstants).ok();
      if (!small) seeds.pop_back();
    }
  }
  return seeds;
}

Seeds npy_seeds() {
  const std::vector<std::byte> data(96);
  Seeds seeds;
  for (const DType t : {DType::kF32, DType::kI64, DType::kBool, DType::kBF16, DType::kF16}) {
    const int64_t n = 96 / dtype_size(t) / 4;
    seeds.push_back(io::npy_bytes({t, {2, n, 2}}, data));
  }
  return seeds;
}

// Tensors of several types under several names.
std::vector<io::NamedBytes> seed_tensors() {
  static const std::vector<std::byte> data(96);
  const std::span<const std::byte> bytes(data);
  return {{"x", {DType::kF32, {3, 4}}, bytes.first(48)},
          {"layer.0/w", {DType::kI64, {}}, bytes.first(8)},
          {"none", {DType::kF16, {0, 2}}, bytes.first(0)},
          {"flag", {DType::kBool, {5}}, bytes.first(5)}};
}

Seeds npz_seeds() { return {*io::npz_bytes(seed_tensors()), *io::npz_bytes({})}; }

Seeds safetensors_seeds() {
  const std::vector<io::NamedBytes> tensors = seed_tensors();
  const auto header = io::safetensors_header(tensors, {{"format", "pt"}, {"step", "\t1\""}});
  Bytes file = header->bytes;
  for (const io::NamedBytes& t : tensors) file.append(t.bytes.size(), '\0');
  return {file, Bytes("\2\0\0\0\0\0\0\0{}", 10)};
}

// A call whose further arguments are right (fuzz/calls.h).
Bytes row(std::initializer_list<size_t> bytes) {
  Bytes out;
  for (const size_t b : bytes) out += static_cast<char>(b);
  out.resize(Calls::kRow, 1);
  return out;
}

size_t train_option_index(std::string_view name) {
  auto info = pyc_option_info{};
  info.struct_size = sizeof(info);
  size_t i = 0;
  while (pyc_train_option(i, &info, nullptr) == PYC_STATUS_OK && name != info.name) ++i;
  EXPECT_LT(i, pyc_train_option_count()) << name;
  return i;
}

// A layer, trained for some steps.
Bytes training_calls() {
  Bytes bytes = row({16, 1}) + row({20, train_option_index("loss"), 1, 1, 0}) + row({21});
  for (int i = 0; i < 4; ++i) bytes += row({22}) + row({23});
  return bytes + row({9}) + row({10}) + row({19});
}

// A graph compiled with a state, which is used between runs.
Bytes stateful_calls() {
  Bytes bytes = row({16, 0}) + row({18, 0, 1}) + row({9});
  for (int i = 0; i < 4; ++i) bytes += row({10}) + row({17}) + row({12});
  return bytes + row({19});
}

Seeds call_seeds() {
  std::mt19937_64 random(1);
  Seeds seeds;
  for (int i = 0; i < 240; ++i) {
    Bytes bytes(512 + static_cast<size_t>(random() % 1024), '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    seeds.push_back(bytes);
  }
  for (int i = 0; i < 60; ++i) {
    Bytes bytes = i % 2 == 0 ? training_calls() : stateful_calls();
    for (int n = i / 4; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 24);
    }
    seeds.push_back(bytes);
  }
  return seeds;
}

int64_t calls_made = 0;

void count_calls(const Bytes& bytes) { calls_made += fuzz_calls(bytes); }

Seeds onnx_seeds() {
  Seeds seeds;
  for (const auto& [name, bytes] : onnx::test::seeds()) seeds.push_back(bytes);
  return seeds;
}

struct Target {
  const char* name;
  Seeds (*seeds)();
  std::function<bool(const Bytes&)> run;  // whether it counts
  int repeats;                            // damaged copies of each seed, in a test
};

std::vector<Target> targets() {
  const auto always = [](void (*run)(const Bytes&)) {
    return [run](const Bytes& b) {
      run(b);
      return true;
    };
  };
  return {
      {"artifact", artifact_seeds, always([](const Bytes& b) { fuzz_artifact(b); }), 3000},
      {"text", text_seeds, always([](const Bytes& b) { fuzz_text(b); }), 100},
      {"npy", npy_seeds, always([](const Bytes& b) { fuzz_npy(b); }), 1000},
      {"npz", npz_seeds, always([](const Bytes& b) { fuzz_npz(b); }), 3000},
      {"safetensors", safetensors_seeds, always([](const Bytes& b) { fuzz_safetensors(b); }),
       10000},
      {"calls", call_seeds, always(count_calls), 10},
      {"compiled", onnx_seeds, fuzz_compiled, 2},
  };
}

// A few bytes changed, cut out or doubled.
Bytes damaged(Bytes bytes, std::mt19937_64& random) {
  for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
    const size_t at = random() % bytes.size();
    const size_t size = std::min<size_t>(random() % 16, bytes.size() - at);
    switch (random() % 5) {
      case 0:
        bytes[at] ^= static_cast<char>(1U << (random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random() % 256);
        break;
      case 2:
        bytes.erase(at, size);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random() % bytes.size(), size));
        break;
      default:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size,
                    random() % 2 == 0 ? '\xff' : '\0');
    }
  }
  return bytes;
}

class MoreFuzz : public testing::TestWithParam<Target> {};

TEST_P(MoreFuzz, SeedsAndDamagedSeeds) {
  const Target& target = GetParam();
  std::mt19937_64 random(7);
  for (const Bytes& seed : target.seeds()) {
    target.run(seed);
    for (int i = 0; i < target.repeats; ++i) target.run(damaged(seed, random));
  }
}

// The seeds of calls train and run with a state, or what is damaged of them would test little.
TEST(FuzzedCalls, ReachTheirModels) {
  Calls training(training_calls());
  (void)training.run();
  EXPECT_EQ(training.steps_done(), 4);
  Calls stateful(stateful_calls());
  (void)stateful.run();
  EXPECT_EQ(stateful.states(), 1U);
}

TEST_P(MoreFuzz, ForAsLongAsAsked) {
  const char* seconds = std::getenv("PYC_FUZZ_SECONDS");
  if (seconds == nullptr) GTEST_SKIP() << "PYC_FUZZ_SECONDS is not set";
  const Target& target = GetParam();
  const Seeds seeds = target.seeds();
  const char* given = std::getenv("PYC_FUZZ_SEED");
  std::mt19937_64 random(given == nullptr ? 1 : std::strtoull(given, nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(seconds));
  int64_t count = 0;
  while (std::chrono::steady_clock::now() < end) {
    count += target.run(damaged(seeds[random() % seeds.size()], random)) ? 1 : 0;
  }
  std::printf("executions=%lld corpus=%zu\n", static_cast<long long>(count), seeds.size());
  if (calls_made > 0) std::printf("calls=%lld\n", static_cast<long long>(calls_made));
}

TEST_P(MoreFuzz, WritesTheSeeds) {
  const char* folder = std::getenv("PYC_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "PYC_CORPUS is not set";
  int n = 0;
  for (const Bytes& seed : GetParam().seeds()) {
    std::ofstream(std::filesystem::path(folder) / ("seed" + std::to_string(n++)), std::ios::binary)
        << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MoreFuzz, testing::ValuesIn(targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pyc::test

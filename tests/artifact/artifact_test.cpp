// .pycm files: what comes back is what went in, equal programs give equal bytes, and no damaged or
// foreign file is taken.

#include "artifact/artifact.h"

#include <gtest/gtest.h>

#include <functional>

#include <cstring>
#include <random>

#include "artifact/format.h"
#include "backends/cpu/loader.h"
#include "base/files.h"
#include "base/hash_pieces.h"
#include "base/mapped_file.h"
#include "session/artifacts.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::artifact {
namespace {

constexpr std::string_view kMlp = R"(graph @mlp(%x: f32[16,64], %i: i64[8]) -> (%y, %g) {
  %w = const f32[64,32] random(seed=1, lo=-0.1, hi=0.1)
  %b = const f32[32] splat(0.5)
  %h = matmul(%x, %w)
  %a = add(%h, %b)
  %r = relu(%a)
  %y = softmax(%r) {axis=-1}
  %g = gather(%h, %i) {axis=0}
}
)";
// One state is written in place, the other copied home.
constexpr std::string_view kKept =
    R"(graph @kept(%x: f32[8], %a: f32[8], %b: f32[8]) -> (%an, %bn) {
  %an = add(%a, %x)
  %r = reverse(%b) {axes=[0]}
  %bn = add(%r, %x)
}
)";
const driver::CompileOptions kKeeps{.threads = 1, .states = {{"a", "an"}, {"b", "bn"}}};
constexpr std::string_view kTiny = "graph @t(%x: f32[4]) -> (%y) {\n  %y = relu(%x)\n}\n";

ir::VerifiedGraph parse(std::string_view text) {
  auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return test::verified(std::move(*graph));
}

Artifact make(std::string_view text, const driver::CompileOptions& options = {}) {
  auto made = session::compile_artifact(parse(text), options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return std::move(*made);
}

std::vector<std::byte> file_of(const Artifact& artifact) {
  auto pieces = encode(artifact);
  EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
  std::vector<std::byte> file;
  for (const SharedBytes& piece : *pieces) file.insert(file.end(), piece.begin(), piece.end());
  return file;
}

std::string message_of(std::vector<std::byte> file, Code code) {
  auto read = decode(std::move(file));
  EXPECT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), code) << read.status().to_string();
  return read.status().message();
}

// After a change of the header that is meant.
void seal(std::vector<std::byte>& file) {
  const Digest digest = hash128(std::span(file).first(kHeaderDigestAt));
  std::memcpy(&file[kHeaderDigestAt], &digest.hi, sizeof(uint64_t));
  std::memcpy(&file[kHeaderDigestAt + sizeof(uint64_t)], &digest.lo, sizeof(uint64_t));
}

void put_text(std::vector<std::byte>& file, size_t at, size_t room, std::string_view text) {
  std::memset(&file[at], 0, room);
  std::memcpy(&file[at], text.data(), text.size());
  seal(file);
}

uint64_t section_bytes(const std::vector<std::byte>& file, Section section) {
  uint64_t size = 0;
  std::memcpy(&size, &file[kTableAt + section * kTableEntryBytes + kSectionNameBytes],
              sizeof(size));
  return size;
}

// After a change of a section that is meant.
void seal_section(std::vector<std::byte>& file, Section section) {
  size_t at = kHeaderBytes;
  for (size_t s = 0; s < section; ++s) at += section_bytes(file, static_cast<Section>(s));
  const Digest digest = hash_pieces(std::span(file).subspan(at, section_bytes(file, section)));
  const size_t entry = kTableAt + section * kTableEntryBytes + 2 * sizeof(uint64_t);
  std::memcpy(&file[entry], &digest.hi, sizeof(uint64_t));
  std::memcpy(&file[entry + sizeof(uint64_t)], &digest.lo, sizeof(uint64_t));
  seal(file);
}

bool same_io(const std::vector<runtime::IoSpec>& a, const std::vector<runtime::IoSpec>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.bytes == y.bytes;
  });
}

bool same_fault(const Fault& a, const Fault& b) {
  const Accepted& x = a.accepted;
  const Accepted& y = b.accepted;
  return a.message == b.message && a.buffer == b.buffer && a.value == b.value &&
         a.dtype == b.dtype && a.shape == b.shape && x.first == y.first && x.last == y.last &&
         x.also == y.also && x.begin == y.begin && x.step == y.step;
}

bool same_step(const runtime::Step& x, const runtime::Step& y) {
  const auto same_ref = [](const runtime::BufferRef& a, const runtime::BufferRef& b) {
    return a.where == b.where && a.index == b.index && a.offset == b.offset;
  };
  if (x.copy() != nullptr || y.copy() != nullptr) {
    return x.copy() != nullptr && y.copy() != nullptr && x.name == y.name && x.place == y.place &&
           x.copy()->bytes == y.copy()->bytes &&
           std::ranges::equal(x.copy()->buffers, y.copy()->buffers, same_ref);
  }
  const runtime::Kernel& a = x.kernel();
  const runtime::Kernel& b = y.kernel();
  return x.name == y.name && x.place == y.place && x.bytes_moved == y.bytes_moved &&
         x.flops == y.flops && a.symbol == b.symbol && *a.object == *b.object &&
         a.launch == b.launch && std::ranges::equal(a.faults, b.faults, same_fault) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    same_ref);
}

TEST(Artifact, ComesBackAsItWasWritten) {
  const Artifact a = make(kMlp);
  auto read = decode(file_of(a));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  const Artifact& b = *read;
  EXPECT_EQ(b.version, version());
  ASSERT_EQ(b.program.places.size(), 1U);
  EXPECT_EQ(b.program.places[0].backend, "cpu");
  EXPECT_EQ(b.program.places[0].target, native_target(host_target()));
  EXPECT_EQ(b.program.places[0].space, "host");
  EXPECT_EQ(b.determinism, "balanced");
  EXPECT_EQ(b.fingerprint, a.fingerprint);
  EXPECT_EQ(b.memory.class_bytes, a.memory.class_bytes);
  EXPECT_EQ(b.memory.peak_bytes, a.memory.peak_bytes);
  EXPECT_EQ(b.program.arena_bytes, a.program.arena_bytes);
  EXPECT_EQ(b.program.scratch_bytes, a.program.scratch_bytes);
  EXPECT_TRUE(same_io(a.program.inputs, b.program.inputs));
  EXPECT_TRUE(same_io(a.program.outputs, b.program.outputs));
  ASSERT_EQ(b.program.parameters.size(), a.program.parameters.size());
  EXPECT_GT(b.program.parameters.size(), 0U);
  for (size_t p = 0; p < a.program.parameters.size(); ++p) {
    const auto& x = a.program.parameters[p];
    const auto& y = b.program.parameters[p];
    ASSERT_EQ(x.bytes, y.bytes);
    EXPECT_EQ(std::memcmp(x.data, y.data, static_cast<size_t>(x.bytes)), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(y.data) % kAlignment, 0U);
  }
  ASSERT_EQ(b.program.steps.size(), a.program.steps.size());
  bool faults = false;
  for (size_t s = 0; s < a.program.steps.size(); ++s) {
    EXPECT_TRUE(same_step(a.program.steps[s], b.program.steps[s])) << s;
    faults = faults || !b.program.steps[s].kernel().faults.empty();
  }
  EXPECT_TRUE(faults) << "gather checks its indices";
  ASSERT_EQ(b.log.size(), a.log.size());
  for (size_t d = 0; d < a.log.size(); ++d) {
    EXPECT_EQ(b.log[d].to_string(), a.log[d].to_string());
  }
}

TEST(Artifact, StatesAndCopiesComeBack) {
  const Artifact a = make(kKept, kKeeps);
  auto read = decode(file_of(a));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  const runtime::Program& b = read->program;
  ASSERT_EQ(b.states.size(), 2U);
  EXPECT_EQ(b.inputs.size(), 1U);
  EXPECT_TRUE(b.outputs.empty());
  for (size_t s = 0; s < b.states.size(); ++s) {
    EXPECT_TRUE(same_io({a.program.states[s].input}, {b.states[s].input})) << s;
    EXPECT_EQ(b.states[s].output, a.program.states[s].output);
  }
  EXPECT_EQ(read->memory.class_bytes, a.memory.class_bytes);
  ASSERT_EQ(b.steps.size(), a.program.steps.size());
  bool copies = false;
  for (size_t s = 0; s < b.steps.size(); ++s) {
    EXPECT_TRUE(same_step(a.program.steps[s], b.steps[s])) << s;
    copies = copies || b.steps[s].copy() != nullptr;
  }
  EXPECT_TRUE(copies);
}

TEST(Artifact, WrongStatesAndCopiesAreRefused) {
  const Artifact whole = make(kKept, kKeeps);
  const auto refusal = [&](const std::function<void(Artifact&)>& spoil) {
    Artifact a = whole;
    spoil(a);
    return session::from_artifact(std::move(a), 1).status().to_string();
  };
  const auto copy_of = [](Artifact& a) -> runtime::Copy& {
    return std::get<runtime::Copy>(a.program.steps.back().work);
  };
  EXPECT_EQ(refusal([](Artifact&) {}), "ok");
  EXPECT_EQ(refusal([&](Artifact& a) { copy_of(a).buffers[1].index = 2; }),
            "internal: program: step 'copy.bn': buffer 1 does not exist");
  EXPECT_EQ(refusal([&](Artifact& a) { copy_of(a).bytes = 33; }),
            "internal: program: step 'copy.bn': its buffers cannot be copied");
  EXPECT_EQ(refusal([&](Artifact& a) { a.program.states[0].input.bytes = 64; }),
            "internal: program: state 'a': its shape does not have 64 bytes");
  // A memory account that does not tell of them.
  Artifact silent = whole;
  silent.memory.class_bytes[static_cast<size_t>(BufferClass::kState)] = 0;
  EXPECT_EQ(session::load_artifact(std::move(silent), {.threads = 1}).status().to_string(),
            "internal: memory of the states: planned 0 bytes, allocated 128");
}

TEST(Artifact, RebuildIsByteIdentical) {
  const std::vector<std::byte> once = file_of(make(kMlp));
  EXPECT_EQ(once, file_of(make(kMlp)));
  auto read = decode(once);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(once, file_of(*read)) << "what was read is written the same";
}

std::vector<std::string> digests(runtime::Model& model) {
  auto data = tooling::SeededRun::create(model, 1);
  EXPECT_TRUE(data.ok());
  const Status status = model.run(data->inputs(), data->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  std::vector<std::string> out;
  for (size_t i = 0; i < model.outputs().size(); ++i) out.push_back(data->digest(i).hex());
  return out;
}

TEST(Artifact, RunsWithTheBitsOfACompiledModel) {
  auto compiled = session::compile(parse(kMlp), {});
  ASSERT_TRUE(compiled.ok());
  const std::vector<std::string> expected = digests(**compiled);
  const std::vector<std::byte> file = file_of(make(kMlp));
  for (const int threads : {0, 1, 3}) {
    auto loaded = session::load_artifact(file, {.threads = threads});
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_EQ(digests(*loaded->model), expected);
    const auto& log = loaded->model->decisions();
    EXPECT_EQ(log.back().reason, "compiled_ahead");
  }
  driver::CompileOptions one;
  one.threads = 3;
  auto same = session::compile(parse(kMlp), one);
  auto loaded = session::load_artifact(file, one);
  ASSERT_TRUE(same.ok() && loaded.ok());
  EXPECT_EQ(loaded->model->memory().scratch_bytes, (*same)->memory().scratch_bytes);
  EXPECT_EQ(loaded->model->memory().measured_arena_bytes, (*same)->memory().measured_arena_bytes);
}

TEST(Artifact, AMappedFilesWeightsAreUsedInPlace) {
  const TempFolder folder;
  const std::string path = folder.file("m.pycm");
  ASSERT_TRUE(session::write_artifact(make(kMlp), path).ok());
  auto file = map_file(path);
  ASSERT_TRUE(file.ok());
  auto read = decode(*file);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  for (const runtime::Parameter& p : read->program.parameters) {
    EXPECT_GE(p.data, file->data());
    EXPECT_LE(static_cast<const std::byte*>(p.data) + p.bytes, file->end());
  }
}

TEST(Artifact, BytesAtAnyAddressAreTaken) {
  const std::vector<std::byte> file = file_of(make(kMlp));
  for (const size_t shift : {1, 8, 63}) {
    auto moved = std::make_shared<std::vector<std::byte>>(file.size() + shift);
    std::copy(file.begin(), file.end(), moved->begin() + static_cast<std::ptrdiff_t>(shift));
    const SharedBytes bytes(moved, std::span(*moved).subspan(shift));
    EXPECT_TRUE(session::load_artifact(bytes, {}).ok());
  }
}

TEST(Artifact, EveryFlippedByteIsRefused) {
  const std::vector<std::byte> file = file_of(make(kTiny));
  for (size_t i = 0; i < file.size(); ++i) {
    for (const std::byte mask : {std::byte{1} << (i % 8), std::byte{0xFF}}) {
      std::vector<std::byte> damaged = file;
      damaged[i] ^= mask;
      const auto read = decode(std::move(damaged));
      ASSERT_FALSE(read.ok()) << "byte " << i;
      const Code code = read.status().code();
      ASSERT_TRUE(code == Code::kParseError || code == Code::kUnsupported) << "byte " << i;
      ASSERT_FALSE(read.status().message().empty());
    }
  }
}

TEST(Artifact, EveryCutIsRefused) {
  const std::vector<std::byte> file = file_of(make(kTiny));
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string message = message_of(
        {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}, Code::kParseError);
    const char* expected = size < kMark.size() ? "not an artefact" : "cut off";
    ASSERT_NE(message.find(expected), std::string::npos) << size << ": " << message;
  }
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  EXPECT_NE(message_of(longer, Code::kParseError).find("expected"), std::string::npos);
}

TEST(Artifact, EachKindOfRefusalSaysWhatItIs) {
  const std::vector<std::byte> file = file_of(make(kTiny));
  std::vector<std::byte> other = file;
  other[kFormatAt] = std::byte{99};
  EXPECT_NE(message_of(other, Code::kUnsupported)
                .find("format 99, this PyC reads format " + std::to_string(kFormat)),
            std::string::npos);
  other[kFormatAt] = std::byte{3};  // before programs had states
  EXPECT_EQ(message_of(other, Code::kUnsupported),
            "the artefact has format 3, this PyC reads format 8: compile the model again");
  other = file;
  put_text(other, kVersionAt, kVersionBytes, "99.1.2");
  EXPECT_NE(message_of(other, Code::kUnsupported).find("made by PyC 99.1.2"), std::string::npos);
  other = file;
  other.back() ^= std::byte{1};
  EXPECT_NE(message_of(other, Code::kParseError).find("the checksum of section"),
            std::string::npos);
  // A store that has checked all of the bytes itself is believed.
  EXPECT_TRUE(decode(other, Checksums::kDone).ok());
  other = file;
  other[kTableAt] ^= std::byte{1};
  EXPECT_NE(message_of(other, Code::kParseError).find("header's checksum"), std::string::npos);
}

TEST(Artifact, CodeOfAnotherMachineIsRefusedByName) {
  const bool arm = host_target().arch == "aarch64";
  const std::string foreign = arm ? "x86_avx2" : "aarch64_neon";
  driver::CompileOptions options;
  options.target = foreign;
  const auto loaded = session::load_artifact(file_of(make(kTiny, options)), {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::kUnsupported);
  EXPECT_NE(loaded.status().message().find("'" + foreign + "'"), std::string::npos);

  TargetInfo machine;
  machine.arch = "x86_64";
  machine.has_avx2 = machine.has_fma = machine.has_f16c = machine.has_bmi = true;
  EXPECT_NE(cpu::check_target("x86_avx512", machine).message().find("it has no avx512"),
            std::string::npos);
  EXPECT_TRUE(cpu::check_target("x86_avx2", machine).ok());
  EXPECT_EQ(cpu::check_target("z80", machine).code(), Code::kUnsupported);
}

Status load(Artifact artifact) { return session::from_artifact(std::move(artifact), 1).status(); }

// Digests that fit prove nothing about who wrote the file: its content is checked all the same.
TEST(Artifact, SealedNonsenseIsNeverBelieved) {
  const std::vector<std::byte> files[] = {file_of(make(kMlp)), file_of(make(kKept, kKeeps))};
  std::mt19937_64 random(7);
  size_t refused = 0;
  constexpr size_t kTries = 20'000;
  for (size_t i = 0; i < kTries; ++i) {
    std::vector<std::byte> other = files[i % 2];
    const uint64_t size = section_bytes(other, kProgram);
    const size_t changes = 1 + random() % 4;
    for (size_t c = 0; c < changes; ++c) {
      other[kHeaderBytes + random() % size] = static_cast<std::byte>(random());
    }
    seal_section(other, kProgram);
    auto read = decode(std::move(other));
    if (!read.ok() || !load(std::move(*read)).ok()) ++refused;
  }
  EXPECT_GT(refused, kTries / 10);
}

TEST(Artifact, TheReferencesProgramsAreFilesToo) {
  const driver::CompileOptions reference{.device = "reference"};
  auto compiled = session::compile(parse(kMlp), reference);
  ASSERT_TRUE(compiled.ok());
  const std::vector<std::string> expected = digests(**compiled);
  const Artifact made = make(kMlp, reference);
  EXPECT_EQ(made.program.places[0].backend, "reference");
  EXPECT_EQ(made.program.places[0].target, "");
  const std::vector<std::byte> file = file_of(made);
  for (const char* device : {"cpu", "reference"}) {
    auto loaded = session::load_artifact(file, {.device = device, .threads = 2});
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_EQ(loaded->model->program().places[0].backend, "reference");
    EXPECT_EQ(digests(*loaded->model), expected);
    EXPECT_EQ(loaded->model->decisions().back().chosen, "reference");
  }
  driver::CompileOptions named = reference;
  named.target = "x86_avx2";
  EXPECT_EQ(session::compile_artifact(parse(kTiny), named).status().code(), Code::kUnsupported);
}

TEST(Artifact, OfADeviceThatDoesNotRunIsRefusedByName) {
  const auto made = session::compile_artifact(parse(kTiny), {.device = "null"});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  EXPECT_TRUE(made.status().message().starts_with("device 'null'")) << made.status().message();
  Artifact artifact;
  artifact.program.places = {{.backend = "cpu"}};
  artifact.program.steps.emplace_back();
  artifact.program.steps[0].name = "g7";
  EXPECT_EQ(encode(artifact).status().message(), "program: step 'g7': no code");
}

// What a file may say of engines, places and launches, and what becomes of it.
TEST(Artifact, ProgramsThatNoEngineHereRunsAreRefused) {
  struct Spoilt {
    const char* device;
    void (*spoil)(runtime::Program& program);
    Code code;
    const char* message;
  };
  const Spoilt files[] = {
      {"cpu", [](runtime::Program& p) { p.places[0].backend = "abacus"; }, Code::kUnsupported,
       "the program needs the engine 'abacus', which is not here; there are: cpu, cuda, reference, "
       "null"},
      {"cpu", [](runtime::Program& p) { p.places[0].backend = "null"; }, Code::kUnsupported,
       "device 'null' computes nothing"},
      {"cpu", [](runtime::Program& p) { p.places[0].target = "z80"; }, Code::kUnsupported,
       "the program holds code for 'z80'"},
      {"cpu", [](runtime::Program& p) { p.places.push_back(p.places[0]); }, Code::kUnsupported,
       "the program runs at 2 places"},
      {"cpu", [](runtime::Program& p) { p.places[0].backend = "reference"; }, Code::kParseError,
       "step 'g0': 1:1"},
      {"reference", [](runtime::Program& p) { p.places[0].backend = "cpu"; }, Code::kParseError,
       "step 'g0': not a well-formed relocatable ELF object"},
      {"cpu", [](runtime::Program& p) { p.steps[0].kernel().launch.resize(3); }, Code::kParseError,
       "step 'g0': its launch has 3 bytes, expected 8"},
      {"reference", [](runtime::Program& p) { p.steps[0].kernel().launch.clear(); },
       Code::kParseError, "step 'g0': its launch has 0 bytes, expected 8"},
      {"cpu", [](runtime::Program& p) { p.steps[0].kernel().symbol = "main"; }, Code::kParseError,
       "step 'g0': its object has no function 'main'"},
      {"reference", [](runtime::Program& p) { p.steps[0].kernel().buffers.pop_back(); },
       Code::kParseError, "step 'g0': its kernel has 2 buffers and 0 bytes of scratch, the step 1"},
      {"reference",
       [](runtime::Program& p) {
         p.inputs[0].shape = {3};
         p.inputs[0].bytes = 12;
       },
       Code::kParseError,
       "step 'g0': buffer 0: has 4 elements of f32 in its kernel, 12 bytes are there"},
      {"reference",
       [](runtime::Program& p) {
         std::swap(p.steps[0].kernel().buffers[0].where, p.steps[0].kernel().buffers[1].where);
       },
       Code::kParseError, "step 'g0': buffer 1: is of another kind in its kernel"},
  };
  for (const Spoilt& spoilt : files) {
    Artifact artifact = make(kTiny, {.device = spoilt.device});
    spoilt.spoil(artifact.program);
    auto read = decode(file_of(artifact));
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    const Status status = load(std::move(*read));
    EXPECT_EQ(status.code(), spoilt.code) << status.to_string();
    EXPECT_TRUE(status.message().starts_with(spoilt.message)) << status.message();
  }
}

// Found by its name, which stands before it: a step's place.
TEST(Artifact, AStepAtAnUnknownPlaceOrOfAnUnknownKindIsRefused) {
  Artifact artifact = make(kTiny);
  artifact.program.steps[0].name = "here is the step";
  const std::vector<std::byte> file = file_of(artifact);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const size_t name = text.find("here is the step");
  ASSERT_NE(name, std::string_view::npos);
  std::vector<std::byte> other = file;
  other[name + artifact.program.steps[0].name.size()] = std::byte{7};
  seal_section(other, kProgram);
  EXPECT_EQ(message_of(other, Code::kParseError),
            "the artefact is damaged: step 0 runs at place 7 of 1");
  other = file;
  other[name - sizeof(uint64_t) - 1] = std::byte{9};
  seal_section(other, kProgram);
  EXPECT_EQ(message_of(other, Code::kParseError), "the artefact is damaged: step 0 is of kind 9");
}

TEST(Artifact, WhatACompileDecidedCannotBeAskedForAgain) {
  const std::vector<std::byte> file = file_of(make(kTiny));
  const auto refusal = [&](const driver::CompileOptions& options) {
    const auto loaded = session::load_artifact(file, options);
    return loaded.ok() ? Status() : loaded.status();
  };
  EXPECT_EQ(refusal({.device = "reference"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(refusal({.lanes = 8}).code(), Code::kInvalidArgument);
  EXPECT_EQ(refusal({.determinism = driver::Determinism::kStrict}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(refusal({.determinism = driver::Determinism::kFast}).ok());
  EXPECT_EQ(refusal({.memory_budget = 1}).code(), Code::kBudgetExceeded);
  EXPECT_TRUE(refusal({.memory_budget = 1 << 20}).ok());
}

TEST(Artifact, UnknownTargetsAreListed) {
  driver::CompileOptions options;
  options.target = "z80";
  const auto made = session::compile_artifact(parse(kTiny), options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kUnknownOption);
  EXPECT_NE(made.status().message().find("x86_avx512"), std::string::npos);
}

}  // namespace
}  // namespace pyc::artifact

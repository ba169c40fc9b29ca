// Compiling ahead of time with the program: files that run without the compiler, and refusals.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/target_info.h"
#include "cli/json_output.h"
#include "cli/program.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

constexpr uint64_t kPlenty = 1 << 30;

TEST(ArtifactFiles, RunLikeTheModelTheyWereMadeFrom) {
  const TempFolder folder;
  for (const std::string name : {"mlp", "cnn", "transformer_block"}) {
    const std::string file = folder.file(name + ".pycm");
    const Json made = json_of("compile " + kModels + name + ".ir -o " + file);
    EXPECT_EQ(made["file_bytes"], std::filesystem::file_size(file));
    const Json compiled = json_of("run " + kModels + name + ".ir --seed 3");
    const Json loaded = json_of("run " + file + " --seed 3");
    EXPECT_EQ(loaded["outputs"], compiled["outputs"]);
    // Code for a named target need not be the code for this machine, and only a compile is kept.
    const auto of_runs = [](Json memory) {
      memory.erase("code_bytes");
      memory.erase("kept_program_bytes");
      return memory;
    };
    EXPECT_EQ(of_runs(loaded["memory"]), of_runs(compiled["memory"]));
    EXPECT_EQ(loaded["log"]["fingerprint"], compiled["log"]["fingerprint"]);
    const Json one = json_of("run " + file + " --seed 3 --threads 1");
    EXPECT_EQ(one["outputs"], compiled["outputs"]);
    const std::string again = folder.file("again.pycm");
    json_of("compile " + kModels + name + ".ir -o " + again);
    EXPECT_EQ(*read_file(file, kPlenty), *read_file(again, kPlenty)) << "not the same bytes";
  }
}

TEST(ArtifactFiles, AreShownAndMeasured) {
  const TempFolder folder;
  const std::string file = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + file).exit, 0);
  const Json shown = json_of("inspect " + file);
  EXPECT_EQ(shown["runs_here"], true);
  EXPECT_EQ(shown["target"], native_target(host_target()));
  EXPECT_EQ(shown["inputs"][0]["name"], "x");
  EXPECT_EQ(shown["outputs"][0]["name"], "probabilities");
  EXPECT_GT(shown["code_bytes"].get<int64_t>(), 0);
  EXPECT_TRUE(has(pyc("inspect " + file), "this machine runs it"));
  EXPECT_EQ(json_of("bench " + file + " --runs 2")["runs"], 2);
}

TEST(ArtifactFiles, EachRefusalHasItsWordsAndExitCode) {
  const TempFolder folder;
  const std::string file = folder.file("m.pycm");
  const std::string foreign = host_target().arch == "aarch64" ? "x86_avx512" : "aarch64_neon";
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + file + " --target " + foreign).exit, 0);
  const Outcome other = pyc("run " + file);
  EXPECT_EQ(other.exit, 5);
  EXPECT_TRUE(has(other, "'" + foreign + "', which this machine cannot run")) << other.text;
  EXPECT_TRUE(has(pyc("inspect " + file), "not this machine's"));

  ASSERT_EQ(pyc("compile " + kMlp + " -o " + file).exit, 0);
  const Outcome lanes = pyc("run " + file + " --lanes 8");
  EXPECT_EQ(lanes.exit, 2);
  EXPECT_TRUE(has(lanes, "lanes: an artefact is compiled already")) << lanes.text;
  EXPECT_EQ(pyc("run " + file + " --device reference").exit, 2);
  EXPECT_EQ(pyc("run " + file + " --memory-budget 10").exit, 6);
  std::filesystem::resize_file(file, 1000);
  const Outcome cut = pyc("run " + file);
  EXPECT_EQ(cut.exit, 3);
  EXPECT_TRUE(has(cut, file + ": the artefact is cut off")) << cut.text;

  const Outcome device = pyc("compile " + kMlp + " -o " + file + " --device null");
  EXPECT_EQ(device.exit, 5);
  EXPECT_TRUE(has(device, "device 'null' computes nothing")) << device.text;
  EXPECT_EQ(pyc("compile " + kMlp).exit, 2);
  EXPECT_EQ(pyc("compile " + kMlp + " -o " + folder.file("no/such/folder.pycm")).exit, 9);
}

TEST(ArtifactFiles, TheReferencesProgramsRunOnAnyMachineWithTheSameBits) {
  const TempFolder folder;
  const std::string file = folder.file("m.pycm");
  const Outcome made = pyc("compile " + kMlp + " -o " + file + " --device reference");
  ASSERT_EQ(made.exit, 0) << made.text;
  EXPECT_TRUE(has(made, "for any machine with the device reference")) << made.text;
  EXPECT_TRUE(has(pyc("inspect " + file), "(this machine runs it)"));
  const Json from_file = json_of("run " + file);
  const Json compiled = json_of("run " + kMlp + " --device reference");
  EXPECT_EQ(from_file["outputs"], compiled["outputs"]);
  EXPECT_EQ(pyc("run " + file + " --device reference").exit, 0);
}

// Which libraries the program maps, told by the dynamic linker itself.
std::string libraries_of(const std::string& arguments, const TempFolder& folder) {
  const std::string log = folder.file("libraries");
  const Outcome o = shell("LD_DEBUG=files LD_DEBUG_OUTPUT=" + log + " " + std::string(PYC_CLI) +
                          " " + arguments + " 2>&1");
  EXPECT_EQ(o.exit, 0) << o.text;
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (!entry.path().filename().string().starts_with("libraries")) continue;
    all += *read_file(entry.path().string(), kPlenty);
    std::filesystem::remove(entry.path());
  }
  EXPECT_NE(all.find("libstdc++"), std::string::npos) << "the linker says nothing here";
  return all;
}

TEST(ArtifactFiles, RunWithoutLlvm) {
  const TempFolder folder;
  const std::string file = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + file).exit, 0);
  for (const std::string command : {"run ", "inspect "}) {
    const std::string mapped = libraries_of(command + file, folder);
    EXPECT_EQ(mapped.find("LLVM"), std::string::npos) << command;
    EXPECT_EQ(mapped.find("pyc_llvm"), std::string::npos) << command;
  }
  EXPECT_EQ(libraries_of("run " + kMlp + " --device reference", folder).find("LLVM"),
            std::string::npos);
  EXPECT_NE(libraries_of("run " + kMlp, folder).find("libLLVM"), std::string::npos);
}

// The program alone in a folder, and as an installation lays it out.
TEST(ArtifactFiles, TheCodeGeneratorIsFoundBesideTheProgramOrRefusedWithACure) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  fs::create_directories(folder.file("bin"));
  fs::create_directories(folder.file("lib"));
  const std::string program = folder.file("bin/pyc");
  fs::copy_file(PYC_CLI, program);
  const std::string file = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + file).exit, 0);

  const Outcome alone = shell(program + " run " + kMlp + " 2>&1");
  EXPECT_EQ(alone.exit, 5);
  EXPECT_TRUE(has(alone, "the code generator cannot be loaded")) << alone.text;
  EXPECT_TRUE(has(alone, "put libpyc_llvm.so beside the program")) << alone.text;
  EXPECT_EQ(shell(program + " run " + kMlp + " --device reference").exit, 0);
  EXPECT_EQ(shell(program + " run " + file).exit, 0);

  const std::string library = folder.file("lib/libpyc_llvm.so");
  std::ofstream(library) << "no library";
  EXPECT_EQ(shell(program + " run " + kMlp + " 2>&1").exit, 5);
  fs::remove(library);
  fs::copy_file(std::string(PYC_BINARY_DIR) + "/libpyc_llvm.so", library);
  EXPECT_EQ(shell(program + " run " + kMlp).exit, 0);
  fs::rename(library, folder.file("bin/libpyc_llvm.so"));
  EXPECT_EQ(shell("cd " + folder.file("bin") + " && ./pyc run " + kMlp).exit, 0);
}

TEST(ArtifactFiles, CacheOnDiskIsListedCheckedAndCleared) {
  const TempFolder folder;
  const std::string cache = " --cache-dir " + folder.path();
  const auto disk = [](const Json& report) {
    std::string text;
    for (const Json& d : report["log"]["decisions"]) {
      if (d["what"] == "disk_cache") text += d["chosen"].get<std::string>();
    }
    return text;
  };
  EXPECT_EQ(json_of("cache list" + cache)["entries"].size(), 0u);
  const Json first = json_of("run " + kMlp + cache);
  EXPECT_EQ(disk(first), "written");
  const Json second = json_of("run " + kMlp + cache);
  EXPECT_EQ(disk(second), "loaded");
  EXPECT_EQ(second["outputs"], first["outputs"]);
  EXPECT_EQ(json_of("run " + kMlp + " --cache-dir \"\"")["outputs"], first["outputs"]);
  const Json by_environment = Json::parse(
      shell("PYC_CACHE_DIR=" + folder.path() + " " + PYC_CLI + " run " + kMlp + " --json").text);
  EXPECT_EQ(disk(by_environment), "loaded");

  const Json list = json_of("cache list" + cache);
  ASSERT_EQ(list["entries"].size(), 1u);
  EXPECT_EQ(list["bytes"], list["entries"][0]["bytes"]);
  const Json stats = json_of("cache stats" + cache);
  EXPECT_EQ(stats["count"], 1);
  EXPECT_EQ(stats["bytes"], list["bytes"]);
  EXPECT_TRUE(has(pyc("cache stats" + cache), "1 entries"));
  EXPECT_EQ(json_of("cache verify" + cache)["unusable"], 0);
  std::filesystem::resize_file(folder.file(list["entries"][0]["file"]), 300);
  const Outcome damaged = pyc("cache verify" + cache);
  EXPECT_EQ(damaged.exit, 1);
  EXPECT_TRUE(has(damaged, "cut off")) << damaged.text;
  EXPECT_EQ(json_of("cache clear" + cache)["removed"], 1);
  EXPECT_TRUE(has(pyc("cache list" + cache), "0 entries"));
  EXPECT_EQ(pyc("cache lst" + cache).exit, 2);
  EXPECT_EQ(pyc("cache list").exit, 2);
}

}  // namespace
}  // namespace pyc::test

// An NVRTC that compiles for the host: g++ with host_model.h in front of the text. Objects are kept
// by what they were made of, in the folder PYC_CUDA_OBJECTS of the build.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace pyc::cuda {

// By the name that its callers have for it: sanitizers compare types of functions by name.
struct ProgramTag {
  std::string text;
  std::string object;
  std::string log;
};

}  // namespace pyc::cuda

namespace {

namespace fs = std::filesystem;

using Program = pyc::cuda::ProgramTag;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

uint64_t hash_of(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

// Runs the compiler with what all calls share; its messages go to a file.
int run_compiler(const std::vector<std::string>& own, const std::string& log) {
  std::vector<std::string> words = {
      PYC_HOST_COMPILER,   "-std=c++17",          "-O1", "-w", "-fPIC",
      "-ffp-contract=off", "-fno-strict-aliasing"};
  words.insert(words.end(), own.begin(), own.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int started =
      posix_spawnp(&child, PYC_HOST_COMPILER, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// The model, precompiled: a kernel takes a fifth of a second instead of half of one.
std::string precompiled_model(const fs::path& folder, const std::string& model) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string header = (folder / (std::to_string(hash_of(model)) + ".h")).string();
  std::error_code error;
  if (fs::exists(header + ".gch")) return header;
  const std::string own = header + "." + std::to_string(getpid());
  std::ofstream(own) << model;
  fs::rename(own, header, error);
  const int status = run_compiler({"-x", "c++-header", header, "-o", own}, own + ".log");
  fs::remove(own + ".log", error);
  if (status == 0) fs::rename(own, header + ".gch", error);
  return header;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{text, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  static std::atomic<int> count{0};
  const fs::path folder = PYC_CUDA_OBJECTS;
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string model = read_all(PYC_HOST_MODEL);
  const uint64_t key = hash_of(model + PYC_HOST_COMPILER + program->text);
  const std::string kept = (folder / (std::to_string(key) + ".so")).string();
  if (!fs::exists(kept)) {
    const std::string own = kept + "." + std::to_string(getpid()) + "." + std::to_string(count++);
    std::ofstream(own + ".cpp") << program->text;
    const int status = run_compiler({"-shared", "-x", "c++", "-include",
                                     precompiled_model(folder, model), own + ".cpp", "-o", own},
                                    own + ".log");
    program->log = read_all(own + ".log");
    fs::remove(own + ".log", error);
    if (status != 0) return 6;
    fs::remove(own + ".cpp", error);
    fs::rename(own, kept, error);
  }
  program->object = read_all(kept);
  return program->object.empty() ? 6 : 0;
}
int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->object.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* image) {
  memcpy(image, program->object.data(), program->object.size());
  return 0;
}
int nvrtcGetPTXSize(Program*, size_t*) { return 1; }
int nvrtcGetPTX(Program*, char*) { return 1; }

}  // extern "C"

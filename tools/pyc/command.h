#pragma once

// What a command of the program is, and what commands share. Commands see PyC through its C ABI
// alone; every refusal travels as pyc::Error and ends in main.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <pyc/pyc.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyc::tool {

using Json = nlohmann::ordered_json;

// Exit codes besides those of errors (docs/cli.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitDifferent = 1;  // compare found a difference, doctor something broken
int exit_code(pyc_status status);

// The options of one command, declared by it and filled from the command line.
class Options {
 public:
  Options(const std::string& command, const std::string& summary, const std::string& examples);
  ~Options();

  void positional(const std::string& name, std::string& value, const std::string& help);
  void text(const std::string& name, std::string& value, const std::string& help);
  // May be given several times; `greedy`: or once with several values.
  void list(const std::string& name, std::vector<std::string>& values, const std::string& help,
            bool greedy = false);
  // What stands behind `--`.
  void rest(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // One of the given words; a near one is suggested otherwise.
  void choice(const std::string& name, std::string& value, const std::string& help,
              const std::vector<std::string>& words);
  void integer(const std::string& name, int64_t& value, const std::string& help, int64_t lo,
               int64_t hi);
  void number(const std::string& name, double& value, const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);

  // False: help was asked for and shown. Throws PYC_STATUS_UNKNOWN_OPTION or _INVALID_ARGUMENT.
  bool parse(std::vector<std::string> arguments);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;   // one line
  virtual std::string examples() const = 0;  // lines as a user types them
  virtual void declare(Options& options) = 0;
  virtual int run() = 0;  // the exit code

  bool json = false;
};

// One maker per file of a command.
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_dump();
std::unique_ptr<Command> make_opt();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_conformance();
std::unique_ptr<Command> make_reduce();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_ops();
std::unique_ptr<Command> make_capabilities();

// The model and the options that every command that compiles takes.
struct ModelOptions {
  std::string model;
  CompileOptions compile;

  void declare(Options& options, bool device = true);
  // To be called first: puts what was parsed into `compile`.
  void finish();

 private:
  int64_t threads_ = 0;
  int64_t lanes_ = 0;
  int64_t memory_budget_ = 0;
  std::string determinism_ = "balanced";
  bool no_fuse_ = false;
  bool no_reuse_ = false;
};

// Inputs for a model: files named by the user, the rest from a seed.
struct InputOptions {
  std::vector<std::string> files;  // name=path
  int64_t seed = 0;

  void declare(Options& options);
  std::vector<Tensor> make(const Model& model) const;
};

std::vector<std::string> device_names();
std::vector<pyc_tensor_view> views_of(const std::vector<Tensor>& tensors);

// Text for people.
std::string shape_text(const int64_t* shape, int64_t rank);  // "[2,3]"
std::string type_text(const pyc_value_info& info);           // "f32[2,3]"
std::string bytes_text(int64_t bytes);
// ", did you mean 'x'?", or "".
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

// Shows on a terminal, after a second, what is being done and since when; gone when it ends.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pyc::tool

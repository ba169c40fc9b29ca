#pragma once

// What a command of the program is, and what commands share. Commands see PyC through its C ABI
// alone; every refusal travels as pyc::Error and ends in main.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <pyc/pyc.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json.h"

namespace pyc::tool {

// Exit codes besides those of errors (docs/cli.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitDifferent =
    1;  // compare found a difference, doctor or cache something broken
int exit_code(pyc_status status);

// An option as completions and the manual show it.
struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  std::vector<std::string> words = {};  // what it takes, where that is a choice
  bool takes_value = true;
  bool repeated = false;
};

// The options of one command, declared by it and filled from the command line.
class Options {
 public:
  Options(const std::string& command, const std::string& summary, const std::string& examples);
  ~Options();
  Options(Options&&) noexcept;

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
  static constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  static constexpr double kMostSeconds = 1e9;  // which fit into nanoseconds
  // From 0 on.
  void number(const std::string& name, double& value, const std::string& help, double hi = kNoEnd);
  void flag(const std::string& name, bool& value, const std::string& help);

  // What was declared, but positional arguments.
  const std::vector<OptionText>& texts() const;

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
  bool quiet = false;
};

// All commands, in the order that help shows them in.
std::vector<std::unique_ptr<Command>> all_commands();
// The options of a command, those that all have included.
std::vector<OptionText> declared_options(Command& command);

// Arguments as other programs spell them (trtexec, benchmark_app, onnxruntime_perf_test) in words
// that the command has; `declared` are its options. docs/cli.md lists them.
std::vector<std::string> in_our_words(const std::vector<std::string>& arguments,
                                      const std::vector<std::string>& declared);

// One maker per file of a command.
std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_train();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_compile();
std::unique_ptr<Command> make_tune();
std::unique_ptr<Command> make_cache();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_report();
std::unique_ptr<Command> make_what_if();
std::unique_ptr<Command> make_dump();
std::unique_ptr<Command> make_opt();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_conformance();
std::unique_ptr<Command> make_reduce();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_ops();
std::unique_ptr<Command> make_options();
std::unique_ptr<Command> make_errors();
std::unique_ptr<Command> make_reasons();
std::unique_ptr<Command> make_replay();
std::unique_ptr<Command> make_capabilities();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_man();

struct InputOptions;

// The flags of options that the library lists.
class OptionFlags {
 public:
  void declare(Options& options, const pyc_option_info& option);
  // Calls `set` with the name and the value of each option, of a list once per item.
  void finish(const std::function<void(const std::string&, const std::string&)>& set) const;

 private:
  struct Flag;
  std::vector<std::shared_ptr<Flag>> flags_;
};

// Those of compile options.
class CompileFlags {
 public:
  // Declares the flag of every option that `wanted` takes.
  void declare(Options& options, const std::function<bool(const pyc_option_info&)>& wanted);
  // Puts what was given into `compile`.
  void finish(CompileOptions& compile) const;

 private:
  OptionFlags flags_;
};

// Sizes for what a model leaves open, for commands that compile nothing.
struct ShapeOptions {
  void declare(Options& options);
  // Puts what was parsed into `compile`.
  void finish(CompileOptions& compile) const { flags_.finish(compile); }

 private:
  CompileFlags flags_;
};

// The model and the options that every command that compiles takes.
struct ModelOptions {
  std::string model;
  CompileOptions compile;

  enum class Offer : uint8_t {
    kCompile,
    kNoDevice,  // the command chooses devices itself
    kAhead      // code for other machines too
  };
  void declare(Options& options, Offer offer = Offer::kCompile);
  // To be called first: puts what was parsed into `compile`, and the clauses of the contract.
  void finish();

 private:
  CompileFlags flags_;
  std::string contract_;
};

// "--memory-budget", "--no-fuse": how the program calls an option.
std::string flag_name(const pyc_option_info& option);
std::vector<pyc_option_info> compile_options();

// Inputs for a model: files named by the user, the rest from a seed. Sequences and optionals that
// no file gives are empty.
struct InputOptions {
  std::vector<std::string> files;  // name=path
  int64_t seed = 0;

  void declare(Options& options);
  // Reads the files; refuses names that the model has not, and notes on standard error what stands
  // in for inputs that are no tensors of numbers.
  void read(const ModelFile& file);
  // The value that a file gives the input, or null.
  const AnyValue* given(const std::string& name) const;
  std::vector<AnyValue> make(const Model& model) const;

 private:
  std::map<std::string, AnyValue> values_;
};

// Chooses shapes for what a model leaves open: what the options and the files of inputs say,
// else 1. Where a model takes no dims of 1 (a window larger than that), larger sizes are tried.
class ShapeChoice {
 public:
  // Chooses in `compile`. `inputs` may be null.
  ShapeChoice(const ModelFile& file, CompileOptions& compile, const InputOptions* inputs);

  // Whether some size was chosen by nobody.
  bool guessed() const { return !guesses_.empty(); }
  // Calls `attempt` with one choice after the other until none of its shapes contradict the model;
  // gives what it gives, and notes on standard error what was guessed.
  template <class Attempt>
  auto settle(Attempt attempt) -> decltype(attempt()) {
    for (size_t i = 0; i + 1 < choices_.size(); ++i) {
      choose(i);
      try {
        auto result = attempt();
        note();
        return result;
      } catch (const Error& e) {
        if (e.code() != PYC_STATUS_SHAPE_MISMATCH) throw;
      }
    }
    // The last is the first again: its message is the plainest.
    choose(choices_.size() - 1);
    auto result = attempt();
    note();
    return result;
  }

 private:
  // A dim nobody chose.
  struct Guess {
    std::string name;  // as the note calls it
    bool outermost = false;
    int64_t size = 1;
  };
  // The sizes of the guesses: of outermost dims, often batches, and of the others.
  struct Sizes {
    int64_t outermost;
    int64_t others;
  };

  void take(const std::string& name, const Shape& shape);
  bool is_given(const std::string& name) const;
  void list_guesses();
  void choose(size_t choice);
  void set_shape(const std::string& name, const Shape& shape);
  void note() const;

  const ModelFile& file_;
  CompileOptions& compile_;
  std::vector<std::pair<std::string, Shape>> given_;
  std::map<std::string, int64_t> known_;  // sizes by the dim's name
  std::map<std::string, Guess> guesses_;  // by the dim's name, or input and position
  std::vector<Sizes> choices_;
};

// A model ready to run, with a choice that it takes; open models have run once.
Model settled_model(const ModelFile& file, CompileOptions& compile, const InputOptions& inputs);
// The model as one graph.
Graph settled_graph(const ModelFile& file, CompileOptions& compile);
// The model as a .pycm file.
void compile_settled(const ModelFile& file, CompileOptions& compile, const std::string& path);
// The model as one graph with the shapes of `options`; nothing when parts of it are no tensor code.
std::optional<Graph> closed_graph(const ModelFile& file, const CompileOptions& options);

// --trace FILE: what the command compiles and runs, for Perfetto.
class TraceFlag {
 public:
  void declare(Options& options);
  // --trace-all, of commands that run what they compile.
  void declare_runs(Options& options);
  // To be called behind ModelOptions::finish and before anything is compiled.
  void begin(CompileOptions& compile);
  // From here on nothing is recorded.
  void stop();
  // Writes the file, if one is asked for.
  void write() const;
  // Says so where runs were passed over.
  void print() const;

 private:
  std::string path_;
  bool every_run_ = false;
  std::optional<Trace> trace_;
};

// Writes a file; `flag` is what named it.
void write_file(const std::string& flag, const std::string& path, const std::string& text);

// By name alone: no device is looked for, since a GPU's driver would take its time and survives no
// fork.
std::vector<std::string> device_names();
// Whether the file starts with these bytes.
bool starts_with(const std::string& path, std::string_view bytes);
std::vector<pyc_tensor_view> views_of(const std::vector<Tensor>& tensors);
// Of tensors of numbers alone, as models that are not open take them.
std::vector<pyc_tensor_view> views_of(const std::vector<AnyValue>& values);

// Text for people.
std::string shape_text(const int64_t* shape, int64_t rank);  // "[2,3]"
std::string type_text(const pyc_value_info& info);           // "f32[2,3]"
// What runs the artefact: "x86_avx2", "any machine with the device reference".
std::string machine_text(const pyc_artifact_info& info);
std::string bytes_text(int64_t bytes);
// ", did you mean 'x'?", or "".
std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

// Shows on standard error what is being done, since when and, where that is known, how far it has
// come and how long it will take: on a terminal a line from the first second on that goes when it
// ends, elsewhere one more line every five seconds. Commands that print JSON or are quiet show
// nothing.
class Progress {
 public:
  Progress(const Command& command, std::string what);
  ~Progress() { end(); }
  // Takes the line away: to be called before results are printed.
  void end();
  bool shown() const { return impl_ != nullptr; }
  // So much of it is done. Costs little and may be called often, by any thread.
  void part(double done, double all);
  // Takes the parts from the kernels that compiles with the options make.
  void watch(CompileOptions& compile);
  // What else there is to say, shown behind that from the next second on.
  void note(std::string how_far);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pyc::tool

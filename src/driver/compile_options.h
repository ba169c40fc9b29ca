#pragma once

// What a caller may choose about a compile. compile_options.inc is the table; this makes the struct
// of it, and lists its rows for those that go by names: the C ABI, the command line, the cache key.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace pyc {
class TraceLog;
}
namespace pyc::backends {
struct CodeStore;
}

namespace pyc::driver {

struct TuningTable;

enum class Determinism : uint8_t { kStrict, kBalanced, kFast };
// "strict", "balanced", "fast".
std::string_view determinism_name(Determinism level);
std::vector<std::string_view> determinism_names();

using Names = std::vector<std::string>;
using DimSizes = std::map<std::string, int64_t>;
using StatePairs = std::vector<std::pair<std::string, std::string>>;  // input, output
using InputShapes = std::map<std::string, std::vector<int64_t>>;

inline constexpr std::string_view kFallbackAllowed = "allow";
inline constexpr std::string_view kNoMatrixUnit = "none";
inline constexpr std::string_view kMemoryFirst = "memory_first";
inline constexpr std::string_view kLatencyFirst = "latency_first";
inline constexpr std::string_view kFastDev = "fast_dev";
inline constexpr std::string_view kMaxPerf = "max_perf";
inline constexpr std::string_view kRailsOff = "off";
inline constexpr std::string_view kRailsShadow = "shadow";
inline constexpr int64_t kDefaultLoopLimit = int64_t{1} << 24;

// A clause of a contract (driver/contract.h).
struct ContractClause {
  std::string name;  // of an option
  std::string text;  // its value
};

struct CompileOptions {
#define PYC_OPTION(type, field, initial, ...) type field = initial;
#include "driver/compile_options.inc"
#undef PYC_OPTION
  // Names of the rows that set_option gave a value, be it their default.
  Names asked = {};
  // What the programs of one open graph share (backends::Backend::make_store); null: the program
  // stands alone. Never part of a key: code from it has the same bits.
  std::shared_ptr<backends::CodeStore> store = {};
  // Whether parameters may stay in a file for the memory budget, and where those that are in none
  // yet are put: a folder, or "" for a program that becomes an artefact, which is that file. Never
  // part of a key, as the budget is.
  bool stream_parameters = true;
  std::string stream_folder = {};
  // What contracts asked for.
  std::vector<ContractClause> clauses = {};
  // Where compiles and the runs of what they make are recorded; null: nowhere.
  std::shared_ptr<TraceLog> trace = {};
  // What was measured on this machine (driver/tuning.h); null: nothing is known.
  std::shared_ptr<const TuningTable> tuning = {};
  // Told after each kernel that was made how many of how many that are, by any thread.
  std::function<void(int64_t done, int64_t all)> progress = {};
};

// Fields of a row; compile_options.inc says what each means.
enum class OptionKind : uint8_t {
  kSwitch,   // "on" or "off"
  kInteger,  // decimal
  kWord,     // one of its words
  kText,
  kList,  // set once per item
};
enum class OptionEffect : uint8_t { kProgram, kLoad, kRun };
enum class OptionBits : uint8_t { kSameBits, kOtherBits };
enum class OptionOffer : uint8_t { kEverywhere, kAhead, kLibrary, kInternal };

// What values a row takes.
struct OptionAccepts {
  int64_t lo = INT64_MIN;
  int64_t hi = INT64_MAX;
  std::vector<int64_t> among = {};
  std::vector<std::string_view> (*words)() = nullptr;
  std::string_view form = {};
};

struct OptionRow {
  std::string_view name;
  OptionKind kind;
  OptionAccepts accepts;
  OptionEffect effect;
  OptionBits bits;
  OptionOffer offer;
  std::string_view help;
  // The value as text; items of a list are lines.
  std::string (*text)(const CompileOptions& options);
  // From text; a list gets one more item. kInvalidArgument or kUnknownOption, naming the option.
  Status (*set)(const OptionRow& row, CompileOptions& options, std::string_view text);
  // The row's default.
  void (*reset)(CompileOptions& options);
  // That the value is one the row accepts: fields can be written without set.
  Status (*check)(const OptionRow& row, const CompileOptions& options);
};

// All rows, in the table's order.
std::span<const OptionRow> option_rows();
// kUnknownOption with the nearest name; internal rows have none.
Result<const OptionRow*> find_option(std::string_view name);

// Sets a row from text (see OptionRow::set) and notes that it was asked for; the opposite.
Status set_option(CompileOptions& options, std::string_view name, std::string_view text);
Status reset_option(CompileOptions& options, std::string_view name);
// Whether the caller chose the value: set_option did, or it is not the default.
bool was_asked(const CompileOptions& options, std::string_view name);

// That every option has a value its row accepts.
Status check_options(const CompileOptions& options);
// "name=value" of every row that is part of the program, in one line.
std::string options_key(const CompileOptions& options);
// The same of all rows that differ from their defaults; "defaults" when none does.
std::string options_summary(const CompileOptions& options);
// Rows decided by a compile that differ from their defaults: what a program that was compiled
// already cannot take.
std::vector<std::string_view> decided_options(const CompileOptions& options);

}  // namespace pyc::driver

#pragma once

// What was measured of kernels on one machine, and which of them it is best to choose there. The
// tuner (tune/tune.h) writes it into a store, compiles read it from there. A choice may change
// speed, never bits: a kernel is only named here, and must be one that selection could have chosen.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/decision.h"
#include "base/status.h"
#include "base/store.h"
#include "driver/select.h"

namespace pyc::driver {

// A candidate, in nanoseconds of one run.
struct MeasuredKernel {
  std::string name;
  int64_t predicted_ns = 0;
  int64_t best_ns = 0;  // the fastest run; 0: it was not timed
  int64_t p50_ns = 0;
  int64_t p95_ns = 0;
  bool wrong = false;  // its results were not the reference's

  bool operator==(const MeasuredKernel&) const = default;
};

struct TunedGroup {
  std::string untuned;  // what selection chose by its estimate
  std::string chosen;
  std::vector<MeasuredKernel> kernels;

  const MeasuredKernel* find(std::string_view name) const;
  bool operator==(const TunedGroup&) const = default;
};

// What the machine reaches with all threads; all 0: not probed.
struct MachineProbe {
  double flops_per_ns = 0.0;
  double bytes_per_ns = 0.0;
  double step_ns = 0.0;  // of a step that does nothing to speak of

  bool operator==(const MachineProbe&) const = default;
};

struct TuningTable {
  std::map<int, MachineProbe> probes;        // by the number of threads
  std::map<std::string, TunedGroup> groups;  // by group_key

  // As text. Equal tables have equal texts; parse(print()) is the table. kParseError names the
  // line.
  std::string print() const;
  static Result<TuningTable> parse(std::string_view text);
  bool operator==(const TuningTable&) const = default;
};

// All that the candidates of a group and their times follow from on one machine, as a digest.
std::string group_key(const ir::Graph& graph, const lower::Group& group,
                      const backends::BackendOptions& options);

// A table in a store: one for each machine, backend, target and compiler.
class TuningStore {
 public:
  // `compiler` is the version whose kernels were measured.
  TuningStore(const Store& store, const backends::Backend& backend, std::string_view compiler);

  // Empty when there is none; `problem` then says what is wrong with the one there is, or is "".
  TuningTable read(std::string* problem = nullptr) const;
  // Puts the groups and probes into what the store has by now.
  Status add(const TuningTable& more) const;

 private:
  Store store_;
  std::string key_;
};

// Takes the tuned candidates into the selection and the measured times into its decisions. A group
// whose tuned kernel cannot be chosen keeps what it has, and its decision says so.
void apply_tuning(const TuningTable& table, const lower::LoweredGraph& lowered,
                  const backends::Backend& backend, const backends::BackendOptions& options,
                  Selection& selection);

}  // namespace pyc::driver

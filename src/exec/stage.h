#pragma once

// What the executor keeps: programs by the signature they were made for, and what follows each.

#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "exec/frame.h"
#include "runtime/model.h"

namespace pyc::exec {

// What is done for one signature: code, then host functions. It is listed from the moment its graph
// is closed, so that runs which need the same wait for it and all others do not; `code` is there
// once it is ready.
struct StageProgram {
  enum class Condition : uint8_t { kMaking, kReady, kFailed };
  Signature signature;
  std::vector<std::pair<OpenId, DynValue>> pinned;  // contents that entered the graph
  open::Segment segment;
  std::string text;  // of its graph, where texts are kept
  SegmentCode code;  // without outputs when there is nothing to compute
  std::unique_ptr<Stage> next;
  Condition condition = Condition::kMaking;
  Status failure;                           // why it failed
  bool interpreted = false;                 // in a storm: code may be made when it is over
  int64_t used = 0;                         // by the executor's clock
  std::optional<MemoryAccount::Held> held;  // what its model and the pinned contents take

  bool fits(const Signature& types, const Frame& frame) const;
};

struct Stage {
  using Programs = std::list<std::shared_ptr<StageProgram>>;

  int64_t compiled = 0;
  int64_t storm_ns = 0;  // time of compiles beyond the storm limit
  int64_t run_ns = 0;    // time of its segments' runs
  bool told = false;     // that it is a storm

  // Whether code is made for one more signature. Beyond the limit compiling may take as much time
  // as running, no more: what is not compiled is interpreted, and a slow interpreter pays for code.
  bool may_compile() const { return compiled < Executor::kStormLimit || storm_ns <= run_ns; }

  // The one used last first.
  const Programs& programs() const { return programs_; }
  // The program for this frame, now the one used last; null: there is none.
  std::shared_ptr<StageProgram> find(const Signature& types, const Frame& frame);
  // As the one used last. Where there are more than are kept, the one used longest ago goes.
  void add(std::shared_ptr<StageProgram> program);
  // Nothing if it is not there any more.
  void remove(const std::shared_ptr<StageProgram>& program);
  void add_memory(runtime::MemoryReport& sum) const;

 private:
  bool keeps_all() const;

  Programs programs_;
  std::unordered_multimap<uint64_t, Programs::iterator> by_types_;  // by a hash of signatures
};

}  // namespace pyc::exec

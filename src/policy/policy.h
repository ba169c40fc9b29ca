#pragma once

// A policy library (pyc/policy.h), asked in this process or in a child. Answers are as the library
// gave them: who uses one checks it.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "pyc/policy.h"

namespace pyc::policy {

struct ValueFacts {
  std::string name;
  std::string op;
  int64_t bytes = 0;
  int64_t readers = 0;
};

struct CandidateFacts {
  std::string name;
  std::string rejected;
  double cost_ns = 0;
};

struct GroupFacts {
  std::string name;
  std::vector<CandidateFacts> candidates;
};

struct StepFacts {
  std::string group;
  std::vector<uint32_t> waits_for;
  int64_t written_bytes = 0;
  double cost_ns = 0;
};

class Policy {
 public:
  // How long a child may take, for one question.
  static constexpr int64_t kLimitMs = 2000;

  // kInvalidArgument naming the file when it is no policy of this version; kUnsupported when the
  // system cannot load it.
  static Result<Policy> load(std::string path, bool isolated);

  const std::string& name() const { return name_; }

  // Per value, not 0: kept apart. Empty: it does not say.
  Result<std::vector<int64_t>> keep_apart(std::span<const ValueFacts> values) const;
  // Per group a candidate, or -1. Empty: it does not say.
  Result<std::vector<int64_t>> choose_kernels(std::span<const GroupFacts> groups) const;
  // Steps in the order they run. Empty: it does not say.
  Result<std::vector<int64_t>> order_steps(std::span<const StepFacts> steps) const;
  // 0: as asked.
  Result<int64_t> memory_budget(int64_t asked) const;

 private:
  using Question = std::function<std::vector<int64_t>(const pyc_policy& policy)>;
  Policy(std::string path, bool isolated) : path_(std::move(path)), isolated_(isolated) {}
  Result<std::vector<int64_t>> ask(const Question& question) const;

  std::string path_;
  bool isolated_;
  std::string name_;
};

}  // namespace pyc::policy

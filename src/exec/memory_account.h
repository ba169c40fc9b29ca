#pragma once

// What an open model holds in memory, kept against its budget in one place: the
// programs that are kept (parameters, arenas, scratch), and for each run its inputs and the values
// it made (base/value_meter.h). Programs are counted from when they are made until they are gone.

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/value_meter.h"
#include "runtime/model.h"

namespace pyc::exec {

class MemoryAccount {
 public:
  // 0: no limit.
  explicit MemoryAccount(int64_t budget) : budget_(budget) {}

  // Bytes of one program, as long as this lives.
  class Held {
   public:
    Held(std::shared_ptr<MemoryAccount> account, int64_t bytes);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    std::shared_ptr<MemoryAccount> account_;
    int64_t bytes_;
  };

  // A meter for the values of a run on inputs of `input_bytes`: `value_limit` holds for values
  // alone, the budget for all.
  std::shared_ptr<ValueMeter> meter(int64_t value_limit, int64_t input_bytes) const;

  int64_t programs() const { return programs_->load(std::memory_order_relaxed); }
  int64_t budget() const { return budget_; }
  // Whether `bytes` in all are within the budget. If so they may become the peak.
  bool fits(int64_t bytes);
  // The most that was held at a time.
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void note(int64_t bytes);

 private:
  const int64_t budget_;
  // Shared with meters, which live as long as the last value of their run.
  std::shared_ptr<std::atomic<int64_t>> programs_ = std::make_shared<std::atomic<int64_t>>(0);
  std::atomic<int64_t> peak_ = 0;
};

// What the allocator hands out for a tensor's bytes.
int64_t handed_out(int64_t bytes);
// What a program holds beside its inputs and outputs.
int64_t own_bytes(const runtime::Model& model);
// What the program's results take, as they are handed out.
int64_t output_bytes(const runtime::Model& model);

}  // namespace pyc::exec

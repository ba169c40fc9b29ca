#include "exec/memory_account.h"

#include <numeric>
#include <span>
#include <utility>

#include "base/aligned_buffer.h"

namespace pyc::exec {
namespace {

int64_t sum_of(std::span<const runtime::IoSpec> specs) {
  return std::accumulate(specs.begin(), specs.end(), int64_t{0},
                         [](int64_t sum, const runtime::IoSpec& io) { return sum + io.bytes; });
}

}  // namespace

MemoryAccount::Held::Held(std::shared_ptr<MemoryAccount> account, int64_t bytes)
    : account_(std::move(account)), bytes_(bytes) {
  account_->programs_->fetch_add(bytes_, std::memory_order_relaxed);
}

MemoryAccount::Held::~Held() { account_->programs_->fetch_sub(bytes_, std::memory_order_relaxed); }

std::shared_ptr<ValueMeter> MemoryAccount::meter(int64_t value_limit, int64_t input_bytes) const {
  auto made = std::make_shared<ValueMeter>(value_limit, "the value limit");
  made->share(programs_, input_bytes, budget_ > 0 ? budget_ : INT64_MAX);
  return made;
}

bool MemoryAccount::fits(int64_t bytes) {
  if (budget_ > 0 && bytes > budget_) return false;
  note(bytes);
  return true;
}

void MemoryAccount::note(int64_t bytes) {
  int64_t most = peak();
  while (bytes > most && !peak_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
  }
}

int64_t handed_out(int64_t bytes) {
  return static_cast<int64_t>(AlignedBuffer::handed_out(static_cast<size_t>(bytes)));
}

int64_t own_bytes(const runtime::Model& model) {
  return model.memory().peak_bytes - sum_of(model.inputs()) - sum_of(model.outputs());
}

int64_t output_bytes(const runtime::Model& model) {
  int64_t sum = 0;
  for (const runtime::IoSpec& io : model.outputs()) sum += handed_out(io.bytes);
  return sum;
}

}  // namespace pyc::exec

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/matmul.h"
#include "base/clock.h"
#include "base/status.h"
#include "runtime/code_module.h"

namespace pyc::bench {

// One thread that does nothing but fma in registers.
class FmaProbe {
 public:
  FmaProbe() : target_(cpu::CodegenTarget::host()) {
    Result<std::string> object = cpu::emit_fma_probe_object(target_);
    PYC_CHECK(object.ok(), object.status().to_string());
    Result<std::unique_ptr<runtime::CodeModule>> module = runtime::CodeModule::load(*object);
    PYC_CHECK(module.ok(), module.status().to_string());
    module_ = std::move(module).value();
  }

  // Its f32 operations a second: the best of so many short runs, which no other process
  // interrupted.
  double rate(int rounds) const {
    const pyc_kernel_fn fn = module_->lookup(cpu::kDefaultSymbol);
    std::vector<float> data(2 * static_cast<size_t>(target_.lanes), 0.5F);
    void* buffers[] = {data.data()};
    pyc_kernel_args args{};
    args.buffers = buffers;
    constexpr int64_t kPoints = 20000;
    const auto flops = static_cast<double>(kPoints * cpu::fma_probe_flops(target_));
    double best = 0.0;
    for (int round = 0; round < rounds; ++round) {
      const int64_t start = now_ns();
      fn(&args, 0, kPoints);
      best = std::max(best, 1e9 * flops / static_cast<double>(now_ns() - start));
    }
    return best;
  }

 private:
  cpu::CodegenTarget target_;
  std::unique_ptr<runtime::CodeModule> module_;
};

}  // namespace pyc::bench

#pragma once

// Rows of a product that are windows of an input: where k goes through a window, what a row has of
// it lies in a few runs (the colours of a line's pixels, one behind the other), at the same
// distances from each other for all rows. A window that is inside of its input is copied run by
// run; only the others ask for each element whether it is there.

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/llvm/flow.h"
#include "lower/types.h"

namespace pyc::cpu {

class WindowRows {
 public:
  // Of an operand whose elements are loads, as `operand` says (kNone: not worthwhile); what is
  // asked of them is added to `kernel`, a copy of the contraction's. No copy goes over a multiple
  // of `step`, in k.
  WindowRows(const lower::Contraction& c, loop::ExprId operand, int64_t step, loop::Kernel& kernel);

  // Whether copies are fewer than elements by far. If not, nothing else may be asked.
  bool worthwhile() const { return worthwhile_; }

  // With all that a row needs bound but k: calls `inside`, which copies, where the whole window is
  // in its input, else `other`.
  void either(FlowBuilder& flow, ExprEmitter& ex, const std::function<void()>& inside,
              const std::function<void()>& other) const;
  // Loads the row's elements, so many at a time: put(k, elements), some of them twice.
  void copy(llvm::IRBuilder<>& b, ExprEmitter& ex,
            const std::function<void(int64_t k, llvm::Value* elements)>& put) const;

 private:
  struct Copy {
    int64_t k;
    int64_t offset;  // of the element at k from that at 0
    int count;
  };
  void cut_into_copies(const std::vector<int64_t>& offsets, int64_t step);

  uint32_t buffer_ = 0;
  loop::ExprId first_ = loop::kNone;   // the load at k = 0
  loop::ExprId inside_ = loop::kNone;  // kNone: always
  std::vector<Copy> copies_;
  bool worthwhile_ = false;
};

}  // namespace pyc::cpu

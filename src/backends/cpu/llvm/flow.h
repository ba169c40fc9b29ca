#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

#include "backends/cpu/llvm/numbers.h"

namespace pyc::cpu {

// Control flow over an IRBuilder.
class FlowBuilder {
 public:
  using Value = llvm::Value;
  using State = std::vector<Value*>;

  explicit FlowBuilder(llvm::IRBuilder<>& builder, Numbers* numbers = nullptr)
      : b_(builder), numbers_(numbers) {}

  // Whether sizes are arguments of the code.
  bool any_size() const { return numbers_ != nullptr; }
  // A size, or what follows from sizes.
  Value* number(int64_t v);
  Value* index(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  // pointer + elements · size, in bytes of f32.
  Value* at(Value* pointer, int64_t elements);
  Value* at(Value* pointer, Value* elements);

  // The same number, of which LLVM does not know that it is the same.
  Value* unknown(Value* number);

  // for (i = begin; i < end; i += step) state = body(i, state). `nonempty`: runs at least once.
  State loop(Value* begin, Value* end, int64_t step, bool nonempty, const State& init,
             const std::function<State(Value* i, const State&)>& body);
  void loop(Value* begin, Value* end, int64_t step, bool nonempty,
            const std::function<void(Value* i)>& body);
  void when(Value* condition, const std::function<void()>& yes,
            const std::function<void()>& no = {});

 private:
  llvm::BasicBlock* block(const char* name);

  llvm::IRBuilder<>& b_;
  Numbers* numbers_;
};

}  // namespace pyc::cpu

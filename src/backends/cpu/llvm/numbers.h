#pragma once

// Sizes as arguments of code. Where a kernel's code is made for any sizes, a size is not a constant
// but an entry of pyc_kernel_args::dims, loaded where its function begins. What is emitted then
// does not depend on the sizes' values but by what it took for granted of them; so code that was
// emitted alike for other sizes is code for these ones, and only the entries differ.

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <map>
#include <vector>

namespace pyc::cpu {

// The entries of dims that one module loads, in the order in which they were asked for.
class Numbers {
 public:
  explicit Numbers(std::vector<int64_t>& values) : values_(values) {}

  // The next entry, whose value is `value`, in that function. Equal values get entries of their
  // own: at other sizes they may differ.
  llvm::Value* add(llvm::Function* function, int64_t value);
  // The pointer to all entries there: a step's function has it in its arguments, any other one as
  // its last parameter.
  llvm::Value* dims(llvm::Function* function) { return entry_of(function).dims; }

 private:
  struct Entry {
    llvm::Value* dims = nullptr;
    llvm::Instruction* last = nullptr;  // what was added last
  };
  Entry& entry_of(llvm::Function* function);

  std::vector<int64_t>& values_;
  std::map<llvm::Function*, Entry> entries_;
};

// A parameter for dims at the end of a function that is no step's, and what a call of it passes
// there; nothing where sizes are constants.
void add_dims_type(const Numbers* numbers, llvm::LLVMContext& context,
                   std::vector<llvm::Type*>& types);
void add_dims_argument(Numbers* numbers, llvm::Function* caller, std::vector<llvm::Value*>& args);

}  // namespace pyc::cpu

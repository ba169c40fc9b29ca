#pragma once

// One module on its way through LLVM: written by a generator, verified, cleaned up, turned into
// text, assembly or an object. The only place that sets up LLVM.

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/codegen.h"
#include "backends/cpu/llvm/value_ops.h"

namespace pyc::cpu {

class Compilation {
 public:
  using Writer = std::function<void(llvm::Module& module, const TargetTraits& traits)>;

  // `name` says in messages what is compiled. Where `dims` is not null, sizes are arguments of the
  // code, and their values are put there. `named`: values inside of functions have names, which
  // only a reader needs; without them there is source() alone.
  Compilation(CodegenTarget target, std::string name, std::vector<int64_t>* dims, bool named);
  ~Compilation();
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  // Lets `writer` fill the module. Once, before the others.
  Status write(const Writer& writer);
  // The target and the module as it was written, without names, as bytes: what its code follows
  // from.
  std::string source() const;
  // Verifies what was written and cleans it up. Once, before those below.
  Status finish();
  std::string text() const;
  Result<std::string> assembly();
  // Refuses an object that needs a symbol it does not define.
  Result<std::string> object();

 private:
  Status make_machine();
  // What writers ask of a target, found once for each.
  struct TargetFacts {
    TargetTraits traits;
    std::string data_layout;
  };
  Result<TargetFacts> facts();
  void set_attributes();
  void optimise();
  static void compare_with_itself(llvm::Module& module);
  Result<std::string> code(llvm::CodeGenFileType type);
  Status named(Status status) const;

  CodegenTarget target_;
  std::string name_;
  std::string errors_;
  std::optional<Numbers> numbers_;
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::Module> module_;
};

}  // namespace pyc::cpu

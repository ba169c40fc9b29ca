#pragma once

// A module as bytes, for finding code that was made of the same: two modules with equal bytes are
// one another's copies, names of values inside of functions aside. Everything that the instructions
// written here have is in the bytes; a module with anything else is not described. Much quicker
// than LLVM's own file format, which is written to be read again.

#include <llvm/IR/Module.h>

#include <optional>
#include <string>

namespace pyc::cpu {

// None: something in it has no place here, and it is to be written as a file of LLVM.
std::optional<std::string> module_source(const llvm::Module& module);

}  // namespace pyc::cpu

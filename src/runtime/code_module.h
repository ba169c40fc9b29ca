#pragma once

// Machine code from relocatable ELF objects, without a linker and without the compiler that made
// them. Nothing here aborts, prints or calls back; all functions are thread-safe.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_abi.h"
#include "base/status.h"

namespace pyc::runtime {

// Names an ELF object refers to but does not define, in the object's order.
Result<std::vector<std::string>> undefined_symbols(std::string_view object);

// The machine code of one object, loaded into this process; unloaded with this handle.
class CodeModule {
 public:
  // Refuses an object of another machine (kInvalidArgument), one that refers to a symbol it does
  // not define (kInternal, naming it) and one that is not well formed (kParseError).
  static Result<std::unique_ptr<CodeModule>> load(std::string_view object);
  virtual ~CodeModule() = default;
  // The function of that name, or null.
  virtual pyc_kernel_fn lookup(std::string_view symbol) const = 0;
  // Bytes of memory mapped for it.
  virtual int64_t mapped_bytes() const = 0;
};

}  // namespace pyc::runtime

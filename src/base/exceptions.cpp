#include "base/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>

namespace pyc {
namespace {

// Both messages fit into a string without an allocation.
Status no_memory() { return {Code::kOutOfMemory, "out of memory"}; }
Status unknown_error() { return {Code::kInternal, "internal error"}; }

}  // namespace

Status status_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {  // more elements than any memory holds
    return no_memory();
  } catch (const std::exception& error) {
    try {
      return {Code::kInternal, error.what()};
    } catch (...) {
      return no_memory();
    }
  } catch (...) {
    return unknown_error();
  }
}

}  // namespace pyc

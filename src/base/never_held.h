#pragma once

namespace pyc {

// The last alternative of a variant of numbers, strings and vectors, which never holds it.
// libstdc++ takes a variant of those alone for one that is never left empty; when a copy of it
// throws, the unwinding reads an index out of range (docs/decisions/0010). One alternative whose
// copy is not trivial makes it count the variant among those that can be empty.
struct NeverHeld {
  NeverHeld() = delete;
  NeverHeld(const NeverHeld&) noexcept {}
  NeverHeld& operator=(const NeverHeld&) noexcept { return *this; }
  ~NeverHeld() = default;
  friend bool operator==(const NeverHeld&, const NeverHeld&) { return true; }
};

}  // namespace pyc

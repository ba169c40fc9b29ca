#pragma once

#include <cstdint>
#include <string_view>

namespace pyc {

// What a byte of a run is for. Every planned buffer has exactly one class.
enum class BufferClass : uint8_t {
  kHostInput,
  kParameter,
  kTemporary,
  kOutput,
  kWorkspace,
  kState,   // kept by the model from one run to the next
  kMapped,  // a parameter that stays in a mapped file: no memory of the run, beside its peak
};
inline constexpr int kBufferClasses = 7;

constexpr std::string_view buffer_class_name(BufferClass c) {
  constexpr std::string_view kNames[kBufferClasses] = {
      "host_input", "parameter", "temporary", "output", "workspace", "state", "mapped"};
  return kNames[static_cast<int>(c)];
}

}  // namespace pyc

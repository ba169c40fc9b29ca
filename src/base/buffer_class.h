#pragma once

#include <cstdint>
#include <string_view>

namespace pyc {

// What a byte of a run is for. Every planned buffer has exactly one class.
enum class BufferClass : uint8_t { kHostInput, kParameter, kTemporary, kOutput, kWorkspace };
inline constexpr int kBufferClasses = 5;

constexpr std::string_view buffer_class_name(BufferClass c) {
  constexpr std::string_view kNames[kBufferClasses] = {"host_input", "parameter", "temporary",
                                                       "output", "workspace"};
  return kNames[static_cast<int>(c)];
}

}  // namespace pyc

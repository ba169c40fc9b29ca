#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"

namespace pyc {

// The whole content of the file at `path`. kNotFound when there is none, kBudgetExceeded when it
// holds more than `max_bytes`, kOutOfMemory, or kIoError; the message has the path and the reason.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes);

// The names in the folder at `path`, sorted, without "." and "..". kNotFound or kIoError.
Result<std::vector<std::string>> list_folder(const std::string& path);

// Makes `bytes` the content of the file at `path`, all or nothing: a reader, or a machine that
// crashes, sees the old file or the new one. Writes a temporary file in the same folder, syncs it,
// renames it and syncs the folder. A link at `path` is replaced, not followed. kIoError (kNotFound:
// no such folder) with path and reason on failure; the temporary file is then removed.
Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
Status write_file_atomic(const std::string& path, std::string_view text);
// The pieces one behind the other.
Status write_file_atomic(const std::string& path,
                         std::span<const std::span<const std::byte>> pieces);

// The pieces one behind the other in a new file of that folder, which has no name when this
// returns: it goes with its last descriptor and mapping. Errors as of write_file_atomic.
Result<Descriptor> write_nameless_file(const std::string& folder,
                                       std::span<const std::span<const std::byte>> pieces);

}  // namespace pyc

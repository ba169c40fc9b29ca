#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/shared_bytes.h"
#include "base/status.h"

namespace pyc {

// The folder a file lies in, without a slash at its end; "" for the current one.
std::string folder_of(const std::string& path);

// A file's content mapped read-only; shared bytes keep the mapping. kNotFound or kIoError with path
// and reason. The file must not shrink while it is mapped.
Result<SharedBytes> map_file(const std::string& path);

// The same for `relative`, a path that stays beneath `folder`: no component may be "..", a link or
// absolute, and the file must be a regular one with a single name. kInvalidArgument when it is not
// so.
Result<SharedBytes> map_file_beneath(const std::string& folder, const std::string& relative);

// The pieces one behind the other in a new file of that folder, mapped. The file has no name any
// more when this returns: it goes with the mapping. kNotFound or kIoError with path and reason.
Result<SharedBytes> map_nameless_file(const std::string& folder,
                                      std::span<const std::span<const std::byte>> pieces);

}  // namespace pyc

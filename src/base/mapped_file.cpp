#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/files.h"

namespace pyc {
namespace {

Status io_error(const std::string& path, int error) {
  Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIoError;
  if (error == ENOMEM) code = Code::kOutOfMemory;
  return {code, fmt::format("'{}': {}", path, std::strerror(error))};
}

Status outside(const std::string& path, std::string_view why) {
  return {Code::kInvalidArgument,
          fmt::format("'{}' {}: a model's data must lie in the model's folder", path, why)};
}

struct Mapping {
  void* data = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (data != nullptr) ::munmap(data, size);
  }
};

Result<SharedBytes> map_descriptor(const Descriptor& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return io_error(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kIoError, fmt::format("'{}' is not a regular file", path));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return SharedBytes();
  const auto owner = std::make_shared<Mapping>();  // before there is something to own
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return io_error(path, errno);
  owner->data = data;
  owner->size = size;
  return SharedBytes(owner, {static_cast<const std::byte*>(data), size}, true);
}

// A link where a folder is expected is reported as "no folder".
bool is_link(const Descriptor& folder, const std::string& name) {
  struct stat info {};
  return ::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(info.st_mode);
}

std::vector<std::string> components_of(const std::string& path) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= path.size()) {
    const size_t end = std::min(path.find('/', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, std::max<size_t>(slash, 1));
}

Result<SharedBytes> map_file(const std::string& path) {
  // Not to wait for the other end of a pipe.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return io_error(path, errno);
  return map_descriptor(fd, path);
}

Result<SharedBytes> map_file_beneath(const std::string& folder, const std::string& relative) {
  if (relative.empty()) return outside(relative, "is empty");
  if (relative.front() == '/') return outside(relative, "is absolute");
  if (relative.find('\0') != std::string::npos) return outside(relative, "holds a zero byte");
  const std::vector<std::string> parts = components_of(relative);
  // Before anything is opened.
  for (const std::string& part : parts) {
    if (part == "..") return outside(relative, "climbs out");
    if (part.empty()) return outside(relative, "has an empty part");
  }
  Descriptor at(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return io_error(folder, errno);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == ".") continue;
    const bool last = i + 1 == parts.size();
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    Descriptor next(::openat(at.get(), parts[i].c_str(), flags));
    if (!next.valid()) {
      const int error = errno;
      if (error == ELOOP || error == EMLINK || is_link(at, parts[i])) {
        return outside(relative, "passes through a link");
      }
      return io_error(relative, error);
    }
    at = std::move(next);
  }
  struct stat info {};
  if (::fstat(at.get(), &info) != 0) return io_error(relative, errno);
  if (S_ISREG(info.st_mode) && info.st_nlink > 1) return outside(relative, "has a second name");
  return map_descriptor(at, relative);
}

Result<SharedBytes> map_nameless_file(const std::string& folder,
                                      std::span<const std::span<const std::byte>> pieces) {
  PYC_ASSIGN(const Descriptor file, write_nameless_file(folder, pieces));
  return map_descriptor(file, folder);
}

}  // namespace pyc

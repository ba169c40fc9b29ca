#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace pyc {
namespace {

// The failure of the system call that just set errno.
Status io_failure(std::string_view what, const std::string& path) {
  const int error = errno;
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIoError;
  return Status(
      code, fmt::format("cannot {} '{}': {}", what, path, std::generic_category().message(error)));
}

template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Status too_large(const std::string& path, uint64_t max_bytes) {
  return Status(
      Code::kBudgetExceeded,
      fmt::format("cannot read '{}': it holds more than the {} bytes allowed", path, max_bytes));
}

// Reads to the end of the file: its stated size is a hint only, as files in /proc state none.
Result<std::string> read_descriptor(int fd, const std::string& path, uint64_t max_bytes) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return io_failure("read", path);
  const uint64_t stated = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  if (stated > max_bytes) return too_large(path, max_bytes);

  constexpr uint64_t kMinRoom = 4096;
  std::string content;
  uint64_t filled = 0;
  // One byte more than stated, so that the read that finds the end does not grow the buffer.
  content.resize(std::max(stated + 1, kMinRoom));
  while (true) {
    if (filled == content.size()) content.resize(content.size() * 2);
    const ssize_t got = retry_interrupted(
        [&] { return ::read(fd, content.data() + filled, content.size() - filled); });
    if (got < 0) return io_failure("read", path);
    if (got == 0) break;
    filled += static_cast<uint64_t>(got);
    if (filled > max_bytes) return too_large(path, max_bytes);
  }
  content.resize(filled);
  return content;
}

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = retry_interrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (put < 0) return io_failure("write", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return Status();
}

// Creates a new file in `folder` and puts its path into `path`. A taken name belongs to another
// writer of this process or was left behind by one that was killed.
int create_temporary(const std::string& folder, std::string* path) {
  constexpr int kAttempts = 10'000;
  for (int i = 0; i < kAttempts; ++i) {
    *path = fmt::format("{}.pyc-tmp.{}.{}", folder, getpid(), i);
    const int fd = retry_interrupted(
        [&] { return ::open(path->c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

Status write_temporary(Descriptor& file, std::span<const std::span<const std::byte>> pieces,
                       const std::string& path) {
  for (const std::span<const std::byte> piece : pieces) PYC_TRY(write_all(file.get(), piece, path));
  if (retry_interrupted([&] { return ::fsync(file.get()); }) != 0) return io_failure("sync", path);
  if (!file.close()) return io_failure("close", path);
  return Status();
}

Status sync_folder(const std::string& folder) {
  const Descriptor handle(retry_interrupted(
      [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!handle.valid()) return io_failure("sync folder", folder);
  // Some file systems cannot sync a folder and say so with EINVAL.
  if (retry_interrupted([&] { return ::fsync(handle.get()); }) != 0 && errno != EINVAL) {
    return io_failure("sync folder", folder);
  }
  return Status();
}

}  // namespace

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  const Descriptor file(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!file.valid()) return io_failure("open", path);
  const auto no_memory = [&] {
    return Status(Code::kOutOfMemory, fmt::format("no memory for the content of '{}'", path));
  };
  try {
    return read_descriptor(file.get(), path, max_bytes);
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {
    return no_memory();
  }
}

// Not std::filesystem's iterator: libstdc++'s ends the process when it gets no memory.
Result<std::vector<std::string>> list_folder(const std::string& path) {
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(::opendir(path.c_str()));
  if (folder == nullptr) return io_failure("list", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return io_failure("list", path);
  std::sort(names.begin(), names.end());
  return names;
}

Status write_file_atomic(const std::string& path,
                         std::span<const std::span<const std::byte>> pieces) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);  // with its slash, or empty
  std::string temporary;
  Descriptor file(create_temporary(folder, &temporary));
  if (!file.valid()) return io_failure("create a temporary file for", path);
  Status status = write_temporary(file, pieces, temporary);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = io_failure("replace", path);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder(folder.empty() ? "." : folder);
}

Result<Descriptor> write_nameless_file(const std::string& folder,
                                       std::span<const std::span<const std::byte>> pieces) {
  std::string path;
  Descriptor file(create_temporary(folder + "/", &path));
  if (!file.valid()) return io_failure("create a file in", folder);
  if (::unlink(path.c_str()) != 0) return io_failure("remove", path);
  for (const std::span<const std::byte> piece : pieces) {
    PYC_TRY(write_all(file.get(), piece, path));
  }
  return file;
}

Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  return write_file_atomic(path, std::span(&bytes, 1));
}

Status write_file_atomic(const std::string& path, std::string_view text) {
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

}  // namespace pyc

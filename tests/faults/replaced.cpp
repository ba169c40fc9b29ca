// The functions that can be refused: operator new, and by the linker's --wrap those of the C
// library that the library calls.

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "faults/hooks.h"

using pyc::faults::Kind;

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __real_malloc(size_t size);
int __real_posix_memalign(void** block, size_t alignment, size_t size);
void __real_free(void* block);
int __real_open(const char* path, int flags, mode_t mode);
int __real_openat(int folder, const char* path, int flags, mode_t mode);
DIR* __real_opendir(const char* path);
int __real_closedir(DIR* folder);
int __real_close(int fd);
ssize_t __real_read(int fd, void* bytes, size_t size);
ssize_t __real_write(int fd, const void* bytes, size_t size);
int __real_fstat(int fd, struct stat* info);
int __real_fstatat(int folder, const char* path, struct stat* info, int flags);
int __real_fsync(int fd);
int __real_rename(const char* from, const char* to);
void* __real_mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* at, size_t size);
int __real_mprotect(void* at, size_t size, int protection);

void* __wrap_malloc(size_t size);
int __wrap_posix_memalign(void** block, size_t alignment, size_t size);
void __wrap_free(void* block);
int __wrap_open(const char* path, int flags, mode_t mode);
int __wrap_openat(int folder, const char* path, int flags, mode_t mode);
DIR* __wrap_opendir(const char* path);
int __wrap_closedir(DIR* folder);
int __wrap_close(int fd);
ssize_t __wrap_read(int fd, void* bytes, size_t size);
// What openat and read become where the compiler checks sizes (_FORTIFY_SOURCE).
int __wrap___openat_2(int folder, const char* path, int flags);
ssize_t __wrap___read_chk(int fd, void* bytes, size_t size, size_t room);
ssize_t __wrap_write(int fd, const void* bytes, size_t size);
int __wrap_fstat(int fd, struct stat* info);
int __wrap_fstatat(int folder, const char* path, struct stat* info, int flags);
int __wrap_fsync(int fd);
int __wrap_rename(const char* from, const char* to);
void* __wrap_mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void* at, size_t size);
int __wrap_mprotect(void* at, size_t size, int protection);
}

// std::thread::_M_start_thread(std::unique_ptr<_State>, void (*)()): what every std::thread starts
// with. `self` and the smart pointer, which has a destructor, arrive as two pointers.
extern "C" {
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    void* self, void* state, void (*depend)());
void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    void* self, void* state, void (*depend)());
}

namespace {

bool refused(Kind kind, int error) {
  if (!pyc::faults::refused(kind)) return false;
  errno = error;
  return true;
}

void* plain(size_t size) {
  if (refused(Kind::kNew, ENOMEM)) return nullptr;
  void* block = __real_malloc(size == 0 ? 1 : size);
  pyc::faults::add_block(block);
  return block;
}

void* aligned(size_t size, std::align_val_t alignment) {
  if (refused(Kind::kNew, ENOMEM)) return nullptr;
  const auto unit = static_cast<size_t>(alignment);
  void* block = std::aligned_alloc(unit, (size + unit) / unit * unit);
  pyc::faults::add_block(block);
  return block;
}

void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

int opened(int fd) {
  if (fd >= 0) pyc::faults::count_file(1);
  return fd;
}

}  // namespace

void* operator new(size_t n) { return or_throw(plain(n)); }
void* operator new[](size_t n) { return or_throw(plain(n)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return plain(n); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return plain(n); }
void* operator new(size_t n, std::align_val_t a) { return or_throw(aligned(n, a)); }
void* operator new[](size_t n, std::align_val_t a) { return or_throw(aligned(n, a)); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return aligned(n, a);
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return aligned(n, a);
}
void operator delete(void* p) noexcept { __wrap_free(p); }
void operator delete[](void* p) noexcept { __wrap_free(p); }
void operator delete(void* p, size_t) noexcept { __wrap_free(p); }
void operator delete[](void* p, size_t) noexcept { __wrap_free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { __wrap_free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { __wrap_free(p); }
void operator delete(void* p, std::align_val_t) noexcept { __wrap_free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { __wrap_free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { __wrap_free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { __wrap_free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { __wrap_free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  __wrap_free(p);
}

void* __wrap_malloc(size_t size) {
  if (refused(Kind::kMalloc, ENOMEM)) return nullptr;
  void* block = __real_malloc(size);
  pyc::faults::add_block(block);
  return block;
}

int __wrap_posix_memalign(void** block, size_t alignment, size_t size) {
  if (pyc::faults::refused(Kind::kMalloc)) return ENOMEM;
  const int error = __real_posix_memalign(block, alignment, size);
  if (error == 0) pyc::faults::add_block(*block);
  return error;
}

void __wrap_free(void* block) {
  pyc::faults::remove_block(block);
  __real_free(block);
}

int __wrap_open(const char* path, int flags, mode_t mode) {
  if (refused(Kind::kFile, EMFILE)) return -1;
  return opened(__real_open(path, flags, mode));
}

int __wrap_openat(int folder, const char* path, int flags, mode_t mode) {
  if (refused(Kind::kFile, EMFILE)) return -1;
  return opened(__real_openat(folder, path, flags, mode));
}

int __wrap___openat_2(int folder, const char* path, int flags) {
  return __wrap_openat(folder, path, flags, 0);
}

ssize_t __wrap___read_chk(int fd, void* bytes, size_t size, size_t) {
  return __wrap_read(fd, bytes, size);
}

DIR* __wrap_opendir(const char* path) {
  if (refused(Kind::kFile, EMFILE)) return nullptr;
  DIR* folder = __real_opendir(path);
  if (folder != nullptr) pyc::faults::count_file(1);
  return folder;
}

int __wrap_closedir(DIR* folder) {
  pyc::faults::count_file(-1);
  return __real_closedir(folder);
}

// A close that fails has closed the file all the same.
int __wrap_close(int fd) {
  const int result = __real_close(fd);
  if (result == 0) pyc::faults::count_file(-1);
  return refused(Kind::kFile, EIO) ? -1 : result;
}

ssize_t __wrap_read(int fd, void* bytes, size_t size) {
  return refused(Kind::kFile, EIO) ? -1 : __real_read(fd, bytes, size);
}

ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  return refused(Kind::kFile, ENOSPC) ? -1 : __real_write(fd, bytes, size);
}

int __wrap_fstat(int fd, struct stat* info) {
  return refused(Kind::kFile, EIO) ? -1 : __real_fstat(fd, info);
}

int __wrap_fstatat(int folder, const char* path, struct stat* info, int flags) {
  return refused(Kind::kFile, EIO) ? -1 : __real_fstatat(folder, path, info, flags);
}

int __wrap_fsync(int fd) { return refused(Kind::kFile, EIO) ? -1 : __real_fsync(fd); }

int __wrap_rename(const char* from, const char* to) {
  return refused(Kind::kFile, EACCES) ? -1 : __real_rename(from, to);
}

void* __wrap_mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  if (refused(Kind::kMap, ENOMEM)) return MAP_FAILED;
  void* map = __real_mmap(at, size, protection, flags, fd, offset);
  if (map != MAP_FAILED) pyc::faults::count_map(1);
  return map;
}

int __wrap_munmap(void* at, size_t size) {
  const int result = __real_munmap(at, size);
  if (result == 0) pyc::faults::count_map(-1);
  return result;
}

int __wrap_mprotect(void* at, size_t size, int protection) {
  if ((protection & PROT_EXEC) != 0 && !pyc::faults::may_execute()) {
    errno = EACCES;
    return -1;
  }
  return refused(Kind::kMap, ENOMEM) ? -1 : __real_mprotect(at, size, protection);
}

void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    void* self, void* state, void (*depend)()) {
  if (pyc::faults::refused(Kind::kThread)) {
    throw std::system_error(EAGAIN, std::generic_category(), "refused");
  }
  __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
      self, state, depend);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

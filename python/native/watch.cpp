// Memory that is somebody else's, looked at now and then.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "model.h"

namespace pyc::python {
namespace {

constexpr size_t kSamples = 16;

// Words of blocks of memory, evenly spaced from the first to the last: equal while nobody writes to
// the blocks as a whole. The caller keeps the blocks alive.
class Watch {
 public:
  explicit Watch(const std::vector<std::pair<uintptr_t, size_t>>& blocks) {
    for (const auto& [address, bytes] : blocks) add(reinterpret_cast<const char*>(address), bytes);
    seen_ = words();
  }

  bool holds() const { return words() == seen_; }

 private:
  void add(const char* first, size_t bytes) {
    if (bytes < sizeof(uint64_t)) {
      for (size_t i = 0; i < bytes; ++i) small_.push_back(first + i);
      return;
    }
    const size_t last = bytes - sizeof(uint64_t);
    for (size_t i = 0; i < kSamples; ++i) words_.push_back(first + last * i / (kSamples - 1));
  }

  std::vector<uint64_t> words() const {
    std::vector<uint64_t> found(words_.size());
    for (size_t i = 0; i < words_.size(); ++i) {
      std::memcpy(&found[i], words_[i], sizeof(uint64_t));
    }
    for (const char* byte : small_) found.push_back(static_cast<unsigned char>(*byte));
    return found;
  }

  std::vector<const char*> words_;
  std::vector<const char*> small_;
  std::vector<uint64_t> seen_;
};

}  // namespace

void bind_watch(nb::module_& module) {
  nb::class_<Watch>(module, "Watch")
      .def(nb::init<const std::vector<std::pair<uintptr_t, size_t>>&>())
      .def("holds", &Watch::holds);
}

}  // namespace pyc::python

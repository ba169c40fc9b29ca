#pragma once

// What users do, start to end, through the C ABI. Nothing here allocates by itself or throws, and
// everything is destroyed again whatever happens.

#include <array>
#include <span>
#include <string>

#include "pyc/pyc.h"

namespace pyc::faults {

struct Answer {
  pyc_status status = PYC_STATUS_OK;
  std::array<char, 256> text{};  // digest or verdict; of a refusal: its message
};

// Row-major memory.
inline pyc_tensor_view view_of(void* data, const int64_t* shape, int64_t rank, int64_t bytes,
                               pyc_dtype dtype) {
  pyc_tensor_view view{};
  view.struct_size = sizeof view;
  view.data = data;
  view.bytes = bytes;
  view.shape = shape;
  view.rank = rank;
  view.dtype = dtype;
  return view;
}

// The files the scenarios read, in a folder that goes away with the object.
class Files {
 public:
  Files();
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string folder;
  std::string text_model;   // text IR
  std::string small_model;  // text IR of two small kernels
  std::string onnx_model;   // with its weights in a file of its own
  std::string npy;
  std::string pb;
  std::string artifact;  // written and read
  std::string cache;     // a folder, made and emptied
  std::string open_model;
  std::string saved;      // written
  std::string onnx_case;  // a folder: a model of unknown shape, inputs, outputs
};

struct Scenario {
  const char* name;
  Answer (*run)(const Files& files);
  bool slow = false;  // for the slow tests only
};
std::span<const Scenario> scenarios();

}  // namespace pyc::faults

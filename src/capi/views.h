#pragma once

// pyc_tensor_view on this side of the border.

#include <span>
#include <string_view>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"
#include "ir/types.h"
#include "pyc/runtime_allocator.h"
#include "runtime/tensor_view.h"

namespace pyc::capi {

// An array of the caller's views, as the runtime takes them. It keeps its memory from call to call,
// so that a run allocates nothing.
class Views {
 public:
  // Refuses, naming the entry, what is no view: a struct of an unknown size, a rank or dtype that
  // is none, dims without memory.
  Status set(const pyc_tensor_view* views, size_t count, std::string_view what);
  std::span<const runtime::TensorView> get() const { return {views_.data(), count_}; }

 private:
  std::vector<runtime::TensorView> views_;
  size_t count_ = 0;
};

// One view; the same refusals.
Result<runtime::TensorView> to_view(const pyc_tensor_view* view);
// That it is whole: a type PyC accepts, all elements in memory of the host. `written`: and apart.
Result<ir::TensorType> check_view(const runtime::TensorView& view, bool written);
// Its elements row-major: the caller's memory if they lie so there, aligned, else a copy.
Result<DynValue> to_value(const runtime::TensorView& view);

// Fills the caller's struct with row-major memory.
Status write_view(std::span<const std::byte> bytes, std::span<const int64_t> shape, DType dtype,
                  pyc_tensor_view* view);

}  // namespace pyc::capi

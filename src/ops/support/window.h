#pragma once

// Sliding windows over the dims of a tensor behind batch and channels, any number of them: for
// convolutions and pools. Attributes: strides [per dim], pads [in front per dim, behind per dim],
// dilations [per dim]; an empty list stands for ones (pads: zeros).

#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {

struct Window {
  Ints kernel;
  Ints strides;
  Ints begin;  // pads in front
  Ints end;    // and behind
  Ints dilations;

  size_t dims() const { return kernel.size(); }
  // How many elements the window spans in a dim.
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

inline constexpr int64_t kMaxWindowAttr = (int64_t{1} << 31) - 1;

// The attribute, or `count` times `fallback` if it is empty.
Ints list_attr(const ir::Attrs& attrs, std::string_view name, size_t count, int64_t fallback);

std::vector<ir::AttrDef> window_attrs();
// Refuses attributes out of range.
Result<Window> make_window(const ir::Attrs& attrs, const Ints& kernel);
// The same for attributes that were checked before.
Window window_of(const ir::Attrs& attrs, Ints kernel);
// The number of places for the window in each dim of `planes`; refuses when there is none.
Result<Ints> count_windows(const Window& window, const Shape& planes);

// Refuses a tensor without dims behind batch and channels.
Status require_planes(std::string_view what, const TensorType& type);
// Those dims.
inline Shape planes_of(const TensorType& type) {
  return {type.shape.begin() + 2, type.shape.end()};
}
// Batch and channels, then the dims.
Shape with_planes(int64_t batch, int64_t channels, const Shape& planes);
Index with_planes(Expr batch, Expr channel, std::span<const Expr> planes);

// Where tap `k` of the window at `o` lies in input 0, and whether that is inside of it.
struct Tap {
  Index at;
  Expr inside;
};
Tap tap_at(LowerContext& context, const Window& window, std::span<const Expr> o,
           std::span<const Expr> k);
// Input 0 at the tap, as a reduction that skips taps outside takes it.
ReduceTerm read_tap(LowerContext& context, const Tap& tap, Expr batch, Expr channel);

// Pools: windows of input 0 whose size is the attribute kernel.
std::vector<ir::AttrDef> pool_attrs();
Types infer_pool(const InferArgs& args, const DTypeClass& accepted);
Window pool_window(const LowerContext& context);
// For an output index: the tap of the pool's window.
Tap pool_tap(LowerContext& context, const Window& window, std::span<const Expr> index,
             std::span<const Expr> k);
ReduceTerm pool_term(LowerContext& context, const Window& window, std::span<const Expr> index,
                     std::span<const Expr> k);

}  // namespace pyc::ops

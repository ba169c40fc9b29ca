#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/never_held.h"
#include "base/shared_bytes.h"
#include "base/status.h"

namespace pyc::ir {

// Dims, outermost first; each is at least 0. Rank 0 is a scalar.
using Shape = std::vector<int64_t>;

// The largest tensor PyC accepts, in elements and in bytes; sizes computed from accepted types
// never overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
inline constexpr int kMaxRank = 16;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  // Product of the dims (1 for a scalar). Requires an accepted type (check_type).
  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_size(dtype); }
  std::string to_string() const;  // "f32[2,3]"
  bool operator==(const TensorType&) const = default;
};

std::string shape_to_string(const Shape& shape);  // "[2,3]"
// Row-major strides in elements.
Shape strides_of(const Shape& shape);
// Refuses negative dims, ranks over kMaxRank and products over kMaxElements.
Status check_type(const TensorType& type);
// The same for a value outside of graphs, which may be complex.
Status check_value_type(const TensorType& type);
// Numpy broadcasting of two shapes.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// The value of an attribute. In text: 3, 0.5, "s", f32, true, [1,2], [0.5,1.0].
using Attr = std::variant<int64_t, double, bool, std::string, DType, std::vector<int64_t>,
                          std::vector<double>, NeverHeld>;
using Attrs = std::map<std::string, Attr, std::less<>>;

enum class AttrKind : uint8_t { kInt, kFloat, kBool, kString, kDType, kInts, kFloats };
// Its index in the variant above names the kind of an Attr.
inline AttrKind kind_of(const Attr& a) { return static_cast<AttrKind>(a.index()); }
std::string_view attr_kind_name(AttrKind kind);
std::string attr_to_string(const Attr& a);

// Bytes that were made of a constant's bytes alone, found again under what was done to them, so
// that programs for other sizes of one model share them. It holds no memory: what nobody uses any
// longer is made again. Any number of threads may use it at a time.
class MadeBytes {
 public:
  struct Found {
    std::shared_ptr<const void> owner;  // null: there are none
    std::span<const std::byte> bytes;
  };

  MadeBytes() = default;
  MadeBytes(const MadeBytes&) {}  // of a constant that may become another one
  MadeBytes& operator=(const MadeBytes&) = delete;
  ~MadeBytes() = default;

  Found find(const std::string& what) const;
  void keep(const std::string& what, const Found& made);

 private:
  struct Entry {
    std::weak_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

// The elements of a constant, row-major. `form` says how it is written in text: all elements, one
// value for all, or a generator (uniform in [lo, hi), Philox keyed by the seed) for large weights.
struct ConstData {
  enum class Form : uint8_t { kDense, kSplat, kRandom };
  Form form = Form::kDense;
  uint64_t seed = 0;
  double lo = 0.0;
  double hi = 0.0;
  SharedBytes bytes;
  mutable MadeBytes made = {};  // of `bytes`
};

// `value` for every element, converted to the type's dtype.
std::shared_ptr<const ConstData> splat_data(const TensorType& type, double value);
// Element i is lo + (hi-lo)·u with u from philox_uniform01(seed, 0, i), computed in f64 and
// converted once (integers: floor first; bool: u < 0.5).
std::shared_ptr<const ConstData> random_data(const TensorType& type, uint64_t seed, double lo,
                                             double hi);
std::shared_ptr<const ConstData> dense_data(SharedBytes bytes);

}  // namespace pyc::ir

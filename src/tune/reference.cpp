#include "tune/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/convert.h"
#include "eval/interpreter.h"
#include "tune/group_program.h"

namespace pyc::tune {
namespace {

// What the interpreter computes in a fraction of a second.
constexpr double kMostWork = 5e7;
constexpr int64_t kFewestPoints = 4;

// The points that are computed, in order.
std::vector<int64_t> sample_of(const lower::Group& group) {
  const int64_t all = group.kernel.parallel_size();
  const double work = std::max(group.flops, static_cast<double>(group.bytes));
  const double share = kMostWork / std::max(work, 1.0);
  const auto wanted = static_cast<int64_t>(std::min(share, 1.0) * static_cast<double>(all));
  const int64_t count = std::min(all, std::max(wanted, kFewestPoints));
  std::vector<int64_t> points;
  for (int64_t i = 0; i < count; ++i) {
    points.push_back(count == 1 ? 0 : i * (all - 1) / (count - 1));
  }
  return points;
}

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

bool is_filled(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || dtype == DType::kI8 || dtype == DType::kU8;
}

bool is_nan(const std::byte* p, DType dtype) {
  return is_float(dtype) && std::isnan(word_to_double(load_word(p, dtype), dtype));
}

}  // namespace

void fill_seeded(DType dtype, std::span<std::byte> bytes, uint64_t seed) {
  std::ranges::fill(bytes, std::byte{0});
  if (!is_filled(dtype)) return;
  const auto size = static_cast<size_t>(dtype_size(dtype));
  const double scale = is_float(dtype) ? 1.0 : 100.0;
  const double least = dtype == DType::kU8 ? 0.0 : -scale;
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    const double unit =
        static_cast<double>(mixed(seed + 0x9E3779B97F4A7C15ULL * (i + 1)) >> 11) * 0x1p-53;
    store_word(bytes.data() + i * size, dtype,
               word_from_double(least + unit * (scale - least), dtype));
  }
}

bool same_elements(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return true;
  const auto size = static_cast<size_t>(dtype_size(dtype));
  for (size_t i = 0; i + size <= a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    if (!is_nan(&a[i], dtype) || !is_nan(&b[i], dtype)) return false;
  }
  return true;
}

Result<Reference> Reference::of(const ir::Graph& graph, const lower::Group& group,
                                const Memory& inputs) {
  Reference out;
  const GroupValues values = values_of(graph, group);
  for (const ir::ValueId v : values.outputs) {
    const auto bytes = static_cast<size_t>(graph.type(v).bytes());
    out.outputs_.push_back({.value = v,
                            .dtype = graph.type(v).dtype,
                            .over_zeros = std::vector<std::byte>(bytes, std::byte{0}),
                            .over_ones = std::vector<std::byte>(bytes, std::byte{0xFF})});
  }
  PYC_ASSIGN(const std::unique_ptr<eval::Interpreter> interpreter,
             eval::Interpreter::create(group.kernel));
  std::vector<std::byte> scratch(static_cast<size_t>(group.kernel.scratch_bytes()));
  const std::vector<int64_t> points = sample_of(group);
  for (std::vector<std::byte> Output::*memory : {&Output::over_zeros, &Output::over_ones}) {
    std::vector<void*> pointers;
    for (size_t b = 0; b < group.buffer_values.size(); ++b) {
      const ir::ValueId v = group.buffer_values[b];
      if (v == ir::kNoId) {
        pointers.push_back(nullptr);
        continue;
      }
      const std::byte* data = nullptr;
      if (const auto written = std::ranges::find(out.outputs_, v, &Output::value);
          written != out.outputs_.end()) {
        data = ((*written).*memory).data();
      } else if (const auto input = inputs.find(v); input != inputs.end()) {
        data = input->second.data();
      } else {
        data = graph.value(v).constant->bytes.data();
      }
      // The interpreter does not write what the kernel only reads.
      pointers.push_back(const_cast<std::byte*>(data) + group.buffer_offset_bytes(b));
    }
    int32_t fault = 0;
    pyc_kernel_args args{};
    args.buffers = pointers.data();
    args.scratch = scratch.data();
    args.fault = &fault;
    for (const int64_t p : points) interpreter->run(args, p, p + 1);
    if (fault != 0) {
      return Status(Code::kRuntimeFailed, "group " + group.name + ": its own check fails");
    }
  }
  return out;
}

bool Reference::agrees(const Memory& outputs) const {
  return std::ranges::all_of(outputs_, [&](const Output& o) {
    const auto size = static_cast<size_t>(dtype_size(o.dtype));
    const AlignedBuffer& found = outputs.at(o.value);
    for (size_t i = 0; i + size <= o.over_zeros.size(); i += size) {
      const std::byte* expected = &o.over_zeros[i];
      if (std::memcmp(expected, &o.over_ones[i], size) != 0) {
        if (!is_nan(expected, o.dtype) || !is_nan(&o.over_ones[i], o.dtype)) continue;
      }
      if (std::memcmp(expected, found.data() + i, size) == 0) continue;
      if (!is_nan(expected, o.dtype) || !is_nan(found.data() + i, o.dtype)) return false;
    }
    return true;
  });
}

}  // namespace pyc::tune

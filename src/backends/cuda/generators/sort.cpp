// Sorting of f32 along rows that lie one after the other: a block a row, by its digits of 8 bits
// from the lowest on. A warp has a stretch of the row; 32 elements at a time, threads with the same
// digit find each other, so that equal ones keep their order. Keys are integers that are ordered as
// the floats are, NaN last, with the place they come from below them.

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cuda/emitter.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kLeastLength = 128;
constexpr int64_t kLongestSort = int64_t{1} << 28;
constexpr int64_t kMostSortWarps = 32;
constexpr int64_t kElementsOfWarp = 256;    // before there is another one
constexpr int64_t kBytesOfElement = 2 * 8;  // of two lists of keys and places
constexpr double kSortNs = 3.0;             // an element of a block
// Memory that blocks may have together; one block has it of at most one row.
constexpr int64_t kSortMemory = int64_t{256} << 20;

struct SortRows {
  uint32_t read = 0;  // buffers
  uint32_t values = 0;
  uint32_t places = 0;
  int64_t rows = 1;
  int64_t length = 0;
  bool descending = false;
};

// Rows of f32 along the last axis; both outputs are there.
std::optional<SortRows> sort_rows(const ir::Graph& graph, const ir::Node& node,
                                  const loop::Kernel& kernel) {
  const ir::TensorType& x = graph.values[node.inputs[0]].type;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const auto axis = std::get<int64_t>(node.attrs.at("axis"));
  if (rank == 0 || (axis != -1 && axis != rank - 1)) return std::nullopt;
  SortRows out{.length = x.shape.back(), .descending = std::get<bool>(node.attrs.at("descending"))};
  out.rows = kernel.parallel_size();
  int found = 0;
  for (uint32_t b = 0; b < kernel.buffers.size(); ++b) {
    const loop::Buffer& buffer = kernel.buffers[b];
    if (buffer.access == loop::Access::kScratch) continue;
    const bool read = buffer.access == loop::Access::kRead;
    const DType t = buffer.dtype;
    if (buffer.elements != out.rows * out.length ||
        (t != DType::kF32 && (read || t != DType::kI64))) {
      return std::nullopt;
    }
    (read ? out.read : t == DType::kF32 ? out.values : out.places) = b;
    ++found;
  }
  return found == 3 ? std::optional(out) : std::nullopt;
}

constexpr std::string_view kSortText = R"(PYC_SHARED u32 counts[{WARPS}][256];
PYC_SHARED u32 totals[256];
PYC_SHARED u32 bases[256];
const i32 lane = pyc_thread() % 32;
const i32 warp = pyc_thread() / 32;
const u32 below = (1u << lane) - 1u;
const i32 begin = warp * {STRETCH};
const i32 end = begin + {STRETCH} < {LENGTH} ? begin + {STRETCH} : {LENGTH};
PYC_GLOBAL u64* first = (PYC_GLOBAL u64*)workspace + (i64)pyc_block() * {LENGTH2};
PYC_GLOBAL u64* second = first + {LENGTH};
for (i32 row = pyc_block(); row < {ROWS}; row += pyc_blocks()) {{
PYC_GLOBAL const float* x = {X} + (i64)row * {LENGTH};
PYC_GLOBAL const u64* from = second;
PYC_GLOBAL u64* to = first;
for (i32 shift = 0; shift < 32; shift += 8) {{
for (i32 i = pyc_thread(); i < {WARPS} * 256; i += {THREADS}) counts[i / 256][i % 256] = 0u;
pyc_barrier();
for (i32 turn = 0; turn < 2; ++turn) {{
for (i32 at = begin; at < end; at += 256) {{
u64 pairs[8];
PYC_UNROLL for (i32 e = 0; e < 8; ++e) {{
const i32 i = at + e * 32 + lane;
pairs[e] = 0ull;
if (i < end) pairs[e] = shift == 0 ? (u64){SYMBOL}_key(x[i]) << 32 | (u32)i : from[i];
}}
PYC_UNROLL for (i32 e = 0; e < 8; ++e) {{
const bool there = at + e * 32 + lane < end;
const u32 digit = (u32)(pairs[e] >> (32 + shift)) & 255u;
const u32 same = pyc_match_u32(there ? digit : 256u);
const u32 rank = bases[digit] + counts[warp][digit] + (u32)pyc_bit_count(same & below);
pyc_warp_barrier();
if (there && (same & below) == 0u) counts[warp][digit] += (u32)pyc_bit_count(same);
pyc_warp_barrier();
if (turn == 0 || !there) continue;
if (shift < 24) {{
to[rank] = pairs[e];
}} else {{
const i32 place = (i32)(u32)pairs[e];
const float y = x[place];
{Y}[(i64)row * {LENGTH} + rank] = y != y ? pyc_bits_f32(0x7fc00000u) : y;
{P}[(i64)row * {LENGTH} + rank] = (i64)place;
}}
}}
}}
pyc_barrier();
if (turn == 1) continue;
for (i32 d = pyc_thread(); d < 256; d += {THREADS}) {{
u32 sum = 0u;
for (i32 w = 0; w < {WARPS}; ++w) {{
const u32 here = counts[w][d];
counts[w][d] = sum;
sum += here;
}}
totals[d] = sum;
}}
pyc_barrier();
for (i32 d = pyc_thread(); d < 256; d += {THREADS}) {{
u32 sum = 0u;
for (i32 b = 0; b < d; ++b) sum += totals[b];
bases[d] = sum;
}}
pyc_barrier();
}}
from = to;
to = to == first ? second : first;
}}
}}
)";

// The order of floats as that of integers: -0 is 0, a NaN is above all.
constexpr std::string_view kKeyText = R"(PYC_FN u32 {SYMBOL}_key(float x) {{
const u32 bits = x == 0x0p+0f ? 0u : pyc_f32_bits(x);
const u32 up = bits ^ ((bits >> 31) != 0u ? 0xffffffffu : 0x80000000u);
return {NOT}(x != x ? 0xffffffffu : up);
}}
)";

KernelText sort_text(const loop::Kernel& kernel, const SortRows& rows) {
  const int64_t warps = std::clamp<int64_t>(rows.length / kElementsOfWarp, 1, kMostSortWarps);
  const int64_t stretch = ((rows.length + warps - 1) / warps + 31) / 32 * 32;
  const int64_t bytes = rows.length * kBytesOfElement;
  const int64_t blocks =
      std::min({rows.rows, std::max<int64_t>(kSortMemory / bytes, 1), kMostBlocks});
  KernelText out{.symbol = kUnitSymbol,
                 .form = "sort",
                 .text = "",
                 .buffers = parameters_of(kernel),
                 .blocks = static_cast<uint32_t>(blocks),
                 .threads = static_cast<uint32_t>(warps * 32),
                 .workspace_bytes = blocks * bytes};
  fmt::dynamic_format_arg_store<fmt::format_context> names;
  names.push_back(fmt::arg("SYMBOL", kUnitSymbol));
  names.push_back(fmt::arg("NOT", rows.descending ? "~" : ""));
  names.push_back(fmt::arg("X", buffer_name(rows.read)));
  names.push_back(fmt::arg("Y", buffer_name(rows.values)));
  names.push_back(fmt::arg("P", buffer_name(rows.places)));
  names.push_back(fmt::arg("ROWS", rows.rows));
  names.push_back(fmt::arg("LENGTH", rows.length));
  names.push_back(fmt::arg("LENGTH2", 2 * rows.length));
  names.push_back(fmt::arg("WARPS", warps));
  names.push_back(fmt::arg("THREADS", warps * 32));
  names.push_back(fmt::arg("STRETCH", stretch));
  out.text = fmt::vformat(kKeyText, names) + kernel_head(out, kernel, true) + " {\n" +
             fmt::vformat(kSortText, names) + "}\n";
  return out;
}

class Sort final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                              const lower::Group& group) const override {
    if (group.members.size() != 1) return {};
    const ir::Node& node = graph.nodes[group.members[0]];
    if (node.op->name != "sort") return {};
    backends::Candidate c;
    c.name = "f32_sort";
    c.order = group.order;
    const auto rows = sort_rows(graph, node, group.kernel);
    if (!rows || rows->length < kLeastLength || rows->length > kLongestSort ||
        rows->rows >= kMostRows) {
      c.rejected = "no_rows_of_f32";
      return {c};
    }
    KernelText text = sort_text(group.kernel, *rows);
    const int64_t turns = (rows->rows + kMultiprocessors - 1) / kMultiprocessors;
    c.cost_ns = kLaunchNs + kSortNs * static_cast<double>(turns * rows->length);
    c.needs.workspace_bytes = text.workspace_bytes;
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(make_part(std::move(text), group.kernel, group));
    c.plan = std::move(plan);
    return {c};
  }

 private:
  static constexpr int64_t kMostRows = int64_t{1} << 30;
};

}  // namespace

const KernelGenerator& generator_sort() {
  static const Sort generator;
  return generator;
}

}  // namespace pyc::cuda

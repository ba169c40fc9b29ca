// Running sums of f32 along rows that lie one after the other. A lane of a warp has a block of
// 1024, which it adds up one after the other as the order wants; a warp brings 32 such blocks near,
// 32 elements at a time. First all blocks' totals, then what stands before each block in its
// super-block and before each super-block, then the sums themselves. Bits are those of the group's
// kernel.

#include <fmt/args.h>
#include <fmt/format.h>

#include <optional>

#include "backends/cuda/emitter.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

constexpr int64_t kScanBlock = 1024;
constexpr int64_t kScanThreads = 128;
constexpr int64_t kLeastScanBlocks = 64;
constexpr int64_t kMostScanBlocks = int64_t{1} << 24;
constexpr int64_t kLongestScan = int64_t{1} << 30;  // places in a row are i32
constexpr double kScanBytesPerNs = 2000.0;

struct ScanRows {
  uint32_t read = 0;  // buffers
  uint32_t written = 0;
  int64_t rows = 1;
  int64_t length = 0;
  int64_t blocks() const { return (length + kScanBlock - 1) / kScanBlock; }
  int64_t supers() const { return (blocks() + kScanBlock - 1) / kScanBlock; }
};

bool is_plain_cumsum(const ir::Node& node) {
  if (node.op->name != "cumsum") return false;
  const auto is_set = [&](const char* name) {
    const auto found = node.attrs.find(name);
    return found != node.attrs.end() && std::get<bool>(found->second);
  };
  return !is_set("exclusive") && !is_set("reverse");
}

std::optional<ScanRows> scan_rows(const lower::Group& group) {
  const loop::Kernel& kernel = group.kernel;
  if (kernel.body.size() != 1 || kernel.body[0].kind != loop::StmtKind::kLoop) return std::nullopt;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  const bool plain = kernel.buffers.size() == 2 && kernel.stores.size() == 1 &&
                     kernel.checks.empty() && kernel.loops.size() == 1;
  if (!plain || !counts_rows(kernel, l, kernel.stores[0].offset)) return std::nullopt;
  ScanRows out{
      .written = kernel.stores[0].buffer, .rows = kernel.parallel_size(), .length = l.extent};
  int loads = 0;
  for (loop::ExprId e = 0; e < kernel.pool.size(); ++e) {
    const loop::ExprNode& n = kernel.pool.node(e);
    if (n.op != loop::Op::kLoad) continue;
    if (n.b != loop::kNone || n.a != kernel.stores[0].offset) return std::nullopt;
    out.read = static_cast<uint32_t>(n.imm);
    ++loads;
  }
  const auto is_f32 = [&](uint32_t b) { return kernel.buffers[b].dtype == DType::kF32; };
  if (loads != 1 || out.read == out.written || !is_f32(out.read) || !is_f32(out.written)) {
    return std::nullopt;
  }
  return out;
}

class ScanWriter {
 public:
  ScanWriter(const loop::Kernel& kernel, const ScanRows& rows) : kernel_(kernel), rows_(rows) {
    const auto whole = [](int64_t floats) { return (floats * 4 + 255) / 256 * 256; };
    const int64_t units = rows.rows * rows.blocks();
    const int64_t bases = whole(units);
    bytes_ = bases + whole(rows.rows * rows.supers());
    names_.push_back(fmt::arg("X", buffer_name(rows.read)));
    names_.push_back(fmt::arg("Y", buffer_name(rows.written)));
    names_.push_back(fmt::arg("LENGTH", rows.length));
    names_.push_back(fmt::arg("BLOCKS", rows.blocks()));
    names_.push_back(fmt::arg("SUPERS", rows.supers()));
    names_.push_back(fmt::arg("UNITS", units));
    names_.push_back(fmt::arg("BASES", bases));
    place_ = in(rows.rows == 1 ? kPlaceInOneRow : kPlace);
    names_.push_back(fmt::arg("PLACE", place_));
  }

  std::vector<KernelText> texts() {
    std::vector<KernelText> out;
    const int64_t units = rows_.rows * rows_.blocks();
    const int64_t blocks = (units + kScanThreads - 1) / kScanThreads;
    out.push_back(
        made("scan totals", blocks, walk("", "", "if (mine < {UNITS}) carries[mine] = local;\n")));
    out.push_back(made("scan carries", rows_.rows * rows_.supers(), carries()));
    if (has_base()) out.push_back(made("scan bases", rows_.rows, bases()));
    out.push_back(made("scan sums", blocks, sums()));
    return out;
  }

 private:
  // Element `at + lane` of block `unit + i`: where it lies, and whether there is one.
  static constexpr std::string_view kPlaceInOneRow =
      R"(const i32 spot = (unit + i) * 1024 + at + lane;
const bool there = spot < {LENGTH};
)";
  static constexpr std::string_view kPlace =
      R"(const i32 j = (unit + i) % {BLOCKS} * 1024 + at + lane;
const i64 spot = (i64)((unit + i) / {BLOCKS}) * {LENGTH} + j;
const bool there = unit + i < {UNITS} && j < {LENGTH};
)";

  bool has_base() const { return rows_.supers() > 1; }
  std::string in(std::string_view form) const { return fmt::vformat(form, names_); }

  KernelText made(const std::string& form, int64_t blocks, const std::string& body) const {
    KernelText out{.symbol = kUnitSymbol,
                   .form = form,
                   .text = "",
                   .buffers = parameters_of(kernel_),
                   .blocks = static_cast<uint32_t>(blocks),
                   .threads = static_cast<uint32_t>(kScanThreads),
                   .workspace_bytes = bytes_};
    const std::string head = in(R"(PYC_GLOBAL float* carries = (PYC_GLOBAL float*)workspace;
PYC_GLOBAL float* bases = (PYC_GLOBAL float*)(workspace + {BASES}ll);
)");
    out.text = kernel_head(out, kernel_, true) + " {\n" + head + body + "}\n";
    return out;
  }

  // Adds up the lane's block; `each` is done with every sum, `after` with every 32 of them.
  std::string walk(const std::string& each, const std::string& after, std::string_view last) const {
    return in(R"(const i32 lane = pyc_thread() % 32;
const i32 quarter = pyc_thread() / 32;
PYC_SHARED float tile[4][32][33];
const i32 unit = pyc_block() * 128 + quarter * 32;
const i32 mine = unit + lane;
const i32 begin = mine % {BLOCKS} * 1024;
)") + (each.empty() ? "" : in(R"(const float carry = mine < {UNITS} ? carries[mine] : 0x0p+0f;
const float base = mine < {UNITS} ? bases[mine / {BLOCKS} * {SUPERS} + mine % {BLOCKS} / 1024] : 0x0p+0f;
)")) + in(R"(float local = 0x0p+0f;
for (i32 at = 0; at < 1024; at += 32) {{
PYC_UNROLL for (i32 i = 0; i < 32; ++i) {{
{PLACE}tile[quarter][i][lane] = there ? {X}[spot] : 0x0p+0f;
}}
pyc_warp_barrier();
PYC_UNROLL for (i32 c = 0; c < 32; ++c) {{
if (begin + at + c < {LENGTH}) local = pyc_add_f32(local, tile[quarter][lane][c]);
)") + each +
           "}\npyc_warp_barrier();\n" + after + "}\n" + in(last);
  }

  std::string sums() const {
    const std::string each = fmt::format(
        "const float sum = {};\n"
        "tile[quarter][lane][c] = sum != sum ? pyc_bits_f32(0x7fc00000u) : sum;\n",
        has_base() ? "pyc_add_f32(base, pyc_add_f32(carry, local))" : "pyc_add_f32(carry, local)");
    return walk(each, in(R"(PYC_UNROLL for (i32 i = 0; i < 32; ++i) {{
{PLACE}if (there) {Y}[spot] = tile[quarter][i][lane];
}}
pyc_warp_barrier();
)"),
                "");
  }

  // In place of each of `count` values the sum of those before; the whole sum goes to `total`.
  static constexpr std::string_view kBefore = R"(PYC_SHARED float near[1024];
for (i32 n = pyc_thread(); n < count; n += 128) near[n] = values[n];
pyc_barrier();
if (pyc_thread() == 0) {
float sum = 0x0p+0f;
i32 n = 0;
for (; n + 16 <= count; n += 16) {
float x[16];
PYC_UNROLL for (i32 e = 0; e < 16; ++e) x[e] = near[n + e];
PYC_UNROLL for (i32 e = 0; e < 16; ++e) { near[n + e] = sum; sum = pyc_add_f32(sum, x[e]); }
}
for (; n < count; ++n) {
const float x = near[n];
near[n] = sum;
sum = pyc_add_f32(sum, x);
}
if (total) *total = sum;
}
pyc_barrier();
for (i32 n = pyc_thread(); n < count; n += 128) values[n] = near[n];
)";

  std::string carries() const {
    return in(R"(const i32 row = pyc_block() / {SUPERS};
const i32 super = pyc_block() % {SUPERS};
const i32 count = {BLOCKS} - super * 1024 < 1024 ? {BLOCKS} - super * 1024 : 1024;
PYC_GLOBAL float* values = carries + ((i64)row * {BLOCKS} + super * 1024);
PYC_GLOBAL float* total = bases + pyc_block();
)") + std::string(kBefore);
  }

  std::string bases() const {
    return in(R"(const i32 count = {SUPERS};
PYC_GLOBAL float* values = bases + (i64)pyc_block() * {SUPERS};
PYC_GLOBAL float* total = 0;
)") + std::string(kBefore);
  }

  const loop::Kernel& kernel_;
  ScanRows rows_;
  int64_t bytes_ = 0;
  std::string place_;
  fmt::dynamic_format_arg_store<fmt::format_context> names_;
};

class Scan final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                              const lower::Group& group) const override {
    if (group.members.size() != 1 || !is_plain_cumsum(graph.nodes[group.members[0]])) return {};
    backends::Candidate c;
    c.name = "f32_scan";
    c.order = group.order;
    const auto rows = scan_rows(group);
    if (!rows) {
      c.rejected = "no_rows_of_f32";
    } else if (rows->rows * rows->blocks() < kLeastScanBlocks ||
               rows->rows * rows->blocks() > kMostScanBlocks || rows->length > kLongestScan) {
      c.rejected = "too_few_or_many_blocks";
    }
    if (!c.rejected.empty()) return {c};
    c.cost_ns = 4 * kLaunchNs + static_cast<double>(group.bytes) / kScanBytesPerNs;
    auto plan = std::make_shared<CudaPlan>();
    for (KernelText& text : ScanWriter(group.kernel, *rows).texts()) {
      c.needs.workspace_bytes = text.workspace_bytes;
      plan->parts.push_back(make_part(std::move(text), group.kernel, group));
    }
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_scan() {
  static const Scan generator;
  return generator;
}

}  // namespace pyc::cuda

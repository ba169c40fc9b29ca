// A long row for few points, over the whole device: the first kernel reduces each block of 1024 by
// a warp, the second joins the blocks of each super-block, the third the super-blocks, in order,
// and does the rest of the kernel. Bits are those of the group's kernel.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "backends/cuda/row_emitter.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

using loop::StmtKind;

constexpr int64_t kLeastBlocks = 32;  // of a row that is worth three launches
constexpr int64_t kMostWidePoints = 2 * kMultiprocessors;
constexpr int64_t kMostSupers = 1024;
constexpr int64_t kBlocksOfSuper = loop::kTreeSuperBlock / loop::kTreeBlock;
constexpr int64_t kWideThreads = 128;
constexpr double kWideBytesPerNs = 3000.0;

int64_t quotient_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One pass that only reduces, then stores: what the kernel must be.
const loop::Loop* only_reduction(const loop::Kernel& kernel) {
  if (kernel.body.empty() || kernel.body[0].kind != StmtKind::kLoop) return nullptr;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  const bool stores = std::all_of(kernel.body.begin() + 1, kernel.body.end(),
                                  [](const auto& s) { return s.kind == StmtKind::kStore; });
  return l.body.empty() && !l.reductions.empty() && stores ? &l : nullptr;
}

class WideWriter {
 public:
  WideWriter(const loop::Kernel& kernel, const loop::Loop& l, const std::vector<bool>& unaligned)
      : kernel_(kernel), l_(l), unaligned_(unaligned) {
    points_ = kernel.parallel_size();
    blocks_ = quotient_of(l.extent, loop::kTreeBlock);
    supers_ = quotient_of(blocks_, kBlocksOfSuper);
    for (loop::VarId v : kernel.parallel) extents_.push_back(kernel.pool.var_info(v).extent);
    for (const loop::Reduction& r : l.reductions) {
      const int64_t size = dtype_size(kernel_.pool.var_info(r.result).dtype);
      for (const int64_t count : {blocks_, supers_}) {
        places_.push_back(bytes_);
        bytes_ += quotient_of(points_ * count * size, kBufferBytes) * kBufferBytes;
      }
    }
  }

  std::vector<KernelText> texts() { return {block_text(), super_text(), rest_text()}; }

 private:
  static constexpr int64_t kBufferBytes = 256;

  DType dtype(const loop::Reduction& r) const { return kernel_.pool.var_info(r.result).dtype; }
  std::string name(const loop::Reduction& r) const { return fmt::format("r{}", r.result); }
  KernelText empty(const std::string& form, int64_t blocks, int64_t threads) const {
    return {.symbol = kUnitSymbol,
            .form = form,
            .text = "",
            .buffers = {},
            .blocks = static_cast<uint32_t>(blocks),
            .threads = static_cast<uint32_t>(threads),
            .workspace_bytes = bytes_};
  }
  // Pointers to what blocks (part 0) or super-blocks (1) of reduction `i` came to.
  std::string pointer(size_t i, int part) const {
    const loop::Reduction& r = l_.reductions[i];
    return fmt::format("PYC_GLOBAL {0}* {1}_{2} = (PYC_GLOBAL {0}*)(workspace + {3}ll);\n",
                       memory_type(dtype(r)), name(r), part == 0 ? "blocks" : "supers",
                       places_[2 * i + static_cast<size_t>(part)]);
  }

  KernelText block_text();
  KernelText super_text();
  KernelText rest_text();
  std::string join_all(size_t i, const std::string& from, const std::string& count) const;

  const loop::Kernel& kernel_;
  const loop::Loop& l_;
  const std::vector<bool>& unaligned_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> places_;  // of blocks and super-blocks of each reduction
  int64_t bytes_ = 0;
  int64_t points_ = 0;
  int64_t blocks_ = 0;  // of a row
  int64_t supers_ = 0;
};

KernelText WideWriter::block_text() {
  const int64_t warps = points_ * blocks_;
  const int64_t of_block = kWideThreads / cuda_dialect().warp;
  KernelText out = empty("wide blocks", quotient_of(warps, of_block), kWideThreads);
  out.buffers = parameters_of(kernel_);
  RowEmitter emitter(kernel_, cuda_dialect(), kUnitSymbol, unaligned_);
  declare_digits(emitter, "point", "i32", kernel_.parallel, extents_);
  emitter.one_block();
  for (size_t i = 0; i < l_.reductions.size(); ++i) {
    const std::string r = name(l_.reductions[i]);
    emitter.line(pointer(i, 0) + fmt::format("if (lane == 0) {0}_blocks[unit] = {0};", r));
  }
  const std::string body = emitter.close_scope();
  out.text =
      emitter.tables() + kernel_head(out, kernel_, true) +
      fmt::format(
          " {{\nconst i32 lane = pyc_thread() % {0};\n"
          "const i32 unit = pyc_block() * {1} + pyc_thread() / {0};\n"
          "if (unit >= {2}) return;\nconst i32 point = unit / {3};\n"
          "const i32 first = unit % {3} * {4} + lane * {5};\n",
          cuda_dialect().warp, of_block, warps, blocks_, loop::kTreeBlock, RowEmitter::kPair) +
      emitter.head() + body + "}\n";
  return out;
}

// Brings `count` values, at most 1024, near and joins them in order; the first thread has the
// result in `total`.
std::string WideWriter::join_all(size_t i, const std::string& from,
                                 const std::string& count) const {
  const loop::Reduction& r = l_.reductions[i];
  const DType t = dtype(r);
  return fmt::format(
      "PYC_SHARED {0} near{1}[{2}];\n"
      "for (i32 n = pyc_thread(); n < {3}; n += {4}) near{1}[n] = {5}[n];\npyc_barrier();\n"
      "{6} total{1} = {7};\nif (pyc_thread() == 0) {{\ni32 n = 0;\n"
      "for (; n + 16 <= {3}; n += 16) {{\n{6} x[16];\n"
      "PYC_UNROLL for (i32 e = 0; e < 16; ++e) x[e] = ({6})near{1}[n + e];\n"
      "PYC_UNROLL for (i32 e = 0; e < 16; ++e) total{1} = {8};\n}}\n"
      "for (; n < {3}; ++n) total{1} = {9};\n}}\n",
      memory_type(t), i, kBlocksOfSuper, count, kWideThreads, from, value_type(t),
      identity_text(r.op, t), join_text(r.op, t, fmt::format("total{}", i), "x[e]"),
      join_text(r.op, t, fmt::format("total{}", i),
                fmt::format("({})near{}[n]", value_type(t), i)));
}

KernelText WideWriter::super_text() {
  KernelText out = empty("wide super-blocks", points_ * supers_, kWideThreads);
  std::string body = fmt::format(
      "const i32 point = pyc_block() / {0};\nconst i32 super = pyc_block() % {0};\n"
      "const i32 count = {1} - super * {2} < {2} ? {1} - super * {2} : {2};\n",
      supers_, blocks_, kBlocksOfSuper);
  for (size_t i = 0; i < l_.reductions.size(); ++i) {
    const std::string r = name(l_.reductions[i]);
    body += pointer(i, 0) + pointer(i, 1) +
            join_all(i,
                     fmt::format("({}_blocks + ((i64)point * {} + super * {}))", r, blocks_,
                                 kBlocksOfSuper),
                     "count") +
            fmt::format("if (pyc_thread() == 0) {}_supers[pyc_block()] = total{};\n", r, i);
  }
  out.text = kernel_head(out, kernel_, true) + " {\n" + body + "}\n";
  return out;
}

KernelText WideWriter::rest_text() {
  KernelText out = empty("wide rest", points_, kWideThreads);
  out.buffers = parameters_of(kernel_);
  Emitter emitter(kernel_, cuda_dialect(), kUnitSymbol);
  emitter.line("const i32 point = pyc_block();");
  declare_digits(emitter, "point", "i32", kernel_.parallel, extents_);
  for (size_t i = 0; i < l_.reductions.size(); ++i) {
    const loop::Reduction& r = l_.reductions[i];
    emitter.line(pointer(i, 1) +
                 join_all(i, fmt::format("({}_supers + (i64)point * {})", name(r), supers_),
                          fmt::format("{}", supers_)));
    emitter.declare(r.result, fmt::format("total{}", i));
  }
  emitter.line("if (pyc_thread() != 0) return;");
  for (size_t s = 1; s < kernel_.body.size(); ++s) {
    emitter.store(kernel_.stores[kernel_.body[s].index]);
    emitter.end_statement();
  }
  out.text = emitter.tables() + emitter.finished(kernel_head(out, kernel_, true));
  return out;
}

class WideReduction final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    if (group.contraction || group.attention || group.order != lower::kCanonicalOrder) return {};
    const loop::Kernel kernel = loop::without_calls(group.kernel);
    const loop::Loop* l = only_reduction(kernel);
    if (l == nullptr || l->extent < kLeastBlocks * loop::kTreeBlock) return {};
    const int64_t points = kernel.parallel_size();
    const int64_t blocks = quotient_of(l->extent, loop::kTreeBlock);
    const std::vector<bool> unaligned = unaligned_buffers(group);
    backends::Candidate c;
    c.name = "wide_reduction";
    c.order = group.order;
    if (points < 1 || points > kMostWidePoints || blocks > kMostSupers * kBlocksOfSuper ||
        points * blocks * cuda_dialect().warp >= INT32_MAX) {
      c.rejected = "points_or_row_too_many";
    } else if (!RowEmitter(kernel, cuda_dialect(), kUnitSymbol, unaligned).fits()) {
      c.rejected = "no_single_pass";
    } else if (parameters_of(kernel).size() + 3 > kMostParameters) {
      c.rejected = "too_many_buffers";
    }
    if (!c.rejected.empty()) return {c};
    c.cost_ns = 3 * kLaunchNs + 4000.0 + static_cast<double>(group.bytes) / kWideBytesPerNs;
    auto plan = std::make_shared<CudaPlan>();
    for (KernelText& text : WideWriter(kernel, *l, unaligned).texts()) {
      c.needs.workspace_bytes = text.workspace_bytes;
      plan->parts.push_back(make_part(std::move(text), group.kernel, group));
    }
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_wide_reduction() {
  static const WideReduction generator;
  return generator;
}

}  // namespace pyc::cuda

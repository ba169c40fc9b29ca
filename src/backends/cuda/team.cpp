#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"

namespace pyc::cuda {
namespace {

using loop::kNone;
using loop::ReduceKind;
using loop::StmtKind;

constexpr int64_t kMostWarps = 16;
constexpr int64_t kTeamsOfWarps = 4;  // of a block whose teams are single warps
constexpr int64_t kSharedBytes = 44 * 1024;
constexpr int64_t kSharedParts = 8 * 1024;
// Blocks of a launch whose teams have memory in the workspace.
constexpr int64_t kBlocksWithMemory = 528;

// Whether the loop's iterations may run on different threads of a team.
bool is_spread(const loop::Loop& l) {
  if (l.vector) return true;
  if (l.ordered || !l.carries.empty() || l.reductions.empty()) return false;
  return std::all_of(l.reductions.begin(), l.reductions.end(),
                     [](const auto& r) { return r.kind != ReduceKind::kChain; }) &&
         std::all_of(l.body.begin(), l.body.end(),
                     [](const auto& s) { return s.kind == StmtKind::kCheck; });
}

// The longest loop that a team would share.
int64_t longest_spread(const loop::Kernel& kernel, const std::vector<loop::Stmt>& body) {
  int64_t longest = 0;
  for (const loop::Stmt& s : body) {
    if (s.kind != StmtKind::kLoop) continue;
    const loop::Loop& l = kernel.loops[s.index];
    const int64_t here = is_spread(l)
                             ? std::min(l.extent, l.chunk_var == kNone ? l.extent : l.chunk)
                             : longest_spread(kernel, l.body);
    longest = std::max(longest, here);
  }
  return longest;
}

class TeamEmitter : public Emitter {
 public:
  TeamEmitter(const loop::Kernel& kernel, const Dialect& dialect, const std::string& symbol,
              int64_t longest)
      : Emitter(kernel, dialect, symbol) {
    const int64_t wanted = (longest + loop::kTreeBlock - 1) / loop::kTreeBlock;
    warps_ = std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted))),
                                 1, kMostWarps);
    teams_ = warps_ == 1 ? kTeamsOfWarps : 1;
    shares_memory_ = meets_others(kernel);
    place_scratch();
  }

  int64_t threads() const { return warps_ * teams_ * dialect_.warp; }
  int64_t teams() const { return teams_; }
  int64_t memory_of_team() const { return memory_; }
  const std::string& head() const { return head_; }

  void body(const std::vector<loop::Stmt>& statements) {
    for (const loop::Stmt& s : statements) {
      if (s.kind == StmtKind::kStore) team_store(kernel_.stores[s.index]);
      if (s.kind == StmtKind::kCheck) check(kernel_.checks[s.index], "if (t == 0) ");
      if (s.kind == StmtKind::kLoop) {
        const loop::Loop l = kernel_.loops[s.index];
        if (is_spread(l)) {
          spread_loop(l);
        } else {
          run_loop(l, [&](const std::vector<loop::Stmt>& inner) { body(inner); });
        }
      }
      end_statement();
    }
  }

 private:
  // Whether one thread may read or write over what another one wrote.
  static bool meets_others(const loop::Kernel& kernel) {
    if (kernel.scratch_bytes() > 0) return true;
    std::vector<int> stores(kernel.buffers.size(), 0);
    for (const loop::Store& s : kernel.stores) {
      if (++stores[s.buffer] > 1) return true;
    }
    for (loop::ExprId e = 0; e < kernel.pool.size(); ++e) {
      const loop::ExprNode& n = kernel.pool.node(e);
      if (n.op == loop::Op::kLoad && stores[static_cast<size_t>(n.imm)] > 0) return true;
    }
    return false;
  }

  std::string sync() const { return warps_ == 1 ? "pyc_warp_barrier();" : "pyc_barrier();"; }
  void sync_if_shared() {
    if (shares_memory_) line(sync());
  }

  // `count` elements for each team of a block: in shared memory while there is some, else in the
  // workspace.
  void place(const std::string& type, const std::string& name, int64_t count, int64_t size,
             int64_t limit) {
    const int64_t bytes = (count * size + 15) / 16 * 16;
    if (bytes * teams_ <= limit && shared_ + bytes * teams_ <= kSharedBytes) {
      shared_ += bytes * teams_;
      head_ += fmt::format(
          "PYC_SHARED PYC_ALIGN16 {0} {1}_shared[{2}];\nPYC_NEAR {0}* {1} = {1}_shared + team * "
          "{3};\n",
          type, name, bytes / size * teams_, bytes / size);
      return;
    }
    head_ += fmt::format("PYC_GLOBAL {0}* {1} = (PYC_GLOBAL {0}*)(memory + {2}ll);\n", type, name,
                         memory_);
    memory_ += (bytes + 63) / 64 * 64;
  }

  void place_scratch() {
    for (uint32_t i = 0; i < kernel_.buffers.size(); ++i) {
      const loop::Buffer& b = kernel_.buffers[i];
      if (b.access != loop::Access::kScratch) continue;
      place(memory_type(b.dtype), buffer_name(i), std::max<int64_t>(b.elements, 1),
            dtype_size(b.dtype), kSharedBytes);
    }
  }

  void team_store(const loop::Store& s) {
    const bool guarded = shares_memory_;
    if (guarded) {
      // What the value reads is read by all before it changes.
      value(s.offset);
      value(s.value);
      line(sync());
    }
    store(s, "if (t == 0) ");
    if (guarded) line(sync());
  }

  // Joins the variable over the warp, distances halving; the first thread has the result.
  void join_warp(const loop::Reduction& r, const std::string& name) {
    const DType t = pool_.var_info(r.result).dtype;
    for (int h = dialect_.warp / 2; h > 0; h /= 2) {
      const std::string other = shuffle_text("down", name, t, fmt::format(", {}u", h));
      line(fmt::format("{} = {};", name, join_text(r.op, t, name, other)));
    }
  }

  void spread_loop(const loop::Loop& l) {
    if (l.extent <= 0) return empty_loop(l);
    sync_if_shared();
    const bool tree = std::any_of(l.reductions.begin(), l.reductions.end(),
                                  [](const auto& r) { return r.kind == ReduceKind::kTree; });
    for (const loop::Reduction& r : l.reductions) {
      const DType t = pool_.var_info(r.result).dtype;
      line(fmt::format("{} {} = {};", value_type(t), name_of(r), identity_text(r.op, t)));
      if (r.kind == ReduceKind::kTree) {
        line(fmt::format("{} {}_super = {};", value_type(t), name_of(r), identity_text(r.op, t)));
      }
      place_parts(l, r);
    }
    if (tree) {
      tree_loop(l);
    } else {
      plain_loop(l);
    }
    for (const loop::Reduction& r : l.reductions) {
      finish(l, r);
      declare(r.result, name_of(r));
    }
    sync_if_shared();
  }

  static int64_t blocks_of(const loop::Loop& l) {
    return (l.extent + loop::kTreeBlock - 1) / loop::kTreeBlock;
  }

  // What warps of a block tell each other.
  void place_parts(const loop::Loop& l, const loop::Reduction& r) {
    if (warps_ == 1) return;
    const DType t = pool_.var_info(r.result).dtype;
    const int64_t count = r.kind == ReduceKind::kTree ? blocks_of(l) : warps_;
    place(memory_type(t), name_of(r) + "_parts", count, dtype_size(t), kSharedParts);
  }

  std::string iteration(const loop::Loop& l, const std::string& name) {
    open_scope();
    declare(l.var, name);
    serial_body(l.body);
    const int lanes = loop::kTreeLanes / dialect_.warp;
    for (const loop::Reduction& r : l.reductions) {
      const DType t = pool_.var_info(r.result).dtype;
      const std::string x = t == DType::kI64 ? wide(r.value) : value(r.value);
      const std::string guard = r.guard == kNone ? "" : fmt::format("if ({}) ", value(r.guard));
      if (r.kind == ReduceKind::kExact) {
        line(fmt::format("{}{} = {};", guard, name_of(r), join_text(r.op, t, name_of(r), x)));
        continue;
      }
      std::string step;
      for (int i = 0; i < lanes; ++i) {
        const std::string lane = fmt::format("{}_l{}", name_of(r), i);
        step += fmt::format("{}if (k % {} == {}) {} = {};", i == 0 ? "" : " else ", lanes, i, lane,
                            join_text(r.op, t, lane, x));
      }
      line(guard.empty() ? step : fmt::format("{}{{ {} }}", guard, step));
    }
    end_statement();
    return close_scope();
  }

  void plain_loop(const loop::Loop& l) {
    const auto [first, end] = bounds(l);
    const std::string name = fmt::format("j{}", l.var);
    const std::string text = iteration(l, name);
    line(fmt::format("for ({0} {1} = {2} + t; {1} < {3}; {1} += {4}) {{\n{5}}}", var_type(l.var),
                     name, first, end, warps_ * dialect_.warp, text));
  }

  // A warp takes whole blocks of 1024: its thread t has the lanes t, t + warp, ….
  void tree_loop(const loop::Loop& l) {
    const int lanes = loop::kTreeLanes / dialect_.warp;
    const std::string name = fmt::format("j{}", l.var);
    const std::string type = var_type(l.var);
    const std::string text = iteration(l, name);
    const int64_t longest = std::min(l.extent, loop::kTreeBlock);
    const int64_t rounds = (longest + dialect_.warp - 1) / dialect_.warp;
    open_scope();
    for (const loop::Reduction& r : l.reductions) {
      if (r.kind != ReduceKind::kTree) continue;
      const DType t = pool_.var_info(r.result).dtype;
      for (int i = 0; i < lanes; ++i) {
        line(fmt::format("{} {}_l{} = {};", value_type(t), name_of(r), i, identity_text(r.op, t)));
      }
    }
    line(fmt::format(
        "PYC_UNROLL4 for (i32 k = 0; k < {0}; ++k) {{\n"
        "const {1} {2} = ({1})block * {3} + k * {4} + lane;\nif ({2} < {5}) {{\n{6}}}\n}}",
        rounds, type, name, loop::kTreeBlock, dialect_.warp, l.extent, text));
    for (const loop::Reduction& r : l.reductions) {
      if (r.kind == ReduceKind::kTree) join_block(l, r, lanes);
    }
    const std::string inner = close_scope();
    line(fmt::format("for (i32 block = warp; block < {}; block += {}) {{\n{}}}", blocks_of(l),
                     warps_, inner));
  }

  // The join of one block's lanes, and of the block to what is there.
  void join_block(const loop::Loop& l, const loop::Reduction& r, int lanes) {
    const DType t = pool_.var_info(r.result).dtype;
    const auto lane = [&](int i) { return fmt::format("{}_l{}", name_of(r), i); };
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        line(fmt::format("{} = {};", lane(i), join_text(r.op, t, lane(i), lane(i + half))));
      }
    }
    join_warp(r, lane(0));
    if (warps_ > 1) {
      line(fmt::format("if (lane == 0) {}_parts[block] = {};", name_of(r), lane(0)));
      return;
    }
    line(fmt::format("{} = {};", lane(0), shuffle_text("first", lane(0), t, "")));
    line(join_up(l, r, lane(0)));
  }

  // A block's sum joins its super-block, a whole super-block the total.
  std::string join_up(const loop::Loop& l, const loop::Reduction& r, const std::string& x) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string super = name_of(r) + "_super";
    constexpr int64_t kBlocks = loop::kTreeSuperBlock / loop::kTreeBlock;
    return fmt::format(
        "{0} = {1};\nif (block % {2} == {3} || block == {4}) {{ {5} = {6}; {0} = {7}; }}", super,
        join_text(r.op, t, super, x), kBlocks, kBlocks - 1, blocks_of(l) - 1, name_of(r),
        join_text(r.op, t, name_of(r), super), identity_text(r.op, t));
  }

  // Gives every thread the reduction's result.
  void finish(const loop::Loop& l, const loop::Reduction& r) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string name = name_of(r);
    const std::string part = name + "_parts";
    if (r.kind == ReduceKind::kExact) {
      join_warp(r, name);
      if (warps_ == 1) {
        line(fmt::format("{} = {};", name, shuffle_text("first", name, t, "")));
        return;
      }
      line(fmt::format("if (lane == 0) {}[warp] = {};\npyc_barrier();", part, name));
      line(fmt::format("{0} = {1}[0];\nfor (i32 w = 1; w < {2}; ++w) {0} = {3};\npyc_barrier();",
                       name, part, warps_,
                       join_text(r.op, t, name, "(" + value_type(t) + ")" + part + "[w]")));
      return;
    }
    if (warps_ == 1) return;
    line("pyc_barrier();");
    line(fmt::format("for (i32 block = 0; block < {}; ++block) {{\n{}\n}}\npyc_barrier();",
                     blocks_of(l), join_up(l, r, part + "[block]")));
  }

  int64_t warps_ = 1;
  int64_t teams_ = 1;
  int64_t shared_ = 0;
  int64_t memory_ = 0;  // of a team, in the workspace
  bool shares_memory_ = false;
  std::string head_;
};

}  // namespace

std::string word_type(DType t) { return dtype_size(t) == 8 ? "u64" : "u32"; }

std::string as_word(const std::string& x, DType t) {
  if (t == DType::kF32) return fmt::format("pyc_f32_bits({})", x);
  if (t == DType::kF64) return fmt::format("pyc_f64_bits({})", x);
  return fmt::format("({}){}", word_type(t), x);
}

std::string from_word(const std::string& x, DType t) {
  if (t == DType::kF32) return fmt::format("pyc_bits_f32({})", x);
  if (t == DType::kF64) return fmt::format("pyc_bits_f64({})", x);
  return fmt::format("({}){}", value_type(t), x);
}

std::string shuffle_text(const std::string& how, const std::string& x, DType t,
                         const std::string& by) {
  return from_word(fmt::format("pyc_shuffle_{}_{}({}{})", how, word_type(t), as_word(x, t), by), t);
}

std::optional<KernelText> team_text(const loop::Kernel& kernel, const std::string& symbol,
                                    const Dialect& dialect, int64_t least_extent) {
  const int64_t longest = longest_spread(kernel, kernel.body);
  if (longest < least_extent) return std::nullopt;
  TeamEmitter emitter(kernel, dialect, symbol, longest);
  const int64_t points = kernel.parallel_size();
  const std::string type = counter_type(points);
  std::vector<int64_t> extents;
  for (loop::VarId v : kernel.parallel) extents.push_back(kernel.pool.var_info(v).extent);
  emitter.open_scope();
  declare_digits(emitter, "point", type, kernel.parallel, extents);
  emitter.body(kernel.body);
  const std::string body = emitter.close_scope();

  KernelText out{.symbol = symbol,
                 .form = fmt::format("team of {}", emitter.threads() / emitter.teams()),
                 .text = "",
                 .buffers = parameters_of(kernel)};
  out.threads = static_cast<uint32_t>(emitter.threads());
  const int64_t teams = emitter.teams();
  const int64_t most = emitter.memory_of_team() > 0 ? kBlocksWithMemory : kMostBlocks;
  out.blocks = static_cast<uint32_t>(std::min((points + teams - 1) / teams, most));
  out.workspace_bytes = emitter.memory_of_team() * teams * out.blocks;
  const int64_t team_threads = emitter.threads() / teams;
  std::string head = fmt::format(
      "const i32 team = pyc_thread() / {0};\nconst i32 t = pyc_thread() % {0};\n"
      "const i32 warp = t / {1};\nconst i32 lane = t % {1};\n",
      team_threads, dialect.warp);
  if (emitter.memory_of_team() > 0) {
    head += fmt::format(
        "PYC_GLOBAL char* memory = workspace + ((i64)pyc_block() * {} + team) * {}ll;\n", teams,
        emitter.memory_of_team());
  }
  head += emitter.head();
  const std::string loop = fmt::format(
      "for ({0} point = ({0})pyc_block() * {1} + team; point < {2}; point += ({0})pyc_blocks() * "
      "{1}) {{\n{3}}}",
      type, teams, points, body);
  // What was computed once for all points stands in the emitter's outermost scope.
  const std::string once = emitter.close_scope();
  out.text =
      emitter.tables() + kernel_head(out, kernel, true) + " {\n" + head + once + loop + "\n}\n";
  return out;
}

}  // namespace pyc::cuda

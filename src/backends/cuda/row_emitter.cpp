#include "backends/cuda/row_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {

using loop::Affine;
using loop::ExprId;
using loop::kNone;
using loop::ReduceKind;
using loop::StmtKind;

namespace {

// What a thread keeps of its row, in registers: at most half of those it can have.
constexpr int64_t kKeptBytes = 384;
constexpr int64_t kRegisterBytes = int64_t{256} << 10;  // of a multiprocessor
constexpr int64_t kMostWarpsOfBlock = 32;
// A block of more warps would be alone on its multiprocessor, where nothing is read meanwhile it
// computes: then several blocks have a row together, small ones, so that parts of several rows are
// on a multiprocessor.
constexpr int64_t kWarpsBesideOthers = 16;
constexpr int64_t kWarpsOfPart = 8;
// Halves that several passes read take half the registers of the numbers they stand for, so that
// more warps have room beside each other; fewer of them where such numbers are kept as well.
constexpr int64_t kWarpsOfHalves = 48;
constexpr int64_t kWarpsOfBoth = 40;
constexpr int64_t kMostTogether = 8;  // blocks of a cluster on every device
// Where a device is asked for them: for rows of which a block of eight would be alone all the same.
constexpr int64_t kMostAsked = 16;
// What a thread reads of rows before it computes: a store in between would hold up what is read
// behind it, since it may be to the same place.
constexpr int64_t kBatchBytes = 64;
// Operations of a pass, written out for every element of a thread.
constexpr int64_t kMostWrittenOut = 8192;

// The passes over a row that are all of a kernel but for what is computed once a row; empty where
// it has another shape.
std::vector<loop::Loop> passes_of(const loop::Kernel& kernel) {
  std::vector<loop::Loop> passes;
  for (const loop::Stmt& s : kernel.body) {
    if (s.kind != StmtKind::kLoop) continue;
    const loop::Loop& l = kernel.loops[s.index];
    const bool fits = l.vector && !l.ordered && l.carries.empty() && l.chunk_var == kNone &&
                      (passes.empty() || l.extent == passes[0].extent) &&
                      std::none_of(l.body.begin(), l.body.end(),
                                   [](const auto& t) { return t.kind == StmtKind::kLoop; });
    if (!fits) return {};
    passes.push_back(l);
  }
  return passes;
}

}  // namespace

RowEmitter::RowEmitter(const loop::Kernel& kernel, const Dialect& dialect,
                       const std::string& symbol, const std::vector<bool>& unaligned)
    : Emitter(kernel, dialect, symbol), passes_(passes_of(kernel)), unaligned_(unaligned) {
  if (passes_.empty()) return;
  extent_ = passes_[0].extent;
  warps_ = (extent_ + loop::kTreeBlock - 1) / loop::kTreeBlock;
  const int64_t of_round = dialect.warp * kPair;
  rounds_ = (std::min(extent_, loop::kTreeBlock) + of_round - 1) / of_round;
  is_even_ = extent_ % kPair == 0;
  bool keeps_halves = false;
  for (const loop::Loop& l : passes_) {
    each_row_load(l, [&](ExprId, const RowLoad& load) {
      if (++passes_with_[load.key()] > 1 && is_half(load.dtype)) keeps_halves = true;
    });
  }
  const bool has_scratch =
      std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                  [](const auto& b) { return b.access == loop::Access::kScratch; });
  if (keeps_halves) warps_beside_ = has_scratch ? kWarpsOfBoth : kWarpsOfHalves;
  if (warps_ > (warps_beside_ == kWarpsOfBoth ? kWarpsOfPart : kWarpsBesideOthers)) {
    together_ = std::min((warps_ + kWarpsOfPart - 1) / kWarpsOfPart, kMostTogether);
    if (warps_ > kMostTogether * kWarpsBesideOthers) together_ = kMostAsked;
  }
  block_warps_ = (warps_ + together_ - 1) / together_;
  is_whole_ = extent_ % (warps_ == 1 ? of_round : loop::kTreeBlock) == 0 &&
              block_warps_ * together_ == warps_;
  in_turns_ = together_ > 1 && resident() == 1 && kernel_.parallel_size() > clusters_at_once();
  brought_ = row_to_bring();
  in_turns_ = in_turns_ || brought_;
}

// Where the thread's first element of a row is, under a name for the rest of the row: the others
// are at distances that the compiler knows then.
std::string RowEmitter::pointer(uint32_t buffer, const Affine& base) {
  std::string& name = pointers_[{buffer, base.constant, {base.terms.begin(), base.terms.end()}}];
  if (!name.empty()) return name;
  name = fmt::format("a{}", pointers_.size());
  const loop::Buffer& b = kernel_.buffers[buffer];
  line(fmt::format("PYC_GLOBAL {}{}* const {} = {} + {} + first;",
                   b.access == loop::Access::kRead ? "const " : "", memory_type(b.dtype), name,
                   buffer_name(buffer), value(from_affine(pool_, base))));
  return name;
}

// The element that is as far behind the first one as the round says.
std::string RowEmitter::at_round(const std::string& pointer) const {
  return fmt::format("{} + k * {}", pointer, dialect_.warp * kPair);
}

std::string RowEmitter::in_range() const {
  return is_whole_ ? "" : fmt::format("if (j0 < {}) ", extent_);
}

std::string RowEmitter::round_head(const std::string& from, int64_t rounds) const {
  return fmt::format(
      "PYC_UNROLL for (i32 k = {0}; k < {0} + {1}; ++k) {{\nconst i32 j0 = first + k * {2};\n",
      from, rounds, dialect_.warp * kPair);
}

// Elements of a scratch row that only the thread which has them stores and loads.
bool RowEmitter::keeps_scratch(uint32_t buffer) {
  const DType t = kernel_.buffers[buffer].dtype;
  if (t == DType::kBool || is_narrow_int(t) || t == DType::kF4E2M1) return false;
  const auto is_own = [&](ExprId offset) {
    return std::any_of(passes_.begin(), passes_.end(),
                       [&](const loop::Loop& l) { return offset == pool_.var(l.var); });
  };
  const bool stores =
      std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                  [&](const loop::Store& s) { return s.buffer != buffer || is_own(s.offset); });
  if (!stores) return false;
  for (ExprId e = 0; e < pool_.size(); ++e) {
    const loop::ExprNode n = pool_.node(e);
    if (n.op != loop::Op::kLoad || static_cast<uint32_t>(n.imm) != buffer) continue;
    if (n.b != kNone || !is_own(n.a)) return false;
  }
  return true;
}

std::vector<ExprId> RowEmitter::used_by(const loop::Loop& l) {
  std::vector<bool> used(pool_.size(), false);
  std::vector<ExprId> out;
  std::vector<ExprId> open;
  const auto mark = [&](ExprId e) {
    if (e == kNone || used[e]) return;
    used[e] = true;
    open.push_back(e);
  };
  for (const loop::Stmt& s : l.body) {
    if (s.kind == StmtKind::kStore) mark(kernel_.stores[s.index].value);
    if (s.kind == StmtKind::kCheck) mark(kernel_.checks[s.index].ok);
  }
  for (const loop::Reduction& r : l.reductions) {
    mark(r.value);
    mark(r.guard);
  }
  while (!open.empty()) {
    const ExprId e = open.back();
    open.pop_back();
    out.push_back(e);
    const loop::ExprNode n = pool_.node(e);
    for (const ExprId o : {n.a, n.b, n.c}) mark(o);
  }
  std::sort(out.begin(), out.end());
  return out;
}

int64_t RowEmitter::operations(const loop::Loop& l) {
  int64_t count = 0;
  for (const ExprId e : used_by(l)) count += depends_on(pool_, e, l.var) ? 1 : 0;
  return count * rounds_ * kPair;
}

// One block has less to keep than all of its registers where another one is beside it.
int64_t RowEmitter::beside() const {
  if (together_ == 1) return 0;
  int64_t wanted = 0;
  for (const auto& [key, passes] : passes_with_) {
    const DType t = kernel_.buffers[std::get<uint32_t>(key)].dtype;
    if (passes > 1) wanted += rounds_ * kPair * dtype_size(t);
  }
  int64_t beside = std::max<int64_t>(warps_beside_ / block_warps_, 1);
  while (beside > 1 && wanted > bytes_of_thread(beside) / 2) --beside;
  return beside;
}

// Of registers, with so many blocks on a multiprocessor.
int64_t RowEmitter::bytes_of_thread(int64_t blocks) const {
  const int64_t warps = std::min(block_warps_, kMostWarpsOfBlock);
  return kRegisterBytes / (std::max<int64_t>(blocks, 1) * warps * dialect_.warp);
}

bool RowEmitter::fits() {
  if (passes_.empty() || extent_ < dialect_.warp) return false;
  std::vector<int> stores(kernel_.buffers.size(), 0);
  for (const loop::Store& s : kernel_.stores) ++stores[s.buffer];
  for (uint32_t b = 0; b < kernel_.buffers.size(); ++b) {
    const loop::Access access = kernel_.buffers[b].access;
    if (access == loop::Access::kWrite && stores[b] > 1) return false;
    if (access == loop::Access::kScratch && !keeps_scratch(b)) return false;
  }
  for (ExprId e = 0; e < pool_.size(); ++e) {
    const loop::ExprNode& n = pool_.node(e);
    if (n.op != loop::Op::kLoad) continue;
    if (kernel_.buffers[static_cast<size_t>(n.imm)].access == loop::Access::kWrite) return false;
  }
  return std::all_of(passes_.begin(), passes_.end(),
                     [&](const loop::Loop& l) { return operations(l) <= kMostWrittenOut; });
}

// The offset without the pass's variable, if the elements of a row lie side by side.
std::optional<Affine> RowEmitter::base_of(const loop::Loop& l, ExprId offset) {
  Affine sum = affine_of(pool_, offset);
  const ExprId var = pool_.var(l.var);
  if (sum.coefficient(var) != 1) return std::nullopt;
  erase_if(sum.terms, [&](const auto& term) { return term.first == var; });
  for (const auto& [atom, c] : sum.terms) {
    if (depends_on(pool_, atom, l.var)) return std::nullopt;
  }
  return sum;
}

bool RowEmitter::lies_in_pairs(uint32_t buffer, const Affine& base) const {
  if (!is_even_ || (buffer < unaligned_.size() && unaligned_[buffer])) return false;
  return base.constant % kPair == 0 &&
         std::all_of(base.terms.begin(), base.terms.end(),
                     [](const auto& term) { return term.second % kPair == 0; });
}

// The thread's pair of a round.
std::string RowEmitter::pair_of(const RowLoad& load) {
  return fmt::format("*(PYC_GLOBAL const pyc_v{}*)({})", kPair * dtype_size(load.dtype),
                     at_round(pointer(load.buffer, load.base)));
}

// Whether nothing but the point decides the value.
bool RowEmitter::is_known(ExprId e) const {
  const loop::ExprNode n = pool_.node(e);
  if (n.op == loop::Op::kVar) {
    const auto& all = kernel_.parallel;
    return std::find(all.begin(), all.end(), static_cast<loop::VarId>(n.imm)) != all.end();
  }
  for (const ExprId o : {n.a, n.b, n.c}) {
    if (o != kNone && !is_known(o)) return false;
  }
  return true;
}

std::optional<RowEmitter::RowLoad> RowEmitter::row_load(const loop::Loop& l, ExprId e) {
  const loop::ExprNode n = pool_.node(e);
  if (n.op != loop::Op::kLoad || n.b != kNone) return std::nullopt;
  if (is_narrow_int(n.dtype) || n.dtype == DType::kF4E2M1) return std::nullopt;
  const auto buffer = static_cast<uint32_t>(n.imm);
  const loop::Buffer& b = kernel_.buffers[buffer];
  if (b.access != loop::Access::kRead) return std::nullopt;
  const loop::ExprNode& offset = pool_.node(n.a);
  if (offset.lo < 0 || offset.hi >= b.elements) return std::nullopt;  // read where it is used
  const std::optional<Affine> base = base_of(l, n.a);
  if (!base) return std::nullopt;
  return RowLoad{buffer, n.dtype, *base};
}

void RowEmitter::set_loaded(ExprId e, DType t, const std::string& pair) {
  const std::string element = pair + "[i]";
  loaded_[e] = t == DType::kBool ? "(" + element + " != 0)" : element;
  if (is_half(t)) paired_[e] = fmt::format("*(pyc_v4*){}, i", pair);
}

// Reads the thread's elements of a row into registers, as long as there are some to spare.
void RowEmitter::keep(const RowLoad& load) {
  if (held_.contains(load.key())) return;
  const int64_t size = dtype_size(load.dtype);
  const int64_t bytes = rounds_ * kPair * size;
  const int64_t own = bytes_of_thread(beside());
  if (is_kept(load) || kept_bytes_ + bytes > std::min(kKeptBytes, own / 2)) return;
  kept_bytes_ += bytes;
  const std::string name = fmt::format("x{}", kept_.size());
  kept_[load.key()] = name;
  if (brought_ && brought_->row.key() == load.key()) return take_brought(load, name);
  if (is_refilled(load)) {
    refilled_[load.key()] = load;
    once_ += fmt::format("PYC_ALIGN16 {} {}[{}][{}];\n{}*(pyc_v{}*){}[k] = {};\n}}\n",
                         memory_type(load.dtype), name, rounds_, kPair, round_head("0", rounds_),
                         kPair * size, name,
                         of_point(load, fmt::format("(pyc_block() / {})", together_)));
    return;
  }
  std::string move;
  if (lies_in_pairs(load.buffer, load.base)) {
    move = fmt::format("{}*(pyc_v{}*){}[k] = {};\n", in_range(), kPair * size, name, pair_of(load));
  } else {
    const std::string from = at_round(pointer(load.buffer, load.base));
    for (int64_t i = 0; i < kPair; ++i) {
      move +=
          fmt::format("if (j0 + {0} < {1}) {2}[k][{0}] = ({3})[{0}];\n", i, extent_, name, from);
    }
  }
  line(fmt::format("PYC_ALIGN16 {} {}[{}][{}];\n{}{}}}", memory_type(load.dtype), name, rounds_,
                   kPair, round_head("0", rounds_), move));
}

// Keeps the compiler from keeping what a pass before made of halves in the place of these, which
// takes twice as many registers.
void RowEmitter::take_anew(const RowLoad& load) {
  if (together_ == 1 || !is_half(load.dtype)) return;
  const std::string word = "*(pyc_v4*)" + kept_[load.key()] + "[k]";
  line(fmt::format("PYC_UNROLL for (i32 k = 0; k < {0}; ++k) {1} = pyc_unknown_word({1});", rounds_,
                   word));
}

// What the pass takes of rows: kept, or read in front of each batch of rounds.
RowEmitter::Batches RowEmitter::read_loads(const loop::Loop& l) {
  Batches out;
  std::map<Key, std::string> read;
  std::vector<RowLoad> loads;
  int64_t bytes = 0;
  std::set<Key> anew;
  each_row_load(l, [&](ExprId e, const RowLoad& load) {
    if (is_kept(load) && anew.insert(load.key()).second) take_anew(load);
    if (passes_with_[load.key()] > 1) keep(load);
    if (is_kept(load)) return set_loaded(e, load.dtype, kept_[load.key()] + "[k]");
    if (!lies_in_pairs(load.buffer, load.base)) return;
    std::string& name = read[load.key()];
    if (const auto held = held_.find(load.key()); held != held_.end()) {
      if (name.empty()) {
        name = fmt::format("z{}", stored_++);
        out.near += fmt::format(
            "PYC_ALIGN16 {0} {1}[{2}];\n*(pyc_v{3}*){1} = *(PYC_NEAR const pyc_v{3}*){4};\n",
            memory_type(load.dtype), name, kPair, kPair * dtype_size(load.dtype),
            own_pair(held->second));
      }
      return set_loaded(e, load.dtype, name);
    }
    if (name.empty()) {
      name = fmt::format("z{}", stored_++);
      // Halves become numbers as they are read.
      bytes += kPair * (is_half(load.dtype) ? int64_t{sizeof(float)} : dtype_size(load.dtype));
      loads.push_back(load);
    }
    set_loaded(e, load.dtype, name + "[k - k0]");
  });
  for (const ExprId e : used_by(l)) {
    const loop::ExprNode n = pool_.node(e);
    if (n.op != loop::Op::kLoad) continue;
    const auto buffer = static_cast<uint32_t>(n.imm);
    if (kernel_.buffers[buffer].access == loop::Access::kScratch) {
      set_loaded(e, n.dtype, buffer_name(buffer) + "[k]");
    }
  }
  out.rounds = rounds_;
  // What the next row has in registers leaves fewer.
  const int64_t most = in_turns_ ? kBatchBytes / 2 : kBatchBytes;
  while (bytes > 0 && (out.rounds * bytes > most || rounds_ % out.rounds != 0)) {
    if (--out.rounds == 1) break;
  }
  std::string moves;
  for (const RowLoad& load : loads) {
    const std::string& name = read[load.key()];
    out.reads += fmt::format("PYC_ALIGN16 {} {}[{}][{}];\n", memory_type(load.dtype), name,
                             out.rounds, kPair);
    moves += fmt::format("{}*(pyc_v{}*){}[k - k0] = {};\n", in_range(),
                         kPair * dtype_size(load.dtype), name, pair_of(load));
  }
  if (!loads.empty()) out.reads += round_head("k0", out.rounds) + moves + "}\n";
  return out;
}

// In front of the rounds, where all of them know it.
void RowEmitter::name_pointer(const loop::Loop& l, const loop::Store& s) {
  if (kernel_.buffers[s.buffer].access == loop::Access::kScratch) return;
  const std::optional<Affine> base = base_of(l, s.offset);
  if (base && lies_in_pairs(s.buffer, *base)) pointer(s.buffer, *base);
}

void RowEmitter::row_store(const loop::Loop& l, const loop::Store& s, std::string& before,
                           std::string& after) {
  const loop::Buffer& b = kernel_.buffers[s.buffer];
  if (b.access == loop::Access::kScratch) {
    const std::string x = b.dtype == DType::kI64 ? wide(s.value) : value(s.value);
    line(fmt::format("{}[k][i] = ({}){};", buffer_name(s.buffer), memory_type(b.dtype), x));
    return;
  }
  const std::optional<Affine> base = base_of(l, s.offset);
  if (!base || !lies_in_pairs(s.buffer, *base)) return store(s);
  const std::string array = fmt::format("y{}", stored_++);
  const std::string to =
      sends()
          ? fmt::format("*(PYC_NEAR pyc_v{}*)({})", kPair * dtype_size(b.dtype), place_to_send())
          : fmt::format("*(PYC_GLOBAL pyc_v{}*)({})", kPair * dtype_size(b.dtype),
                        at_round(pointer(s.buffer, *base)));
  if (sends()) sent_to_ = pointer(s.buffer, *base);
  if (const auto half = rounded(s.value)) {
    line(fmt::format("{}[i] = {};", array, value(half->from)));
    before += fmt::format("float {}[{}];\n", array, kPair);
    after += fmt::format("{0} = {1}({2}[0], {2}[1]);\n", to, half->pair, array);
    return;
  }
  const std::string x = b.dtype == DType::kI64 ? wide(s.value) : value(s.value);
  line(fmt::format("{}[i] = ({}){};", array, memory_type(b.dtype), x));
  before += fmt::format("PYC_ALIGN16 {} {}[{}];\n", memory_type(b.dtype), array, kPair);
  after += fmt::format("{} = *(pyc_v{}*){};\n", to, kPair * dtype_size(b.dtype), array);
}

// Whether the statement checks something that all elements of the row have in common.
bool RowEmitter::is_of_row(const loop::Loop& l, const loop::Stmt& s) const {
  return s.kind == StmtKind::kCheck && !depends_on(pool_, kernel_.checks[s.index].ok, l.var);
}

// What one element of a round does.
void RowEmitter::element(const loop::Loop& l, std::string& before, std::string& after) {
  for (const loop::Stmt& s : l.body) {
    if (s.kind == StmtKind::kStore) row_store(l, kernel_.stores[s.index], before, after);
    if (s.kind == StmtKind::kCheck && !is_of_row(l, s)) check(kernel_.checks[s.index]);
    end_statement();
  }
  for (const loop::Reduction& r : l.reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string x = t == DType::kI64 ? wide(r.value) : value(r.value);
    const std::string guard = r.guard == kNone ? "" : fmt::format("if ({}) ", value(r.guard));
    const std::string lane = name_of(r) + (r.kind == ReduceKind::kTree ? "_l[i]" : "");
    line(fmt::format("{}{} = {};", guard, lane, join_text(r.op, t, lane, x)));
    end_statement();
  }
}

void RowEmitter::declare_lanes(const loop::Loop& l) {
  for (const loop::Reduction& r : l.reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string identity = identity_text(r.op, t);
    line(fmt::format("{} {} = {};", value_type(t), name_of(r), identity));
    if (r.kind == ReduceKind::kTree) {
      line(fmt::format("{0} {1}_l[2] = {{{2}, {2}}};", value_type(t), name_of(r), identity));
    }
  }
}

void RowEmitter::pass(const loop::Loop& l) {
  declare_lanes(l);
  for (const loop::Stmt& s : l.body) {
    if (!is_of_row(l, s)) continue;
    const loop::Check& c = kernel_.checks[s.index];
    if (checked_.insert({c.ok, c.code}).second) check(c, "if (t == 0) ");
    end_statement();
  }
  std::string before;
  std::string after;
  const Batches batches = read_loads(l);
  fetch_ahead(l);
  for (const loop::Stmt& s : l.body) {
    if (s.kind == StmtKind::kStore) name_pointer(l, kernel_.stores[s.index]);
  }
  open_scope();
  open_scope();
  declare(l.var, "j");
  element(l, before, after);
  const std::string inner = close_scope();
  const std::string outer = close_scope();
  const std::string each =
      is_even_ || is_whole_ ? inner : fmt::format("if (j < {}) {{\n{}}}\n", extent_, inner);
  const std::string guard = is_whole_ ? "" : in_range() + "{\n";
  // Of the last pass, rounds at a time where not all are.
  const bool is_last = l.var == passes_.back().var;
  const int64_t part = is_last && sends() ? brought_->sent_rounds : 0;
  const std::string rounds =
      round_head(batches.reads.empty() && part == 0 ? "0" : "k0",
                 part > 0 ? part : batches.rounds) +
      guard + batches.near + outer + before +
      fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) {{\nconst {} j = j0 + i;\n{}}}\n{}{}}}",
                  kPair, var_type(l.var), each, after,
                  (is_last ? refills() : std::string()) + (is_whole_ ? "" : "}\n"));
  if (is_last && sends()) {
    PYC_CHECK(batches.reads.empty(), "what is read beside a brought row is in shared memory");
    return line(sent_rounds(rounds));
  }
  if (batches.reads.empty()) {
    line(rounds);
    if (brought_ && blocks_of_warp() == 1 && l.var == passes_[0].var) bring_next();
    return;
  }
  line(fmt::format("PYC_UNROLL for (i32 k0 = 0; k0 < {}; k0 += {}) {{\n{}{}\n}}", rounds_,
                   batches.rounds, batches.reads, rounds));
}

// Joins lanes over the warp, distances halving; all threads have the result, since no join tells
// its sides apart. One half of the warp has the first lanes of pairs, the other the second ones, as
// soon as they are joined with the threads that are half a warp away.
void RowEmitter::join_warp(const loop::Reduction& r) {
  const DType t = pool_.var_info(r.result).dtype;
  const std::string name = name_of(r);
  const auto join = [&](int distance, const std::string& given) {
    const std::string other = shuffle_text("xor", given, t, fmt::format(", {}u", distance));
    line(fmt::format("{} = {};", name, join_text(r.op, t, name, other)));
  };
  const int half = dialect_.warp / 2;
  const bool tree = r.kind == ReduceKind::kTree;
  if (tree) {
    line(
        fmt::format("{0} = lane < {1} ? {0}_l[0] : {0}_l[1];\n"
                    "{0}_l[0] = lane < {1} ? {0}_l[1] : {0}_l[0];",
                    name, half));
  }
  join(half, tree ? name + "_l[0]" : name);
  for (int distance = half / 2; distance > 0; distance /= 2) join(distance, name);
  if (tree) join(half, name);
}

// What each warp has of the reductions, to where all of the row find it: the block, or every block
// of a cluster, whose gate knows how many bytes are to come. A cluster has one row, so that each
// gate opens once and a block has heard all that it is told before it leaves.
void RowEmitter::tell_parts(const std::vector<loop::Reduction>& reductions) {
  if (together_ == 1) {
    for (const loop::Reduction& r : reductions) {
      head_ += fmt::format("PYC_SHARED {} {}_parts[{}];\n",
                           memory_type(pool_.var_info(r.result).dtype), name_of(r), warps_);
      line(fmt::format("if (lane == 0) {0}_parts[warp] = {0};", name_of(r)));
    }
    return line("pyc_barrier();");
  }
  const std::string gate = name_of(reductions[0]) + "_gate";
  declare_told("u64", gate, 2);
  gates_ += fmt::format("if ({1} == 0) {{\npyc_gate_make({0});\npyc_gate_make({0} + 1);\n}}\n",
                        gate, thread());
  line(fmt::format("if ({} == 0) pyc_gate_expect({} + turn % 2, {});", thread(), gate,
                   told_bytes(reductions)));
  const int64_t count = block_warps_ * together_;
  for (const loop::Reduction& r : reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string name = name_of(r);
    declare_told(word_type(t), name + "_parts", 2 * count);
    // Of two blocks, each half of the warp tells one.
    const bool both = blocks_of_warp() > 1;
    const std::string own =
        both ? fmt::format("(lane < {0} ? {1}_b[0] : {1}_b[1])", together_, name) : name;
    line(fmt::format("{}pyc_tell_{}({}_parts, turn % 2 * {} + {}, {}, {} + turn % 2, {}, {});",
                     both ? "" : fmt::format("if (lane < {}) ", together_), word_type(t), name,
                     count, both ? fmt::format("warp * 2 + lane / {}", together_) : "warp",
                     2 * count, gate, both ? fmt::format("lane % {}", together_) : "lane",
                     as_word(own, t)));
  }
}

// That a block hears of the reductions.
int64_t RowEmitter::told_bytes(const std::vector<loop::Reduction>& reductions) const {
  int64_t bytes = 0;
  for (const loop::Reduction& r : reductions) {
    bytes += word_type(pool_.var_info(r.result).dtype) == "u64" ? 8 : 4;
  }
  return bytes * block_warps_ * together_;
}

// All parts in the tree's order; by one warp for its block where they are many.
void RowEmitter::join_parts(const std::vector<loop::Reduction>& reductions) {
  std::string joins;
  for (const loop::Reduction& r : reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string name = name_of(r);
    const std::string word =
        name + (together_ > 1 ? fmt::format("_parts[turn % 2 * {} + w]", block_warps_ * together_)
                              : "_parts[w]");
    const std::string part =
        together_ > 1 ? from_word(word, t) : fmt::format("({}){}", value_type(t), word);
    // The largest is the largest in any order: all threads of the warp look for it.
    const bool by_all =
        together_ > 1 && (r.op == loop::ReduceOp::kMax || r.op == loop::ReduceOp::kMin);
    if (blocks_of_warp() > 1) joins += value_type(t) + " ";
    joins += fmt::format("{0} = {1};\nPYC_UNROLL for (i32 w = {4}; w < {2}; w += {5}) {0} = {3};\n",
                         name, identity_text(r.op, t), warps_, join_text(r.op, t, name, part),
                         by_all ? "lane" : "0", by_all ? dialect_.warp : 1);
    for (int distance = by_all ? dialect_.warp / 2 : 0; distance > 0; distance /= 2) {
      const std::string other = shuffle_text("xor", name, t, fmt::format(", {}u", distance));
      joins += fmt::format("{} = {};\n", name, join_text(r.op, t, name, other));
    }
    if (together_ == 1) continue;
    declare_told(word_type(t), name + "_all", 1);
    joins += fmt::format("if (lane == 0) {}_all[0] = {};\n", name, as_word(name, t));
  }
  if (together_ == 1) return line(joins);
  line(fmt::format("if ({} < {}) {{\npyc_gate_pass({}_gate + turn % 2, {}, turn / 2);\n{}}}\n{}",
                   thread(), dialect_.warp, name_of(reductions[0]), told_bytes(reductions), joins,
                   barrier()));
  for (const loop::Reduction& r : reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    line(fmt::format("{}{} = {};", blocks_of_warp() > 1 ? value_type(t) + " " : "", name_of(r),
                     from_word(name_of(r) + "_all[0]", t)));
  }
}

// Gives every thread the results. A row is at most one super-block.
void RowEmitter::finish(const std::vector<loop::Reduction>& reductions) {
  for (const loop::Reduction& r : reductions) join_warp(r);
  if (warps_ > 1 && !reductions.empty()) {
    if (together_ > 1 && gates_.empty())
      line("if (turn == 0) pyc_together_wait();");  // for the others' gates
    tell_parts(reductions);
    join_parts(reductions);
  }
  declare_joined(reductions);
}

void RowEmitter::declare_joined(const std::vector<loop::Reduction>& reductions) {
  for (const loop::Reduction& r : reductions) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::string name = name_of(r);
    // A block joined to nothing, and a super-block: to do it twice changes nothing.
    if (r.kind == ReduceKind::kTree) {
      line(fmt::format("{} = {};", name, join_text(r.op, t, identity_text(r.op, t), name)));
    }
    declare(r.result, name);
  }
}

void RowEmitter::whole_rows(bool early) {
  if (in_turns_) {
    line(fmt::format("const {} next = {};", counter_type(kernel_.parallel_size()), next_point()));
  }
  for (uint32_t b = 0; b < kernel_.buffers.size(); ++b) {
    if (kernel_.buffers[b].access != loop::Access::kScratch) continue;
    line(fmt::format("PYC_ALIGN16 {} {}[{}][{}];", memory_type(kernel_.buffers[b].dtype),
                     buffer_name(b), rounds_, kPair));
  }
  if (brought_) bring_rows();
  if (in_turns_) hold_weights();
  if (brought_) {
    // Before all else, so that there are registers for it: what arrives must be taken.
    keep(brought_->row);
    PYC_CHECK(is_kept(brought_->row), "a row that is brought fits registers");
  }
  for (const loop::Loop& l : passes_) {
    if (!early || blocks_of_warp() > 1) break;
    each_row_load(l, [&](ExprId, const RowLoad& load) {
      if (is_known(from_affine(pool_, load.base))) keep(load);
    });
  }
  for (const loop::Stmt& s : kernel_.body) {
    if (s.kind == StmtKind::kStore) store(kernel_.stores[s.index], "if (t == 0) ");
    if (s.kind == StmtKind::kCheck) check(kernel_.checks[s.index], "if (t == 0) ");
    if (s.kind == StmtKind::kLoop && blocks_of_warp() > 1) {
      pass_of_both(kernel_.loops[s.index]);
    } else if (s.kind == StmtKind::kLoop) {
      pass(kernel_.loops[s.index]);
      finish(kernel_.loops[s.index].reductions);
    }
    end_statement();
  }
  if (in_turns_) line("++turn;");
  // Before the next row's parts.
  if (together_ == 1 && warps_ > 1) line("pyc_barrier();");
}

void RowEmitter::one_block() {
  in_turns_ = false;
  brought_.reset();
  each_row_load(passes_[0], [&](ExprId, const RowLoad& load) { keep(load); });
  pass(passes_[0]);
  for (const loop::Reduction& r : passes_[0].reductions) join_warp(r);
}

}  // namespace pyc::cuda

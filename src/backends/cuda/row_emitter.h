#pragma once

// Passes over rows by teams of warps: a warp has 1024 elements of a row, one block of its trees,
// and a thread two lanes of these side by side, the same in every pass. What it reads and keeps of
// a row stays in its registers. A row of many warps is that of a cluster of blocks, which tell each
// other their parts of a reduction through shared memory. Text around it declares `warp` and `lane`
// of a thread, `t` in its team, `first`, its first element, and `point`, the row.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backends/cuda/emitter.h"

namespace pyc::cuda {

class RowEmitter : public Emitter {
 public:
  static constexpr int64_t kPair = 2;  // lanes of a thread

  RowEmitter(const loop::Kernel& kernel, const Dialect& dialect, const std::string& symbol,
             const std::vector<bool>& unaligned);

  // Whether a thread can have its elements so; what threads leave to one another is refused.
  bool fits();
  int64_t extent() const { return extent_; }
  int64_t warps() const { return warps_; }  // of a whole row
  // Blocks that have a row together, warps of one, and blocks that must fit into a multiprocessor.
  int64_t together() const { return together_; }
  int64_t block_warps() const { return block_warps_; }
  int64_t resident() const { return brought_ ? 1 : beside(); }
  // Rows that a block has parts of at a time, each a team of its own threads.
  int64_t teams() const { return brought_ ? kTeamsOfBlock * blocks_of_warp() : 1; }
  int64_t team_warps() const { return block_warps_ / blocks_of_warp(); }
  int64_t blocks_of_warp() const { return brought_ ? brought_->blocks_of_warp : 1; }
  // Whether a cluster has one row after the other: then there are more than run at a time.
  bool in_turns() const { return in_turns_; }
  int64_t clusters_at_once() const;
  // Of shared memory, besides what the head declares; and what stands in front of the first row.
  int64_t shared_bytes() const { return shared_bytes_; }
  const std::string& once() const { return once_; }
  // Makes the gates by which the blocks of a row hear of each other; "" where they need none.
  const std::string& gates() const { return gates_; }
  const std::string& head() const { return head_; }
  // What stands behind the last row.
  const std::string& last() const { return last_; }
  // All of the kernel, a row at a time. Early: all loads that can begin at once do; else rows that
  // one pass alone reads are not kept.
  void whole_rows(bool early);
  // The first pass over one block of a row; then the first thread has the block's reductions under
  // their names.
  void one_block();

 private:
  using Key = std::tuple<uint32_t, int64_t, std::vector<std::pair<loop::ExprId, int64_t>>>;

  static constexpr int64_t kTeamsOfBlock = 2;
  static constexpr int64_t kBlocksOfBoth = 2;
  // Shared memory of a multiprocessor, and what a block takes of it besides its own.
  static constexpr int64_t kSharedOfAll = int64_t{228} << 10;
  static constexpr int64_t kSharedOfBlock = 1 << 10;
  static constexpr int64_t kClusterOfGroup = 16;  // the most blocks that run together

  int64_t beside() const;
  // Of a row, what a block has.
  int64_t bytes_of_block(DType t) const { return block_warps_ * loop::kTreeBlock * dtype_size(t); }
  int64_t bytes_of_thread(int64_t blocks) const;
  bool keeps_scratch(uint32_t buffer);
  int64_t operations(const loop::Loop& l);
  std::vector<loop::ExprId> used_by(const loop::Loop& l);
  std::optional<loop::Affine> base_of(const loop::Loop& l, loop::ExprId offset);
  bool lies_in_pairs(uint32_t buffer, const loop::Affine& base) const;
  bool is_known(loop::ExprId e) const;
  // A load of a row, by where it lies without the pass's variable.
  struct RowLoad {
    uint32_t buffer = 0;
    DType dtype = DType::kF32;
    loop::Affine base;
    Key key() const { return {buffer, base.constant, {base.terms.begin(), base.terms.end()}}; }
  };
  std::optional<RowLoad> row_load(const loop::Loop& l, loop::ExprId e);
  // A row that comes to shared memory before its turn.
  struct Brought {
    RowLoad row;
    int64_t blocks_of_warp = 1;  // of a row; where they are two, `q` says which
    int64_t sent_rounds = 0;     // that leave together, and how many such places a warp has
    int64_t sent_places = 0;
  };
  template <class Use>
  void each_row_load(const loop::Loop& l, Use use);
  bool is_kept(const RowLoad& load) const { return kept_.contains(load.key()); }
  void keep(const RowLoad& load);
  void take_anew(const RowLoad& load);
  std::string share(DType t, const std::string& name);
  int64_t told_shared(int64_t teams) const;
  void hold_weights();
  bool is_refilled(const RowLoad& load) const;
  std::string of_point(const RowLoad& load, const std::string& point) const;
  std::string refills();
  std::optional<Brought> row_to_bring();
  bool sends_alone();
  bool own_places() const { return is_half(brought_->row.dtype); }
  bool sends() const { return brought_ && brought_->sent_rounds > 0; }
  std::string next_point() const;
  bool can_have_both();
  bool divides_between_passes();
  void pass_of_both(const loop::Loop& l);
  std::string each_block(const std::string& text) const;
  void bring_rows();
  std::string bring(const std::string& point, const std::string& team) const;
  void take_brought(const RowLoad& load, const std::string& name);
  void bring_next();
  std::string sent_rounds(const std::string& text) const;
  std::string place_to_send() const;
  std::string thread() const { return brought_ ? "own" : "pyc_thread()"; }
  std::string barrier() const;
  void declare_told(std::string_view type, const std::string& name, int64_t count);
  std::string own_pair(const std::string& array) const;
  std::string pair_of(const RowLoad& load);
  // Rounds of a pass that are read for together, the text that does so, and what each round reads.
  struct Batches {
    int64_t rounds = 0;
    std::string reads;
    std::string near;
  };
  Batches read_loads(const loop::Loop& l);
  bool is_row_by_row(const loop::Affine& base) const;
  void fetch_ahead(const loop::Loop& l);
  void set_loaded(loop::ExprId e, DType t, const std::string& pair);
  std::string pointer(uint32_t buffer, const loop::Affine& base);
  std::string at_round(const std::string& pointer) const;
  void name_pointer(const loop::Loop& l, const loop::Store& s);
  std::string in_range() const;
  std::string round_head(const std::string& from, int64_t rounds) const;

  bool is_of_row(const loop::Loop& l, const loop::Stmt& s) const;
  void pass(const loop::Loop& l);
  void element(const loop::Loop& l, std::string& before, std::string& after);
  void row_store(const loop::Loop& l, const loop::Store& s, std::string& before,
                 std::string& after);
  void join_warp(const loop::Reduction& r);
  void tell_parts(const std::vector<loop::Reduction>& reductions);
  int64_t told_bytes(const std::vector<loop::Reduction>& reductions) const;
  void join_parts(const std::vector<loop::Reduction>& reductions);
  void declare_lanes(const loop::Loop& l);
  void finish(const std::vector<loop::Reduction>& reductions);
  void declare_joined(const std::vector<loop::Reduction>& reductions);

  std::vector<loop::Loop> passes_;
  const std::vector<bool>& unaligned_;
  int64_t extent_ = 0;
  int64_t warps_ = 1;
  int64_t rounds_ = 1;
  int64_t together_ = 1;
  int64_t block_warps_ = 1;
  std::string gates_;
  bool in_turns_ = false;
  std::optional<Brought> brought_;
  std::string sent_to_;
  int64_t shared_bytes_ = 0;
  std::string once_;
  std::string last_;
  std::map<Key, std::string> held_;  // in shared memory, for all rows
  std::map<Key, RowLoad> refilled_;  // kept, and read for the next row by the last pass
  bool is_even_ = false;
  bool is_whole_ = false;  // no thread is past the end
  int64_t kept_bytes_ = 0;
  int stored_ = 0;
  std::map<Key, int> passes_with_;  // how many read it
  int64_t warps_beside_ = 32;       // of a multiprocessor that has parts of rows
  std::map<Key, std::string> kept_;
  std::map<Key, std::string> pointers_;
  std::set<std::pair<loop::ExprId, int32_t>> checked_;  // once a row, with their codes
  std::string head_;
};

template <class Use>
void RowEmitter::each_row_load(const loop::Loop& l, Use use) {
  for (const loop::ExprId e : used_by(l)) {
    if (const auto load = row_load(l, e)) use(e, *load);
  }
}

}  // namespace pyc::cuda

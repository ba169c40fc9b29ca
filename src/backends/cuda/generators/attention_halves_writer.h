#pragma once

// Writes the kernel of an attention of halves. `attention_halves_text.cpp` has its blocks of keys,
// `attention_halves_copies.cpp` what is brought to shared memory, `attention_halves_results.cpp`
// what becomes of the sums.

#include <fmt/args.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/generators/attention_formulas.h"
#include "backends/cuda/generators/attention_halves_sizes.h"
#include "backends/cuda/generators/attention_halves_text.h"
#include "backends/cuda/generators/attention_limits.h"
#include "backends/cuda/tensor_map.h"

namespace pyc::cuda {

class HalvesWriter {
 public:
  HalvesWriter(const lower::Group& group, const AttentionCut& cut, const std::string& symbol);

  KernelText text();

 private:
  int64_t tiles() const { return (a_.queries + z_.tile_rows() - 1) / z_.tile_rows(); }
  // Of a block of threads.
  int64_t all_tiles() const {
    const int64_t all = a_.batch_size() * tiles();
    return z_.mixed ? (all + kMixedGroups - 1) / kMixedGroups : all;
  }
  int64_t parts() const { return (all_tiles() + z_.turns - 1) / z_.turns; }
  int64_t blocks() const { return (a_.keys + a_.block - 1) / a_.block; }
  bool values_apart() const { return z_.value_stages() != z_.stages; }
  const char* v_stage() const { return values_apart() ? "v_stage" : "stage"; }
  bool are_even() const { return parts() * z_.turns == all_tiles(); }  // every turn has a tile
  std::string in(std::string_view form) const { return fmt::vformat(form, names_); }

  void leave_scale_to_weights();
  void add_with_scale();
  loop::ExprId unscaled(loop::ExprId score);
  void find_quotient();
  bool is_rounded_quotient(loop::ExprId e);
  void find_reads();
  void find_maps();
  std::string head() const;
  std::string reads_of_head() const;
  std::string place_of_head() const;
  std::string place_in_batch() const;
  std::string tile(const char* turn) const;
  int64_t moved_on() const;
  std::string mixed_places() const;
  std::string mixed_tile(const char* turn) const;
  std::string own_tile() const;
  std::string passed_over() const;
  std::string pass_over(const char* stage, const char* parity) const;
  std::string bring_queries() const;
  std::string bring_box(char operand, const std::string& to, const std::string& gate,
                        const std::string& row) const;
  std::string bring_first() const;
  std::string copied_tiles() const;
  std::string tiles_of_queries() const;
  std::string bring_next() const;
  std::string next_tile() const;
  std::string next_stages() const;
  std::string blocks_of_keys() const;
  std::string behind_last() const;
  std::string place_of_queries(const char* slot) const;
  std::string products_of_keys(const char* view, const char* stage) const;
  std::string products_of_values() const;
  std::string scores() const;
  std::string scores_by(loop::ExprId formula) const;
  std::string largest_scores() const;
  std::string weights() const;
  std::string joined_sums(const char* first, int count, int distance) const;
  std::string whole_sums() const;
  std::string result_columns(bool by_reciprocal) const;
  std::string whole_words(uint32_t buffer) const;
  std::string results() const;

  // Copies `rows` rows of `width` columns by so many threads, this one being number `thread`.
  struct Copied {
    const char* name;    // of the operand
    const char* first;   // text: the tile's first row of it
    int64_t last;        // rows it has
    bool inside;         // no tile has rows past them
    int64_t rows;        // of the tile
    int64_t width;       // of the tile, a multiple of kPart
    int64_t columns;     // of the operand
    int64_t row_stride;  // of the operand
    std::string to;
  };
  std::string copied(const Copied& c) const;

  // An operand of all heads as one matrix, and where the head's begins in it (texts).
  struct Mapped {
    TensorMap map;
    std::string column;
    std::string row;
    int64_t width;  // of the tile
  };
  std::optional<Mapped> mapped(const lower::Attention::Operand& x, int64_t rows, int64_t width,
                               int64_t box_rows) const;
  // Block `j` of keys or of values ('k', 'v') into a stage of theirs (texts).
  std::string bring(char operand, const char* j, const char* stage) const;

  const lower::Attention& a_;
  // The compiler is told: left to choose registers itself, it takes as many and interleaves less.
  int64_t resident_;
  AttentionSizes z_;
  AttentionFormulas formulas_;
  KeyLimits limits_;
  loop::ExprId whole_ = loop::kNone;   // the score
  loop::ExprId within_ = loop::kNone;  // where all limits hold
  loop::ExprId weight_ = loop::kNone;
  bool scores_are_products_ = false;     // times a positive constant, or −inf
  double scale_ = 1.0;                   // of these scores, to those of the group
  bool weights_scale_ = true;            // that scale is a multiplication of their own
  loop::ExprId quotient_ = loop::kNone;  // something over the row's sum, in its result
  bool stored_quotient_ = false;         // that rounded to a half is the result
  std::vector<loop::ExprId> of_head_;    // that scores read, the same for all queries and keys
  bool reads_by_query_ = false;          // something else that scores read
  std::vector<Mapped> maps_;             // of q, k and v, where the device brings boxes of them
  fmt::dynamic_format_arg_store<fmt::format_context> names_;
};

}  // namespace pyc::cuda

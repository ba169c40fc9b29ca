#pragma once

// Text of a loop's body for one thread that has several neighbours along the loop: what lies side
// by side in memory is read and written up to 16 bytes at a time. Loops inside that do nothing but
// reduce, as over the taps of a window, run once for all neighbours.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/emitter.h"

namespace pyc::cuda {

class NeighbourEmitter : public Emitter {
 public:
  // `unaligned` marks buffers that may begin anywhere.
  NeighbourEmitter(const loop::Kernel& kernel, const Dialect& dialect, const std::string& symbol,
                   const loop::Loop& l, const std::vector<bool>& unaligned)
      : Emitter(kernel, dialect, symbol), loop_(l), unaligned_(unaligned) {}

  // How many neighbours along the loop one thread can have: 1 if there is something to keep it
  // from them.
  int64_t elements();

  // The loop's statements at j0 … j0 + v - 1, where element e is at j0 + e. `declare_more` declares
  // what else an element has.
  void emit_elements(int64_t v, const std::function<void()>& declare_more = {});

  // Whether the v neighbours of a load are read at once.
  bool reads_at_once(loop::ExprId load, int64_t v);
  // The thread has them already: text of 16 bytes.
  void give(loop::ExprId load, std::string text) { given_[load] = std::move(text); }

  // Stores' quotients are taken by `pyc_near_quotient`, and once more by division if one of a
  // thread's was not for it: a division branches, so that elements wait for each other.
  void divide_together() { together_ = true; }

 private:
  // Whether a loop inside of it can run for all neighbours together.
  bool only_reduces(const loop::Loop& l) const;
  // Whether it is not the same for all elements of a thread.
  bool varies(loop::ExprId e) const;
  bool reads_memory(loop::ExprId e) const;
  std::optional<loop::Affine> aligned_base(uint32_t buffer, loop::ExprId offset, int64_t v);
  bool all_stores_fit(int64_t v);
  std::string moves(const std::string& array, uint32_t buffer, const std::string& offset, int64_t v,
                    bool to_buffer);
  std::string place(const loop::Affine& base);
  // Emits `inner` for every element, after `roots`, which it uses, were read as far as they lie
  // side by side. What may run `again` does as divide_together says.
  void for_elements(int64_t v, const std::vector<loop::ExprId>& roots,
                    const std::function<void()>& declare_more, const std::function<void()>& inner,
                    bool again = false);
  std::string each_element(int64_t v, const std::string& body, bool again);
  void reduce_elements(const loop::Loop& l, int64_t v, const std::function<void()>& declare_more);
  void store_elements(int64_t v, const std::function<void()>& declare_more);
  void read_side_by_side(loop::ExprId e, int64_t v);
  std::string store_side_by_side(const loop::Store& s, int64_t v);
  void mark(loop::ExprId e);

  const loop::Loop loop_;
  const std::vector<bool>& unaligned_;
  std::string reads_;
  std::vector<bool> used_;
  std::map<loop::ExprId, std::string> given_;
  std::vector<loop::Reduction> reduced_;  // results that are there, by element
  int stored_ = 0;
  bool together_ = false;
};

}  // namespace pyc::cuda

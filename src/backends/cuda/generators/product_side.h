#pragma once

// How the threads of a team bring one operand's slab from memory to registers and from there to
// shared memory. Private to the generator.

#include <string>
#include <vector>

#include "backends/cuda/emitter.h"

namespace pyc::cuda {

// One operand of a product: `a` with the rows of a tile or `b` with its columns, called rows here.
class ProductSide {
 public:
  struct Shape {
    std::string name;     // "a" or "b": begins all names
    loop::VarId row;      // of the kernel; kNone: one row
    loop::VarId k;        // of the kernel
    int64_t rows = 0;     // in all
    int64_t terms = 0;    // of k
    int tile = 0;         // rows of a tile
    int depth = 0;        // of a slab
    int threads = 0;      // of a team
    bool ragged = false;  // slabs reach beyond the last term
  };
  // `value` is the operand's element, without calls; `unaligned` as for kernel_text.
  ProductSide(Emitter& emitter, loop::ExprId value, const std::vector<bool>& unaligned,
              Shape shape);

  int row_length() const { return shape_.tile + 4; }  // of shared memory, in floats
  // In the kernel's scope: declares the rows that this thread reads, from `origin` on.
  void declare_rows(const std::string& origin);
  std::string registers() const;  // their declaration
  // In the scope of a slab that begins at term `k0`: reads this thread's part of it.
  void emit_reads();
  // Text that puts the part, read at `k0`, to `to`, an array of depth × row_length floats.
  std::string writes(const std::string& to) const;

 private:
  bool rows_lie_closer(loop::ExprId value) const;
  void emit_read(size_t row);
  // Where thread t's unit of row slot `s` and step `j` lies in the slab.
  std::string row_text(int s) const;
  std::string k_text(const std::string& j) const;
  // Registers of row slot `s` at step j, and text for all steps.
  std::string unit(int s) const;
  std::string in_steps(const std::string& body) const;

  Emitter& emitter_;
  Shape shape_;
  bool along_k_ = false;  // neighbouring threads, and the elements of an access, lie along k
  int width_ = 1;         // elements of an access
  int units_ = 0;         // accesses of one thread for a slab
  int slots_ = 1;         // different rows among them
  loop::VarId k_ = loop::kNone;
  std::vector<loop::VarId> rows_;     // by slot
  std::vector<loop::ExprId> values_;  // by slot: the element
};

}  // namespace pyc::cuda

#pragma once

// The formulas of an attention, as kernel text: scores, weights, factors and results come from the
// group's Loop IR, whichever kernel computes them.

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/cuda/emitter.h"
#include "lower/types.h"

namespace pyc::cuda {

class AttentionFormulas {
 public:
  AttentionFormulas(const lower::Group& group, std::string symbol);

  const loop::Kernel& kernel() const { return kernel_; }  // the group's, its calls written out
  loop::Pool& pool() { return kernel_.pool; }             // for further formulas
  const std::string& symbol() const { return symbol_; }
  // A formula of the group in that kernel.
  loop::ExprId written(loop::ExprId formula) const { return written_.at(formula); }

  // Declares at0, at1, …: where `head`, a text, stands in the batch.
  std::string place_of(const std::string& head) const;
  // What `write` emits into the scope of an emitter that knows at0, at1, …
  template <class Write>
  std::string text(Write write) const {
    Emitter emitter(kernel_, cuda_dialect(), symbol_);
    declare_place(emitter);
    write(emitter);
    return emitter.close_scope();
  }
  // into = (type)value, an expression of the kernel over variables that already have these names.
  std::string assigned(const std::string& into, loop::ExprId value,
                       std::initializer_list<std::pair<loop::VarId, const char*>> known,
                       const std::string& type = "float") const;
  // Where an operand's first row of this head begins: "const T* name = …;"
  std::string operand(const char* name, const lower::Attention::Operand& x) const;

 private:
  void declare_place(Emitter& emitter) const;

  const lower::Attention& a_;
  std::string symbol_;
  loop::Kernel kernel_;
  std::unordered_map<loop::ExprId, loop::ExprId> written_;
};

// Whether so many elements of an operand's row, from any multiple of them on, lie side by side at
// a multiple of 16 bytes.
bool lies_by(int64_t elements, const lower::Group& group, const lower::Attention::Operand& x,
             int64_t extent);

}  // namespace pyc::cuda

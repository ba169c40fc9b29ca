#include "backends/cuda/generators/product_kernel.h"

#include <algorithm>
#include <utility>

#include "loop/function.h"

namespace pyc::cuda {

ProductKernel::ProductKernel(const lower::Contraction& c) : kernel(*c.kernel) {
  const loop::Loop columns = kernel.loops[kernel.body[0].index];
  uint32_t terms = 0;
  for (const loop::Stmt& s : columns.body) {
    if (s.kind == loop::StmtKind::kLoop) terms = s.index;
  }
  loop::Reduction& r = kernel.loops[terms].reductions[0];
  r.value = c.a.value;
  r.value2 = c.b.value;
  r.guard = loop::kNone;
  kernel = loop::without_calls(std::move(kernel));
  a = kernel.loops[terms].reductions[0].value;
  b = kernel.loops[terms].reductions[0].value2;
  for (const loop::Stmt& s : columns.body) {
    if (s.kind == loop::StmtKind::kStore) epilogue.push_back(kernel.stores[s.index]);
  }
}

bool is_side_by_side(const lower::Contraction::Operand& o, int64_t terms) {
  if (o.form != lower::Contraction::Form::kLinear || o.dtype != DType::kF32) return false;
  return o.k_stride == 1 && o.row_stride % 4 == 0 && o.base % 4 == 0 && terms % 4 == 0 &&
         std::ranges::all_of(o.batch_strides, [](int64_t s) { return s % 4 == 0; });
}

}  // namespace pyc::cuda

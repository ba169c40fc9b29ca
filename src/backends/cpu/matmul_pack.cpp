#include <algorithm>

#include "backends/cpu/matmul.h"
#include "base/aligned_buffer.h"

namespace pyc::cpu {

runtime::Parameter pack_b(const MatmulPlan& plan, const lower::Contraction& contraction,
                          const void* b_data) {
  const lower::Contraction::Operand& b = contraction.b;
  const auto bytes = static_cast<size_t>(plan.packed_bytes);
  Result<AlignedBuffer> made = AlignedBuffer::create(bytes);
  if (!made.ok()) return {};
  auto buffer = std::make_shared<AlignedBuffer>(std::move(made).value());
  auto* out = reinterpret_cast<float*>(buffer->data());
  for (int64_t matrix = 0; matrix < plan.b_matrices; ++matrix) {
    const float* source = static_cast<const float*>(b_data) + b.base;
    int64_t rest = matrix;
    for (size_t i = contraction.batch.size(); i-- > 0;) {
      if (b.batch_strides[i] == 0) continue;
      source += rest % contraction.batch[i] * b.batch_strides[i];
      rest /= contraction.batch[i];
    }
    for (int64_t panel = 0; panel < plan.panels; ++panel) {
      const int64_t column = panel * plan.tile_columns;
      const int64_t columns = std::min<int64_t>(plan.tile_columns, plan.n - column);
      for (int64_t k = 0; k < plan.k; ++k, out += plan.tile_columns) {
        const float* row = source + column * b.row_stride + k * b.k_stride;
        if (b.row_stride == 1) {
          std::copy_n(row, columns, out);
        } else {
          for (int64_t j = 0; j < columns; ++j) out[j] = row[j * b.row_stride];
        }
        std::fill(out + columns, out + plan.tile_columns, 0.0f);
      }
    }
  }
  runtime::Parameter parameter;
  parameter.data = buffer->data();
  parameter.bytes = plan.packed_bytes;
  parameter.owner = std::move(buffer);
  return parameter;
}

}  // namespace pyc::cpu

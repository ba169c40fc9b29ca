#include <algorithm>
#include <cstring>

#include "backends/cpu/matmul_bytes.h"
#include "base/aligned_buffer.h"
#include "base/convert.h"

namespace pyc::cpu {
namespace {

std::shared_ptr<AlignedBuffer> floats(int64_t count) {
  Result<AlignedBuffer> made = AlignedBuffer::create(static_cast<size_t>(count) * sizeof(float));
  return made.ok() ? std::make_shared<AlignedBuffer>(std::move(made).value()) : nullptr;
}

// For `bytes` of a packed constant, and zeros to the end of the last line.
std::shared_ptr<AlignedBuffer> packed_floats(int64_t bytes) {
  std::shared_ptr<AlignedBuffer> made = floats(MatmulPlan::in_lines(bytes) / 4);
  if (made == nullptr) return nullptr;
  std::ranges::fill(made->bytes().subspan(static_cast<size_t>(bytes)), std::byte{0});
  return made;
}

// A constant operand's buffer as f32, and where its elements lie.
class Source {
 public:
  Source(const lower::Contraction& c, const lower::Contraction::Operand& operand, loop::VarId row,
         const void* data)
      : base_(c.base_of(operand)),
        rows_(c.offsets_of(operand, row)),
        ks_(c.offsets_of(operand, c.k_var)) {
    matrices_ = {base_};
    for (size_t i = 0; i < c.batch.size(); ++i) {
      if (!loop::depends_on(c.kernel->pool, operand.value, c.batch_vars[i])) continue;
      std::vector<int64_t> next;
      const std::vector<int64_t> part = c.offsets_of(operand, c.batch_vars[i]);
      for (const int64_t m : matrices_) {
        for (const int64_t p : part) next.push_back(m + p);
      }
      matrices_ = std::move(next);
    }
    if (operand.dtype == DType::kF32) {
      data_ = static_cast<const std::byte*>(data);
      return;
    }
    const int64_t elements = c.kernel->buffers[operand.buffer].elements;
    wide_ = floats(elements);
    if (wide_ == nullptr) return;
    auto* out = reinterpret_cast<float*>(wide_->data());
    const auto* in = static_cast<const std::byte*>(data);
    for (int64_t i = 0; i < elements; ++i) {
      const Word w = load_word(in + i * dtype_size(operand.dtype), operand.dtype);
      store_word(out + i, DType::kF32, convert_word(w, operand.dtype, DType::kF32));
    }
    data_ = wide_->data();
  }

  bool ok() const { return data_ != nullptr; }
  // The distinct matrices, in the order of the batch.
  const std::vector<int64_t>& matrices() const { return matrices_; }
  // Elements [row, row + count) at k.
  void row_at(int64_t matrix, int64_t row, int64_t count, int64_t k, float* out) const {
    const int64_t from = matrix + ks_[static_cast<size_t>(k)];
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = from + rows_[static_cast<size_t>(row + j)];
      std::memcpy(out + j, data_ + at * static_cast<int64_t>(sizeof(float)), sizeof(float));
    }
  }

 private:
  int64_t base_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> ks_;
  std::vector<int64_t> matrices_;
  std::shared_ptr<AlignedBuffer> wide_;
  const std::byte* data_ = nullptr;  // floats at any address, as they lie in a mapped file
};

runtime::Parameter parameter_of(std::shared_ptr<AlignedBuffer> buffer) {
  runtime::Parameter parameter;
  parameter.data = buffer->data();
  parameter.bytes = static_cast<int64_t>(buffer->size());
  parameter.owner = std::move(buffer);
  return parameter;
}

}  // namespace

namespace {

struct Range {
  int64_t begin;
  int64_t end;
};

// Steps of k of one panel, and where the next one's go.
float* pack_panel(const MatmulPlan& plan, const Source& source, int64_t matrix, int64_t panel,
                  Range steps, float* out) {
  const int64_t width = plan.tile_columns / plan.b_streams;
  for (int64_t stream = 0; stream < plan.b_streams; ++stream) {
    const int64_t column = panel * plan.tile_columns + stream * width;
    const int64_t columns = std::clamp<int64_t>(plan.n - column, 0, width);
    for (int64_t k = steps.begin; k < steps.end; ++k, out += width) {
      source.row_at(matrix, column, columns, k, out);
      std::fill(out + columns, out + width, 0.0f);
    }
  }
  return out;
}

}  // namespace

runtime::Parameter pack_b(const MatmulPlan& plan, const lower::Contraction& contraction,
                          const void* b_data) {
  if (plan.of_bytes()) return pack_byte_panels(plan, contraction, b_data);
  const Source source(contraction, contraction.b, contraction.n_var, b_data);
  std::shared_ptr<AlignedBuffer> buffer = packed_floats(plan.packed_bytes);
  if (buffer == nullptr || !source.ok()) return {};
  auto* out = reinterpret_cast<float*>(buffer->data());
  for (const int64_t matrix : source.matrices()) {
    const int64_t depth = plan.by_segment ? kMatmulSegment : plan.k;
    for (int64_t group = 0; group < plan.b_groups; ++group) {
      const int64_t first = group * plan.panels / plan.b_groups;
      const int64_t end = (group + 1) * plan.panels / plan.b_groups;
      for (int64_t from = 0; from < plan.k; from += depth) {
        for (int64_t panel = first; panel < end; ++panel) {
          out = pack_panel(plan, source, matrix, panel, {from, from + depth}, out);
        }
      }
    }
  }
  return parameter_of(std::move(buffer));
}

runtime::Parameter pack_a(const MatmulPlan& plan, const lower::Contraction& contraction,
                          const void* a_data) {
  if (plan.of_bytes()) return pack_byte_rows(plan, contraction, a_data);
  const Source source(contraction, contraction.a, contraction.m_var, a_data);
  std::shared_ptr<AlignedBuffer> buffer = packed_floats(plan.a_bytes);
  if (buffer == nullptr || !source.ok()) return {};
  auto* out = reinterpret_cast<float*>(buffer->data());
  std::fill_n(out, plan.a_bytes / 4, 0.0f);
  std::vector<float> column(static_cast<size_t>(plan.tile_rows));
  for (const int64_t matrix : source.matrices()) {
    int64_t row = 0;
    for (int64_t tile = 0; tile < plan.row_tiles; ++tile) {
      const int64_t rows = tile < plan.tall_tiles ? plan.tile_rows : plan.tile_rows - 1;
      for (int64_t k = 0; k < plan.k; ++k) {
        source.row_at(matrix, row, rows, k, column.data());
        const int64_t step = k / plan.unroll * plan.unroll;
        float* at = out + step * plan.a_k_stride(static_cast<int>(rows)) + k % plan.unroll;
        for (int64_t i = 0; i < rows; ++i) {
          at[i * plan.a_row_stride()] = column[static_cast<size_t>(i)];
        }
      }
      row += rows;
      out += rows * plan.row_room();
    }
  }
  return parameter_of(std::move(buffer));
}

}  // namespace pyc::cpu

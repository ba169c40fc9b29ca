#include "backends/cpu/matmul_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/aligned_buffer.h"

namespace pyc::cpu {
namespace {

constexpr uint8_t kSignBit = 0x80;

// A constant operand's bytes, as they are packed.
class ByteSource {
 public:
  ByteSource(const lower::Contraction& c, const lower::Contraction::Operand& operand,
             loop::VarId row, const MatmulPlan::Bytes& form, const void* data)
      : rows_(c.offsets_of(operand, row)),
        ks_(c.offsets_of(operand, c.k_var)),
        form_(form),
        data_(static_cast<const uint8_t*>(data)) {
    matrices_ = {c.base_of(operand)};
    for (size_t i = 0; i < c.batch.size(); ++i) {
      if (!loop::depends_on(c.kernel->pool, operand.value, c.batch_vars[i])) continue;
      std::vector<int64_t> next;
      const std::vector<int64_t> part = c.offsets_of(operand, c.batch_vars[i]);
      for (const int64_t m : matrices_) {
        for (const int64_t p : part) next.push_back(m + p);
      }
      matrices_ = std::move(next);
    }
  }

  // The distinct matrices, in the order of the batch.
  const std::vector<int64_t>& matrices() const { return matrices_; }
  int64_t terms() const { return static_cast<int64_t>(ks_.size()); }

  // As packed: as a byte, and as the number that it stands for.
  uint8_t byte_at(int64_t matrix, int64_t row, int64_t k) const {
    const int64_t at = matrix + rows_[static_cast<size_t>(row)] + ks_[static_cast<size_t>(k)];
    return form_.turned ? data_[at] ^ kSignBit : data_[at];
  }
  int number(uint8_t byte) const { return form_.is_unsigned ? byte : static_cast<int8_t>(byte); }

 private:
  std::vector<int64_t> rows_;
  std::vector<int64_t> ks_;
  std::vector<int64_t> matrices_;
  const MatmulPlan::Bytes form_;
  const uint8_t* data_;
};

// Writes the bytes of one row or column, `together` k side by side and `stride` bytes from there to
// the next so many, and returns their sum.
int32_t write_line(const MatmulPlan& plan, const ByteSource& source, int64_t matrix, int64_t line,
                   int64_t together, int64_t stride, std::byte* out) {
  uint32_t sum = 0;
  for (int64_t k = 0; k < source.terms(); ++k) {
    const uint8_t byte = source.byte_at(matrix, line, k);
    const int number = source.number(byte);
    sum += static_cast<uint32_t>(number);
    std::byte* to = out + k / together * stride;
    if (plan.unit == ByteUnit::kWords) {
      const auto word = static_cast<int16_t>(number);
      std::memcpy(to + k % together * 2, &word, sizeof(word));
    } else {
      to[k % together] = std::byte{byte};
    }
  }
  return static_cast<int32_t>(sum);
}

// Zeroed memory, whole lines of it.
std::shared_ptr<AlignedBuffer> zeroed(int64_t bytes) {
  auto made = AlignedBuffer::create(static_cast<size_t>(MatmulPlan::in_lines(bytes)));
  if (!made.ok()) return nullptr;
  std::ranges::fill(made->bytes(), std::byte{0});
  return std::make_shared<AlignedBuffer>(std::move(made).value());
}

runtime::Parameter byte_parameter(std::shared_ptr<AlignedBuffer> buffer) {
  runtime::Parameter parameter;
  parameter.data = buffer->data();
  parameter.bytes = static_cast<int64_t>(buffer->size());
  parameter.owner = std::move(buffer);
  return parameter;
}

}  // namespace

bool multiplies_bytes(const lower::Contraction& contraction) {
  return contraction.dtype == DType::kI32 && contraction.a.byte != loop::kNone &&
         contraction.b.byte != loop::kNone;
}

CodegenTarget byte_target(const CodegenTarget& target) {
  constexpr int kNeon = 4;
  constexpr int kYmm = 8;
  constexpr int kZmm = 16;
  CodegenTarget out = target;
  const bool zmm = target.avx512 && target.lanes == kZmm;
  out.lanes = target.is_aarch64() ? kNeon : zmm ? kZmm : kYmm;
  return out;
}

void begin_bytes(const lower::Contraction& contraction, const CodegenTarget& target,
                 MatmulPlan& p) {
  p.unit = target.bytes;
  p.unroll = p.unit == ByteUnit::kMmla ? 2 : p.unit == ByteUnit::kAmx ? kAmxColumns : 4;
  const int64_t step = p.group() * p.unroll;
  p.k = (contraction.k + step - 1) / step * p.unroll;
}

int most_byte_rows(int columns) {
  constexpr int kRegisters = 30;
  constexpr int kMost = 8;
  constexpr int kAlone = 16;  // columns in twos of which each is loaded when it is used
  const int twos = columns / 2;
  const int most = std::min(kMost, (kRegisters - twos) / (twos + 1) * 2);
  return most == 0 && twos <= kAlone ? 2 : most;
}

void choose_byte_forms(const lower::Contraction& contraction, MatmulPlan& p) {
  MatmulPlan::Bytes& a = p.a_form;
  MatmulPlan::Bytes& b = p.b_form;
  a = {.is_unsigned = contraction.kernel->pool.dtype(contraction.a.byte) == DType::kU8};
  b = {.is_unsigned = contraction.kernel->pool.dtype(contraction.b.byte) == DType::kU8};
  const auto turn = [](MatmulPlan::Bytes& side) {
    side.turned = true;
    side.is_unsigned = !side.is_unsigned;
  };
  // Turning one operand takes the sums of the other: those of a constant cost nothing.
  MatmulPlan::Bytes& at_run = p.weights == MatmulPlan::Weights::kPackedAhead ? a : b;
  if (p.unit == ByteUnit::kDot && a.is_unsigned != b.is_unsigned) turn(a.is_unsigned ? a : b);
  if (p.unit == ByteUnit::kVnni && a.is_unsigned == b.is_unsigned) turn(at_run);
  const bool mixed = p.unit == ByteUnit::kMmla || p.unit == ByteUnit::kVnni;
  p.swapped = mixed && !a.is_unsigned && b.is_unsigned;
  a.sums = b.turned || contraction.b.zero != loop::kNone;
  b.sums = a.turned || contraction.a.zero != loop::kNone;
}

std::string byte_unit_name(const MatmulPlan& plan) {
  switch (plan.unit) {
    case ByteUnit::kMmla:
      return "i8mm";
    case ByteUnit::kDot:
      return "dotprod";
    case ByteUnit::kVnni:
      return fmt::format("vnni{}", plan.lanes * 32);
    case ByteUnit::kAmx:
      return "amx";
    case ByteUnit::kWords:
      return fmt::format("words{}", plan.lanes * 32);
    case ByteUnit::kNone:
      break;
  }
  return "f32";
}

std::string byte_form_text(const MatmulPlan& plan, const MatmulPlan::Bytes& form) {
  if (!plan.of_bytes()) return "f32";
  return fmt::format("{}{}{}", byte_unit_name(plan), form.turned ? " turned" : "",
                     form.sums ? " summed" : "");
}

runtime::Parameter pack_byte_panels(const MatmulPlan& plan, const lower::Contraction& contraction,
                                    const void* data) {
  const ByteSource source(contraction, contraction.b, contraction.n_var, plan.b_form, data);
  std::shared_ptr<AlignedBuffer> buffer = zeroed(plan.packed_bytes);
  if (buffer == nullptr) return {};
  std::byte* out = buffer->data();
  const int64_t element = plan.column_elements() * 4;
  for (const int64_t matrix : source.matrices()) {
    for (int64_t column = 0; column < plan.n; ++column) {
      const int64_t at = column % plan.tile_columns;
      std::byte* panel = out + column / plan.tile_columns * plan.b_panel_stride * 4;
      const int32_t sum =
          write_line(plan, source, matrix, column, plan.group() * plan.column_elements(),
                     plan.tile_columns * element, panel + at * element);
      if (!plan.b_form.sums) continue;
      std::memcpy(panel + (plan.k * plan.tile_columns + at) * 4, &sum, sizeof(sum));
    }
    out += plan.panels * plan.b_panel_stride * 4;
  }
  return byte_parameter(std::move(buffer));
}

runtime::Parameter pack_byte_rows(const MatmulPlan& plan, const lower::Contraction& contraction,
                                  const void* data) {
  const ByteSource source(contraction, contraction.a, contraction.m_var, plan.a_form, data);
  std::shared_ptr<AlignedBuffer> buffer = zeroed(plan.a_bytes);
  if (buffer == nullptr) return {};
  std::byte* out = buffer->data();
  for (const int64_t matrix : source.matrices()) {
    int64_t row = 0;
    for (int64_t tile = 0; tile < plan.row_tiles; ++tile) {
      const int rows = tile < plan.tall_tiles ? plan.tile_rows : plan.tile_rows - 1;
      const int64_t stride = plan.packed_rows(rows);
      for (int64_t i = 0; i < rows; ++i, ++row) {
        const int32_t sum = write_line(plan, source, matrix, row, plan.group() * plan.unroll,
                                       stride * plan.unroll * 4, out + i * plan.unroll * 4);
        if (!plan.a_form.sums) continue;
        std::memcpy(out + (plan.k * stride + i) * 4, &sum, sizeof(sum));
      }
      out += plan.a_tile_elements() * 4;
    }
  }
  return byte_parameter(std::move(buffer));
}

}  // namespace pyc::cpu

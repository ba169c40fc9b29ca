#include "backends/cpu/llvm/tile_amx.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "backends/cpu/llvm/flow.h"
#include "backends/cpu/matmul.h"

namespace pyc::cpu {
namespace {

using llvm::Value;

constexpr int kRegisters = 8;
constexpr int kRowBytes = 4 * kAmxColumns;

class AmxWriter {
 public:
  AmxWriter(llvm::IRBuilder<>& builder, const AmxTile& tile)
      : b_(builder), flow_(builder), t_(tile) {}

  void run(Value* rows, Value* columns, int64_t steps, Value* to) {
    for (int i = 0; i < sums(); ++i) call(llvm::Intrinsic::x86_tilezero, {number(i)});
    flow_.loop(flow_.index(0), flow_.index(steps), 1, true, {rows, columns},
               [&](Value*, const FlowBuilder::State& at) {
                 if (t_.before_step) t_.before_step(at[0], at[1]);
                 step(at[0], at[1]);
                 return FlowBuilder::State{further(at[0], t_.a_step),
                                           further(at[1], kAmxColumns * t_.b_stride)};
               });
    const int64_t row = int64_t{t_.column_tiles} * kRowBytes;
    for (int i = 0; i < t_.row_tiles; ++i) {
      for (int j = 0; j < t_.column_tiles; ++j) {
        call(llvm::Intrinsic::x86_tilestored64,
             {number(sum_at(i, j)), further(to, i * kAmxRows * row + j * kRowBytes),
              flow_.index(row)});
      }
    }
  }

 private:
  int sums() const { return t_.row_tiles * t_.column_tiles; }
  int sum_at(int i, int j) const { return i * t_.column_tiles + j; }
  // Behind the sums stand the rows' registers, then the columns', in turn where there are fewer.
  int rows_at(int i) const { return sums() + i; }
  int columns_at(int j) const {
    const int first = sums() + t_.row_tiles;
    return first + j % (kRegisters - first);
  }

  Value* number(int tile) { return b_.getInt8(static_cast<uint8_t>(tile)); }
  Value* further(Value* p, int64_t bytes) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), p, static_cast<uint64_t>(bytes));
  }
  void call(llvm::Intrinsic::ID id, std::initializer_list<Value*> args) {
    b_.CreateIntrinsic(id, {}, args);
  }

  void step(Value* rows, Value* columns) {
    namespace intrinsic = llvm::Intrinsic;
    constexpr std::array<std::array<intrinsic::ID, 2>, 2> kProducts = {
        {{intrinsic::x86_tdpbssd, intrinsic::x86_tdpbsud},
         {intrinsic::x86_tdpbusd, intrinsic::x86_tdpbuud}}};
    const intrinsic::ID product = kProducts[t_.a_unsigned ? 1 : 0][t_.b_unsigned ? 1 : 0];
    for (int j = 0; j < t_.column_tiles; ++j) {
      call(intrinsic::x86_tileloadd64,
           {number(columns_at(j)), further(columns, j * kRowBytes), flow_.index(t_.b_stride)});
      for (int i = 0; i < t_.row_tiles; ++i) {
        if (j == 0) {
          call(intrinsic::x86_tileloadd64,
               {number(rows_at(i)), further(rows, i * kAmxRows * kRowBytes),
                flow_.index(kRowBytes)});
        }
        call(product, {number(sum_at(i, j)), number(rows_at(i)), number(columns_at(j))});
      }
    }
  }

  llvm::IRBuilder<>& b_;
  FlowBuilder flow_;
  const AmxTile t_;
};

}  // namespace

void emit_amx_begin(llvm::IRBuilder<>& b, llvm::Module& module) {
  // Palette 1: the bytes of each register's rows from byte 16 on, how many rows from byte 48 on.
  std::array<uint8_t, 64> text{};
  text[0] = 1;
  for (size_t i = 0; i < kRegisters; ++i) {
    text[16 + 2 * i] = kRowBytes;
    text[48 + i] = kAmxRows;
  }
  llvm::Constant* bytes = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef(text));
  auto* shape = new llvm::GlobalVariable(module, bytes->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  shape->setAlignment(llvm::Align(kRowBytes));
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {shape});
}

void emit_amx_end(llvm::IRBuilder<>& b) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void emit_amx_tile(llvm::IRBuilder<>& b, const AmxTile& tile, Value* rows, Value* columns,
                   int64_t steps, Value* to) {
  AmxWriter(b, tile).run(rows, columns, steps, to);
}

}  // namespace pyc::cpu

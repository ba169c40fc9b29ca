// The step that packs a matrix.

#include <algorithm>
#include <cstddef>

#include "backends/cpu/llvm/flow.h"
#include "backends/cpu/llvm/step.h"
#include "base/kernel_abi.h"

namespace pyc::cpu {
namespace {

using llvm::Value;

// Rows of k this many elements apart, a page, lie in pages of their own: panels one after another
// would each read a line of every page. So many are copied at once, which read lines side by side.
constexpr int64_t kFarRows = 1024;
constexpr int64_t kTogether = 8;

// Copies panels of B.
class PackWriter {
 public:
  PackWriter(const Packing& packing, Numbers* numbers, llvm::Function* function)
      : p_(packing), b_(&function->getEntryBlock()), flow_(b_, numbers), f_(function) {}

  void run();

 private:
  // The panel of this number; the first of `count` that lie side by side.
  void copy(Value* number, Value* target, Value* source, int64_t count);
  void panel(Value* from, Value* to, int columns);
  void panels_together(Value* from, Value* to, int64_t count);
  // The last panel, of any number of columns, one element after another.
  void last_panel(Value* from, Value* to);
  // `count` steps of k, one vector of a panel row each.
  void rows(Value* from, Value* to, int columns, int count);
  // `steps` strides on.
  Value* at(Value* from, int64_t steps, int64_t stride);
  Value* at(Value* from, Value* steps, int64_t stride) {
    return flow_.at(from, b_.CreateMul(steps, stride_of(stride)));
  }
  // Elements side by side stay so in the code.
  Value* stride_of(int64_t stride) {
    return stride == 1 ? flow_.index(stride) : flow_.number(stride);
  }

  const Packing& p_;
  llvm::IRBuilder<> b_;
  FlowBuilder flow_;
  llvm::Function* f_;
  Value* n_ = nullptr;  // where it may be any
};

void PackWriter::run() {
  Value* table = b_.CreateAlignedLoad(
      b_.getPtrTy(),
      b_.CreateConstGEP1_64(b_.getInt8Ty(), f_->getArg(0), offsetof(pyc_kernel_args, buffers)),
      llvm::Align(8));
  Value* source = b_.CreateAlignedLoad(b_.getPtrTy(), table, llvm::Align(8));
  Value* target = b_.CreateAlignedLoad(
      b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), table, 1), llvm::Align(8));
  if (p_.base != 0) source = flow_.at(source, flow_.number(p_.base));
  if (flow_.any_size()) n_ = flow_.number(p_.n);
  Value* const begin = f_->getArg(1);
  Value* const end = f_->getArg(2);
  const auto one_by_one = [&](Value* first, Value* last) {
    flow_.loop(first, last, 1, false, [&](Value* number) { copy(number, target, source, 1); });
  };
  const bool side_by_side = !flow_.any_size() && p_.row_stride == 1 && p_.k_stride >= kFarRows &&
                            p_.n % p_.columns == 0 && p_.panels() >= kTogether;
  if (side_by_side) {
    flow_.loop(begin, end, kTogether, false, [&](Value* number) {
      Value* last = b_.CreateAdd(number, flow_.index(kTogether));
      Value* place = b_.CreateURem(number, flow_.index(p_.panels()));
      Value* fits = b_.CreateAnd(b_.CreateICmpSLE(last, end),
                                 b_.CreateICmpSLE(place, flow_.index(p_.panels() - kTogether)));
      flow_.when(
          fits, [&] { copy(number, target, source, kTogether); },
          [&] {
            Value* less = b_.CreateICmpSLT(end, last);
            one_by_one(number, b_.CreateSelect(less, end, last));
          });
    });
  } else {
    one_by_one(begin, end);
  }
  b_.CreateRetVoid();
}

void PackWriter::copy(Value* number, Value* target, Value* source, int64_t count) {
  Value* panels = flow_.number(p_.panels());
  Value* panel_number = b_.CreateURem(number, panels);
  Value* matrix = b_.CreateUDiv(number, panels);
  Value* to = flow_.at(target, b_.CreateMul(number, flow_.number(p_.panel_elements())));
  Value* from =
      flow_.at(source, b_.CreateMul(panel_number, flow_.number(p_.row_stride * p_.columns)));
  for (size_t i = p_.batch.size(); i-- > 0;) {
    if (p_.batch_strides[i] == 0) continue;
    Value* extent = flow_.number(p_.batch[i]);
    Value* index = b_.CreateURem(matrix, extent);
    matrix = b_.CreateUDiv(matrix, extent);
    from = flow_.at(from, b_.CreateMul(index, flow_.number(p_.batch_strides[i])));
  }
  if (count > 1) return panels_together(from, to, count);
  const int rest = static_cast<int>(p_.n % p_.columns);
  const auto whole = [&] { panel(from, to, p_.columns); };
  if (flow_.any_size()) {
    Value* end = b_.CreateMul(b_.CreateAdd(panel_number, flow_.index(1)), flow_.index(p_.columns));
    return flow_.when(
        b_.CreateICmpSGT(end, n_), [&] { last_panel(from, to); }, whole);
  }
  if (rest == 0) return whole();
  flow_.when(
      b_.CreateICmpEQ(panel_number, flow_.index(p_.panels() - 1)), [&] { panel(from, to, rest); },
      whole);
}

void PackWriter::panels_together(Value* from, Value* to, int64_t count) {
  const auto over = [&](int64_t begin, int64_t end, int rows_at_once) {
    if (begin == end) return;
    flow_.loop(flow_.index(begin), flow_.index(end), rows_at_once, true, [&](Value* k) {
      Value* row = at(from, k, p_.k_stride);
      Value* out = flow_.at(to, b_.CreateMul(k, flow_.index(p_.columns)));
      flow_.loop(flow_.index(0), flow_.index(count), 1, true, [&](Value* i) {
        rows(flow_.at(row, b_.CreateMul(i, flow_.index(p_.columns))),
             flow_.at(out, b_.CreateMul(i, flow_.index(p_.panel_elements()))), p_.columns,
             rows_at_once);
      });
    });
  };
  over(0, p_.k - p_.k % 4, 4);
  over(p_.k - p_.k % 4, p_.k, 1);
}

Value* PackWriter::at(Value* from, int64_t steps, int64_t stride) {
  if (!flow_.any_size() || steps == 0 || stride == 1) return flow_.at(from, steps * stride);
  return at(from, flow_.index(steps), stride);
}

void PackWriter::panel(Value* from, Value* to, int columns) {
  const int64_t whole = p_.k - p_.k % 4;
  const auto over = [&](Value* begin, Value* end, bool empty, int count) {
    if (empty && !flow_.any_size()) return;
    flow_.loop(begin, end, count, !flow_.any_size(), [&](Value* k) {
      rows(at(from, k, p_.k_stride), flow_.at(to, b_.CreateMul(k, flow_.index(p_.columns))),
           columns, count);
    });
  };
  Value* end = flow_.number(p_.k);
  Value* middle = b_.CreateAnd(end, flow_.index(-4));
  over(flow_.index(0), middle, whole == 0, 4);
  over(middle, end, whole == p_.k, 1);
}

void PackWriter::last_panel(Value* from, Value* to) {
  Value* columns = b_.CreateURem(n_, flow_.index(p_.columns));
  flow_.loop(flow_.index(0), flow_.number(p_.k), 1, true, [&](Value* k) {
    Value* source = at(from, k, p_.k_stride);
    Value* row = flow_.at(to, b_.CreateMul(k, flow_.index(p_.columns)));
    flow_.loop(flow_.index(0), columns, 1, true, [&](Value* j) {
      Value* x =
          b_.CreateAlignedLoad(b_.getFloatTy(), at(source, j, p_.row_stride), llvm::Align(4));
      b_.CreateAlignedStore(x, flow_.at(row, j), llvm::Align(4));
    });
    flow_.loop(columns, flow_.index(p_.columns), 1, true, [&](Value* j) {
      b_.CreateAlignedStore(llvm::ConstantFP::get(b_.getFloatTy(), 0.0), flow_.at(row, j),
                            llvm::Align(4));
    });
  });
}

void PackWriter::rows(Value* from, Value* to, int columns, int count) {
  const auto vector = [&](int width) {
    return llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(width));
  };
  for (int first = 0; first < p_.columns; first += p_.lanes) {
    const int valid = std::min(p_.lanes, std::max(0, columns - first));
    std::vector<Value*> out(static_cast<size_t>(count),
                            llvm::ConstantAggregateZero::get(vector(p_.lanes)));
    if (p_.row_stride == 1 && valid == p_.lanes) {
      for (int k = 0; k < count; ++k) {
        out[static_cast<size_t>(k)] = b_.CreateAlignedLoad(
            vector(p_.lanes), flow_.at(at(from, k, p_.k_stride), first), llvm::Align(4));
      }
    } else {
      for (int j = 0; j < valid; ++j) {
        Value* column = at(from, first + j, p_.row_stride);
        const bool joined = p_.k_stride == 1 && count > 1;
        Value* together =
            joined ? b_.CreateAlignedLoad(vector(count), column, llvm::Align(4)) : nullptr;
        for (int k = 0; k < count; ++k) {
          Value* x = joined ? b_.CreateExtractElement(together, static_cast<uint64_t>(k))
                            : b_.CreateAlignedLoad(b_.getFloatTy(), at(column, k, p_.k_stride),
                                                   llvm::Align(4));
          Value*& row = out[static_cast<size_t>(k)];
          row = b_.CreateInsertElement(row, x, static_cast<uint64_t>(j));
        }
      }
    }
    for (int k = 0; k < count; ++k) {
      b_.CreateAlignedStore(out[static_cast<size_t>(k)], flow_.at(to, k * p_.columns + first),
                            llvm::Align(4));
    }
  }
}

}  // namespace

llvm::Function* new_step(llvm::Module& module, const std::string& symbol) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  f->setDSOLocal(true);
  llvm::BasicBlock::Create(context, "entry", f);
  return f;
}

void emit_pack(const Packing& packing, const TargetTraits& traits, llvm::Module& module,
               const std::string& symbol) {
  PackWriter(packing, traits.numbers, new_step(module, symbol)).run();
}

}  // namespace pyc::cpu

// Sums of products of bytes over the taps of a window, as depthwise layers have them: bytes of four
// taps are laid side by side for each element, which one operation multiplies and adds, exactly, to
// i32; results that share taps share that. Element by element a tap takes two operations to widen
// and one to multiply. Weights are laid so when the function begins.

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "backends/cpu/llvm/kernel_emitter.h"

namespace pyc::cpu {

namespace {

using llvm::Value;

// Elements that are turned at once, taps that are multiplied at once, and what both make.
constexpr int kBlock = 16;
constexpr int kTaps = 4;
constexpr int kTurned = kBlock * kTaps;
// Bytes of the stack that turned weights may take.
constexpr int64_t kMostTurned = 32 << 10;

// The operation's signs: on aarch64 both are signed, on x86 one is not.
bool turns_sign(const TargetTraits& t, DType x) {
  return t.aarch64 ? x == DType::kU8 : x == DType::kI8;
}

// What a sum of weights is multiplied by in place of all zeros and turned signs.
int64_t factor_of(const TargetTraits& t, const ByteSum& sum, DType x) {
  const int64_t turned = !turns_sign(t, x) ? 0 : x == DType::kU8 ? 128 : -128;
  return turned - sum.zero;
}

class Turner {
 public:
  Turner(llvm::IRBuilder<>& builder, const TargetTraits& traits) : b_(builder), t_(traits) {}

  // The bytes of up to four taps, 16 elements each, side by side for each element.
  Value* turned(std::vector<Value*> taps) {
    if (taps.size() == 1) {
      return b_.CreateBitCast(b_.CreateZExt(taps[0], words()), bytes(kTurned));
    }
    taps.resize(kTaps, llvm::Constant::getNullValue(bytes(kBlock)));
    if (t_.aarch64) {
      const Value2 even = zip(taps[0], taps[2]);
      const Value2 odd = zip(taps[1], taps[3]);
      const Value2 low = zip(even[0], odd[0]);
      const Value2 high = zip(even[1], odd[1]);
      return joined(joined(low[0], low[1]), joined(high[0], high[1]));
    }
    // Four bytes of every tap into each part of 128 bits, then those of an element side by side.
    Value* all = joined(joined(taps[0], taps[1]), joined(taps[2], taps[3]));
    std::vector<int> parts;
    std::vector<int> sides;
    for (int i = 0; i < kBlock; ++i) parts.push_back(i % kTaps * kTaps + i / kTaps);
    for (int i = 0; i < kTurned; ++i) {
      sides.push_back(i / kBlock * kBlock + i % kTaps * kTaps + i % kBlock / kTaps);
    }
    Value* quarters = b_.CreateShuffleVector(b_.CreateBitCast(all, words()), parts);
    return b_.CreateShuffleVector(b_.CreateBitCast(quarters, bytes(kTurned)), sides);
  }

  // sum + x · weights, of turned bytes.
  Value* add_products(Value* sum, Value* x, Value* weights) {
    namespace intrinsic = llvm::Intrinsic;
    if (!t_.aarch64) {
      return b_.CreateIntrinsic(
          intrinsic::x86_avx512_vpdpbusd_512, {},
          {sum, b_.CreateBitCast(x, words()), b_.CreateBitCast(weights, words())});
    }
    constexpr int kLanes = kBlock / kTaps;
    std::vector<Value*> parts;
    for (int i = 0; i < kTaps; ++i) {
      Value* total = part(sum, i * kLanes, kLanes);
      parts.push_back(b_.CreateIntrinsic(
          intrinsic::aarch64_neon_sdot, {total->getType(), bytes(kBlock)},
          {total, part(x, i * kBlock, kBlock), part(weights, i * kBlock, kBlock)}));
    }
    return joined(joined(parts[0], parts[1]), joined(parts[2], parts[3]));
  }

  llvm::FixedVectorType* bytes(int count) {
    return llvm::FixedVectorType::get(b_.getInt8Ty(), static_cast<unsigned>(count));
  }
  llvm::FixedVectorType* words() { return llvm::FixedVectorType::get(b_.getInt32Ty(), kBlock); }

 private:
  using Value2 = std::array<Value*, 2>;

  // Elements of both in turn, in two halves.
  Value2 zip(Value* a, Value* b) {
    Value2 out{};
    for (int half = 0; half < 2; ++half) {
      std::vector<int> from;
      for (int i = 0; i < kBlock; ++i) from.push_back(half * kBlock / 2 + i / 2 + i % 2 * kBlock);
      out[static_cast<size_t>(half)] = b_.CreateShuffleVector(a, b, from);
    }
    return out;
  }
  Value* joined(Value* a, Value* b) {
    std::vector<int> from(2 * llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements());
    std::iota(from.begin(), from.end(), 0);
    return b_.CreateShuffleVector(a, b, from);
  }
  Value* part(Value* v, int begin, int count) {
    std::vector<int> from(static_cast<size_t>(count));
    std::iota(from.begin(), from.end(), begin);
    return b_.CreateShuffleVector(v, from);
  }

  llvm::IRBuilder<>& b_;
  const TargetTraits& t_;
};

}  // namespace

void KernelEmitter::plan_byte_products() {
  static_assert(kByteBlock == kBlock);
  if (interior_ == nullptr || interior_->byte_sums.empty() || any_size()) return;
  if (!ops_.traits().byte_dot || k_.loops[interior_->loop].extent < kBlock) return;
  ByteProducts out;
  const std::vector<ByteSum>& sums = interior_->byte_sums;
  const auto place = [&](loop::ExprId tap) {
    const loop::ExprNode& n = k_.pool.node(tap);
    return n.op == loop::Op::kLoad ? loop::affine_of(k_.pool, n.a).constant : 0;
  };
  for (const ByteSum& sum : sums) {
    const auto read_twice = [&](const ByteSum::Tap& tap) {
      return std::ranges::count(sum.taps, tap.x, &ByteSum::Tap::x) > 1;
    };
    if (std::ranges::any_of(sum.taps, read_twice)) return;  // with two weights
    for (const ByteSum::Tap& tap : sum.taps) out.taps.push_back(tap.x);
  }
  std::ranges::sort(out.taps, {}, [&](loop::ExprId x) { return std::pair(place(x), x); });
  out.taps.erase(std::ranges::unique(out.taps).begin(), out.taps.end());
  for (size_t first = 0; first < out.taps.size(); first += kTaps) {
    const size_t count = std::min<size_t>(kTaps, out.taps.size() - first);
    for (size_t i = 0; i < sums.size(); ++i) {
      std::vector<loop::ExprId> weights(count, loop::kNone);
      for (const ByteSum::Tap& tap : sums[i].taps) {
        const auto at = static_cast<size_t>(std::ranges::find(out.taps, tap.x) - out.taps.begin());
        if (at >= first && at < first + count) weights[at - first] = tap.weight;
      }
      const bool any = std::ranges::any_of(weights, [](auto w) { return w != loop::kNone; });
      if (any) out.products.push_back({first, i, std::move(weights)});
    }
  }
  out.factor = factor_of(ops_.traits(), sums.front(), k_.pool.dtype(out.taps.front()));
  bytes_ = std::move(out);
  if (bytes_of_weights() > kMostTurned) bytes_.reset();
}

// Blocks of 16 elements: the products' in turn, then, where there is a factor, what sums begin
// with.
int64_t KernelEmitter::bytes_of_weights() const {
  const int64_t entries = std::ssize(bytes_->products) + (bytes_->factor != 0 ? 1 : 0);
  return k_.loops[interior_->loop].extent / kBlock * entries * kTurned;
}

llvm::Value* KernelEmitter::weights_at(Value* element) {
  const int64_t blocks = k_.loops[interior_->loop].extent / kBlock;
  Value* offset =
      b_.CreateMul(element, index(bytes_of_weights() / blocks / kBlock), "", true, true);
  return b_.CreateInBoundsGEP(b_.getInt8Ty(), bytes_->weights, offset);
}

void KernelEmitter::write_weights() {
  const loop::Loop& l = k_.loops[interior_->loop];
  bytes_->weights = ex_.stack_slot(b_.getInt8Ty(), static_cast<int>(bytes_of_weights()));
  counted(
      index(0), index(l.extent / kBlock * kBlock), kBlock, true, {}, [&](Value* i, const State&) {
        ex_.bind_lanes(l.var, i, 0, kBlock, kBlock);
        Turner turner(b_, ops_.traits());
        ex_.here();
        Value* to = weights_at(i);
        int64_t place = 0;
        const auto store = [&](Value* v) {
          b_.CreateAlignedStore(v, place_in(to, place++), llvm::Align(kTurned));
        };
        for (const ByteProducts::Product& p : bytes_->products) {
          std::vector<Value*> weights;
          for (const loop::ExprId w : p.weights) {
            weights.push_back(w == loop::kNone ? llvm::Constant::getNullValue(turner.bytes(kBlock))
                                               : ex_.eval_wide(w));
          }
          ex_.here();
          store(turner.turned(std::move(weights)));
        }
        if (bytes_->factor == 0) return State{};
        Value* all = llvm::Constant::getNullValue(turner.words());
        for (const ByteSum::Tap& tap : interior_->byte_sums.front().taps) {
          Value* weight = ex_.eval_wide(tap.weight);
          ex_.here();
          all = b_.CreateAdd(all, b_.CreateSExt(weight, turner.words()));
        }
        store(b_.CreateMul(all, llvm::ConstantInt::getSigned(turner.words(), bytes_->factor)));
        return State{};
      });
}

llvm::Value* KernelEmitter::place_in(Value* weights, int64_t place) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), weights,
                                       static_cast<uint64_t>(place * kTurned));
}

bool KernelEmitter::takes_byte_sums(int64_t alignment) const {
  return bytes_.has_value() && alignment % kBlock == 0;
}

KernelEmitter::State KernelEmitter::byte_sums(Value* i, int width) {
  const loop::Loop& l = k_.loops[interior_->loop];
  std::vector<State> parts(interior_->byte_sums.size());
  for (int from = 0; from < width; from += kBlock) {
    ex_.scoped([&] {
      ex_.bind_lanes(l.var, i, from, kBlock, kBlock);
      ex_.here();
      const State block = block_of_sums(weights_at(b_.CreateAdd(i, index(from))));
      for (size_t k = 0; k < parts.size(); ++k) parts[k].push_back(block[k]);
    });
    ex_.set_block(b_.GetInsertBlock());
  }
  State out;
  for (State& p : parts) out.push_back(ops_.join(std::move(p)));
  return out;
}

KernelEmitter::State KernelEmitter::block_of_sums(Value* weights) {
  const TargetTraits& t = ops_.traits();
  Turner turner(b_, t);
  const auto load = [&](int64_t place, llvm::Type* type) {
    return b_.CreateAlignedLoad(type, place_in(weights, place), llvm::Align(kTurned));
  };
  Value* start = llvm::Constant::getNullValue(turner.words());
  if (bytes_->factor != 0) start = load(std::ssize(bytes_->products), turner.words());
  State sums(interior_->byte_sums.size(), start);
  Value* taps = nullptr;
  for (size_t i = 0; i < bytes_->products.size(); ++i) {
    const ByteProducts::Product& p = bytes_->products[i];
    if (i == 0 || p.first != bytes_->products[i - 1].first) {
      std::vector<Value*> bytes;
      for (size_t k = 0; k < p.weights.size(); ++k) {
        const loop::ExprId tap = bytes_->taps[p.first + k];
        Value* v = ex_.eval_wide(tap);
        ex_.here();
        constexpr uint64_t kSignBit = 0x80;
        const bool turns = turns_sign(t, k_.pool.dtype(tap));
        bytes.push_back(turns ? b_.CreateXor(v, llvm::ConstantInt::get(v->getType(), kSignBit))
                              : v);
      }
      taps = turner.turned(std::move(bytes));
    }
    Value* factors = load(static_cast<int64_t>(i), turner.bytes(kTurned));
    sums[p.sum] = turner.add_products(sums[p.sum], taps, factors);
  }
  return sums;
}

}  // namespace pyc::cpu

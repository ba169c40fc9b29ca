#include "eval/interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <vector>

#include "eval/scalar.h"
#include "eval/tape.h"

namespace pyc::eval {
namespace {

using loop::Op;

template <class T>
bool equal(T a, T b) {
  return a == b;
}
template <class T>
bool not_equal(T a, T b) {
  return a != b;
}
template <class T>
bool less(T a, T b) {
  return a < b;
}
template <class T>
bool less_equal(T a, T b) {
  return a <= b;
}
template <class T>
T bit_and(T a, T b) {
  return a & b;
}
template <class T>
T bit_or(T a, T b) {
  return a | b;
}
template <class T>
T bit_xor(T a, T b) {
  return a ^ b;
}

// Every binary operation as CASE(operation, type, C++ type, function); the types are those that
// typed_code gives.
#define PYC_INT_CASES(CASE, op, f) \
  CASE(op, kI8, int8_t, f)         \
  CASE(op, kI16, int16_t, f)       \
  CASE(op, kI32, int32_t, f)       \
  CASE(op, kI64, int64_t, f)       \
  CASE(op, kU8, uint8_t, f)        \
  CASE(op, kU16, uint16_t, f)      \
  CASE(op, kU32, uint32_t, f)      \
  CASE(op, kU64, uint64_t, f)
#define PYC_FLOAT_CASES(CASE, op, f) \
  CASE(op, kF32, float, f)           \
  CASE(op, kF64, double, f)
#define PYC_ORDER_CASES(CASE, op, f) \
  CASE(op, kI64, int64_t, f)         \
  CASE(op, kU64, uint64_t, f)        \
  PYC_FLOAT_CASES(CASE, op, f)
#define PYC_NUMBER_CASES(CASE, op, f) \
  PYC_INT_CASES(CASE, op, f)          \
  PYC_FLOAT_CASES(CASE, op, f)
#define PYC_BINARY_CASES(CASE)           \
  PYC_NUMBER_CASES(CASE, kAdd, add)      \
  PYC_NUMBER_CASES(CASE, kSub, sub)      \
  PYC_NUMBER_CASES(CASE, kMul, mul)      \
  PYC_NUMBER_CASES(CASE, kDiv, div)      \
  PYC_INT_CASES(CASE, kRem, rem)         \
  PYC_INT_CASES(CASE, kShl, shift_left)  \
  PYC_INT_CASES(CASE, kShr, shift_right) \
  PYC_ORDER_CASES(CASE, kMin, minimum)   \
  PYC_ORDER_CASES(CASE, kMax, maximum)   \
  PYC_ORDER_CASES(CASE, kLt, less)       \
  PYC_ORDER_CASES(CASE, kLe, less_equal) \
  CASE(kEq, kI64, int64_t, equal)        \
  PYC_FLOAT_CASES(CASE, kEq, equal)      \
  CASE(kNe, kI64, int64_t, not_equal)    \
  PYC_FLOAT_CASES(CASE, kNe, not_equal)  \
  CASE(kAnd, kI64, int64_t, bit_and)     \
  CASE(kOr, kI64, int64_t, bit_or)       \
  CASE(kXor, kI64, int64_t, bit_xor)

// `x <code> y`, for the codes a reduction may have.
Word combine(uint32_t code, Word x, Word y) {
  switch (code) {
#define PYC_CASE(op, t, T, f)     \
  case code_of(Op::op, DType::t): \
    return put(f<T>(get<T>(x), get<T>(y)));
    PYC_BINARY_CASES(PYC_CASE)
#undef PYC_CASE
    default:
      return x;
  }
}

void join_lanes(Word* lanes, uint32_t code, Word identity) {
  for (uint32_t half = kTreeLanes / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) lanes[i] = combine(code, lanes[i], lanes[i + half]);
  }
  Word& super_block = lanes[kTreeLanes];
  super_block = combine(code, super_block, lanes[0]);
  std::fill(lanes, lanes + kTreeLanes, identity);
}

void join_super_block(Word* lanes, uint32_t code, Word identity) {
  Word& super_block = lanes[kTreeLanes];
  Word& total = lanes[kTreeLanes + 1];
  total = combine(code, total, super_block);
  super_block = identity;
}

struct View {
  std::byte* data;
  uint64_t elements;
};

template <class T>
Word load(const View& view, uint64_t at) {
  T v;
  std::memcpy(&v, view.data + at * sizeof(T), sizeof(T));
  return put(v);
}

template <class T>
void store(const View& view, uint64_t at, Word w) {
  const auto v = static_cast<T>(w);
  std::memcpy(view.data + at * sizeof(T), &v, sizeof(T));
}

// Registers and buffers of the run on this thread, kept so that a run allocates nothing.
struct Frame {
  std::vector<Word> registers;
  std::vector<View> views;
};

class TapeInterpreter final : public Interpreter {
 public:
  explicit TapeInterpreter(Tape tape) : tape_(std::move(tape)) {}

  void run(const pyc_kernel_args& args, int64_t begin, int64_t end) const override {
    if (begin >= end) return;
    thread_local Frame frame;
    if (frame.registers.size() < tape_.registers.size()) {
      frame.registers.resize(tape_.registers.size());
    }
    if (frame.views.size() < tape_.buffers.size()) frame.views.resize(tape_.buffers.size());
    std::copy(tape_.registers.begin(), tape_.registers.end(), frame.registers.begin());
    for (size_t i = 0; i < tape_.buffers.size(); ++i) {
      const TapeBuffer& b = tape_.buffers[i];
      std::byte* data = b.scratch_offset >= 0
                            ? static_cast<std::byte*>(args.scratch) + b.scratch_offset
                            : static_cast<std::byte*>(args.buffers[i]);
      frame.views[i] = {data, b.elements};
    }
    int64_t rest = begin;
    for (size_t i = tape_.parallel.size(); i-- > 0;) {
      const TapeParallel& p = tape_.parallel[i];
      frame.registers[p.reg] = static_cast<Word>(rest % p.extent);
      rest /= p.extent;
    }
    const int32_t fault = execute(frame.registers.data(), frame.views.data(), end - begin);
    if (fault != 0) std::atomic_ref(*args.fault).store(fault, std::memory_order_relaxed);
  }

 private:
  int32_t execute(Word* r, const View* views, int64_t points) const;
  void enter_loop(const Instr& in, Word* r) const;
  const Instr* next_point(Word* r) const;

  Tape tape_;
};

void TapeInterpreter::enter_loop(const Instr& in, Word* r) const {
  const TapeLoop& l = tape_.loops[static_cast<size_t>(in.imm)];
  int64_t first = 0;
  int64_t end = l.extent;
  if (l.chunk > 0) {
    const auto part = static_cast<int64_t>(r[in.c]);
    first = part > l.extent / l.chunk ? l.extent : part * l.chunk;
    end = l.extent - first > l.chunk ? first + l.chunk : l.extent;
  }
  r[in.dst] = static_cast<Word>(first);
  r[in.a] = static_cast<Word>(end);
  if (l.strip > 0) {
    const int64_t strip_end = first - first % l.strip + l.strip;
    r[in.b] = static_cast<Word>(std::min(end, strip_end));
  }
}

const Instr* TapeInterpreter::next_point(Word* r) const {
  size_t i = tape_.parallel.size();
  while (i-- > 0) {
    const TapeParallel& p = tape_.parallel[i];
    if (static_cast<int64_t>(++r[p.reg]) < p.extent) return &tape_.code[p.entry];
    r[p.reg] = 0;
  }
  return tape_.code.data();
}

// An element's place, checked.
#define PYC_PLACE                                                       \
  const View& view = views[in->buffer];                                 \
  const uint64_t at = r[in->a] + r[in->b] * static_cast<Word>(in->imm); \
  if (at >= view.elements) [[unlikely]]                                 \
    return kFaultOutOfBounds;

int32_t TapeInterpreter::execute(Word* r, const View* views, int64_t points) const {
  const Instr* in = tape_.code.data();
  while (true) {
    switch (in->code) {
#define PYC_CASE(op, t, T, f)                                   \
  case code_of(Op::op, DType::t):                               \
    r[in->dst] = put(f<T>(get<T>(r[in->a]), get<T>(r[in->b]))); \
    break;
      PYC_BINARY_CASES(PYC_CASE)
#undef PYC_CASE

#define PYC_CASE(op, t, T, f)     \
  case code_of(Op::op, DType::t): \
    r[in->dst] = f<T>(r[in->a]);  \
    break;
      PYC_NUMBER_CASES(PYC_CASE, kNeg, negated)
      PYC_NUMBER_CASES(PYC_CASE, kAbs, absolute)
#undef PYC_CASE

#define PYC_CASE(op, t, T, f)                 \
  case code_of(Op::op, DType::t):             \
    r[in->dst] = put<T>(f(get<T>(r[in->a]))); \
    break;
      PYC_FLOAT_CASES(PYC_CASE, kSqrt, std::sqrt)
      PYC_FLOAT_CASES(PYC_CASE, kFloor, std::floor)
      PYC_FLOAT_CASES(PYC_CASE, kCeil, std::ceil)
      PYC_FLOAT_CASES(PYC_CASE, kTrunc, std::trunc)
      PYC_FLOAT_CASES(PYC_CASE, kRoundEven, std::nearbyint)
#undef PYC_CASE

#define PYC_CASE(op, t, T, f)                                                     \
  case code_of(Op::op, DType::t):                                                 \
    r[in->dst] = put<T>(f(get<T>(r[in->a]), get<T>(r[in->b]), get<T>(r[in->c]))); \
    break;
      PYC_FLOAT_CASES(PYC_CASE, kFma, std::fma)
#undef PYC_CASE

#define PYC_CASE(op, t, T, f)                      \
  case code_of(Op::op, DType::t):                  \
    r[in->dst] = put(static_cast<T>(f(r[in->a]))); \
    break;
      PYC_CASE(kNot, kI64, int64_t, ~)
      PYC_CASE(kNot, kU8, uint8_t, ~)
      PYC_CASE(kNot, kU16, uint16_t, ~)
      PYC_CASE(kNot, kU32, uint32_t, ~)
      PYC_CASE(kNot, kU64, uint64_t, ~)
      PYC_CASE(kNot, kBool, bool, !)
      PYC_CASE(kConvert, kI8, int8_t, +)
      PYC_CASE(kConvert, kI16, int16_t, +)
      PYC_CASE(kConvert, kI32, int32_t, +)
      PYC_CASE(kConvert, kU8, uint8_t, +)
      PYC_CASE(kConvert, kU16, uint16_t, +)
      PYC_CASE(kConvert, kU32, uint32_t, +)
#undef PYC_CASE

#define PYC_CASE(unused, t, T, f)              \
  case code_of(Op::kLoad, DType::t): {         \
    PYC_PLACE                                  \
    r[in->dst] = load<T>(view, at);            \
    break;                                     \
  }                                            \
  case kLoadIf + static_cast<int>(DType::t): { \
    if (r[in->c] == 0) {                       \
      r[in->dst] = r[in->d];                   \
      break;                                   \
    }                                          \
    PYC_PLACE                                  \
    r[in->dst] = load<T>(view, at);            \
    break;                                     \
  }                                            \
  case kStore + static_cast<int>(DType::t): {  \
    PYC_PLACE                                  \
    store<T>(view, at, r[in->c]);              \
    break;                                     \
  }
      PYC_CASE(, kI8, int8_t, )
      PYC_CASE(, kI16, int16_t, )
      PYC_CASE(, kI32, int32_t, )
      PYC_CASE(, kI64, int64_t, )
      PYC_CASE(, kU8, uint8_t, )
      PYC_CASE(, kU16, uint16_t, )
      PYC_CASE(, kU32, uint32_t, )
#undef PYC_CASE

      case code_of(Op::kFloorDiv, DType::kI64):
        r[in->dst] = put(floor_div(get<int64_t>(r[in->a]), get<int64_t>(r[in->b])));
        break;
      case code_of(Op::kFloorMod, DType::kI64):
        r[in->dst] = put(floor_mod(get<int64_t>(r[in->a]), get<int64_t>(r[in->b])));
        break;
      case code_of(Op::kSelect, DType::kI64):
        r[in->dst] = r[in->a] != 0 ? r[in->b] : r[in->c];
        break;
      case kMove:
        r[in->dst] = r[in->a];
        break;
      case kMulAdd:
        r[in->dst] = r[in->a] + r[in->b] * static_cast<Word>(in->imm);
        break;
      case kTableLoad: {
        const std::vector<Word>& words = tape_.tables[static_cast<size_t>(in->imm)].words;
        if (r[in->a] >= words.size()) [[unlikely]]
          return kFaultOutOfBounds;
        r[in->dst] = words[r[in->a]];
        break;
      }
      case kIntToF32:
        r[in->dst] = put(static_cast<float>(get<int64_t>(r[in->a])));
        break;
      case kIntToF64:
        r[in->dst] = put(static_cast<double>(get<int64_t>(r[in->a])));
        break;
      case kF32ToF64:
        r[in->dst] = put(static_cast<double>(get<float>(r[in->a])));
        break;
      case kF64ToF32:
        r[in->dst] = put(static_cast<float>(get<double>(r[in->a])));
        break;
      case kConvertAny:
        r[in->dst] = convert_word(r[in->a], static_cast<DType>(in->imm / kTypes),
                                  static_cast<DType>(in->imm % kTypes));
        break;

      case kFill:
        std::fill_n(r + in->dst, in->imm, r[in->a]);
        break;
      case kTreeStep: {
        Word& lane = r[in->dst + r[in->a] % kTreeLanes];
        lane = combine(in->c, lane, r[in->b]);
        break;
      }
      case kTreeSumF32: {
        Word& lane = r[in->dst + r[in->a] % kTreeLanes];
        lane = put(get<float>(lane) + get<float>(r[in->b]));
        break;
      }
      case kTreeFlush:
        if (r[in->a] % kTreeBlock == 0 || r[in->a] == r[in->b]) {
          join_lanes(r + in->dst, in->c, static_cast<Word>(in->imm));
        }
        if (r[in->a] % kTreeSuperBlock == 0 || r[in->a] == r[in->b]) {
          join_super_block(r + in->dst, in->c, static_cast<Word>(in->imm));
        }
        break;
      case kChainFlush:
        if (r[in->b] % static_cast<Word>(in->imm) == 0 || r[in->b] == r[in->c]) {
          r[in->dst] = combine(in->d, r[in->dst], r[in->a]);
          r[in->a] = 0;
        }
        break;

      case kLoop:
        enter_loop(*in, r);
        if (r[in->dst] >= r[in->a]) in += in->d;
        break;
      case kNext:
        if (++r[in->dst] < r[in->a]) in += in->imm;
        break;
      case kStrip:
        if (r[in->dst] < r[in->b]) {
          const auto strip = static_cast<Word>(tape_.loops[in->c].strip);
          r[in->a] = std::min(r[in->b], r[in->dst] + strip);
          in += in->imm;
        }
        break;
      case kJumpUnless:
        if (r[in->a] == 0) in += in->d;
        break;
      case kCheck:
        if (r[in->a] == 0) [[unlikely]]
          return static_cast<int32_t>(in->imm);
        break;
      case kPointEnd:
        if (--points == 0) return 0;
        in = next_point(r);
        continue;
      default:
        __builtin_unreachable();
    }
    ++in;
  }
}

}  // namespace

Result<std::unique_ptr<Interpreter>> Interpreter::create(const loop::Kernel& kernel) {
  PYC_ASSIGN(Tape tape, flatten(kernel));
  return std::unique_ptr<Interpreter>(std::make_unique<TapeInterpreter>(std::move(tape)));
}

void run_interpreted(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  static_cast<const Interpreter*>(args->self)->run(*args, begin, end);
}

}  // namespace pyc::eval

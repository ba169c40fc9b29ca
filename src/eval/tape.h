#pragma once

// A kernel as one list of instructions over registers of one Word each. Code of an outer scope
// stands before the code of the scopes within it, so a loop is a jump backwards and advancing the
// parallel box is a jump to the code of the outermost variable that changed.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "loop/loop.h"

namespace pyc::eval {

struct Instr {
  uint16_t code = 0;
  uint16_t buffer = 0;
  uint32_t dst = 0;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  int64_t imm = 0;
};

inline constexpr int kTypes = 32;

// Typed operations are numbered by operation and type; loads, stores and conversions that only
// truncate by the type's storage_type.
constexpr uint16_t code_of(loop::Op op, DType t) {
  return static_cast<uint16_t>(static_cast<int>(op) * kTypes + static_cast<int>(t));
}

inline constexpr int kFirstControl = (static_cast<int>(loop::Op::kCall) + 1) * kTypes;

enum Control : uint16_t {
  kLoadIf = kFirstControl,    // + storage type; dst = c ? buffer[a + b * imm] : d
  kStore = kLoadIf + kTypes,  // + storage type; buffer[a + b * imm] = c
  kMove = kStore + kTypes,    // dst = a
  kMulAdd,                    // dst = a + b * imm, i64
  kTableLoad,                 // dst = table imm [a]
  kIntToF32,                  // any integer but u64
  kIntToF64,
  kF32ToF64,
  kF64ToF32,
  kConvertAny,  // imm = from * kTypes + to
  kFill,        // dst … dst + imm - 1 = a
  kTreeStep,    // lane a mod 64 from dst: lane = lane <c> b
  kTreeSumF32,  // the same with c = f32 sum
  kTreeFlush,   // joins the lanes at dst into dst + 64, that into dst + 65; a = position, b = end
  kChainFlush,  // dst = dst <d> a, a = 0, at segment ends; b = at, c = end
  kLoop,        // dst = variable, a = end, b = limit, c = chunk; imm = loop
  kNext,        // dst = variable, a = limit
  kStrip,       // dst = variable, a = limit, b = end, c = loop
  kJumpUnless,  // skips d instructions unless a
  kCheck,       // stops with fault imm unless a
  kPointEnd,
};

inline constexpr uint32_t kTreeLanes = loop::kTreeLanes;
using loop::kTreeBlock;
using loop::kTreeSuperBlock;

struct TapeLoop {
  int64_t extent = 0;
  int64_t chunk = 0;  // 0: the whole extent
  // Iterations between two looks at whether a segment or block ends, and over which the quotients
  // computed at a strip's start hold; 0: none.
  int64_t strip = 0;
};

struct TapeBuffer {
  uint64_t elements = 0;
  int64_t scratch_offset = -1;
};

struct TapeParallel {
  uint32_t reg = 0;
  int64_t extent = 0;
  uint32_t entry = 0;  // the first instruction to run again when this variable changes
};

struct Tape {
  std::vector<Instr> code;
  std::vector<Word> registers;  // at the start of a run: constants are in place
  std::vector<TapeParallel> parallel;
  std::vector<TapeLoop> loops;
  std::vector<TapeBuffer> buffers;
  std::vector<loop::Table> tables;
};

// The unsigned or signed integer type whose widening to a Word is that of `t`; i64 for all types
// of eight bytes. Of types below a byte a Word made so has the low bits only.
DType storage_type(DType t);
// The code of an operation on operands of type `t`; none if there is no such operation.
std::optional<uint16_t> typed_code(loop::Op op, DType t);

Result<Tape> flatten(const loop::Kernel& kernel);

}  // namespace pyc::eval

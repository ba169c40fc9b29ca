#pragma once

// The few functions of inline PTX that a kernel with wgmma uses.

#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace pyc::cuda {

//   pyc_shared                       the block's memory of as many bytes as its launch says; its
//                                    bytes are named by their distance from it
//   pyc_copy16(to, from, bytes)      begins to copy 16 bytes, of which the first `bytes` are taken
//                                    and the rest is zero; `to` is a place in pyc_shared
//   pyc_shared_fence                 what this thread wrote to shared memory is seen by the unit
//   pyc_wgmma_place(at, leading, stride)  where the unit finds a tile, 128-byte swizzle
//   pyc_wgmma(d, a, b, keep)         128 threads begin d = a·b + (keep ? d : 0) over 16 of k
//   pyc_wgmma_fence, pyc_wgmma_commit, pyc_wgmma_wait_N
//   pyc_gate_init(at, count)         a gate in shared memory that opens after so many arrivals, and
//                                    then again after as many more
//   pyc_gate_arrive(at)              what this thread did so far is done for those who pass
//   pyc_gate_arrive_copied(at)       arrives when this thread's copies so far are done
//   pyc_gate_wait(at, parity)        waits until it has opened for the turn of this parity: the
//                                    first has 0
//   pyc_cluster_barrier              of all threads of blocks that run together
//   pyc_cluster_part                 the same for those who only read from each other before: what
//                                    they wrote elsewhere need not be there yet
//   pyc_far2(rank, at, to)           reads two floats from shared memory of one of them
//   pyc_fewer_registers, pyc_more_registers  what the threads of a group need from here on
//   pyc_put2(to, a, b)               two floats side by side
//   pyc_prefetch(at)                 a line of memory will be read soon
// All are given by someone else where PYC_FENCED is defined.
struct WgmmaInstruction {
  DType factors = DType::kBF16;
  int64_t columns = 0;
  bool a_along_rows = false;  // neighbours in shared memory are neighbours along the rows
  bool b_along_rows = false;
  int64_t fewer_registers = 0;  // 0: they stay as they are
  int64_t more_registers = 0;
};
std::string wgmma_prelude(const WgmmaInstruction& instruction);

// Attention has two instructions:
//   pyc_wgmma_scores(d, a, b, keep)  128 threads begin d = a·b + (keep ? d : 0), `keys` columns
//   pyc_wgmma_values(d, a, b)        the same with d kept, `columns` columns, the threads' own four
//                                    registers as a, and b along its rows
//   pyc_wgmma_scores_done(d)         waits until d has all but the last group's products
//   pyc_wgmma_values_done(d)         waits for all
//   pyc_halves(low, high)            two floats, rounded, as a register of a
// and of the above all but pyc_wgmma.
struct AttentionInstructions {
  DType factors = DType::kBF16;
  int64_t keys = 0;
  int64_t columns = 0;
  int64_t fewer_registers = 0;  // 0: they stay as they are
  int64_t more_registers = 0;
};
std::string attention_prelude(const AttentionInstructions& instructions);

}  // namespace pyc::cuda

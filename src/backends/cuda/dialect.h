#pragma once

// A dialect is what C-like kernel languages differ in. Generated text consists of the dialect's
// header, the prelude and kernels; the latter two keep to what C, CUDA, HIP and OpenCL have in
// common and use only these words of the header:
//   types      i8 i16 i32 i64 u8 u16 u32 u64, pyc_v2 … pyc_v16 (so many bytes, aligned)
//   PYC_FN     begins a device function; PYC_GLOBAL and PYC_NEAR qualify pointers to global and
//              shared memory, PYC_SHARED begins a block's own array, PYC_TABLE a constant table;
//              PYC_ALIGN16 stands before an array's type, PYC_UNROLL before a loop with a constant
//              trip count, PYC_UNROLL2, PYC_UNROLL4 and PYC_ROLLED before any
//   PYC_KERNEL(name, parameters, threads, barriers, ...)  begins a kernel: how many parameters it
//              has (all of 8 bytes), threads of a block, whether its threads wait for each other
//   PYC_KERNEL_BESIDE(blocks, ...)  one of which so many blocks must fit into a multiprocessor;
//              PYC_KERNEL_CLUSTER instead of `barriers`: so many blocks run together
//   PYC_FENCED whether text is compiled where the functions below are given by someone else
//   pyc_thread, pyc_block, pyc_blocks                     place in the grid
//   pyc_barrier, pyc_warp_barrier                         also order memory
//   pyc_shuffle_{down,xor,first}_{u32,u64}                within a warp; pyc_match_u32: a bit for
//              each thread with the same word; pyc_bit_count
//   pyc_fetch_ahead(from, bytes): they will be read, whole 16 bytes from such a place
//   pyc_unknown_word(x)  x, of which the compiler does not know what it made of it before
//   PYC_SHARED_EACH(type, name, count)  an array that each of the blocks that run together has;
//              pyc_together_arrive, pyc_together_wait: until all their threads have arrived;
//              pyc_tell_{u32,u64}(own, at, count, gate, rank, x) writes to the array of
//              another one, of `count` words, and counts the bytes at its gate; pyc_gate_make, one
//              thread, then pyc_gates_made; pyc_gate_expect: one thread, so many bytes to come;
//              pyc_gate_pass(gate, bytes, turn): until they are there, for the turn-th time from 0;
//              of a gate's two neighbours one row uses the one, the next row the other
//   PYC_SHARED_TEAMS(type, name, count, teams, team)  one of which each team of their threads
//              has; pyc_team_barrier(team, threads) is among these
//   pyc_bring(to, from, bytes, gate)  begins a copy of whole 16 bytes to shared memory, which
//              the gate counts; pyc_send(to, from, bytes) one from there, of what is stored
//              there before pyc_sends_ready by the thread, or by another one before both wait
//              for each other; pyc_sends_read_but_{0,1,2}: until the thread's copies but the
//              last so many have read what they copy; pyc_sent: until all are there
//   PYC_SHARED_MORE  declares pyc_shared, what the launch gives of shared memory
//   pyc_wait_for_earlier                                  until the launches before this one are
//              over and what they wrote is there
//   pyc_fault(word, value)                                keeps the least value
//   pyc_{add,sub,mul,div,sqrt,fma,floor,ceil,trunc,rint,min,max}_{f32,f64}  rounded once, min and
//              max as in IEEE 754-2019; pyc_{f32,f64}_bits, pyc_bits_{f32,f64}
//   pyc_and_or_i32(a, b, c)                               (a & b) | c
//   pyc_{neg,abs}_any_f32                                 NaN: any NaN
//   pyc_{i32,i64,u64}_to_{f32,f64}, pyc_f64_to_f32        rounded to nearest even
//   pyc_f32_to_{f16,bf16}_raw, pyc_f16_to_f32_raw         rounded to nearest even; NaN: any NaN
//   pyc_pair_to_{f16,bf16}_raw                            two, the first in the low half; NaN:
//              0x7fff; pyc_min_pair_i16: of both halves

#include <string_view>

namespace pyc::cuda {

struct Dialect {
  std::string_view name;
  int warp;                 // threads that run in step; divides the 64 lanes of a tree
  std::string_view header;  // defines the words above
};

const Dialect& cuda_dialect();

// What every kernel may use: integer arithmetic, conversions.
std::string_view prelude();

}  // namespace pyc::cuda

#pragma once

// A product with totals apart: C[m, n] = A[m, k] · B[n, k]ᵀ in bf16, sums of a segment and totals
// in registers. Four ways to end a segment:
//   together: both consumer groups wait for their sums and add them;
//   turns: the groups issue their blocks of k in turns, so that one adds while the other's products
//   run;
//   halves: a group's tile is two products, one of which runs while the other's sums are added;
//   doubled: two sets of sums take turns by segment.
// A consumer thread has 232 registers and at most about 200 sums. A tile 256 wide has 128 sums and
// 128 totals: no room for segments.

#include <cuda.h>

#include "device.cuh"
#include "wgmma_text.cuh"

namespace probe {

enum Mode { kTogether, kTurns, kHalves, kDoubled };

constexpr int kTileRows = 128;
constexpr int kDepth = 64;  // elements of k in a stage
constexpr int kThreads = 384;

template <int BN>
struct Layout {
  static constexpr int kStages = BN == 128 ? 6 : BN == 192 ? 4 : 3;
  static constexpr int kPitch = BN * 2 + 16;  // of a row of results on its way out
  static constexpr int kA = kTileRows * kDepth * 2;
  static constexpr int kB = BN * kDepth * 2;
  static constexpr int kBytes = kStages * (kA + kB) + kTileRows * kPitch + kStages * 16;
  static_assert(kBytes <= 227 * 1024);
};

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra.uni DONE;\nbra.uni AGAIN;\nDONE:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                          int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
// K-major with 128-byte swizzle: rows of 128 bytes, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ uint64_t swizzled_descriptor(uint32_t address) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | 1ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
__device__ __forceinline__ void turn_wait(int group) {
  asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}
__device__ __forceinline__ void turn_give(int group) {
  asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory");
}
// Neighbours in time share rows of A and of B.
__device__ __forceinline__ int2 tile_at(int t, int tiles_m, int tiles_n) {
  constexpr int kGroup = 12;
  const int group = t / (kGroup * tiles_n), first = group * kGroup;
  const int height = min(kGroup, tiles_m - first), rest = t - group * kGroup * tiles_n;
  return {first + rest % height, rest / height};
}

// The stages as a consumer sees them.
template <int BN>
struct Stages {
  uint32_t a, b, full, empty;
  int at = 0;
  uint32_t parity = 0;
  int lane;

  __device__ __forceinline__ void wait() const { barrier_wait(full + at * 8, parity); }
  __device__ __forceinline__ void release(int stage) const {
    if (lane == 0) barrier_arrive(empty + stage * 8);
  }
  __device__ __forceinline__ void next() {
    if (++at == Layout<BN>::kStages) {
      at = 0;
      parity ^= 1;
    }
  }
};

// acc += one stage; with keep = 0 acc = one stage.
template <int N>
__device__ __forceinline__ void multiply(float (&acc)[N / 2], uint32_t a, uint32_t b, int keep) {
#pragma unroll
  for (int k = 0; k < 4; k++)
    Shared<0, N>::mma(acc, swizzled_descriptor(a + k * 32), swizzled_descriptor(b + k * 32),
                      k ? 1 : keep);
}

// `count` stages into `sum`, which starts without accumulator.
template <int BN, bool TURNS>
__device__ __forceinline__ void chain(Stages<BN>& stages, int group, int count,
                                      float (&sum)[BN / 2]) {
  using L = Layout<BN>;
  int before = 0;
  for (int i = 0; i < count; i++) {
    stages.wait();
    if (TURNS) turn_wait(group);
    wgmma_fence();
    multiply<BN>(sum, stages.a + stages.at * L::kA, stages.b + stages.at * L::kB, i > 0);
    wgmma_commit();
    if (TURNS) turn_give(1 - group);
    wgmma_wait<1>();
    if (i > 0) stages.release(before);
    before = stages.at;
    stages.next();
  }
  wgmma_wait<0>();
  pin(sum);
  stages.release(before);
}

// One tile's sums into `out`; SEG stages a segment, 0: one chain.
template <int BN, int SEG, bool TURNS>
__device__ __forceinline__ void whole_sums(Stages<BN>& stages, int group, int blocks,
                                           float (&out)[BN / 2]) {
#pragma unroll
  for (int i = 0; i < BN / 2; i++) out[i] = 0.0F;
  if constexpr (SEG == 0) {
    chain<BN, TURNS>(stages, group, blocks, out);
  } else {
    float acc[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++) acc[i] = 0.0F;
    for (int first = 0; first < blocks; first += SEG) {
      chain<BN, TURNS>(stages, group, min(SEG, blocks - first), acc);
#pragma unroll
      for (int i = 0; i < BN / 2; i++) out[i] = __fadd_rn(out[i], acc[i]);
    }
  }
}

// The same with the tile's columns in two products. A segment's last stage and the next one's first
// are written out together: the low sums are added while the high product runs, the high ones while
// the next low product does.
template <int BN, int SEG>
__device__ __forceinline__ void halved_sums(Stages<BN>& stages, int blocks, float (&out)[BN / 2]) {
  using L = Layout<BN>;
  constexpr int kHalf = BN / 2;  // columns
  constexpr int kSums = kHalf / 2;
  float low[kSums], high[kSums];
#pragma unroll
  for (int i = 0; i < BN / 2; i++) out[i] = 0.0F;
#pragma unroll
  for (int i = 0; i < kSums; i++) low[i] = high[i] = 0.0F;
  auto a = [&] { return stages.a + stages.at * L::kA; };
  auto b = [&] { return stages.b + stages.at * L::kB; };
  auto both = [&](int keep) {
    stages.wait();
    wgmma_fence();
    multiply<kHalf>(low, a(), b(), keep);
    wgmma_commit();
    multiply<kHalf>(high, a(), b() + kHalf * 128, keep);
    wgmma_commit();
  };
  both(0);
  int before = stages.at;
  stages.next();
  auto middle = [&](int count) {
    for (int i = 0; i < count; i++) {
      both(1);
      wgmma_wait<2>();
      stages.release(before);
      before = stages.at;
      stages.next();
    }
  };
  int done = 0;
  for (; done + SEG < blocks; done += SEG) {
    middle(SEG - 2);
    both(1);
    wgmma_wait<1>();
    pin(low);
#pragma unroll
    for (int i = 0; i < kSums; i++) out[i] = __fadd_rn(out[i], low[i]);
    stages.release(before);
    before = stages.at;
    stages.next();
    stages.wait();
    pin(low);
    wgmma_fence();
    multiply<kHalf>(low, a(), b(), 0);
    wgmma_commit();
    wgmma_wait<1>();
    pin(high);
#pragma unroll
    for (int i = 0; i < kSums; i++) out[kSums + i] = __fadd_rn(out[kSums + i], high[i]);
    stages.release(before);
    pin(high);
    wgmma_fence();
    multiply<kHalf>(high, a(), b() + kHalf * 128, 0);
    wgmma_commit();
    before = stages.at;
    stages.next();
  }
  middle(blocks - done - 1);
  wgmma_wait<0>();
  pin(low);
  pin(high);
#pragma unroll
  for (int i = 0; i < kSums; i++) {
    out[i] = __fadd_rn(out[i], low[i]);
    out[kSums + i] = __fadd_rn(out[kSums + i], high[i]);
  }
  stages.release(before);
}

// The same with two sets of sums that take turns by segment: one set's are added while the other's
// first product runs. A product keeps its full width; the registers hold 3 · BN / 2 sums.
template <int BN, int SEG>
__device__ __forceinline__ void doubled_sums(Stages<BN>& stages, int blocks, float (&out)[BN / 2]) {
  using L = Layout<BN>;
  constexpr int kSums = BN / 2;
  float even[kSums], odd[kSums];
#pragma unroll
  for (int i = 0; i < kSums; i++) out[i] = even[i] = odd[i] = 0.0F;
  int before = 0;
  auto issue = [&](float(&sum)[kSums], int keep) {
    stages.wait();
    wgmma_fence();
    multiply<BN>(sum, stages.a + stages.at * L::kA, stages.b + stages.at * L::kB, keep);
    wgmma_commit();
  };
  auto pass = [&] {
    before = stages.at;
    stages.next();
  };
  auto rest = [&](float(&sum)[kSums], int count) {
    for (int i = 1; i < count; i++) {
      issue(sum, 1);
      wgmma_wait<1>();
      stages.release(before);
      pass();
    }
  };
  auto join = [&](float(&sum)[kSums]) {
    pin(sum);
#pragma unroll
    for (int i = 0; i < kSums; i++) out[i] = __fadd_rn(out[i], sum[i]);
    stages.release(before);
  };
  auto segment = [&](float(&now)[kSums], float(&last)[kSums], int count) {
    pin(now);
    issue(now, 0);
    wgmma_wait<1>();
    join(last);
    pass();
    rest(now, count);
  };
  issue(even, 0);
  pass();
  rest(even, min(SEG, blocks));
  int left = blocks - SEG;
  for (;;) {
    if (left <= 0) {
      wgmma_wait<0>();
      join(even);
      break;
    }
    segment(odd, even, min(SEG, left));
    left -= SEG;
    if (left <= 0) {
      wgmma_wait<0>();
      join(odd);
      break;
    }
    segment(even, odd, min(SEG, left));
    left -= SEG;
  }
}

// A warp's 16 rows of results, as bf16, through shared memory; whole rows leave in bulk.
template <int BN>
__device__ __forceinline__ void store_rows(const float (&out)[BN / 2], uint32_t rows, int lane,
                                           uint16_t* c, int row, int column, int m, int n) {
  constexpr int kPitch = Layout<BN>::kPitch;
  const uint32_t at = rows + ((lane & 7) + ((lane >> 3) & 1) * 8) * kPitch + (lane >> 4) * 16;
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  __syncwarp();
#pragma unroll
  for (int j = 0; j < BN / 8; j += 2) {
    const uint32_t r0 = pack_bf16(out[j * 4], out[j * 4 + 1]),
                   r1 = pack_bf16(out[j * 4 + 2], out[j * 4 + 3]);
    const uint32_t r2 = pack_bf16(out[j * 4 + 4], out[j * 4 + 5]),
                   r3 = pack_bf16(out[j * 4 + 6], out[j * 4 + 7]);
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + j * 16),
        "r"(r0), "r"(r1), "r"(r2), "r"(r3)
        : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  const int columns = min(BN, n - column);
  if (lane < 16 && row + lane < m && columns > 0) {
    const uint64_t to = __cvta_generic_to_global(c + static_cast<size_t>(row + lane) * n + column);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(rows + lane * kPitch), "r"(columns * 2)
                 : "memory");
  }
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// 384 threads: group 0 loads, 1 and 2 multiply 64 rows each. As many blocks as multiprocessors.
template <int BN, int SEG, Mode MODE>
__global__ void __launch_bounds__(kThreads, 1)
    product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
            uint16_t* c, int m, int n, int k) {
#if PROBE_SM90A
  using L = Layout<BN>;
  extern __shared__ __align__(1024) uint8_t buffer[];
  const uint32_t a = shared_address(buffer), b = a + L::kStages * L::kA;
  const uint32_t rows = b + L::kStages * L::kB, full = rows + kTileRows * L::kPitch;
  const uint32_t empty = full + L::kStages * 8;
  const int role = threadIdx.x / 128, lane = threadIdx.x & 31, warp = (threadIdx.x & 127) / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < L::kStages; i++) {
      barrier_init(full + i * 8, 1);
      barrier_init(empty + i * 8, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int blocks = k / kDepth, tiles_m = (m + kTileRows - 1) / kTileRows,
            tiles_n = (n + BN - 1) / BN;
  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      int stage = 0;
      uint32_t parity = 0;
      for (int t = blockIdx.x; t < tiles_m * tiles_n; t += gridDim.x) {
        const int2 tile = tile_at(t, tiles_m, tiles_n);
        for (int i = 0; i < blocks; i++) {
          barrier_wait(empty + stage * 8, parity ^ 1);
          barrier_expect(full + stage * 8, L::kA + L::kB);
          load_tile(a + stage * L::kA, &map_a, full + stage * 8, i * kDepth, tile.x * kTileRows);
          load_tile(b + stage * L::kB, &map_b, full + stage * 8, i * kDepth, tile.y * BN);
          if (++stage == L::kStages) {
            stage = 0;
            parity ^= 1;
          }
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = role - 1;
    Stages<BN> stages = {a + group * 64 * 128, b, full, empty};
    stages.lane = lane;
    if (MODE == kTurns && group == 1) turn_give(0);
    for (int t = blockIdx.x; t < tiles_m * tiles_n; t += gridDim.x) {
      const int2 tile = tile_at(t, tiles_m, tiles_n);
      float out[BN / 2];
      if constexpr (MODE == kHalves)
        halved_sums<BN, SEG>(stages, blocks, out);
      else if constexpr (MODE == kDoubled)
        doubled_sums<BN, SEG>(stages, blocks, out);
      else
        whole_sums<BN, SEG, MODE == kTurns>(stages, group, blocks, out);
      const int row = group * 64 + warp * 16;
      store_rows<BN>(out, rows + row * L::kPitch, lane, c, tile.x * kTileRows + row, tile.y * BN, m,
                     n);
    }
    if (MODE == kTurns && group == 0) turn_wait(0);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#endif
}

}  // namespace probe

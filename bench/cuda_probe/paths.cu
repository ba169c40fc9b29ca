// The device's own blocks: wgmma with A from shared memory or registers, and mma.sync.

#include "device.cuh"
#include "paths.h"
#include "wgmma_text.cuh"

namespace probe {
namespace {

constexpr int kStaged = 4;  // steps issued one after another, as a product kernel does

// K-major without swizzle: core matrices of 8 rows × 16 bytes are contiguous. `along_k` is the
// distance of the two core matrices of a step, `along_rows` that of groups of 8 rows.
__device__ __forceinline__ uint64_t plain_descriptor(const void* p, uint32_t along_k,
                                                     uint32_t along_rows) {
  const uint32_t address = shared_address(p);
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(along_k >> 4) << 16 | static_cast<uint64_t>(along_rows >> 4) << 32;
}

// Copies `count` steps of `rows` rows into core matrices.
__device__ __forceinline__ void stage(uint8_t* to, const uint8_t* from, int rows, int row_bytes,
                                      int count) {
  for (int i = threadIdx.x; i < count * rows * 2; i += blockDim.x) {
    const int step = i / (rows * 2), row = i % (rows * 2) / 2, half = i & 1;
    *reinterpret_cast<uint4*>(to + step * rows * 32 + half * rows * 16 + row * 16) =
        *reinterpret_cast<const uint4*>(from + static_cast<size_t>(row) * row_bytes + step * 32 +
                                        half * 16);
  }
}

template <int FORMAT, int N, bool REGISTERS>
__global__ void __launch_bounds__(128)
    wgmma_chain(const uint8_t* a, const uint8_t* b, const float* c, float* d, int steps) {
#if PROBE_SM90A
  __shared__ __align__(1024) uint8_t shared_a[kStaged * kRows * 32];
  __shared__ __align__(1024) uint8_t shared_b[kStaged * N * 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row_bytes = steps * 32;
  const size_t tile = blockIdx.x;
  const int column0 = blockIdx.y * N;
  a += tile * kRows * row_bytes;
  b += (tile * kColumns + column0) * row_bytes;
  const size_t out = tile * kRows * kColumns + column0;
  float acc[N / 2];
  auto place = [&](int i) {
    const int row = warp * 16 + lane / 4 + 8 * ((i >> 1) & 1);
    return out + static_cast<size_t>(row) * kColumns + (i >> 2) * 8 + (lane & 3) * 2 + (i & 1);
  };
#pragma unroll
  for (int i = 0; i < N / 2; i++) acc[i] = c ? c[place(i)] : 0.0F;
  int keep = c != nullptr;
  for (int first = 0; first < steps; first += kStaged) {
    const int count = min(kStaged, steps - first);
    stage(shared_a, a + first * 32, kRows, row_bytes, count);
    stage(shared_b, b + first * 32, N, row_bytes, count);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    uint32_t fragment[kStaged][4];
    if constexpr (REGISTERS) {
#pragma unroll
      for (int step = 0; step < kStaged; step++) {
        if (step >= count) break;
        const uint8_t* p = a + static_cast<size_t>(warp * 16 + lane / 4) * row_bytes +
                           (first + step) * 32 + (lane & 3) * 4;
        const uint8_t* p8 = p + static_cast<size_t>(8) * row_bytes;
        fragment[step][0] = *reinterpret_cast<const uint32_t*>(p);
        fragment[step][1] = *reinterpret_cast<const uint32_t*>(p8);
        fragment[step][2] = *reinterpret_cast<const uint32_t*>(p + 16);
        fragment[step][3] = *reinterpret_cast<const uint32_t*>(p8 + 16);
      }
    }
    auto issue = [&](int step) {
      const uint64_t db = plain_descriptor(shared_b + step * N * 32, N * 16, 128);
      if constexpr (REGISTERS) {
        Registers<FORMAT, N>::mma(acc, fragment[step], db, keep);
      } else {
        const uint64_t da = plain_descriptor(shared_a + step * kRows * 32, kRows * 16, 128);
        Shared<FORMAT, N>::mma(acc, da, db, keep);
      }
      keep = 1;
    };
    pin(acc);
    if (count == kStaged) {
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < kStaged; step++) issue(step);
      wgmma_commit();
      wgmma_wait<0>();
    } else {
#pragma unroll
      for (int step = 0; step < kStaged - 1; step++) {
        if (step >= count) break;
        wgmma_fence();
        issue(step);
        wgmma_commit();
        wgmma_wait<0>();
        pin(acc);
      }
    }
    pin(acc);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < N / 2; i++) d[place(i)] = acc[i];
#endif
}

template <int FORMAT>
__device__ __forceinline__ void mma_sync(float (&d)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2]) {
  if constexpr (FORMAT == 0)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One warp per 16 × 8 results; grid (tiles, 4, 32).
template <int FORMAT>
__global__ void mma_chain(const uint8_t* a, const uint8_t* b, const float* c, float* d, int steps) {
  const int lane = threadIdx.x, row_bytes = steps * 32;
  const size_t tile = blockIdx.x;
  const int row0 = blockIdx.y * 16 + lane / 4, column0 = blockIdx.z * 8;
  const uint8_t* pa = a + (tile * kRows + row0) * row_bytes + (lane & 3) * 4;
  const uint8_t* pa8 = pa + static_cast<size_t>(8) * row_bytes;
  const uint8_t* pb = b + (tile * kColumns + column0 + lane / 4) * row_bytes + (lane & 3) * 4;
  auto word = [](const uint8_t* p) { return *reinterpret_cast<const uint32_t*>(p); };
  auto place = [&](int i) {
    return (tile * kRows + row0 + 8 * (i >> 1)) * kColumns + column0 + (lane & 3) * 2 + (i & 1);
  };
  float acc[4];
  for (int i = 0; i < 4; i++) acc[i] = c ? c[place(i)] : 0.0F;
  for (int step = 0; step < steps; step++) {
    const int at = step * 32;
    const uint32_t fa[4] = {word(pa + at), word(pa8 + at), word(pa + at + 16), word(pa8 + at + 16)};
    const uint32_t fb[2] = {word(pb + at), word(pb + at + 16)};
    mma_sync<FORMAT>(acc, fa, fb);
  }
  for (int i = 0; i < 4; i++) d[place(i)] = acc[i];
}

struct Buffers {
  const uint8_t* a;
  const uint8_t* b;
  const float* c;
  float* d;
};

template <int FORMAT>
void launch(Path path, const Tiles& t, const Buffers& x) {
  const unsigned tiles = t.tiles;
  auto wgmma = [&](auto kernel, unsigned n) {
    kernel<<<dim3(tiles, kColumns / n), 128>>>(x.a, x.b, x.c, x.d, t.steps);
  };
  switch (path) {
    case Path::kN8:
      return wgmma(wgmma_chain<FORMAT, 8, false>, 8);
    case Path::kN64:
      return wgmma(wgmma_chain<FORMAT, 64, false>, 64);
    case Path::kN256:
      return wgmma(wgmma_chain<FORMAT, 256, false>, 256);
    case Path::kRegN64:
      return wgmma(wgmma_chain<FORMAT, 64, true>, 64);
    case Path::kRegN256:
      return wgmma(wgmma_chain<FORMAT, 256, true>, 256);
    case Path::kMmaSync:
      if constexpr (FORMAT < 2)
        mma_chain<FORMAT>
            <<<dim3(tiles, kRows / 16, kColumns / 8), 32>>>(x.a, x.b, x.c, x.d, t.steps);
      return;
  }
}

}  // namespace

std::string device_name() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return std::string(properties.name) + " sm_" + std::to_string(properties.major) +
         std::to_string(properties.minor);
}

std::vector<float> run_path(Path path, const Tiles& tiles) {
  DeviceArray<uint8_t> a(tiles.a);
  DeviceArray<uint8_t> b(tiles.b);
  DeviceArray<float> c(tiles.c.empty() ? std::vector<float>(1) : tiles.c);
  DeviceArray<float> d(tiles.results());
  d.poison();
  const Buffers buffers = {a.data(), b.data(), tiles.c.empty() ? nullptr : c.data(), d.data()};
  switch (tiles.format) {
    case Format::kBF16:
      launch<0>(path, tiles, buffers);
      break;
    case Format::kF16:
      launch<1>(path, tiles, buffers);
      break;
    case Format::kE4M3:
      launch<2>(path, tiles, buffers);
      break;
    case Format::kE5M2:
      launch<3>(path, tiles, buffers);
      break;
    case Format::kE4M3E5M2:
      launch<4>(path, tiles, buffers);
      break;
  }
  check(cudaGetLastError(), "launch");
  return d.download();
}

}  // namespace probe

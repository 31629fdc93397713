// What the device kernels share: loads of a lane's slice, macros that the CPU executor of the tests replaces.
#pragma once
#include "numbers.h"
#include "philox.h"
#if defined(__CUDACC__)
#define SHARED(T, name) extern __shared__ __align__(16) unsigned char name##_raw[]; T* name = reinterpret_cast<T*>(name##_raw)
#define LAUNCH_BOUNDS(n, b) __launch_bounds__(n, b)
#endif

namespace kvc {
constexpr u32 FULL = 0xffffffffu;
typedef long long i64;

// How D is cut: LANES lanes own one token, SLICE dimensions each, so that a slice loads in aligned vectors.
template <int D> struct Cut {
  static constexpr int SLICE = D % 64 == 0 ? 8 : 12, LANES = D / SLICE, TOKENS = 32 / LANES;
  static_assert(D % SLICE == 0 && 32 % LANES == 0, "head dimension must be 64, 96, 128 or 256");
};

// N elements from an address aligned to 16 bytes (8 bytes for 12 two-byte elements), as float.
template <int N, typename T> __device__ __forceinline__ void load_slice(const T* p, float* r) {
  if constexpr (sizeof(T) == 4) {
    UNROLL
    for (int i = 0; i < N / 4; ++i) {
      const float4 a = reinterpret_cast<const float4*>(p)[i];
      r[4 * i] = a.x; r[4 * i + 1] = a.y; r[4 * i + 2] = a.z; r[4 * i + 3] = a.w;
    }
  } else if constexpr (N % 8 == 0) {
    union { uint4 u; T x[8]; } b; b.u = *reinterpret_cast<const uint4*>(p);
    UNROLL
    for (int i = 0; i < 8; ++i) r[i] = widen(b.x[i]);
  } else {
    UNROLL
    for (int i = 0; i < N / 4; ++i) {
      union { uint2 u; T x[4]; } b; b.u = reinterpret_cast<const uint2*>(p)[i];
      UNROLL
      for (int j = 0; j < 4; ++j) r[4 * i + j] = widen(b.x[j]);
    }
  }
}
}  // namespace kvc

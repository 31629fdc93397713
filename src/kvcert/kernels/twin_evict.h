// Poisson draw and ordered compaction on the CPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include "philox.h"

namespace kvc {
struct EvictArgs {  // strides in elements; unit = row * Hkv + KV head
  const double* pi; const int32_t *position, *begin, *draw;      // [units][n], [units][n], [units], [R]
  int32_t *index, *count;                                        // [units][n], [units]
  const char *k, *v; const float* log_pi;                        // log_pi: cumulative before this stage, may be null
  char *k_out, *v_out; float* log_pi_out; int32_t* position_out; // [units][length][D], [units][length]
  int64_t R, Hkv, n, D, bytes, k0, k1, k2, v0, v1, v2, end, length, threads;
  u32 seed_lo, seed_hi, layer, example, stage, unused;
};
inline void draw_units(const EvictArgs& a) {
#pragma omp parallel for num_threads((int)a.threads) schedule(static) if (a.threads > 1)
  for (int64_t u = 0; u < a.R * a.Hkv; ++u) {
    const Stream s{a.seed_lo, a.seed_hi, (a.layer << 16) + (u32)(u % a.Hkv), a.example, ((u32)a.draw[u / a.Hkv] << 8) + a.stage};
    int32_t kept = 0;
    for (int64_t i = a.begin[u]; i < a.n; ++i)
      if (keeps(s, (u32)a.position[u * a.n + i], threshold(a.pi[u * a.n + i]))) a.index[u * a.n + kept++] = (int32_t)i;
    a.count[u] = kept;
  }
}
inline void gather_units(const EvictArgs& a) {
  const int64_t size = a.D * a.bytes;
#pragma omp parallel for num_threads((int)a.threads) schedule(static) if (a.threads > 1)
  for (int64_t u = 0; u < a.R * a.Hkv; ++u) {
    const int64_t r = u / a.Hkv, h = u % a.Hkv, shift = u * a.length + a.end - a.count[u];
    const char *k = a.k + (r * a.k0 + h * a.k1) * a.bytes, *v = a.v + (r * a.v0 + h * a.v1) * a.bytes;
    for (int64_t j = 0; j < a.count[u]; ++j) {
      const int64_t i = a.index[u * a.n + j], o = shift + j;
      const double stored = (double)threshold(a.pi[u * a.n + i]) / 4294967296.0;
      std::memcpy(a.k_out + o * size, k + i * a.k2 * a.bytes, size);
      std::memcpy(a.v_out + o * size, v + i * a.v2 * a.bytes, size);
      a.log_pi_out[o] = (float)(std::log(stored) + (a.log_pi ? (double)a.log_pi[u * a.n + i] : 0.0));
      a.position_out[o] = a.position[u * a.n + i];
    }
  }
}
}  // namespace kvc

// Split-KV certified attention. One block: one split of the tokens of one KV head, up to GB query rows that share it.
// Tokens are walked warp by warp; Cut<D>::LANES lanes own one token. A second kernel (`combine`) merges the splits.
#pragma once
#include "lane.cuh"

namespace kvc {
template <typename T, int D, int GB, int WARPS, bool CERT>
__global__ void LAUNCH_BOUNDS(WARPS * 32, 2) split_decode(const DeviceDecode a) {
  using C = Cut<D>; constexpr int N = C::SLICE, REC = Record<D, CERT>::SIZE, UN = N > 8 ? 1 : 2;  // UN: tokens in flight per lane group
  SHARED(float, sm);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, sub = lane / C::LANES, part = lane % C::LANES;
  const int head = blockIdx.y / a.chunks, chunk = blockIdx.y % a.chunks, row = blockIdx.z, G = a.H / a.Hkv;
  float q[GB][N], mid[N]; LaneState<N, CERT> st[GB]; int limit[GB], place[GB], last = 0;
  UNROLL
  for (int g = 0; g < GB; ++g) {
    const int i = chunk * GB + g, t = i / G; st[g].init();   // row i of the head = t*G + query head
    place[g] = i < a.rows_of_head ? (row * a.H + head * G + i % G) * a.T + t : -1;
    limit[g] = place[g] < 0 ? 0 : a.end - a.T + t + 1; last = last > limit[g] ? last : limit[g];
    load_slice<N>(static_cast<const T*>(a.q) + (i64)(place[g] < 0 ? 0 : place[g]) * D + part * N, q[g]);
    UNROLL
    for (int i2 = 0; i2 < N; ++i2) q[g][i2] *= a.scale;
  }
  UNROLL
  for (int i = 0; i < N; ++i) mid[i] = CERT && a.centre ? a.centre[((i64)row * a.Hkv + head) * D + part * N + i] : 0.f;
  const int lo = a.begin[row * a.Hkv + head] + blockIdx.x * a.keys, hi = last < lo + a.keys ? last : lo + a.keys;
  for (int base = lo + warp * C::TOKENS; base < hi; base += WARPS * C::TOKENS * UN) {
    float k[UN][N], v[UN][N], lp[UN];
    UNROLL
    for (int u = 0; u < UN; ++u) {                           // all loads first: they overlap
      int j = base + u * WARPS * C::TOKENS + sub; j = j < hi ? j : hi - 1;
      const i64 page = page_of(a, row, head, j);
      load_slice<N>(static_cast<const T*>(a.k) + page * a.k0 + head * a.k1 + j * a.k2 + part * N, k[u]);
      load_slice<N>(static_cast<const T*>(a.v) + page * a.v0 + head * a.v1 + j * a.v2 + part * N, v[u]);
      lp[u] = a.log_pi[page * a.p0 + head * a.p1 + j];
    }
    UNROLL
    for (int u = 0; u < UN; ++u) {
      const int j = base + u * WARPS * C::TOKENS + sub;
      float dot[GB], x2 = 0.f;
      UNROLL
      for (int i = 0; i < N; ++i) { v[u][i] -= mid[i]; x2 += v[u][i] * v[u][i]; }
      UNROLL
      for (int g = 0; g < GB; ++g) {
        dot[g] = 0.f;
        UNROLL
        for (int i = 0; i < N; ++i) dot[g] += q[g][i] * k[u][i];
      }
      UNROLL
      for (int s = C::LANES / 2; s > 0; s >>= 1) {
        if (CERT) x2 += __shfl_xor_sync(FULL, x2, s);
        UNROLL
        for (int g = 0; g < GB; ++g) dot[g] += __shfl_xor_sync(FULL, dot[g], s);
      }
      const float miss = CERT ? -expm1f(lp[u]) : 0.f;
      UNROLL
      for (int g = 0; g < GB; ++g)
        if (j < hi && j < limit[g]) st[g].update(dot[g] - lp[u], miss, v[u], x2);
    }
  }
  UNROLL
  for (int s = C::LANES; s < 32; s <<= 1) {
    UNROLL
    for (int g = 0; g < GB; ++g) st[g].merge_lane(s);
  }
  if (sub == 0) {
    UNROLL
    for (int g = 0; g < GB; ++g) {
      float* p = sm + (warp * GB + g) * REC; const Moments& s = st[g].s;
      if (part == 0) { p[0] = s.m; p[1] = s.l; p[2] = s.w2; p[3] = s.q0; p[4] = s.q2; p[5] = s.r; p[6] = s.ms; p[7] = 0.f; }
      UNROLL
      for (int i = 0; i < N; ++i) { p[HEAD + part * N + i] = st[g].o[i]; if (CERT) p[HEAD + D + part * N + i] = st[g].q1[i]; }
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < GB * REC; e += WARPS * 32) {
    const int g = e / REC, x = e % REC, i = chunk * GB + g;
    if (i >= a.rows_of_head) continue;
    const float m = top_of(sm + g * REC, WARPS, GB * REC);
    const i64 to = (i64)(row * a.H + head * G + i % G) * a.T + i / G;
    a.partial[(to * a.splits + blockIdx.x) * REC + x] = x == 0 ? m : merged<D>(sm + g * REC, WARPS, GB * REC, x, m);
  }
}

// One block of D threads per query row: merge the splits, finish the certificate. Shared: 2 * D/32 floats.
template <typename T, int D, bool CERT> __global__ void LAUNCH_BOUNDS(D, 2) combine(const DeviceDecode a) {
  constexpr int REC = Record<D, CERT>::SIZE;
  SHARED(float, red);
  const int d = threadIdx.x, head = blockIdx.x / a.T % a.H, row = blockIdx.x / (a.T * a.H);
  const float* p = a.partial + (i64)blockIdx.x * a.splits * REC; const float m = top_of(p, a.splits, REC);
  Moments s; s.m = m; s.l = merged<D>(p, a.splits, REC, 1, m); s.w2 = s.q0 = s.q2 = s.r = 0.f; s.ms = NONE;
  if (CERT) {
    s.w2 = merged<D>(p, a.splits, REC, 2, m); s.q0 = merged<D>(p, a.splits, REC, 3, m);
    s.q2 = merged<D>(p, a.splits, REC, 4, m); s.r = merged<D>(p, a.splits, REC, 5, m); s.ms = merged<D>(p, a.splits, REC, 6, m);
  }
  const float o = s.l == 0.f ? 0.f : merged<D>(p, a.splits, REC, HEAD + d, m) / s.l;
  const float mid = CERT && a.centre && s.l != 0.f ? a.centre[((i64)row * a.Hkv + head / (a.H / a.Hkv)) * D + d] : 0.f;
  narrow(o + mid, static_cast<T*>(a.out) + (i64)blockIdx.x * D + d);
  float oq = 0.f, oo = o * o;
  if (CERT) {
    oq = o * merged<D>(p, a.splits, REC, HEAD + D + d, m);
    UNROLL
    for (int x = 16; x > 0; x >>= 1) { oq += __shfl_xor_sync(FULL, oq, x); oo += __shfl_xor_sync(FULL, oo, x); }
    if ((d & 31) == 0) { red[2 * (d >> 5)] = oq; red[2 * (d >> 5) + 1] = oo; }
    __syncthreads();
    oq = oo = 0.f;
    for (int w = 0; w < D / 32; ++w) { oq += red[2 * w]; oo += red[2 * w + 1]; }
  }
  if (d == 0) {
    const Certificate c = finish(s, oq, oo, a.level);
    float* to = a.stats + blockIdx.x; to[0] = c.lse;
    if (CERT) {
      to[(i64)a.plane] = c.variance; to[2ll * a.plane] = c.bound; to[3ll * a.plane] = c.radius; to[4ll * a.plane] = c.guarded;
      to[5ll * a.plane] = c.ess; to[6ll * a.plane] = c.p_max; to[7ll * a.plane] = c.p_sampled;
    }
  }
}
}  // namespace kvc

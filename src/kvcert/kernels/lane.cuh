// What one lane carries through a split, the partial record of a split, and how records merge.
#pragma once
#include "device.cuh"

namespace kvc {
struct DeviceDecode {  // strides in elements; the last dimension is contiguous
  const void *q, *k, *v; const float *log_pi, *centre; const int *begin, *pages; float* partial; void* out; float* stats;
  i64 k0, k1, k2, v0, v1, v2, p0, p1, t0, t1;  // t0, t1: row and head strides of the page table
  int H, Hkv, T, end, rows_of_head, chunks, splits, keys, page_shift, plane;
  float scale, level;
};
constexpr int HEAD = 8;  // scalars at the start of a partial record: m l w2 q0 q2 r ms, one unused
template <int D, bool CERT> struct Record { static constexpr int SIZE = HEAD + (CERT ? 2 : 1) * D; };

template <int N, bool CERT> struct LaneState {
  Moments s; float o[N], q1[CERT ? N : 1];
  __device__ __forceinline__ void init() {
    s.init();
    UNROLL
    for (int i = 0; i < N; ++i) { o[i] = 0.f; if (CERT) q1[i] = 0.f; }
  }
  __device__ __forceinline__ void scale(float a) {
    const float a2 = a * a;
    UNROLL
    for (int i = 0; i < N; ++i) { o[i] *= a; if (CERT) q1[i] *= a2; }
  }
  __device__ __forceinline__ void update(float logit, float miss, const float* x, float x2) {
    if (logit > s.m) scale(s.rebase(logit));
    Pair p;
    if constexpr (CERT) p = s.add(logit, miss, x2);
    else { p.w = fast_exp(logit - s.m); p.c = 0.f; s.l += p.w; }
    UNROLL
    for (int i = 0; i < N; ++i) { o[i] += p.w * x[i]; if (CERT) q1[i] += p.c * x[i]; }
  }
  __device__ __forceinline__ void merge_lane(int step) {  // with the lane whose number differs in bit `step`
    Moments y; float a, b;
    y.m = __shfl_xor_sync(FULL, s.m, step); y.l = __shfl_xor_sync(FULL, s.l, step);
    y.w2 = __shfl_xor_sync(FULL, s.w2, step); y.q0 = __shfl_xor_sync(FULL, s.q0, step);
    y.q2 = __shfl_xor_sync(FULL, s.q2, step); y.r = __shfl_xor_sync(FULL, s.r, step);
    y.ms = __shfl_xor_sync(FULL, s.ms, step);
    s.merge(y, a, b);
    const float a2 = a * a, b2 = b * b;
    UNROLL
    for (int i = 0; i < N; ++i) {
      o[i] = o[i] * a + __shfl_xor_sync(FULL, o[i], step) * b;
      if (CERT) q1[i] = q1[i] * a2 + __shfl_xor_sync(FULL, q1[i], step) * b2;
    }
  }
};
// Where token j of (row, head) lies: page and slot in it; without a page table the page is the row.
__device__ __forceinline__ i64 page_of(const DeviceDecode& a, int row, int head, int& j) {
  if (!a.pages) return row;
  const i64 page = a.pages[row * a.t0 + head * a.t1 + (j >> a.page_shift)];
  j &= (1 << a.page_shift) - 1;
  return page;
}
// Element e of the merge of COUNT records (stride apart) whose common maximum is m.
template <int D> __device__ __forceinline__ float merged(const float* record, int count, int stride, int e, float m) {
  const bool top = e == 5 || e == 6, second = (e >= 2 && e <= 4) || e >= HEAD + D;
  float acc = e == 6 ? NONE : 0.f;
  for (int w = 0; w < count; ++w, record += stride) {
    const float a = fast_exp(record[0] - m), x = record[e] * (e == 6 ? 1.f : second ? a * a : a);
    acc = top ? larger(x, acc) : acc + x;
  }
  return acc;
}
__device__ __forceinline__ float top_of(const float* record, int count, int stride) {
  float m = NONE;
  for (int w = 0; w < count; ++w) m = larger(record[w * stride], m);
  return m;
}
}  // namespace kvc

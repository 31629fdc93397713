// Certified attention on the CPU: the state of state.h, tile by tile, for a block of query rows of one KV head.
#pragma once
#include <algorithm>
#include <vector>
#include "twin_tile.h"

namespace kvc {
struct DecodeArgs {  // strides in elements; the last dimension is contiguous
  const void *q, *k, *v; const float *log_pi, *centre; const int32_t* begin; float *out, *stats;
  int64_t R, H, Hkv, T, D, end, kind;            // kind of K and V: 0 float, 1 bfloat16, 2 half; q and out are float
  int64_t k0, k1, k2, v0, v1, v2, p0, p1, threads, certificate;
  float scale, level;
};
struct Scratch {
  std::vector<float> memory; int wide;
  float *q, *sums, *weights, *scores, *keys, *turned, *values, *centre;
  explicit Scratch(int64_t dim) {
    wide = (int)((dim + W - 1) / W * W);
    const size_t rows = ROWS, w = wide;
    memory.resize(rows * w + 2 * rows * w + 2 * rows * KEYS + rows * KEYS + 3 * KEYS * w + w + 64);
    float* p = memory.data(); p += (64 - ((uintptr_t)p & 63)) / 4 % 16;
    auto take = [&](size_t n) { float* x = p; p += n; return x; };
    q = take(rows * w); sums = take(2 * rows * w); weights = take(2 * rows * KEYS); scores = take(rows * KEYS);
    keys = take(KEYS * w); turned = take(KEYS * w); values = take(KEYS * w); centre = take(w);
  }
};
struct Lanes { float m; vf l, w2, q0, q2, r, ms; };  // Moments with one partial sum per vector lane
struct TokenVectors { vf offset[KEYS / W], miss[KEYS / W], x2[KEYS / W], x[KEYS / W], bar[KEYS / W]; };

// Per token, shared by all rows of the block: -log Pi, 1 - Pi, |v-c|^2; for certain tokens |v-c| reads 0 and bar NONE.
template <bool CERT> INLINE void token_vectors(TokenVectors& y, const float* log_pi, const float* x2, int t) {
  for (int b = 0; b * W < t; ++b) {
    float raw[W]; for (int i = 0; i < W; ++i) raw[i] = b * W + i < t ? log_pi[b * W + i] : 0.f;
    const vf lp = load(raw); y.offset[b] = -lp;
    if (CERT) {
      vf n; for (int i = 0; i < W; ++i) n[i] = std::sqrt(x2[b * W + i]);
      y.miss[b] = -vexpm1(lp); y.x2[b] = load(x2 + b * W);
      y.x[b] = lp < 0.f ? n : vf{}; y.bar[b] = lp < 0.f ? vf{} : all(NONE);
    }
  }
}
// Scores of one row -> weights w and (1-Pi) w^2; updates the row's lanes and shrinks its sums when the maximum moves.
template <bool CERT>
INLINE void weigh(Lanes& st, float* score, float* w_out, float* c_out, const TokenVectors& y, int valid, int t, float* o, float* q1, int wide) {
  const int nb = (t + W - 1) / W; vf s[KEYS / W], top = all(NONE);
  for (int b = 0; b < nb; ++b) {
    const vi in = lanes() + b * W < valid;
    s[b] = in ? load(score + b * W) + y.offset[b] : all(NONE); top = larger(s[b], top);
  }
  const float mx = peak(top);
  if (mx > st.m) {
    const float a = st.m > SOME ? std::exp(st.m - mx) : 0.f, a2 = a * a;
    st.m = mx; st.l *= a; if (CERT) { st.w2 *= a2; st.q0 *= a2; st.q2 *= a2; st.r *= a; }
    for (int d = 0; d < wide; d += W) { store(o + d, load(o + d) * a); if (CERT) store(q1 + d, load(q1 + d) * a2); }
  }
  for (int b = 0; b < nb; ++b) {
    const vi in = lanes() + b * W < valid;
    const vf w = in ? vexp(s[b] - st.m) : vf{};
    st.l += w; store(w_out + b * W, w);
    if (CERT) {
      const vf ww = w * w, c = y.miss[b] * ww;
      st.w2 += ww; st.q0 += c; st.q2 += c * y.x2[b]; store(c_out + b * W, c);
      st.r = larger(w * y.x[b], st.r); st.ms = larger(s[b] + y.bar[b], st.ms);
    }
  }
}
template <bool CERT, class T> inline void decode_block(const DecodeArgs& a, Scratch& z, int64_t unit, int64_t first, int rows) {
  const int64_t r = unit / a.Hkv, h = unit % a.Hkv, G = a.H / a.Hkv; const int dim = (int)a.D, wide = z.wide;
  const T* K = (const T*)a.k + r * a.k0 + h * a.k1; const T* V = (const T*)a.v + r * a.v0 + h * a.v1;
  const float* lp = a.log_pi + r * a.p0 + h * a.p1; const float* mid = nullptr;
  constexpr bool PLAIN = sizeof(T) == 4; const bool direct = PLAIN && wide == dim, few = rows < FEW;
  if (CERT && a.centre) {
    std::fill(z.centre, z.centre + wide, 0.f); std::copy_n(a.centre + unit * dim, dim, z.centre); mid = z.centre;
  }
  int limit[ROWS], last = 0; Lanes st[ROWS];
  auto place = [&](int i) { return ((r * a.H + h * G + (first + i) % G) * a.T + (first + i) / G); };  // row i = t*G + g
  for (int i = 0; i < rows; ++i) {
    const float* q = (const float*)a.q + place(i) * dim;
    for (int d = 0; d < wide; ++d) z.q[i * wide + d] = d < dim ? q[d] * a.scale : 0.f;
    limit[i] = (int)(a.end - a.T + (first + i) / G + 1); last = std::max(last, limit[i]);
    st[i] = {NONE, vf{}, vf{}, vf{}, vf{}, vf{}, all(NONE)};
  }
  float* q1 = z.sums + rows * wide; float* w1 = z.weights + rows * KEYS; std::fill(z.sums, q1 + rows * wide, 0.f);
  for (int j0 = a.begin[unit]; j0 < last; j0 += KEYS) {
    const int t = std::min(KEYS, last - j0);
    const float *k = (const float*)(K + (int64_t)j0 * a.k2), *v = (const float*)(V + (int64_t)j0 * a.v2), *shift = mid;
    int64_t ldk = a.k2, ldv = a.v2;
    if (direct) { ahead(v, ldv, t, dim); ahead(k + t * ldk, ldk, std::min(KEYS, last - j0 - t), dim); }
    if (!direct) { pack(K + (int64_t)j0 * a.k2, a.k2, nullptr, z.keys, t, dim, wide); k = z.keys; ldk = wide; }
    if (!direct || (!few && mid)) { pack(V + (int64_t)j0 * a.v2, a.v2, mid, z.values, t, dim, wide); v = z.values; ldv = wide; shift = nullptr; }
    if (few) for (int i = 0; i < rows; ++i) dots(z.q + i * wide, k, ldk, nullptr, z.scores + i * KEYS, t, wide);
    else {
      pack_transposed(k, ldk, z.turned, t, wide); std::fill(z.scores, z.scores + rows * KEYS, 0.f);
      product(z.q, wide, z.turned, KEYS, nullptr, z.scores, KEYS, rows, wide, (t + W - 1) / W * W);
    }
    alignas(64) float x2[KEYS]; TokenVectors y;
    if (CERT) dots(nullptr, v, ldv, shift, x2, t, wide);
    token_vectors<CERT>(y, lp + j0, x2, t);
    for (int i = 0; i < rows; ++i)
      weigh<CERT>(st[i], z.scores + i * KEYS, z.weights + i * KEYS, w1 + i * KEYS, y, std::clamp(limit[i] - j0, 0, t), t, z.sums + i * wide, q1 + i * wide, wide);
    product(z.weights, KEYS, v, ldv, shift, z.sums, wide, CERT ? 2 * rows : rows, t, wide);
  }
  const int64_t plane = a.R * a.H * a.T;
  for (int i = 0; i < rows; ++i) {
    const float* o = z.sums + i * wide; const float* b = q1 + i * wide; float oq = 0.f, oo = 0.f;
    Moments s{st[i].m, sum(st[i].l), sum(st[i].w2), sum(st[i].q0), sum(st[i].q2), peak(st[i].r), peak(st[i].ms)};
    const float inv = s.l == 0.f ? 0.f : 1.f / s.l; float* out = a.out + place(i) * dim;
    for (int d = 0; d < dim; ++d) { const float x = o[d] * inv; oq += x * b[d]; oo += x * x; out[d] = x + (mid && s.l != 0.f ? mid[d] : 0.f); }
    const Certificate c = finish(s, CERT ? oq : 0.f, oo, a.level);
    const float row[STATS] = {c.lse, c.variance, c.bound, c.radius, c.guarded, c.ess, c.p_max, c.p_sampled};
    for (int x = 0; x < (CERT ? STATS : 1); ++x) a.stats[x * plane + place(i)] = row[x];
  }
}
template <class T> inline void decode_typed(const DecodeArgs& a) {
  const int64_t units = a.R * a.Hkv, M = a.H / a.Hkv * a.T, blocks = (M + ROWS - 1) / ROWS, each = (M + blocks - 1) / blocks;
#pragma omp parallel num_threads((int)a.threads) if (a.threads > 1)
  {
    Scratch z(a.D);
#pragma omp for schedule(dynamic)
    for (int64_t x = 0; x < units * blocks; ++x) {
      const int64_t first = x % blocks * each; const int rows = (int)std::min(each, M - first);
      if (a.certificate) decode_block<true, T>(a, z, x / blocks, first, rows);
      else decode_block<false, T>(a, z, x / blocks, first, rows);
    }
  }
}
}  // namespace kvc

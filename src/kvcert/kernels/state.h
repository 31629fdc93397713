// The online state of certified attention, shared word for word by the CUDA kernel and the CPU twin.
//
// One query row walks over retained tokens i with logits s_i = q.k_i*scale - log Pi_i. With w_i = exp(s_i - m),
// x_i = v_i - c (c: the reference centre of the head) and the sampled units {i: Pi_i < 1}:
//   l  = sum w_i            w2 = sum w_i^2                     o  = sum w_i x_i
//   q0 = sum (1-Pi_i) w_i^2   Q1 = sum (1-Pi_i) w_i^2 x_i      q2 = sum (1-Pi_i) w_i^2 |x_i|^2
//   r  = max over sampled w_i |x_i|                            ms = max over sampled s_i
// m is the exact running maximum of s, so the largest weight is 1/l. Moving m rescales l, o, r by a = exp(m - m')
// and w2, q0, Q1, q2 by a^2. `finish` turns the sums into the certificate (docs/method.md).
#pragma once
#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstring>
#endif
#if defined(__CUDACC__)
#define HD __host__ __device__ __forceinline__
#else
#define HD inline __attribute__((always_inline))
#endif
#if defined(__CUDACC__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

namespace kvc {

// "No token yet". Finite, so that NONE - NONE is 0 and not NaN; every real logit is far above it.
constexpr float NONE = -3.0e38f;
constexpr float SOME = -1.0e38f;  // anything above is a real logit

HD float fast_exp(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}
HD float root(float x) {
#if defined(__CUDA_ARCH__)
  return sqrtf(x);
#else
  return std::sqrt(x);
#endif
}
HD float larger(float a, float b) { return a > b ? a : b; }
HD float infinity() {
#if defined(__CUDA_ARCH__)
  return __int_as_float(0x7f800000);
#else
  return __builtin_inff();
#endif
}

struct Pair { float w, c; };

struct Moments {
  float m, l, w2, q0, q2, r, ms;
  HD void init() { m = NONE; l = 0.f; w2 = 0.f; q0 = 0.f; q2 = 0.f; r = 0.f; ms = NONE; }
  // The factor by which first moments shrink when the maximum moves up to m2; second moments shrink by its square.
  HD float rebase(float m2) {
    const float a = fast_exp(m - m2), a2 = a * a;
    l *= a; r *= a; w2 *= a2; q0 *= a2; q2 *= a2; m = m2;
    return a;
  }
  // One token whose logit is not above m: its weight and its (1 - Pi) w^2 are returned for the vectors.
  // miss = 1 - Pi (0 marks a token that was certain), x2 = |v - c|^2 over the whole head dimension.
  HD Pair add(float s, float miss, float x2) {
    const float w = fast_exp(s - m), ww = w * w, c = miss * ww;
    l += w; w2 += ww; q0 += c; q2 += c * x2;
    if (miss > 0.f) { r = larger(r, w * root(x2)); ms = larger(ms, s); }
    return {w, c};
  }
  // Another state of the same query row; a and b are the factors for this side's and that side's first moments.
  HD void merge(const Moments& y, float& a, float& b) {
    const float m2 = larger(m, y.m);
    a = fast_exp(m - m2); b = fast_exp(y.m - m2);
    const float a2 = a * a, b2 = b * b;
    l = l * a + y.l * b; w2 = w2 * a2 + y.w2 * b2; q0 = q0 * a2 + y.q0 * b2; q2 = q2 * a2 + y.q2 * b2;
    r = larger(r * a, y.r * b); ms = larger(ms, y.ms); m = m2;
  }
};

struct Certificate { float lse, variance, bound, radius, guarded, ess, p_max, p_sampled; };
constexpr int STATS = 8;

// oq = (o_hat - c).Q1 and oo = |o_hat - c|^2 over the whole head dimension; level = ln(2/delta).
// A row that saw no token has weight 0 everywhere and log-sum-exp -inf.
HD Certificate finish(const Moments& s, float oq, float oo, float level) {
  if (s.l == 0.f) return {-infinity(), 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  const float inv = 1.f / s.l;
  const float raw = (s.q2 - 2.f * oq + oo * s.q0) * inv * inv;
  Certificate y;
  y.lse = s.m + logf(s.l);
  y.variance = raw < 0.f ? 0.f : raw;  // written so that NaN stays NaN
  y.p_max = inv;
  y.p_sampled = s.ms > SOME ? fast_exp(s.ms - s.m) * inv : 0.f;
  y.bound = s.r * inv + root(oo) * y.p_sampled;
  const float b = y.bound * level / 3.f, rest = 1.f - y.p_sampled;
  y.radius = b + root(b * b + 2.f * y.variance * level);
  y.guarded = rest > 0.f ? y.radius / rest : infinity();
  y.ess = s.l * s.l / s.w2;
  return y;
}
}  // namespace kvc

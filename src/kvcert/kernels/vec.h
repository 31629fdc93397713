// Vectors of W floats through the compiler's vector extension: one text for AVX-512, AVX2, NEON and the rest.
#pragma once
#include <cstdint>
#include <cstring>

namespace kvc {
#if defined(__AVX512F__)
constexpr int W = 16;
#else
constexpr int W = 8;
#endif
typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
#define INLINE inline __attribute__((always_inline))

INLINE vf load(const float* p) { vf x; std::memcpy(&x, p, sizeof x); return x; }
INLINE void store(float* p, vf x) { std::memcpy(p, &x, sizeof x); }
INLINE vf all(float x) { return x - vf{}; }
INLINE vi lanes() { vi x{}; for (int i = 0; i < W; ++i) x[i] = i; return x; }
INLINE vf larger(vf a, vf b) { return a > b ? a : b; }
INLINE float sum(vf x) { float y = 0.f; for (int i = 0; i < W; ++i) y += x[i]; return y; }
INLINE float peak(vf x) { float y = x[0]; for (int i = 1; i < W; ++i) y = y > x[i] ? y : x[i]; return y; }

// exp(x) = 2^n (1 + e), e = expm1(f), |f| <= ln2/2: Cephes' polynomial, 1e-7 relative. x is clamped to [-87, 88].
INLINE vf split_exp(vf x, vf& scale) {
  x = x < -87.f ? all(-87.f) : x; x = x > 88.f ? all(88.f) : x;
  const vf n = x * 1.44269504088896341f + 12582912.f, k = n - 12582912.f;  // round to nearest by the magic number
  const vf f = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  vf p = f * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f; p = p * f + 4.1665795894e-2f; p = p * f + 1.6666665459e-1f; p = p * f + 5.0000001201e-1f;
  vi bits; std::memcpy(&bits, &n, sizeof bits);
  bits = ((bits - 0x4B400000) + 127) << 23; std::memcpy(&scale, &bits, sizeof bits);
  return p * f * f + f;
}
INLINE vf vexp(vf x) { vf s; const vf e = split_exp(x, s); return s * e + s; }
INLINE vf vexpm1(vf x) { vf s; const vf e = split_exp(x, s); return s * e + (s - 1.f); }

// Lane masks of one butterfly stage of stride H over two vectors x (lanes 0..W-1) and y (lanes W..2W-1).
template <int H> INLINE vi straight() { vi m{}; for (int i = 0; i < W; ++i) m[i] = i & H ? W + i : i; return m; }
template <int H> INLINE vi crossed() { vi m{}; for (int i = 0; i < W; ++i) m[i] = (i & H ? W : 0) + (i ^ H); return m; }
template <int H> INLINE vi low_half() { vi m{}; for (int i = 0; i < W; ++i) m[i] = i & H ? W + (i ^ H) : i; return m; }
template <int H> INLINE vi high_half() { vi m{}; for (int i = 0; i < W; ++i) m[i] = i & H ? W + i : i ^ H; return m; }

// Lane i of the result is the sum over the lanes of a[i].
template <int H> INLINE void fold(vf* a) {
  for (int i = 0; i < H; ++i) {
    const vf x = a[i], y = a[i + H];
    a[i] = __builtin_shuffle(x, y, straight<H>()) + __builtin_shuffle(x, y, crossed<H>());
  }
  if constexpr (H > 1) fold<H / 2>(a);
}
INLINE vf fold_all(vf* a) { fold<W / 2>(a); return a[0]; }

// Transpose a W x W block held in registers.
template <int H> INLINE void flip(vf* a) {
  for (int i = 0; i < W; ++i)
    if (!(i & H)) {
      const vf x = a[i], y = a[i + H];
      a[i] = __builtin_shuffle(x, y, low_half<H>()); a[i + H] = __builtin_shuffle(x, y, high_half<H>());
    }
  if constexpr (H > 1) flip<H / 2>(a);
}
INLINE void transpose(vf* a) { flip<W / 2>(a); }
}  // namespace kvc

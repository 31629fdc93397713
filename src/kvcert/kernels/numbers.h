// Sixteen-bit floats as bits, so that neither NVRTC nor g++ needs a vendor header.
#pragma once
#include "state.h"

namespace kvc {
struct bf16 { unsigned short bits; };
struct half16 { unsigned short bits; };

HD float widen(float x) { return x; }
HD float widen(bf16 x) {
  union { unsigned int u; float f; } y; y.u = (unsigned int)x.bits << 16; return y.f;
}
HD float widen(half16 x) {
#if defined(__CUDA_ARCH__)
  float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;
#else
  union { unsigned short u; _Float16 h; } y; y.u = x.bits; return (float)y.h;
#endif
}
HD void narrow(float x, float* p) { *p = x; }
HD void narrow(float x, bf16* p) {  // round to nearest even; a NaN stays a (quiet) NaN
  union { float f; unsigned int u; } y; y.f = x;
  p->bits = x != x ? (unsigned short)0x7fff : (unsigned short)((y.u + 0x7fffu + ((y.u >> 16) & 1u)) >> 16);
}
HD void narrow(float x, half16* p) {
#if defined(__CUDA_ARCH__)
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(x));
#else
  union { unsigned short u; _Float16 h; } y; y.h = (_Float16)x; p->bits = y.u;
#endif
}
}  // namespace kvc

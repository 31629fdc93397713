// Philox4x32-10 (Salmon et al. 2011) and the integer draw, the same bits on host and device.
#pragma once
#include "state.h"

namespace kvc {
typedef unsigned int u32;
typedef unsigned long long u64;

// Word 0 of the block for key (k0, k1) and counter (c0, c1, c2, c3).
HD u32 philox(u32 k0, u32 k1, u32 c0, u32 c1, u32 c2, u32 c3) {
  UNROLL
  for (int i = 0; i < 10; ++i) {
    const u64 a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    const u32 x = (u32)(b >> 32) ^ c1 ^ k0, z = (u32)(a >> 32) ^ c3 ^ k1;
    c0 = x; c1 = (u32)b; c2 = z; c3 = (u32)a;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return c0;
}
// floor(pi * 2^32); 2^32 itself (which needs the 64 bits) means "always keep".
HD u64 threshold(double pi) { return pi >= 1.0 ? 1ull << 32 : pi > 0.0 ? (u64)(pi * 4294967296.0) : 0ull; }

struct Stream { u32 seed_lo, seed_hi, unit, example, draw; };  // unit = layer*2^16 + KV head, draw = draw*2^8 + stage
HD bool keeps(const Stream& s, u32 position, u64 limit) {
  return (u64)philox(s.seed_lo, s.seed_hi, position, s.unit, s.example, s.draw) < limit;
}
}  // namespace kvc

// Poisson draw with ordered stream compaction, and the copy of what was kept.
#pragma once
#include "device.cuh"

namespace kvc {
struct DeviceEvict {  // strides in elements; unit = row * Hkv + KV head
  const double* pi; const int *position, *begin, *draw; int *index, *count;
  const char *k, *v; const float* log_pi; char *k_out, *v_out; float* log_pi_out; int* position_out;
  i64 k0, k1, k2, v0, v1, v2; int Hkv, n, end, length, row_bytes, element;
  u32 seed_lo, seed_hi, layer, example, stage, unused;
};
// One block per unit; kept slots go to `index` in order. Shared: WARPS + 1 ints.
template <int WARPS> __global__ void LAUNCH_BOUNDS(WARPS * 32, 2) draw_units(const DeviceEvict a) {
  SHARED(int, sm);  // sm[0..WARPS): kept per warp in this tile; sm[WARPS]: kept before this tile
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, unit = blockIdx.x; const i64 at = (i64)unit * a.n;
  const Stream s{a.seed_lo, a.seed_hi, (a.layer << 16) + (u32)(unit % a.Hkv), a.example, ((u32)a.draw[unit / a.Hkv] << 8) + a.stage};
  if (threadIdx.x == 0) sm[WARPS] = 0;
  __syncthreads();
  for (int base = a.begin[unit]; base < a.n; base += WARPS * 32) {
    const int i = base + (int)threadIdx.x;
    const bool keep = i < a.n && keeps(s, (u32)a.position[at + i], threshold(a.pi[at + i]));
    const u32 vote = __ballot_sync(FULL, keep);
    if (lane == 0) sm[warp] = __popc(vote);
    __syncthreads();
    int before = sm[WARPS], total = 0;
    for (int w = 0; w < WARPS; ++w) { const int x = sm[w]; if (w < warp) before += x; total += x; }
    if (keep) a.index[at + before + __popc(vote & ((1u << lane) - 1u))] = i;
    __syncthreads();
    if (threadIdx.x == 0) sm[WARPS] += total;  // read again only after the next tile's first barrier
  }
  if (threadIdx.x == 0) a.count[unit] = sm[WARPS];
}
// One warp per kept token; grid (ceil(largest count / WARPS), units). Rows are multiples of 16 bytes.
template <int WARPS> __global__ void LAUNCH_BOUNDS(WARPS * 32, 2) gather_units(const DeviceEvict a) {
  const int lane = threadIdx.x & 31, j = blockIdx.x * WARPS + (threadIdx.x >> 5), unit = blockIdx.y, kept = a.count[unit];
  if (j >= kept) return;
  const i64 at = (i64)unit * a.n; const int i = a.index[at + j], row = unit / a.Hkv, head = unit % a.Hkv;
  const i64 to = (i64)unit * a.length + a.end - kept + j;
  const uint4* k = reinterpret_cast<const uint4*>(a.k + (row * a.k0 + head * a.k1 + i * a.k2) * a.element);
  const uint4* v = reinterpret_cast<const uint4*>(a.v + (row * a.v0 + head * a.v1 + i * a.v2) * a.element);
  uint4* ko = reinterpret_cast<uint4*>(a.k_out + to * a.row_bytes);
  uint4* vo = reinterpret_cast<uint4*>(a.v_out + to * a.row_bytes);
  for (int x = lane; x < a.row_bytes / 16; x += 32) { ko[x] = k[x]; vo[x] = v[x]; }
  if (lane == 0) {
    const double stored = (double)threshold(a.pi[at + i]) / 4294967296.0;
    a.log_pi_out[to] = (float)(log(stored) + (a.log_pi ? (double)a.log_pi[at + i] : 0.0));
    a.position_out[to] = a.position[at + i];
  }
}
}  // namespace kvc

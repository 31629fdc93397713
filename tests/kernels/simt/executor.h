// A small CPU executor for CUDA kernel text, for tests only: one block at a time, every CUDA thread a fiber.
// Shared memory starts as NaN, schedules are shuffled, and a barrier or warp collective that not all threads reach
// is reported instead of hanging.
#pragma once
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define LAUNCH_BOUNDS(n, b)
#define SHARED(T, name) T* name = reinterpret_cast<T*>(simt::block->shared.data())

struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
inline int __popc(unsigned x) { return __builtin_popcount(x); }

namespace simt {
enum Wait { RUN, BLOCK, WARP, DONE };
struct Warp { int arrived = 0, turn = 0; uint64_t slot[2][32]; };
struct Block {
  dim3 grid, index; int n = 0, arrived = 0, turn = 0, done = 0;
  std::vector<unsigned char> shared; std::vector<Warp> warps; std::vector<ucontext_t> context;
  std::vector<Wait> state; std::vector<int> target; ucontext_t home; const std::function<void()>* body;
};
inline Block* block; inline int current; inline dim3 thread;

inline void pause(Wait why) { const int me = current; block->state[me] = why; swapcontext(&block->context[me], &block->home); }
inline void sync_block() {
  if (++block->arrived == block->n) { block->arrived = 0; ++block->turn; return; }
  block->target[current] = block->turn + 1; pause(BLOCK);
}
inline void sync_warp() {
  Warp& w = block->warps[current / 32];
  if (++w.arrived == std::min(32, block->n - current / 32 * 32)) { w.arrived = 0; ++w.turn; return; }
  block->target[current] = w.turn + 1; pause(WARP);
}
// Every lane writes its slot, all meet, every lane reads; slots alternate, so one meeting per collective is enough.
template <class T> T exchange(T v, int source) {
  Warp& w = block->warps[current / 32]; const int side = w.turn & 1;
  uint64_t raw = 0; memcpy(&raw, &v, sizeof v); w.slot[side][current & 31] = raw; sync_warp();
  T out; memcpy(&out, &w.slot[side][source & 31], sizeof out); return out;
}
inline void enter() { (*block->body)(); block->state[current] = DONE; ++block->done; swapcontext(&block->context[current], &block->home); }
inline void run_block(Block& b, unsigned seed) {
  constexpr size_t STACK = 128 << 10; static char* stacks = new char[256 * STACK];  // kept: a page is touched when used
  std::fill(b.shared.begin(), b.shared.end(), 0xff);  // as float: NaN; as int: -1
  b.warps.assign((b.n + 31) / 32, Warp()); b.arrived = b.turn = b.done = 0; block = &b;
  b.context.resize(b.n); b.state.assign(b.n, RUN); b.target.assign(b.n, 0);
  std::vector<int> order(b.n);
  for (int t = 0; t < b.n; ++t) {
    order[t] = t; getcontext(&b.context[t]); b.context[t].uc_link = nullptr;
    b.context[t].uc_stack.ss_sp = stacks + t * STACK; b.context[t].uc_stack.ss_size = STACK;
    makecontext(&b.context[t], enter, 0);
  }
  std::mt19937 random(seed); if (seed) std::shuffle(order.begin(), order.end(), random);
  while (b.done < b.n) {
    bool moved = false;
    for (int t : order) {
      if (b.state[t] == DONE || (b.state[t] == BLOCK && b.turn < b.target[t])) continue;
      if (b.state[t] == WARP && b.warps[t / 32].turn < b.target[t]) continue;
      b.state[t] = RUN; current = t; thread = dim3(t); moved = true; swapcontext(&b.home, &b.context[t]);
    }
    if (!moved) throw std::runtime_error("simt: divergent barrier or warp collective (a GPU would hang)");
  }
  if (b.arrived) throw std::runtime_error("simt: a thread left while others wait at a barrier");
}
template <class F> void launch(dim3 grid, int threads, size_t shared, unsigned seed, F f) {
  const std::function<void()> body = f; Block b; b.grid = grid; b.n = threads; b.shared.resize(shared); b.body = &body;
  for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
    b.index = dim3(x, y, z); run_block(b, seed ? seed + x + 31 * y + 977 * z : 0);
  }
}
}  // namespace simt
#define threadIdx simt::thread
#define blockIdx simt::block->index
#define gridDim simt::block->grid
inline void __syncthreads() { simt::sync_block(); }
template <class T> T __shfl_xor_sync(unsigned mask, T v, int step) {
  if (mask != ~0u) throw std::runtime_error("simt: partial mask");
  return simt::exchange(v, (simt::current & 31) ^ step);
}
inline unsigned __ballot_sync(unsigned, bool p) {
  simt::Warp& w = simt::block->warps[simt::current / 32]; const int side = w.turn & 1;
  w.slot[side][simt::current & 31] = p; simt::sync_warp();
  unsigned r = 0; for (int i = 0; i < 32; ++i) r |= (unsigned)(w.slot[side][i] & 1) << i;
  return r;
}

// The device kernels as a library: the Python launch path calls `simt_launch` in place of the CUDA driver.
#include <cstdio>
#include <cstring>
#include <string>
#include "executor.h"
#include "decode.cuh"
#include "evict.cuh"
using namespace kvc;

template <class A, class K> int go(const void* raw, const unsigned* grid, int threads, int shared, unsigned seed, K kernel) {
  A a; memcpy((void*)&a, raw, sizeof a);
  simt::launch(dim3(grid[0], grid[1], grid[2]), threads, shared, seed, [&] { kernel(a); });
  return 0;
}
// `name` is the name expression that NVRTC would be asked for; 1: not compiled into this library, 2: the executor objects.
extern "C" int simt_launch(const char* name, const void* args, const unsigned* grid, int threads, int shared, unsigned seed) {
  const std::string n = name;
  try {
#define DECODE(T, D, GB, C) \
    if (n == "kvc::split_decode<" #T "," #D "," #GB ",4," #C ">") return go<DeviceDecode>(args, grid, threads, shared, seed, [](const DeviceDecode& a) { split_decode<T, D, GB, 4, C>(a); });
#define COMBINE(T, D, C) \
    if (n == "kvc::combine<" #T "," #D "," #C ">") return go<DeviceDecode>(args, grid, threads, shared, seed, [](const DeviceDecode& a) { combine<T, D, C>(a); });
    using kvc::bf16;
    DECODE(float, 64, 3, true) DECODE(float, 64, 3, false) COMBINE(float, 64, true) COMBINE(float, 64, false)
    DECODE(kvc::bf16, 128, 4, true) COMBINE(kvc::bf16, 128, true)
    if (n == "kvc::draw_units<8>") return go<DeviceEvict>(args, grid, threads, shared, seed, [](const DeviceEvict& a) { draw_units<8>(a); });
    if (n == "kvc::gather_units<8>") return go<DeviceEvict>(args, grid, threads, shared, seed, [](const DeviceEvict& a) { gather_units<8>(a); });
  } catch (std::exception& problem) { fprintf(stderr, "%s\n", problem.what()); return 2; }
  return 1;
}

// Runs the device kernels' own text on the CPU: driver CASES RESULTS. The structures come packed by Python.
#include <cstdio>
#include <string>
#include "cases.h"
#include "executor.h"
#include "decode.cuh"
#include "evict.cuh"
using namespace kvc;

template <class T, int D, int GB, bool CERT> void run(const DeviceDecode& a, dim3 grid, size_t shared, size_t shared2, int rows, unsigned seed) {
  simt::launch(grid, 128, shared, seed, [&] { split_decode<T, D, GB, 4, CERT>(a); });
  simt::launch(dim3(rows), D, shared2, seed, [&] { combine<T, D, CERT>(a); });
}
void decode(Reader& in, std::ofstream& out) {
  const int64_t kind = in.word(), D = in.word(), GB = in.word(), cert = in.word(), gx = in.word(), gy = in.word(), gz = in.word();
  const int64_t shared = in.word(), shared2 = in.word(), rows = in.word(), seed = in.word(), partial = in.word(), o = in.word(), st = in.word();
  DeviceDecode a; Held held; auto raw = in.block();
  if (raw->size() != sizeof a) throw std::runtime_error("structure sizes differ");
  memcpy((void*)&a, raw->data(), sizeof a);
  held.point(a.q, in); held.point(a.k, in); held.point(a.v, in); held.point(a.log_pi, in); held.point(a.centre, in);
  held.point(a.begin, in); held.point(a.pages, in); held.room(a.partial, partial);
  auto& results = held.room(a.out, o); auto& stats = held.room(a.stats, st); bool found = false;
#define CASE(K, T, DD, G) \
  if (kind == K && D == DD && GB == G) { found = true; const dim3 grid(gx, gy, gz); \
    if (cert) run<T, DD, G, true>(a, grid, shared, shared2, rows, seed); else run<T, DD, G, false>(a, grid, shared, shared2, rows, seed); }
#include "instantiations.h"
  if (!found) throw std::runtime_error("no such instantiation in the test driver");
  write(out, results); write(out, stats);
}
void evict(Reader& in, std::ofstream& out) {
  const int64_t units = in.word(), n = in.word(), length = in.word(), row_bytes = in.word(), seed = in.word();
  DeviceEvict a; Held held; auto raw = in.block();
  if (raw->size() != sizeof a) throw std::runtime_error("structure sizes differ");
  memcpy((void*)&a, raw->data(), sizeof a);
  held.point(a.pi, in); held.point(a.position, in); held.point(a.begin, in); held.point(a.draw, in);
  held.point(a.k, in); held.point(a.v, in); held.point(a.log_pi, in);
  auto& index = held.room(a.index, units * n * 4); auto& count = held.room(a.count, units * 4);
  auto& k = held.room(a.k_out, units * length * row_bytes); auto& v = held.room(a.v_out, units * length * row_bytes);
  auto& lp = held.room(a.log_pi_out, units * length * 4); auto& ps = held.room(a.position_out, units * length * 4);
  simt::launch(dim3(units), 256, 9 * 4, seed, [&] { draw_units<8>(a); });
  a.end = *std::max_element(a.count, a.count + units);
  if (length) simt::launch(dim3((a.end + 7) / 8, units), 256, 0, seed, [&] { gather_units<8>(a); });
  for (auto* b : {&index, &count, &k, &v, &lp, &ps}) write(out, *b);
}
// The executor must report what would hang a GPU; otherwise its silence proves nothing.
int selfcheck() {
  int caught = 0;
  try { simt::launch(dim3(1), 64, 0, 1, [] { if (threadIdx.x < 32) __syncthreads(); }); } catch (std::exception&) { ++caught; }
  try { simt::launch(dim3(1), 32, 0, 1, [] { if (threadIdx.x < 16) __shfl_xor_sync(~0u, 1.f, 1); }); } catch (std::exception&) { ++caught; }
  return caught == 2 ? 0 : 1;
}
int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "selfcheck") return selfcheck();
  if (argc != 3) return 2;
  try {
    Reader in(argv[1]); std::ofstream out(argv[2], std::ios::binary);
    while (in.at < in.all.size()) { if (in.word() == 0) decode(in, out); else evict(in, out); }
  } catch (std::exception& problem) { fprintf(stderr, "%s\n", problem.what()); return 3; }
  return 0;
}

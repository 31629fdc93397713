// Runs the CPU twin outside Python, for the sanitizers: twin_driver CASES RESULTS.
#include "cases.h"
#include "twin.cpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Reader in(argv[1]); std::ofstream out(argv[2], std::ios::binary);
  while (in.at < in.all.size()) {
    Held held; kvc::DecodeArgs a; const int64_t o = in.word(), st = in.word(); auto raw = in.block();
    if (raw->size() != sizeof a) return 3;
    memcpy((void*)&a, raw->data(), sizeof a);
    held.point(a.q, in); held.point(a.k, in); held.point(a.v, in); held.point(a.log_pi, in); held.point(a.centre, in); held.point(a.begin, in);
    auto& results = held.room(a.out, o); auto& stats = held.room(a.stats, st);
    if (kvcert_decode(&a)) return 4;
    write(out, results); write(out, stats);
  }
}

// The CPU twin's plain C entry points; Python reaches them through ctypes.
#include "twin_decode.h"
#include "twin_evict.h"

extern "C" {
int kvcert_abi() { return (int)(sizeof(kvc::DecodeArgs) * 1000 + sizeof(kvc::EvictArgs)); }
int kvcert_decode(const kvc::DecodeArgs* a) {
  switch (a->kind) {
    case 0: kvc::decode_typed<float>(*a); return 0;
    case 1: kvc::decode_typed<kvc::bf16>(*a); return 0;
    case 2: kvc::decode_typed<kvc::half16>(*a); return 0;
    default: return 1;
  }
}
void kvcert_draw(const kvc::EvictArgs* a) { kvc::draw_units(*a); }
void kvcert_gather(const kvc::EvictArgs* a) { kvc::gather_units(*a); }
}

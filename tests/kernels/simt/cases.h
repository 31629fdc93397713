// The file format between Python and the test programs: 64-bit words and length-prefixed blocks.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

struct Reader {
  std::vector<char> all; size_t at = 0;
  explicit Reader(const char* path) { std::ifstream file(path, std::ios::binary); all.assign(std::istreambuf_iterator<char>(file), {}); }
  int64_t word() { int64_t x; memcpy(&x, &all[at], 8); at += 8; return x; }
  // A block in memory of its own, so that the address sanitizer sees its ends.
  std::shared_ptr<std::vector<char>> block() {
    const int64_t n = word(); auto y = std::make_shared<std::vector<char>>(all.begin() + at, all.begin() + at + n); at += n; return y;
  }
};
struct Held {
  std::vector<std::shared_ptr<std::vector<char>>> blocks;
  template <class P> void point(P& field, Reader& in) {  // an empty block is a null pointer
    blocks.push_back(in.block()); auto& b = *blocks.back(); field = b.empty() ? nullptr : (P)b.data();
  }
  template <class P> std::vector<char>& room(P& field, int64_t bytes) {  // poisoned memory for a result
    blocks.push_back(std::make_shared<std::vector<char>>(bytes, (char)0xff)); field = (P)blocks.back()->data(); return *blocks.back();
  }
};
inline void write(std::ofstream& out, const std::vector<char>& b) { out.write(b.data(), (std::streamsize)b.size()); }

// One tile of up to KEYS tokens of the CPU twin: loading, products, weights.
#pragma once
#include "numbers.h"
#include "vec.h"

namespace kvc {
constexpr int KEYS = 64;   // tokens per tile, a multiple of W
constexpr int ROWS = 48;   // query rows per block
constexpr int FEW = 8;     // below this many rows, dot products beat transposing the keys

// C[MR][NB*W] += A[MR][n] * (B[n][NB*W] - c), the accumulators held in registers.
template <int MR, int NB, bool CENTRED>
INLINE void block_product(const float* A, int64_t lda, const float* B, int64_t ldb, const float* c, float* C, int64_t ldc, int n) {
  vf acc[MR][NB], mid[NB];
  for (int i = 0; i < MR; ++i) for (int x = 0; x < NB; ++x) acc[i][x] = load(C + i * ldc + x * W);
  for (int x = 0; x < NB; ++x) mid[x] = CENTRED ? load(c + x * W) : vf{};
  for (int j = 0; j < n; ++j) {
    vf b[NB];
    for (int x = 0; x < NB; ++x) { b[x] = load(B + j * ldb + x * W); if (CENTRED) b[x] -= mid[x]; }
    for (int i = 0; i < MR; ++i) {
      const vf a = all(A[i * lda + j]);
      for (int x = 0; x < NB; ++x) acc[i][x] += a * b[x];
    }
  }
  for (int i = 0; i < MR; ++i) for (int x = 0; x < NB; ++x) store(C + i * ldc + x * W, acc[i][x]);
}
template <int NB, bool CENTRED>
inline void strip_product(const float* A, int64_t lda, const float* B, int64_t ldb, const float* c, float* C, int64_t ldc, int m, int n) {
  for (int i = 0; i < m;) {
    const int left = m - i, step = left >= 6 && left != 8 ? 6 : left >= 4 ? 4 : left;
    const float* a = A + i * lda; float* o = C + i * ldc;
    switch (step) {
      case 6: block_product<6, NB, CENTRED>(a, lda, B, ldb, c, o, ldc, n); break;
      case 4: block_product<4, NB, CENTRED>(a, lda, B, ldb, c, o, ldc, n); break;
      case 3: block_product<3, NB, CENTRED>(a, lda, B, ldb, c, o, ldc, n); break;
      case 2: block_product<2, NB, CENTRED>(a, lda, B, ldb, c, o, ldc, n); break;
      default: block_product<1, NB, CENTRED>(a, lda, B, ldb, c, o, ldc, n);
    }
    i += step;
  }
}
// C[m][cols] += A[m][n] * (B[n][cols] - c); cols is a multiple of W, c may be null.
template <bool CENTRED>
inline void product_(const float* A, int64_t lda, const float* B, int64_t ldb, const float* c, float* C, int64_t ldc, int m, int n, int cols) {
  for (int x = 0; x < cols;) {
    const int left = (cols - x) / W; const float* mid = CENTRED ? c + x : nullptr;
    if (left >= 4) { strip_product<4, CENTRED>(A, lda, B + x, ldb, mid, C + x, ldc, m, n); x += 4 * W; }
    else if (left >= 2) { strip_product<2, CENTRED>(A, lda, B + x, ldb, mid, C + x, ldc, m, n); x += 2 * W; }
    else { strip_product<1, CENTRED>(A, lda, B + x, ldb, mid, C + x, ldc, m, n); x += W; }
  }
}
inline void product(const float* A, int64_t lda, const float* B, int64_t ldb, const float* c, float* C, int64_t ldc, int m, int n, int cols) {
  if (c) product_<true>(A, lda, B, ldb, c, C, ldc, m, n, cols); else product_<false>(A, lda, B, ldb, nullptr, C, ldc, m, n, cols);
}

// Ask for t rows before they are needed: the strided walk of `dots` defeats the hardware's own prefetcher.
inline void ahead(const float* rows, int64_t ld, int t, int dim) {
  for (int j = 0; j < t; ++j) for (int d = 0; d < dim; d += 16) __builtin_prefetch(rows + j * ld + d);
}

// out[j] = sum over d of (q ? q[d] : x) * x with x = rows[j][d] - c[d]; reads row t-1 again for j >= t.
inline void dots(const float* q, const float* rows, int64_t ld, const float* c, float* out, int t, int dim) {
  for (int j0 = 0; j0 < t; j0 += W) {
    vf acc[W] = {}; const float* row[W];
    for (int j = 0; j < W; ++j) row[j] = rows + (j0 + j < t ? j0 + j : t - 1) * ld;
    if (q) for (int d = 0; d < dim; d += W) {
      const vf a = load(q + d);
      for (int j = 0; j < W; ++j) acc[j] += a * load(row[j] + d);
    }
    else for (int d = 0; d < dim; d += W) {
      const vf mid = c ? load(c + d) : vf{};
      for (int j = 0; j < W; ++j) { const vf x = load(row[j] + d) - mid; acc[j] += x * x; }
    }
    store(out + j0, fold_all(acc));
  }
}

// Copy t rows to fp32, minus c, zero-padded from dim to wide columns and from t to KEYS rows' end of vector.
template <class T>
inline void pack(const T* rows, int64_t ld, const float* c, float* out, int t, int dim, int wide) {
  for (int j = 0; j < t; ++j) {
    for (int d = 0; d < dim; ++d) out[j * wide + d] = widen(rows[j * ld + d]) - (c ? c[d] : 0.f);
    for (int d = dim; d < wide; ++d) out[j * wide + d] = 0.f;
  }
}
// out[d][KEYS] = rows[j][d]; columns j >= t of the last vector repeat row t-1.
inline void pack_transposed(const float* rows, int64_t ld, float* out, int t, int wide) {
  for (int j0 = 0; j0 < t; j0 += W)
    for (int d = 0; d < wide; d += W) {
      vf a[W];
      for (int j = 0; j < W; ++j) a[j] = load(rows + (j0 + j < t ? j0 + j : t - 1) * ld + d);
      transpose(a);
      for (int i = 0; i < W; ++i) store(out + (d + i) * KEYS + j0, a[i]);
    }
}
}  // namespace kvc

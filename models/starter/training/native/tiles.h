// How the factors of a product lie in memory, as AMX tiles and AVX-512 want them (`products.h`).
//
// The right factor is packed in panels of 16 columns; in a panel, a line holds rows 2i and 2i+1 of each column as pairs. The left factor is
// read as tiles of 16 rows and 32 columns. Sizes are rounded up to whole tiles by who calls.
#pragma once
#include "lanes.h"

constexpr long padded(long n, long to) { return (n + to - 1) / to * to; }

// Tiles of the left factor: the one at (i, j) begins at `at + i * down + j * along`, its rows are `stride` apart.
struct Left {
  const Narrow* at;
  long stride, down, along;
};

inline Left rows_of(const Narrow* at, long stride) { return {at, stride, 16 * stride, 32}; }

// Returns 16 pairs of values from two adjacent rows.
inline Words pairs(const Narrow* from, long stride) { return bits(from) | bits(from + stride) << 16; }

// Packs lines of a matrix into panels that are `depth` rows high. Here and below rows and columns are multiples of 32.
inline void pack(const Narrow* from, long rows, long columns, long stride, Narrow* to, long depth) {
  for (long j = 0; j < columns; j += 32)
    for (long i = 0; i < rows; i += 2)
      for (long half = j; half < j + 32; half += 16) *(Words*)(to + half * depth + i * 16) = pairs(from + i * stride + half, stride);
}

template <int STEP>
inline void exchange(Words* r) {
  Ints first, second;
  for (int l = 0; l < 16; l++) {
    first[l] = l & STEP ? 16 + l - STEP : l;
    second[l] = l & STEP ? 16 + l : l + STEP;
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++)
    if (!(i & STEP)) {
      const Words a = r[i], b = r[i + STEP];
      r[i] = __builtin_shuffle(a, b, first);
      r[i + STEP] = __builtin_shuffle(a, b, second);
    }
}

inline void transpose(Words* r) {
  exchange<1>(r);
  exchange<2>(r);
  exchange<4>(r);
  exchange<8>(r);
}

// Packs the transpose of a matrix.
inline void pack_transposed(const Narrow* from, long rows, long columns, Narrow* to) {
  for (long i = 0; i < rows; i += 16)
    for (long j = 0; j < columns; j += 32) {
      Words r[16];
#pragma GCC unroll 16
      for (int k = 0; k < 16; k++) r[k] = *(const Words*)(from + (i + k) * columns + j);
      transpose(r);
#pragma GCC unroll 16
      for (int k = 0; k < 16; k++) *(Words*)(to + i * columns + (j + 2 * k) * 16) = r[k];
    }
}

// Packs the transpose of a matrix as tiles of a left factor: {to, 32, 16 * depth, 512}.
inline void pack_tiles(const Narrow* from, long rows, long columns, long stride, Narrow* to, long depth) {
  for (long j = 0; j < columns; j += 16)
    for (long i = 0; i < rows; i += 32) {
      Words r[16];
#pragma GCC unroll 16
      for (int k = 0; k < 16; k++) r[k] = pairs(from + (i + 2 * k) * stride + j, stride);
      transpose(r);
#pragma GCC unroll 16
      for (int k = 0; k < 16; k++) *(Words*)(to + j * depth + (i + 2 * k) * 16) = r[k];
    }
}

// Products of 16-bit matrices with fp32 sums: by AMX tiles, by AVX-512 in half precision or with its products of pairs,
// or by what every core has.
#pragma once
#include <algorithm>

#include "tiles.h"
#ifdef __AMX_BF16__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Memory that will be needed soon: this many cache lines are prefetched with every 32 of k.
struct Ahead {
  const Narrow* at;
  long lines;
};

// The factor whose tiles are read only once, while those of the other are read repeatedly.
enum class Passes { neither, left, right };

#ifdef __AMX_BF16__

// Requests permission to use tiles from the kernel, which a process must do once.
inline void ask_for_tiles() {
  constexpr long request = 0x1023, tile_data = 18;
  TORCH_CHECK(syscall(SYS_arch_prctl, request, tile_data) == 0, "the kernel does not allow AMX");
}

// Configures eight full tiles. oneDNN leaves its own configuration, so this must be called before products.
inline void configure_tiles() {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("" ::"r"(&config) : "memory");  // GCC would think that only its first bytes are read
  _tile_loadconfig(&config);
}

// The two factors of a block do not fit into the first-level cache together. The one that is read once is loaded with a
// streaming hint, so that it does not evict the other, which the next blocks need again.
#define LOAD_TILE(tile, side, at, stride) \
  if constexpr (PASSES == side) _tile_stream_loadd(tile, at, stride); \
  else _tile_loadd(tile, at, stride)

template <int ROWS, Passes PASSES>
inline void block(long k, Left a, const Narrow* b, long panel, float* c, long stride, bool add, Ahead ahead, const float* next) {
  const long line = 4 * stride;
  float* below = c + 16 * stride;
  if (add) {
    _tile_loadd(0, c, line);
    _tile_loadd(1, c + 16, line);
    if (ROWS == 2) {
      _tile_loadd(2, below, line);
      _tile_loadd(3, below + 16, line);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const long rows = next ? (32 * 32 + k - 1) / k : 0;
  for (long p = 0; p < k; p += 32) {
    const Narrow *left = a.at + p / 32 * a.along, *right = b + p * 16;
    for (long i = 0; i < ahead.lines; i++, ahead.at += 32) _mm_prefetch(ahead.at, _MM_HINT_T1);
    for (long i = 0; i < rows; i++, next += stride) {
      _mm_prefetch(next, _MM_HINT_T0);
      _mm_prefetch(next + 16, _MM_HINT_T0);
    }
    LOAD_TILE(4, Passes::left, left, 2 * a.stride);
    LOAD_TILE(6, Passes::right, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    LOAD_TILE(7, Passes::right, right + panel, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (ROWS == 2) {
      LOAD_TILE(5, Passes::left, left + a.down, 2 * a.stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, line);
  _tile_stored(1, c + 16, line);
  if (ROWS == 2) {
    _tile_stored(2, below, line);
    _tile_stored(3, below + 16, line);
  }
}

#else

inline void ask_for_tiles() {}
inline void configure_tiles() {}

#ifdef HALF_PRECISION

// Returns the sums of the even and the odd lanes.
inline __m512 pair_sums(__m512h x) {
  const __m512h odd = _mm512_castsi512_ph(_mm512_srli_epi32(_mm512_castph_si512(x), 16));
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_castph_si512(_mm512_add_ph(x, odd))));
}

// Like the functions below, but even and odd rows of the right factor have separate sums in half precision. Over 96
// products each, these lose about as much as rounding the factors to bfloat16 would; then the sums are added in fp32.
template <int ROWS, Passes>
inline void block(long k, Left a, const Narrow* b, long panel, float* c, long stride, bool add, Ahead, const float*) {
  constexpr long SHORT = 192;
  for (long i = 0; i < 16 * ROWS; i += 8) {
    const Narrow* rows = a.at + i / 16 * a.down + i % 16 * a.stride;
    float* to = c + i * stride;
    for (long from = 0; from < k; from += SHORT) {
      __m512h sum[8][2];
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ph();
      for (long p = from; p < std::min(k, from + SHORT); p += 32) {
        const Narrow *left = rows + p / 32 * a.along, *right = b + p * 16;
#pragma GCC unroll 4
        for (long pair = 0; pair < 32; pair += 2, right += 32) {
          const __m512h first = _mm512_load_ph(right), second = _mm512_load_ph(right + panel);
#pragma GCC unroll 8
          for (int r = 0; r < 8; r++) {
            int both;
            std::memcpy(&both, left + r * a.stride + pair, sizeof both);
            const __m512h spread = _mm512_castsi512_ph(_mm512_set1_epi32(both));
            sum[r][0] = _mm512_fmadd_ph(spread, first, sum[r][0]);
            sum[r][1] = _mm512_fmadd_ph(spread, second, sum[r][1]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < 8; r++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
          float* line = to + r * stride + 16 * v;
          const __m512 all = pair_sums(sum[r][v]);
          _mm512_storeu_ps(line, add || from ? _mm512_add_ps(all, _mm512_loadu_ps(line)) : all);
        }
    }
  }
}

#elif defined __AVX512BF16__

// Computes eight rows at a time in registers: a pair of the left factor's values, in all lanes, with the pairs of 32
// columns.
template <int ROWS, Passes>
inline void block(long k, Left a, const Narrow* b, long panel, float* c, long stride, bool add, Ahead, const float*) {
  for (long i = 0; i < 16 * ROWS; i += 8) {
    const Narrow* rows = a.at + i / 16 * a.down + i % 16 * a.stride;
    float* to = c + i * stride;
    __m512 sum[8][2];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
#pragma GCC unroll 2
      for (int v = 0; v < 2; v++) sum[r][v] = add ? _mm512_loadu_ps(to + r * stride + 16 * v) : _mm512_setzero_ps();
    for (long p = 0; p < k; p += 32) {
      const Narrow *left = rows + p / 32 * a.along, *right = b + p * 16;
#pragma GCC unroll 4
      for (long pair = 0; pair < 32; pair += 2, right += 32) {
        const auto first = (__m512bh)_mm512_load_si512(right), second = (__m512bh)_mm512_load_si512(right + panel);
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++) {
          int both;
          std::memcpy(&both, left + r * a.stride + pair, sizeof both);
          const auto spread = (__m512bh)_mm512_set1_epi32(both);
          sum[r][0] = _mm512_dpbf16_ps(sum[r][0], spread, first);
          sum[r][1] = _mm512_dpbf16_ps(sum[r][1], spread, second);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
#pragma GCC unroll 2
      for (int v = 0; v < 2; v++) _mm512_storeu_ps(to + r * stride + 16 * v, sum[r][v]);
  }
}

#else

template <int ROWS, Passes>
inline void block(long k, Left a, const Narrow* b, long panel, float* c, long stride, bool add, Ahead, const float*) {
  for (long i = 0; i < 16 * ROWS; i += 8) {
    Lanes sum[8][2];
    for (int r = 0; r < 8; r++)
      for (int v = 0; v < 2; v++) sum[r][v] = add ? load(c + (i + r) * stride + 16 * v) : Lanes{};
    for (long p = 0; p < k; p += 2) {
      const Narrow* left = a.at + i / 16 * a.down + i % 16 * a.stride + p / 32 * a.along + p % 32;
      Lanes even[2], odd[2];
      for (int v = 0; v < 2; v++) {
        const Words w = *(const Words*)(b + v * panel + p * 16);
        even[v] = (Lanes)(w << 16);
        odd[v] = (Lanes)(w & 0xffff0000);
      }
      for (int r = 0; r < 8; r++) {
        const float first = left[r * a.stride], second = left[r * a.stride + 1];
        for (int v = 0; v < 2; v++) sum[r][v] += first * even[v] + second * odd[v];
      }
    }
    for (int r = 0; r < 8; r++)
      for (int v = 0; v < 2; v++) store(c + (i + r) * stride + 16 * v, sum[r][v]);
  }
}

#endif
#endif

// Largest part of k that is computed at once: with more, a panel does not stay in the first-level cache. Callers whose
// right factor is read only once split k themselves (`weight_gradient`).
constexpr long RUN = 576;

template <Passes PASSES>
inline void blocks(long m, long n, long k, Left a, const Narrow* b, long depth, float* c, long stride, bool add) {
  const long runs = PASSES == Passes::right ? 1 : (k + RUN - 1) / RUN, run = padded((k + runs - 1) / runs, 32);
  const long lines = PASSES == Passes::left ? 1024 / m : 0;  // where B is passed over slowly enough, its next panels are fetched meanwhile
  for (long j = 0; j < n; j += 32)
    for (long p = 0; p < k; p += run) {
      const long here = std::min(run, k - p);
      const bool more = add || p;
      for (long i = 0; i < m; i += 32) {
        const Left left{a.at + i / 16 * a.down + p / 32 * a.along, a.stride, a.down, a.along};
        const Narrow* right = b + j * depth + p * 16;
        const Ahead ahead{b + (j + 32) * depth + p * 32 + i / 32 * here * lines, lines};
        float *to = c + i * stride + j, *top = c + j;
        // Prefetches the sums to which the next block adds.
        const float* next = !more || PASSES == Passes::neither ? nullptr : i + 32 < m ? to + 32 * stride : p + run < k ? top : top + 32;
        m - i >= 32 ? block<2, PASSES>(here, left, right, 16 * depth, to, stride, more, ahead, next)
                    : block<1, PASSES>(here, left, right, 16 * depth, to, stride, more, ahead, next);
      }
    }
}

// C[m, n] (+)= A[m, k] B[k, n]; m is a multiple of 16, n and k are of 32. A panel of B is `depth` rows high.
inline void multiply(long m, long n, long k, Left a, const Narrow* b, long depth, float* c, long stride, bool add) {
  asm volatile("" ::: "memory");  // the compiler does not know what tiles read
  if (m >= 128) blocks<Passes::left>(m, n, k, a, b, depth, c, stride, add);
  else if (m <= 32 && n >= 128) blocks<Passes::right>(m, n, k, a, b, depth, c, stride, add);
  else blocks<Passes::neither>(m, n, k, a, b, depth, c, stride, add);
  asm volatile("" ::: "memory");
}

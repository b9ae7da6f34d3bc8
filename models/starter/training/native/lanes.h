// Sixteen values at once, in GCC's portable vectors: fp32 in registers, fp32 or 16 bits in memory.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <sys/mman.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Number format of the factors of products: bfloat16, or half precision if the core multiplies that fastest. Half
// precision has no values below 6e-8, so the loss, and with it every gradient, is multiplied by LOSS_SCALE meanwhile
// (Micikevicius et al. 2018, section 3.2).
#if defined(__AVX512FP16__) && !defined(__AMX_BF16__)
#define HALF_PRECISION
using Narrow = c10::Half;
constexpr float LOSS_SCALE = 1024;
#else
using Narrow = c10::BFloat16;
constexpr float LOSS_SCALE = 1;
#endif
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t Shorts __attribute__((vector_size(32), aligned(2), may_alias));

// Zeroed memory that begins on a cache line (tiles are read far more slowly across lines), in large pages if it is
// large. It is reused and only grows, because new pages cost more than the computation on them.
template <class T>
class Buffer {
 public:
  T* get(long size) {
    if (size > size_) {
      const size_t bytes = size * sizeof(T), page = 2 << 20, unit = bytes < (64 << 10) ? 64 : page, whole = (bytes + unit - 1) / unit * unit;
      memory_.reset(static_cast<T*>(std::aligned_alloc(unit, whole)));
      TORCH_CHECK(memory_, "out of memory");
      if (unit == page) madvise(memory_.get(), whole, MADV_HUGEPAGE);
      std::memset(memory_.get(), 0, whole);
      size_ = size;
    }
    return memory_.get();
  }
  T* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> memory_;
  long size_ = 0;
};

inline Lanes load(const float* p) { return *(const Lanes*)p; }
inline Words bits(const Narrow* p) {
#ifdef __AVX512F__
  return (Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
#else
  return __builtin_convertvector(*(const Shorts*)p, Words);
#endif
}
#ifdef HALF_PRECISION
inline Lanes load(const Narrow* p) { return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
#else
inline Lanes load(const Narrow* p) { return (Lanes)(bits(p) << 16); }
#endif

inline void store(float* p, Lanes x) { *(Lanes*)p = x; }
inline void store(Narrow* p, Lanes x) {
#ifdef HALF_PRECISION
  *(Shorts*)p = (Shorts)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined __AVX512BF16__
  *(Shorts*)p = (Shorts)_mm512_cvtneps_pbh((__m512)x);
#else
  const Words w = (Words)x;  // to the nearest, ties to even
  *(Shorts*)p = __builtin_convertvector((w + 0x7fff + (w >> 16 & 1)) >> 16, Shorts);
#endif
}

inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

// Swaps lanes that are STEP apart.
template <int STEP>
inline Lanes swapped(Lanes x) {
  Ints from;
  for (int l = 0; l < 16; l++) from[l] = l ^ STEP;
  return __builtin_shuffle(x, from);
}

inline float total(Lanes x) {
  x += swapped<8>(x);
  x += swapped<4>(x);
  x += swapped<2>(x);
  x += swapped<1>(x);
  return x[0];
}

inline float largest(Lanes x) {
  x = larger(x, swapped<8>(x));
  x = larger(x, swapped<4>(x));
  x = larger(x, swapped<2>(x));
  x = larger(x, swapped<1>(x));
  return x[0];
}

// Computes 2^x to about six digits, for x from -100 (smaller ones count as -100) to 126. Products below 2^-126 are
// denormal, and slow; products with the smallest power are still above that.
inline Lanes power_of_two(Lanes x) {
  x = larger(x, Lanes{} - 100.f);
#ifdef __AVX512F__
  const Lanes whole = (Lanes)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const Lanes f = x - whole;
  const Lanes p = 1.f + f * (0.69314718f + f * (0.24022651f + f * (0.05550411f + f * (0.00961813f + f * 0.00133336f))));
  return (Lanes)_mm512_scalef_ps((__m512)p, (__m512)whole);
#else
  const Ints exponent = __builtin_convertvector(x + 127.5f, Ints);
  const Lanes f = x - __builtin_convertvector(exponent - 127, Lanes);
  const Lanes p = 1.f + f * (0.69314718f + f * (0.24022651f + f * (0.05550411f + f * (0.00961813f + f * 0.00133336f))));
  return p * (Lanes)(exponent << 23);
#endif
}

constexpr float LOG2E = 1.4426950408889634f;

inline Lanes sigmoid(Lanes x) {
  const Lanes y = x * -LOG2E;
  return 1.f / (1.f + power_of_two(y < 126.f ? y : Lanes{} + 126.f));
}

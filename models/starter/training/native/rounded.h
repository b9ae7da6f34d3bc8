// 4-bit weights as `quantise.py` computes them: in blocks of 64 that share a scale in half precision.
#pragma once
#include <c10/util/Half.h>

#include "lanes.h"

// The largest weight of a block becomes -8, whatever its sign.
inline void round_blocks(long size, const float* from, Narrow* to) {
  constexpr long BLOCK = 64;
  for (long at = 0; at < size; at += BLOCK) {
    Lanes high = load(from + at), low = -high;
    for (long j = 16; j < BLOCK; j += 16) {
      const Lanes x = load(from + at + j);
      high = larger(high, x);
      low = larger(low, -x);
    }
    const float top = largest(high), bottom = largest(low);
    const float scale = float(c10::Half((top > bottom ? top : -bottom) / -8)), inverse = scale == 0 ? 0 : 1 / scale;
    for (long j = 0; j < BLOCK; j += 16) {
      const Lanes x = load(from + at + j) * inverse;
      const Ints near = __builtin_convertvector(x + (x < 0.f ? Lanes{} - 0.5f : Lanes{} + 0.5f), Ints);
      const Ints most = near > 7 ? Ints{} + 7 : near, number = most < -8 ? Ints{} - 8 : most;
      store(to + at + j, __builtin_convertvector(number, Lanes) * scale);
    }
  }
}

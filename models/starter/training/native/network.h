// Weights in the layout of tiles, and the sums of gradients that the threads share.
#pragma once
#include <mutex>
#include <vector>

#include "pointwise.h"
#include "rounded.h"
#include "products.h"

// A matrix [out, in], or a norm [out]. Several parameters may be stacked in one matrix: queries, keys and values, or
// gate and up.
struct Weight {
  long out, in;
  Buffer<Narrow> forward, backward;  // packed as the right factor of x W^T, and of dy W
  Buffer<float> norm;
  float* gradient;  // the sum over the batch
  std::mutex lock;  // of the gradient

  // Sets the rows from `first` on from fp32 values; for matrices a multiple of 32 rows. `rounded`: rounded as they are
  // served (`quantise.py`).
  void set(const float* from, long first, long rows, bool rounded) {
    if (in == 0) {
      std::memcpy(norm.get(out), from, out * sizeof(float));
      return;
    }
    Narrow *f = forward.get(out * in), *b = backward.get(out * in);
    Buffer<Narrow> strip;
    strip.get(32 * in);
    for (long i = 0; i < rows; i += 32) {
      if (rounded) round_blocks(32 * in, from + i * in, strip.data());
      else convert(32 * in, from + i * in, strip.data());
      pack_transposed(strip.data(), 32, in, f + (first + i) * in);
      pack(strip.data(), 32, in, in, b + (first + i) * 16, out);
    }
  }
};

struct Layer {
  Weight norm1, qkv, o, norm2, gate_up, down;
};

struct Network {
  long width, heads, kv_heads, mlp, vocab;
  float eps;
  const float *cos, *sin;  // [positions, WIDTH / 2]
  const float* table;      // the embeddings as they are, for the way in
  Weight embed, last;
  std::vector<Layer> layers;
};

inline void add_norm(const std::vector<float>& part, Weight& to) {
  std::lock_guard hold(to.lock);
  add(part.size(), part.data(), to.gradient);
}

// Adds dy^T x to a weight's gradient. dy consists of tiles (`pack_tiles`), x is packed; both have `depth` rows. By the
// order of the loops, a strip of x stays in the second-level cache while all of dy is read. (oneDNN's product of this
// kind has less than half the speed of its others.)
inline void weight_gradient(const Narrow* dy, const Narrow* x, long depth, Weight& to) {
  constexpr long HIGH = 32, DEEP = 512, STRIP = 768 * 1024;
  const long strips = (to.in * depth + STRIP - 1) / STRIP, strip = padded((to.in + strips - 1) / strips, 32);
  std::lock_guard hold(to.lock);
  for (long j = 0; j < to.in; j += strip)
    for (long i = 0; i < to.out; i += HIGH)
      for (long p = 0; p < depth; p += DEEP)
        multiply(std::min(HIGH, to.out - i), std::min(strip, to.in - j), std::min(DEEP, depth - p),
                 {dy + i * depth + p * 16, 32, 16 * depth, 512}, x + j * depth + p * 16, depth, to.gradient + i * to.in + j, to.in, true);
}

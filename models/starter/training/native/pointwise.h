// Operations between matrix products, line by line: norms, rotary positions, and the gate of the MLP. Sizes are
// multiples of 16.
#pragma once
#include <cmath>

#include "lanes.h"

// out = x / rms(x) * w; returns 1 / rms(x).
inline float normalise(long d, float eps, const float* x, const float* w, Narrow* out) {
  Lanes squares{};
  for (long j = 0; j < d; j += 16) squares += load(x + j) * load(x + j);
  const float r = 1 / std::sqrt(total(squares) / d + eps);
  for (long j = 0; j < d; j += 16) store(out + j, load(x + j) * r * load(w + j));
  return r;
}

// dx += the gradient through the norm; dw += the gradient of its weights; h: the output of the norm, computed again.
template <class X>
void normalise_back(long d, const X* x, const float* w, float r, const float* dh, float* dx, float* dw, Narrow* h) {
  Lanes dot{};
  for (long j = 0; j < d; j += 16) {
    const Lanes g = load(dh + j), xr = load(x + j) * r;
    store(dw + j, load(dw + j) + g * xr);
    store(h + j, xr * load(w + j));
    dot += g * load(w + j) * xr;
  }
  const float pull = total(dot) * r * r / d;
  for (long j = 0; j < d; j += 16) store(dx + j, load(dx + j) + load(dh + j) * load(w + j) * r - load(x + j) * pull);
}

// Rotates a head by its token's position (half-split layout); with `turn` -1, rotates it back.
inline void rotate(const float* from, const float* cos, const float* sin, float turn, Narrow* to) {
  constexpr int half = WIDTH / 2;
  for (int j = 0; j < half; j += 16) {
    const Lanes a = load(from + j), b = load(from + j + half), c = load(cos + j), s = load(sin + j) * turn;
    store(to + j, a * c - b * s);
    store(to + j + half, b * c + a * s);
  }
}

// act = silu(gate) * up for 32 channels. `gu` has 32 values of the gate, then 32 of up; they are stored rounded in
// `kept`.
inline void gate(const float* gu, Narrow* kept, Narrow* act) {
  for (int j = 0; j < 32; j += 16) {
    const Lanes g = load(gu + j), u = load(gu + 32 + j);
    store(kept + j, g);
    store(kept + 32 + j, u);
    store(act + j, g * sigmoid(g) * u);
  }
}

// Computes the gradients of `gate`; computes `act` again.
inline void gate_back(const Narrow* kept, const float* dact, Narrow* dgate, Narrow* dup, Narrow* act) {
  for (int j = 0; j < 32; j += 16) {
    const Lanes g = load(kept + j), u = load(kept + 32 + j), s = sigmoid(g), da = load(dact + j);
    store(act + j, g * s * u);
    store(dgate + j, da * u * s * (1.f + g * (1.f - s)));
    store(dup + j, da * g * s);
  }
}

// Returns the cross-entropy of a line of logits, times `share`; sets `gradient` to that of the logits.
inline double cross_entropy(long vocab, float* logits, long target, float share, Narrow* gradient) {
  const float truth = logits[target];
  Lanes top = load(logits), sum{};
  for (long j = 16; j < vocab; j += 16) top = larger(top, load(logits + j));
  const float most = largest(top);
  for (long j = 0; j < vocab; j += 16) {
    const Lanes e = power_of_two((load(logits + j) - most) * LOG2E);
    store(logits + j, e);
    sum += e;
  }
  const float all = total(sum), scale = share / all;
  for (long j = 0; j < vocab; j += 16) store(gradient + j, load(logits + j) * scale);
  gradient[target] = logits[target] * scale - share;
  return share * (most + std::log(all) - truth);
}

// to += from
template <class From>
void add(long size, const From* from, float* to) {
  for (long i = 0; i < size; i += 16) store(to + i, load(to + i) + load(from + i));
}

template <class From, class To>
void convert(long size, const From* from, To* to) {
  for (long i = 0; i < size; i += 16) store(to + i, load(from + i));
}

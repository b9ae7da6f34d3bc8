// Values of a row's forward pass that its backward pass needs.
#pragma once
#include "network.h"
#include "tree.h"

// Moves runs of lines to the front of each of `blocks` blocks of n lines. Each block then has as many lines as the runs
// together, rounded up. Lines only move towards the front, so none is overwritten before it has moved.
template <class T>
void move_up(const std::vector<Range>& runs, T* data, long n, long blocks, long line) {
  long size = 0;
  for (auto r : runs) size += r.size();
  const long high = padded(size, 32);
  for (long b = 0; b < blocks; b++) {
    long to = b * high;
    for (auto r : runs) {
      std::memmove(data + to * line, data + (b * n + r.begin) * line, r.size() * line * sizeof(T));
      to += r.size();
    }
  }
}

// Values that are stored for one layer. All others are computed again, which takes less time than writing and reading
// them.
struct Kept {
  Buffer<Narrow> x1, x2;          // [n, width]: what each norm sees
  Buffer<Narrow> q, k, v;         // by key heads: [n, group, WIDTH] (and some lines more), [n, WIDTH]
  Buffer<Narrow> y;               // [n, width]: of attention
  Buffer<Narrow> gu;              // [mlp / 32, n, 64]: 32 of the gate, 32 of up
  Buffer<float> r1, r2, lse;  // [n], [n], [n * heads]

  void stay(const std::vector<Range>& runs, long n, long kv_heads, long group, long width, long mlp) {
    for (auto* b : {&x1, &x2, &y}) move_up(runs, b->data(), n, 1, width);
    for (auto* b : {&r1, &r2}) move_up(runs, b->data(), n, 1, 1);
    move_up(runs, q.data(), n, kv_heads, group * WIDTH);
    for (auto* b : {&k, &v}) move_up(runs, b->data(), n, kv_heads, WIDTH);
    move_up(runs, lse.data(), n, kv_heads, group);
    move_up(runs, gu.data(), n, mlp / 32, 64);
  }
};

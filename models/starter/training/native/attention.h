// Attention over a tree. Only pairs of tokens that see each other are computed. A head has WIDTH channels. The query
// heads that share a key head are adjacent in memory (a token's `group` lines of WIDTH), so that they are multiplied
// with its keys in one product.
#pragma once
#include <cmath>

#include "products.h"
#include "tree.h"

class TreeAttention {
 public:
  // longest: most keys of a segment; group: number of query heads per key head.
  TreeAttention(long longest, long group) : group_(group), tokens_(ROWS / group) {
    TORCH_CHECK(group <= ROWS, "more query heads of a key head than ", ROWS);
    const long keys = padded(longest, 32), rows = padded(tokens_ * group, 32);
    for (auto* b : {&k_, &v_, &keys_, &values_, &plain_keys_}) b->get(keys * WIDTH);
    for (auto* b : {&p_, &ds_, &tiles_}) b->get(rows * keys);
    for (auto* b : {&s_, &dp_}) b->get(rows * keys);
    for (auto* b : {&dk_, &dv_}) b->get(keys * WIDTH);
    right_.get(rows * WIDTH);
    out_.get(rows * WIDTH);
  }

  // Computes attention for one key head. q: [n * group, WIDTH], and 32 lines more; k, v: [n, WIDTH]; out: [n, group,
  // WIDTH], tokens `stride` apart; lse: [n * group], the logarithm (base 2) of each query's sum, for `backward`.
  void forward(const std::vector<Segment>& tree, const Narrow* q, const Narrow* k, const Narrow* v, Narrow* out, long stride, float* lse) {
    for (auto& s : tree) {
      const long keys = gather(s, k, v), depth = padded(keys, 32);
      pack_transposed(k_.data(), depth, WIDTH, keys_.data());
      pack(v_.data(), depth, WIDTH, WIDTH, values_.data(), depth);
      blocks(s, [&](long at, long m, long seen) {
        const long rows = m * group_, whole = padded(rows, 16), n = padded(seen, 32);
        multiply(whole, n, WIDTH, rows_of(q + at * group_ * WIDTH, WIDTH), keys_.data(), WIDTH, s_.data(), n, false);
        float share[ROWS];
        for (long i = 0; i < rows; i++) {
          const float* row = s_.data() + i * n;
          Narrow* p = p_.data() + i * n;
          const long sees = seen - m + i / group_ + 1, full = sees & ~15;
          const Lanes edge = front(row + full, sees - full);
          Lanes top = edge, sum{};
          for (long j = 0; j < full; j += 16) top = larger(top, load(row + j));
          const float most = largest(top) * SHARPNESS;
          const auto weigh = [&](Lanes score, long j) {
            const Lanes x = power_of_two(score * SHARPNESS - most);
            store(p + j, x);
            sum += x;
          };
          for (long j = 0; j < full; j += 16) weigh(load(row + j), j);
          if (full < n) weigh(edge, full);
          for (long j = full + 16; j < n; j += 16) store(p + j, Lanes{});
          const float all = total(sum);
          share[i] = 1 / all;
          lse[at * group_ + i] = most + std::log2(all);
        }
        multiply(whole, WIDTH, n, rows_of(p_.data(), n), values_.data(), depth, out_.data(), WIDTH, false);
        for (long i = 0; i < rows; i++)
          for (long j = 0; j < WIDTH; j += 16)
            store(out + (at + i / group_) * stride + i % group_ * WIDTH + j, load(out_.data() + i * WIDTH + j) * share[i]);
      });
    }
  }

  // Computes the gradients for one key head. dout: like q; delta: [n * group], the sum of out * dout of each query; dq:
  // like q, set where there is a token; dk, dv: [n, WIDTH], added to.
  void backward(const std::vector<Segment>& tree, const Narrow* q, const Narrow* k, const Narrow* v, const float* lse, const Narrow* dout,
                const float* delta, float* dq, float* dk, float* dv) {
    for (auto& s : tree) {
      const long keys = gather(s, k, v), depth = padded(keys, 32);
      pack_transposed(k_.data(), depth, WIDTH, keys_.data());
      pack_transposed(v_.data(), depth, WIDTH, values_.data());
      pack(k_.data(), depth, WIDTH, WIDTH, plain_keys_.data(), depth);
      std::fill_n(dk_.data(), depth * WIDTH, 0.f);
      std::fill_n(dv_.data(), depth * WIDTH, 0.f);
      blocks(s, [&](long at, long m, long seen) {
        const long rows = m * group_, whole = padded(rows, 16), n = padded(seen, 32), first = at * group_;
        multiply(whole, n, WIDTH, rows_of(q + first * WIDTH, WIDTH), keys_.data(), WIDTH, s_.data(), n, false);
        multiply(whole, n, WIDTH, rows_of(dout + first * WIDTH, WIDTH), values_.data(), WIDTH, dp_.data(), n, false);
        for (long i = 0; i < rows; i++) {
          const float *row = s_.data() + i * n, *dp = dp_.data() + i * n;
          Narrow *p = p_.data() + i * n, *ds = ds_.data() + i * n;
          const long sees = seen - m + i / group_ + 1, full = sees & ~15;
          const float l = lse[first + i], e = delta[first + i];
          const auto weigh = [&](Lanes score, long j) {
            const Lanes x = power_of_two(score * SHARPNESS - l);
            store(p + j, x);
            store(ds + j, x * (load(dp + j) - e) * (SHARPNESS / LOG2E));
          };
          for (long j = 0; j < full; j += 16) weigh(load(row + j), j);
          if (full < n) weigh(front(row + full, sees - full), full);
          for (long j = full + 16; j < n; j += 16) {
            store(p + j, Lanes{});
            store(ds + j, Lanes{});
          }
        }
        for (auto* b : {&p_, &ds_}) std::fill(b->data() + rows * n, b->data() + padded(rows, 32) * n, Narrow(0));
        multiply(whole, WIDTH, n, rows_of(ds_.data(), n), plain_keys_.data(), depth, out_.data(), WIDTH, false);
        std::memcpy(dq + first * WIDTH, out_.data(), rows * WIDTH * sizeof(float));
        to_keys(ds_.data(), q + first * WIDTH, rows, n, dk_.data());
        to_keys(p_.data(), dout + first * WIDTH, rows, n, dv_.data());
      });
      long from = 0;
      s.each([&](Range r) {
        const long size = r.size() * WIDTH;
        for (long i = 0; i < size; i++) dk[r.begin * WIDTH + i] += dk_.data()[from + i];
        for (long i = 0; i < size; i++) dv[r.begin * WIDTH + i] += dv_.data()[from + i];
        from += size;
      });
    }
  }

 private:
  static constexpr long ROWS = 96;
  static constexpr float SHARPNESS = LOG2E / (WIDTH == 64 ? 8.f : 5.656854249f);  // for powers of two: log2(e) / sqrt(WIDTH)
  static constexpr float HIDDEN = -1e30f;
  static_assert(WIDTH == 32 || WIDTH == 64);
  long group_, tokens_;
  Buffer<Narrow> k_, v_, keys_, values_, plain_keys_, p_, ds_, tiles_, right_;
  Buffer<float> s_, dp_, dk_, dv_, out_;

  // Returns the first `count` scores of a line's last lanes; the others are masked, because these keys are not seen.
  static Lanes front(const float* x, long count) {
    Lanes out;
    for (int l = 0; l < 16; l++) out[l] = l < count ? x[l] : HIDDEN;
    return out;
  }

  // Calls f for each block of a segment's queries: with the first query, the number of queries, and the number of keys
  // that the last one sees.
  template <class F>
  void blocks(const Segment& s, F f) const {
    const long keys = s.keys();
    for (long at = s.own.begin; at < s.own.end; at += tokens_) {
      const long m = std::min(tokens_, s.own.end - at);
      f(at, m, keys - (s.own.end - at - m));
    }
  }

  long gather(const Segment& s, const Narrow* k, const Narrow* v) {
    long at = 0;
    s.each([&](Range r) {
      std::memcpy(k_.data() + at, k + r.begin * WIDTH, r.size() * WIDTH * sizeof(Narrow));
      std::memcpy(v_.data() + at, v + r.begin * WIDTH, r.size() * WIDTH * sizeof(Narrow));
      at += r.size() * WIDTH;
    });
    const long keys = at / WIDTH, rest = (padded(keys, 32) - keys) * WIDTH;
    std::fill_n(k_.data() + at, rest, Narrow(0));
    std::fill_n(v_.data() + at, rest, Narrow(0));
    return keys;
  }

  // to[n, WIDTH] += weights[rows, n]^T x[rows, WIDTH]. The weights must be followed by lines of zeros, up to a multiple
  // of 32.
  void to_keys(const Narrow* weights, const Narrow* x, long rows, long n, float* to) {
    const long depth = padded(rows, 32);
    pack_tiles(weights, depth, n, n, tiles_.data(), depth);
    pack(x, depth, WIDTH, WIDTH, right_.data(), depth);
    multiply(n, WIDTH, depth, {tiles_.data(), 32, 16 * depth, 512}, right_.data(), depth, to, WIDTH, true);
  }
};

// Attention over a tree: a token sees the root, its own context and its own branch (packing.py, `tree_mask`), each a run of
// neighbouring tokens. Only what is seen is computed. All values are fp32; a head has WIDTH channels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

constexpr int WIDTH = 32;
typedef float Lanes __attribute__((vector_size(64), aligned(4)));

// C[m, n] (+)= A[m, k] B[k, n]. Element (i, j) of A is at a[i * ai + j * aj], so A may be transposed; n is a multiple of 16.
template <int ROWS, int VECTORS>
static void block(long k, const float* a, long ai, long aj, const float* b, long ldb, float* c, long ldc, bool add) {
  Lanes sum[ROWS][VECTORS];
  for (int i = 0; i < ROWS; i++)
    for (int v = 0; v < VECTORS; v++) sum[i][v] = add ? *(const Lanes*)(c + i * ldc + 16 * v) : Lanes{};
  for (long p = 0; p < k; p++) {
    Lanes right[VECTORS];
    for (int v = 0; v < VECTORS; v++) right[v] = *(const Lanes*)(b + p * ldb + 16 * v);
    for (int i = 0; i < ROWS; i++) {
      const float left = a[i * ai + p * aj];
      for (int v = 0; v < VECTORS; v++) sum[i][v] += left * right[v];
    }
  }
  for (int i = 0; i < ROWS; i++)
    for (int v = 0; v < VECTORS; v++) *(Lanes*)(c + i * ldc + 16 * v) = sum[i][v];
}

static void multiply(long m, long n, long k, const float* a, long ai, long aj, const float* b, long ldb, float* c, long ldc, bool add) {
  for (long j = 0; j < n;) {
    const bool two = n - j >= 32;
    long i = 0;
    for (; i + 6 <= m; i += 6)
      two ? block<6, 2>(k, a + i * ai, ai, aj, b + j, ldb, c + i * ldc + j, ldc, add)
          : block<6, 1>(k, a + i * ai, ai, aj, b + j, ldb, c + i * ldc + j, ldc, add);
    for (; i < m; i++)
      two ? block<1, 2>(k, a + i * ai, ai, aj, b + j, ldb, c + i * ldc + j, ldc, add)
          : block<1, 1>(k, a + i * ai, ai, aj, b + j, ldb, c + i * ldc + j, ldc, add);
    j += two ? 32 : 16;
  }
}

struct Range {
  long begin, end;
};

// Neighbouring tokens that see the same earlier runs, and of themselves what is not behind.
struct Segment {
  Range own;
  std::vector<Range> earlier;
  long keys() const {
    long n = own.end - own.begin;
    for (auto r : earlier) n += r.end - r.begin;
    return n;
  }
};

inline std::vector<Segment> segments(long n, const long* context, const long* branch, const bool* rooted) {
  std::vector<Segment> out;
  Range root{0, 0}, shared{0, 0};
  for (long i = 0; i < n;) {
    long end = i;
    while (end < n && context[end] == context[i] && branch[end] == branch[i]) end++;
    if (context[i] >= 0) {
      Segment s{{i, end}, {}};
      if (context[i] == 0) {
        root = s.own;
      } else {
        if (rooted[i] && root.end > root.begin) s.earlier.push_back(root);
        if (branch[i] == 0) shared = s.own;
        else s.earlier.push_back(shared);
      }
      out.push_back(s);
    }
    i = end;
  }
  return out;
}

class TreeAttention {
 public:
  explicit TreeAttention(std::vector<Segment> segments) : segments_(std::move(segments)) {
    long most = 0;
    for (auto& s : segments_) most = std::max(most, (s.keys() + 15) / 16 * 16);
    const long size = most * WIDTH;
    for (auto* b : {&k_, &v_, &kt_, &vt_, &dk_, &dv_}) b->resize(size);
    s_.resize(QUERIES * most);
    dp_.resize(QUERIES * most);
  }

  // One head. q, k, v, out: [n, WIDTH]; lse [n]: logarithm of each query's sum, for `backward`.
  void forward(const float* q, const float* k, const float* v, float* out, float* lse) {
    for (auto& s : segments_) {
      const long keys = gather(s, k, v), padded = (keys + 15) / 16 * 16;
      transpose(k_, padded, kt_);
      for (long at = s.own.begin; at < s.own.end; at += QUERIES) {
        const long m = std::min<long>(QUERIES, s.own.end - at);
        multiply(m, padded, WIDTH, q + at * WIDTH, WIDTH, 1, kt_.data(), padded, s_.data(), padded, false);
        for (long i = 0; i < m; i++) {
          float* row = s_.data() + i * padded;
          const long seen = keys - (s.own.end - at - i) + 1;
          float top = -std::numeric_limits<float>::infinity(), sum = 0;
          for (long j = 0; j < seen; j++) top = std::max(top, row[j]);
          for (long j = 0; j < seen; j++) {
            row[j] = std::exp((row[j] - top) * SCALE);
            sum += row[j];
          }
          const float share = 1 / sum;
          for (long j = 0; j < seen; j++) row[j] *= share;
          for (long j = seen; j < padded; j++) row[j] = 0;
          lse[at + i] = top * SCALE + std::log(sum);
        }
        multiply(m, WIDTH, padded, s_.data(), padded, 1, v_.data(), WIDTH, out + at * WIDTH, WIDTH, false);
      }
    }
  }

  // One head. dq, dk, dv: [n, WIDTH], added to; delta [n]: sum of out * dout of each query.
  void backward(const float* q, const float* k, const float* v, const float* lse, const float* dout, const float* delta,
                float* dq, float* dk, float* dv) {
    for (auto& s : segments_) {
      const long keys = gather(s, k, v), padded = (keys + 15) / 16 * 16;
      transpose(k_, padded, kt_);
      transpose(v_, padded, vt_);
      std::fill(dk_.begin(), dk_.begin() + padded * WIDTH, 0.f);
      std::fill(dv_.begin(), dv_.begin() + padded * WIDTH, 0.f);
      for (long at = s.own.begin; at < s.own.end; at += QUERIES) {
        const long m = std::min<long>(QUERIES, s.own.end - at);
        multiply(m, padded, WIDTH, q + at * WIDTH, WIDTH, 1, kt_.data(), padded, s_.data(), padded, false);
        multiply(m, padded, WIDTH, dout + at * WIDTH, WIDTH, 1, vt_.data(), padded, dp_.data(), padded, false);
        for (long i = 0; i < m; i++) {
          float *p = s_.data() + i * padded, *d = dp_.data() + i * padded;
          const long seen = keys - (s.own.end - at - i) + 1;
          const float l = lse[at + i], e = delta[at + i];
          for (long j = 0; j < seen; j++) {
            p[j] = std::exp(p[j] * SCALE - l);
            d[j] = p[j] * (d[j] - e) * SCALE;
          }
          for (long j = seen; j < padded; j++) p[j] = d[j] = 0;
        }
        multiply(m, WIDTH, padded, dp_.data(), padded, 1, k_.data(), WIDTH, dq + at * WIDTH, WIDTH, true);
        multiply(keys, WIDTH, m, dp_.data(), 1, padded, q + at * WIDTH, WIDTH, dk_.data(), WIDTH, true);
        multiply(keys, WIDTH, m, s_.data(), 1, padded, dout + at * WIDTH, WIDTH, dv_.data(), WIDTH, true);
      }
      long from = 0;
      each(s, [&](Range r) {
        const long size = (r.end - r.begin) * WIDTH;
        for (long i = 0; i < size; i++) dk[r.begin * WIDTH + i] += dk_[from + i];
        for (long i = 0; i < size; i++) dv[r.begin * WIDTH + i] += dv_[from + i];
        from += size;
      });
    }
  }

 private:
  static constexpr long QUERIES = 48;
  static constexpr float SCALE = 0.17677669529663687f;  // 1 / sqrt(WIDTH)
  using Buffer = std::vector<float>;
  std::vector<Segment> segments_;
  Buffer k_, v_, kt_, vt_, dk_, dv_, s_, dp_;

  template <class F>
  static void each(const Segment& s, F f) {
    for (auto r : s.earlier) f(r);
    f(s.own);
  }

  long gather(const Segment& s, const float* k, const float* v) {
    long at = 0;
    each(s, [&](Range r) {
      const long size = (r.end - r.begin) * WIDTH;
      std::memcpy(k_.data() + at, k + r.begin * WIDTH, size * sizeof(float));
      std::memcpy(v_.data() + at, v + r.begin * WIDTH, size * sizeof(float));
      at += size;
    });
    const long keys = at / WIDTH, padded = (keys + 15) / 16 * 16;
    std::fill(k_.begin() + at, k_.begin() + padded * WIDTH, 0.f);
    std::fill(v_.begin() + at, v_.begin() + padded * WIDTH, 0.f);
    return keys;
  }

  static void transpose(const Buffer& from, long rows, Buffer& to) {
    for (long i = 0; i < rows; i++)
      for (long j = 0; j < WIDTH; j++) to[j * rows + i] = from[i * WIDTH + j];
  }
};

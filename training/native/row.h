// A row of the batch through the whole network and back: small enough to stay in a core's cache. Matrices are multiplied in bfloat16
// (oneDNN, through ATen), everything else is fp32. The same network as model.py.
#pragma once
#include <torch/extension.h>

#include "attention.h"

using at::Tensor;
using Bf = at::BFloat16;

inline Tensor floats(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }
inline Tensor halves(at::IntArrayRef shape) { return at::empty(shape, at::kBFloat16); }
inline float* f(const Tensor& t) { return t.data_ptr<float>(); }
inline Bf* b(const Tensor& t) { return t.data_ptr<Bf>(); }

struct Network {
  long layers, heads, width, mlp;
  float eps;
  Tensor embed, last;                                  // bf16 [vocab, width]; fp32 [width]
  std::vector<Tensor> qkv, o, gate_up, down;           // bf16 [out, in], queries, keys and values one under the other
  std::vector<Tensor> norm1, norm2;                    // fp32 [width]
  const float *cos, *sin;                              // [positions, WIDTH / 2]
};

struct Gradients {
  Tensor embed, last;
  std::vector<Tensor> qkv, o, gate_up, down, norm1, norm2;
};

// What a layer keeps for its way back.
struct Kept {
  Tensor x1, x2;       // fp32 [n, width]: what each norm saw
  Tensor h1, h2;       // bf16: what it gave
  Tensor q, k, v;      // fp32 [heads, n, WIDTH]
  Tensor y;            // bf16 [n, width]: of attention
  Tensor gu, act;      // bf16 [n, 2 mlp], [n, mlp]
  std::vector<float> r1, r2, lse;
};

inline void normalise(long n, long d, float eps, const float* x, const float* w, Bf* out, float* r) {
  for (long i = 0; i < n; i++) {
    const float* row = x + i * d;
    float sum = 0;
    for (long j = 0; j < d; j++) sum += row[j] * row[j];
    r[i] = 1 / std::sqrt(sum / d + eps);
    for (long j = 0; j < d; j++) out[i * d + j] = row[j] * r[i] * w[j];
  }
}

// dx += the gradient through the norm; dw += its weight's.
inline void normalise_back(long n, long d, const float* x, const float* w, const float* r, const Bf* dh, float* dx, float* dw) {
  std::vector<float> g(d);
  for (long i = 0; i < n; i++) {
    const float* row = x + i * d;
    float dot = 0;
    for (long j = 0; j < d; j++) {
      const float h = dh[i * d + j];
      dw[j] += h * row[j] * r[i];
      g[j] = h * w[j];
      dot += g[j] * row[j];
    }
    const float pull = dot * r[i] * r[i] * r[i] / d;
    for (long j = 0; j < d; j++) dx[i * d + j] += g[j] * r[i] - row[j] * pull;
  }
}

template <class T>
void add(long size, const T* from, float* to) {
  for (long i = 0; i < size; i++) to[i] += float(from[i]);
}

inline void widen(long size, const Bf* from, float* to) {
  for (long i = 0; i < size; i++) to[i] = from[i];
}

inline void narrow(long size, const float* from, Bf* to) {
  for (long i = 0; i < size; i++) to[i] = from[i];
}

// dW += dy^T x, rounded to bfloat16 once a row.
inline void weight_gradient(const Tensor& dy, const Tensor& x, const Tensor& total) {
  const Tensor g = at::mm(dy.t(), x);
  add(g.numel(), b(g), f(total));
}

class Row {
 public:
  Row(const Network& net, long n, const long* tokens, const long* positions, std::vector<Segment> tree)
      : net_(net), n_(n), d_(net.width), tokens_(tokens), positions_(positions), attention_(std::move(tree)) {}

  // Adds to `g`; chosen: places in this row whose next token is `target`, each with its share of the loss. Returns the loss.
  double run(const std::vector<long>& chosen, const std::vector<long>& target, const std::vector<float>& share, Gradients& g) {
    Tensor x = floats({n_, d_});
    for (long i = 0; i < n_; i++) widen(d_, b(net_.embed) + tokens_[i] * d_, f(x) + i * d_);
    std::vector<Kept> kept(net_.layers);
    for (long l = 0; l < net_.layers; l++) layer(l, x, kept[l]);
    Tensor dx = at::zeros({n_, d_}, at::kFloat);
    const double loss = head(x, chosen, target, share, dx, g);
    for (long l = net_.layers - 1; l >= 0; l--) layer_back(l, kept[l], dx, g);
    for (long i = 0; i < n_; i++) add(d_, f(dx) + i * d_, f(g.embed) + tokens_[i] * d_);
    return loss;
  }

 private:
  const Network& net_;
  long n_, d_;
  const long *tokens_, *positions_;
  TreeAttention attention_;

  void layer(long l, Tensor& x, Kept& s) {
    const long m = net_.mlp, size = n_ * d_;
    s.x1 = x.clone();
    s.h1 = halves({n_, d_});
    s.r1.resize(n_);
    normalise(n_, d_, net_.eps, f(s.x1), f(net_.norm1[l]), b(s.h1), s.r1.data());
    const Tensor qkv = at::mm(s.h1, net_.qkv[l].t());
    for (auto* t : {&s.q, &s.k, &s.v}) *t = floats({net_.heads, n_, WIDTH});
    split(b(qkv), s);
    const Tensor out = at::zeros({net_.heads, n_, WIDTH}, at::kFloat);
    s.lse.assign(net_.heads * n_, 0.f);
    for (long h = 0; h < net_.heads; h++) {
      const long at = h * n_ * WIDTH;
      attention_.forward(f(s.q) + at, f(s.k) + at, f(s.v) + at, f(out) + at, s.lse.data() + h * n_);
    }
    s.y = halves({n_, d_});
    for (long h = 0; h < net_.heads; h++)
      for (long i = 0; i < n_; i++) narrow(WIDTH, f(out) + (h * n_ + i) * WIDTH, b(s.y) + i * d_ + h * WIDTH);
    add(size, b(at::mm(s.y, net_.o[l].t())), f(x));

    s.x2 = x.clone();
    s.h2 = halves({n_, d_});
    s.r2.resize(n_);
    normalise(n_, d_, net_.eps, f(s.x2), f(net_.norm2[l]), b(s.h2), s.r2.data());
    s.gu = at::mm(s.h2, net_.gate_up[l].t());
    s.act = halves({n_, m});
    for (long i = 0; i < n_; i++) {
      const Bf *gate = b(s.gu) + i * 2 * m, *up = gate + m;
      Bf* act = b(s.act) + i * m;
      for (long j = 0; j < m; j++) {
        const float v = gate[j];
        act[j] = v / (1 + std::exp(-v)) * float(up[j]);
      }
    }
    add(size, b(at::mm(s.act, net_.down[l].t())), f(x));
  }

  // Queries and keys turned by their positions (rotary, half-split), by heads.
  void split(const Bf* qkv, Kept& s) {
    constexpr int half = WIDTH / 2;
    for (long i = 0; i < n_; i++) {
      const float *c = net_.cos + positions_[i] * half, *z = net_.sin + positions_[i] * half;
      for (long h = 0; h < net_.heads; h++) {
        const Bf *q = qkv + i * 3 * d_ + h * WIDTH, *k = q + d_, *v = k + d_;
        const long at = (h * n_ + i) * WIDTH;
        float *tq = f(s.q) + at, *tk = f(s.k) + at, *tv = f(s.v) + at;
        for (int j = 0; j < half; j++) {
          tq[j] = float(q[j]) * c[j] - float(q[j + half]) * z[j];
          tq[j + half] = float(q[j + half]) * c[j] + float(q[j]) * z[j];
          tk[j] = float(k[j]) * c[j] - float(k[j + half]) * z[j];
          tk[j + half] = float(k[j + half]) * c[j] + float(k[j]) * z[j];
        }
        for (int j = 0; j < WIDTH; j++) tv[j] = v[j];
      }
    }
  }

  void layer_back(long l, Kept& s, Tensor& dx, Gradients& g) {
    const long m = net_.mlp, size = n_ * d_;
    const Tensor dy = halves({n_, d_});
    narrow(size, f(dx), b(dy));
    weight_gradient(dy, s.act, g.down[l]);
    const Tensor dact = at::mm(dy, net_.down[l]);
    const Tensor dgu = halves({n_, 2 * m});
    for (long i = 0; i < n_; i++) {
      const Bf *gate = b(s.gu) + i * 2 * m, *up = gate + m, *da = b(dact) + i * m;
      Bf *dg = b(dgu) + i * 2 * m, *du = dg + m;
      for (long j = 0; j < m; j++) {
        const float v = gate[j], sig = 1 / (1 + std::exp(-v)), a = da[j];
        dg[j] = a * float(up[j]) * sig * (1 + v * (1 - sig));
        du[j] = a * v * sig;
      }
    }
    weight_gradient(dgu, s.h2, g.gate_up[l]);
    const Tensor dh2 = at::mm(dgu, net_.gate_up[l]);
    normalise_back(n_, d_, f(s.x2), f(net_.norm2[l]), s.r2.data(), b(dh2), f(dx), f(g.norm2[l]));

    narrow(size, f(dx), b(dy));
    weight_gradient(dy, s.y, g.o[l]);
    const Tensor dattention = at::mm(dy, net_.o[l]);
    const Tensor dqkv = attention_back(s, b(dattention));
    weight_gradient(dqkv, s.h1, g.qkv[l]);
    const Tensor dh1 = at::mm(dqkv, net_.qkv[l]);
    normalise_back(n_, d_, f(s.x1), f(net_.norm1[l]), s.r1.data(), b(dh1), f(dx), f(g.norm1[l]));
  }

  Tensor attention_back(Kept& s, const Bf* dy) {
    constexpr int half = WIDTH / 2;
    const Tensor dqkv = halves({n_, 3 * d_});
    std::vector<float> dout(n_ * WIDTH), delta(n_), dq(n_ * WIDTH), dk(n_ * WIDTH), dv(n_ * WIDTH);
    for (long h = 0; h < net_.heads; h++) {
      const Bf* y = b(s.y);
      for (long i = 0; i < n_; i++) {
        float sum = 0;
        for (int j = 0; j < WIDTH; j++) {
          const float o = dy[i * d_ + h * WIDTH + j];
          dout[i * WIDTH + j] = o;
          sum += o * float(y[i * d_ + h * WIDTH + j]);
        }
        delta[i] = sum;
      }
      for (auto* t : {&dq, &dk, &dv}) std::fill(t->begin(), t->end(), 0.f);
      const long at = h * n_ * WIDTH;
      attention_.backward(f(s.q) + at, f(s.k) + at, f(s.v) + at, s.lse.data() + h * n_, dout.data(), delta.data(),
                          dq.data(), dk.data(), dv.data());
      for (long i = 0; i < n_; i++) {
        const float *c = net_.cos + positions_[i] * half, *z = net_.sin + positions_[i] * half;
        const float *tq = dq.data() + i * WIDTH, *tk = dk.data() + i * WIDTH, *tv = dv.data() + i * WIDTH;
        Bf *q = b(dqkv) + i * 3 * d_ + h * WIDTH, *k = q + d_, *v = k + d_;
        for (int j = 0; j < half; j++) {
          q[j] = tq[j] * c[j] + tq[j + half] * z[j];
          q[j + half] = tq[j + half] * c[j] - tq[j] * z[j];
          k[j] = tk[j] * c[j] + tk[j + half] * z[j];
          k[j + half] = tk[j + half] * c[j] - tk[j] * z[j];
        }
        for (int j = 0; j < WIDTH; j++) v[j] = tv[j];
      }
    }
    return dqkv;
  }

  double head(const Tensor& x, const std::vector<long>& chosen, const std::vector<long>& target, const std::vector<float>& share,
              Tensor& dx, Gradients& g) {
    const long count = chosen.size(), vocab = net_.embed.size(0);
    if (count == 0) return 0;
    const Tensor picked = floats({count, d_}), h = halves({count, d_}), dpicked = at::zeros({count, d_}, at::kFloat);
    for (long i = 0; i < count; i++) std::memcpy(f(picked) + i * d_, f(x) + chosen[i] * d_, d_ * sizeof(float));
    std::vector<float> r(count), p(vocab);
    normalise(count, d_, net_.eps, f(picked), f(net_.last), b(h), r.data());
    const Tensor logits = at::mm(h, net_.embed.t());
    double loss = 0;
    for (long i = 0; i < count; i++) {
      Bf* row = b(logits) + i * vocab;
      float top = -std::numeric_limits<float>::infinity(), sum = 0;
      for (long j = 0; j < vocab; j++) p[j] = row[j];
      const float truth = p[target[i]];
      for (long j = 0; j < vocab; j++) top = std::max(top, p[j]);
      for (long j = 0; j < vocab; j++) {
        p[j] = std::exp(p[j] - top);
        sum += p[j];
      }
      loss += share[i] * (top + std::log(sum) - truth);
      const float scale = share[i] / sum;
      for (long j = 0; j < vocab; j++) row[j] = p[j] * scale;
      row[target[i]] = p[target[i]] * scale - share[i];
    }
    weight_gradient(logits, h, g.embed);
    const Tensor dh = at::mm(logits, net_.embed);
    normalise_back(count, d_, f(picked), f(net_.last), r.data(), b(dh), f(dpicked), f(g.last));
    for (long i = 0; i < count; i++) add(d_, f(dpicked) + i * d_, f(dx) + chosen[i] * d_);
    return loss;
  }
};

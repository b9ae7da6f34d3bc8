// Computes a row of the batch through the whole network and back, in one thread. It is the same network as model.py.
// Matrices are multiplied in 16 bits; the residual stream, norms and sums are fp32. Between two attentions, tokens are
// processed in chunks that fit into the core's cache with all that they need.
#pragma once
#include "attention.h"
#include "drawn.h"
#include "kept.h"

// Computes rows one after the other in the same memory. n, the length of rows, is a multiple of 32.
class Worker {
 public:
  Worker(Network& net, long n)
      : net_(net), n_(n), d_(net.width), m_(net.mlp), group_(net.heads / net.kv_heads), wide_((net.heads + 2 * net.kv_heads) * WIDTH),
        kept_(net.layers.size()), attention_(n, group_), dw_(d_) {
    const long queries = n * net.heads * WIDTH + 32 * WIDTH, keys = n * net.kv_heads * WIDTH;
    for (auto& s : kept_) {
      for (auto* b : {&s.x1, &s.x2, &s.y}) b->get(n * d_);
      for (auto* b : {&s.r1, &s.r2}) b->get(n);
      s.lse.get(n * net.heads);
      s.q.get(queries);
      for (auto* b : {&s.k, &s.v}) b->get(keys);
      s.gu.get(n * 2 * m_);
    }
    for (auto* b : {&x_, &dx_}) b->get(n * d_);
    for (auto* b : {&left1_, &left3_, &right2_, &right3_}) b->get(n * d_);
    right1_.get(n * m_);
    left2_.get(n * std::max(2 * m_, wide_));
    dqkv_.get(n * wide_);
    dout_.get(queries);
    delta_.get(n * net.heads);
    dq_.get(n * group_ * WIDTH);
    for (auto* b : {&dk_, &dv_}) b->get(n * WIDTH);
    h_.get(CHUNK * d_);
    act_.get(CHUNK * m_);
    dgu_.get(CHUNK * 2 * m_);
    sums_.get(CHUNK * std::max<long>(d_, 64));
    logits_.get(CHUNK * net.vocab);
    dlogits_.get(CHUNK * net.vocab);
  }

  // Adds to the gradients and returns the loss. Only the given part of the branches' tokens is used for the gradients
  // (`Drawn`).
  double run(const RowOfBatch& row, double part, std::mt19937_64& chance) {
    row_ = &row;
    n_ = row.tokens.size();
    configure_tiles();
    const long layers = kept_.size();
    for (long i = 0; i < n_; i++) std::memcpy(x_.data() + i * d_, net_.table + row.tokens[i] * d_, d_ * sizeof(float));
    chunks([&](long at, long m) { before_attention(net_.layers[0], kept_[0], at, m); });
    for (long l = 0; l < layers; l++) {
      attend(kept_[l]);
      chunks([&](long at, long m) {
        after_attention(net_.layers[l], kept_[l], at, m);
        if (l + 1 < layers) before_attention(net_.layers[l + 1], kept_[l + 1], at, m);
      });
    }
    std::fill_n(dx_.data(), n_ * d_, 0.f);
    double loss = 0;
    Drawn drawn;
    if (part < 1) {
      drawn = draw(row, missing(loss), part, chance);
      stay(drawn.runs);
      row_ = &drawn.row;
      n_ = drawn.row.tokens.size();
    }
    const double told = head();
    if (part == 1) loss = told;
    for (long l = layers - 1; l >= 0; l--) layer_back(net_.layers[l], kept_[l]);
    std::lock_guard hold(net_.embed.lock);
    for (long i = 0; i < n_; i++) add(d_, dx_.data() + i * d_, net_.embed.gradient + row_->tokens[i] * d_);
    return loss;
  }

 private:
  static constexpr long CHUNK = 256;
  Network& net_;
  long n_, d_, m_, group_, wide_;
  std::vector<Kept> kept_;
  TreeAttention attention_;
  const RowOfBatch* row_ = nullptr;
  Buffer<float> x_, dx_, sums_, delta_, dq_, dk_, dv_, logits_;
  Buffer<Narrow> h_, act_, dgu_, dqkv_, dout_, dlogits_;
  Buffer<Narrow> left1_, left2_, left3_, right1_, right2_, right3_;  // gradients of what weights give, as tiles; what they saw, packed
  std::vector<float> dw_;

  template <class F>
  void chunks(F f) const {
    for (long at = 0; at < n_; at += CHUNK) f(at, std::min(CHUNK, n_ - at));
  }

  const float* cos(long i) const { return net_.cos + row_->positions[i] * (WIDTH / 2); }
  const float* sin(long i) const { return net_.sin + row_->positions[i] * (WIDTH / 2); }
  long query(long i, long h) const { return ((h / group_ * n_ + i) * group_ + h % group_) * WIDTH; }
  long key(long i, long g) const { return (g * n_ + i) * WIDTH; }

  // to[m, columns] (+)= x[m, in] of W's columns from `first` on, W^T being [in, out]
  static void forward(const Weight& w, const Narrow* x, long m, long first, long columns, float* to, long stride, bool add) {
    multiply(m, columns, w.in, rows_of(x, w.in), w.forward.data() + first * w.in, w.in, to, stride, add);
  }
  static void backward(const Weight& w, const Narrow* dy, long m, long first, long columns, float* to) {
    multiply(m, columns, w.out, rows_of(dy, w.out), w.backward.data() + first * w.out, w.out, to, columns, false);
  }

  void normalise_chunk(const Weight& w, Buffer<Narrow>& x, Buffer<float>& r, long at, long m) {
    convert(m * d_, x_.data() + at * d_, x.data() + at * d_);
    for (long i = 0; i < m; i++)
      r.data()[at + i] = normalise(d_, net_.eps, x_.data() + (at + i) * d_, w.norm.data(), h_.data() + i * d_);
  }

  // dx_ += the gradient through a norm, from sums_. The norm's output is written to right2_.
  void normalise_back_chunk(Weight& w, const Buffer<Narrow>& x, const Buffer<float>& r, long at, long m) {
    for (long i = 0; i < m; i++) {
      const long here = (at + i) * d_;
      normalise_back(d_, x.data() + here, w.norm.data(), r.data()[at + i], sums_.data() + i * d_, dx_.data() + here, dw_.data(),
                     h_.data() + i * d_);
    }
    pack(h_.data(), m, d_, d_, right2_.data() + at * 16, n_);
  }

  // Computes queries, keys and values by heads, the first two rotated by their positions.
  void before_attention(const Layer& w, Kept& s, long at, long m) {
    normalise_chunk(w.norm1, s.x1, s.r1, at, m);
    for (long h = 0; h < net_.heads + 2 * net_.kv_heads; h++) {
      forward(w.qkv, h_.data(), m, h * WIDTH, WIDTH, sums_.data(), WIDTH, false);
      const long g = h - net_.heads;
      for (long i = 0; i < m; i++) {
        const float* from = sums_.data() + i * WIDTH;
        if (g < 0) rotate(from, cos(at + i), sin(at + i), 1, s.q.data() + query(at + i, h));
        else if (g < net_.kv_heads) rotate(from, cos(at + i), sin(at + i), 1, s.k.data() + key(at + i, g));
        else convert(WIDTH, from, s.v.data() + key(at + i, g - net_.kv_heads));
      }
    }
  }

  void attend(Kept& s) {
    for (long g = 0; g < net_.kv_heads; g++)
      attention_.forward(row_->tree, s.q.data() + query(0, g * group_), s.k.data() + key(0, g), s.v.data() + key(0, g),
                         s.y.data() + g * group_ * WIDTH, d_, s.lse.data() + g * group_ * n_);
  }

  void after_attention(const Layer& w, Kept& s, long at, long m) {
    float* x = x_.data() + at * d_;
    forward(w.o, s.y.data() + at * d_, m, 0, d_, x, d_, true);
    normalise_chunk(w.norm2, s.x2, s.r2, at, m);
    for (long j = 0; j < m_; j += 32) {
      forward(w.gate_up, h_.data(), m, j, 32, sums_.data(), 64, false);
      forward(w.gate_up, h_.data(), m, m_ + j, 32, sums_.data() + 32, 64, false);
      for (long i = 0; i < m; i++) gate(sums_.data() + 64 * i, kept(s, j, at + i), act_.data() + i * m_ + j);
    }
    forward(w.down, act_.data(), m, 0, d_, x, d_, true);
  }

  Narrow* kept(Kept& s, long j, long i) const { return s.gu.data() + (j / 32 * n_ + i) * 64; }

  void layer_back(Layer& w, Kept& s) {
    std::fill(dw_.begin(), dw_.end(), 0.f);
    chunks([&](long at, long m) { after_attention_back(w, s, at, m); });
    add_norm(dw_, w.norm2);
    weight_gradient(left1_.data(), right1_.data(), n_, w.down);
    weight_gradient(left2_.data(), right2_.data(), n_, w.gate_up);
    weight_gradient(left3_.data(), right3_.data(), n_, w.o);
    attend_back(s);
    std::fill(dw_.begin(), dw_.end(), 0.f);
    chunks([&](long at, long m) {
      const Narrow* dqkv = dqkv_.data() + at * wide_;
      pack_tiles(dqkv, m, wide_, wide_, left2_.data() + at * 16, n_);
      backward(w.qkv, dqkv, m, 0, d_, sums_.data());
      normalise_back_chunk(w.norm1, s.x1, s.r1, at, m);
    });
    add_norm(dw_, w.norm1);
    weight_gradient(left2_.data(), right2_.data(), n_, w.qkv);
  }

  void after_attention_back(Layer& w, Kept& s, long at, long m) {
    const float* dx = dx_.data() + at * d_;
    convert(m * d_, dx, h_.data());
    pack_tiles(h_.data(), m, d_, d_, left1_.data() + at * 16, n_);
    for (long j = 0; j < m_; j += 32) {
      backward(w.down, h_.data(), m, j, 32, sums_.data());
      for (long i = 0; i < m; i++) {
        Narrow* dgate = dgu_.data() + i * 2 * m_ + j;
        gate_back(kept(s, j, at + i), sums_.data() + 32 * i, dgate, dgate + m_, act_.data() + i * m_ + j);
      }
    }
    pack(act_.data(), m, m_, m_, right1_.data() + at * 16, n_);
    pack_tiles(dgu_.data(), m, 2 * m_, 2 * m_, left2_.data() + at * 16, n_);
    backward(w.gate_up, dgu_.data(), m, 0, d_, sums_.data());
    normalise_back_chunk(w.norm2, s.x2, s.r2, at, m);

    convert(m * d_, dx, h_.data());
    pack_tiles(h_.data(), m, d_, d_, left3_.data() + at * 16, n_);
    pack(s.y.data() + at * d_, m, d_, d_, right3_.data() + at * 16, n_);
    for (long h = 0; h < net_.heads; h++) {
      backward(w.o, h_.data(), m, h * WIDTH, WIDTH, sums_.data());
      for (long i = 0; i < m; i++) {
        const float* dy = sums_.data() + i * WIDTH;
        const Narrow* y = s.y.data() + (at + i) * d_ + h * WIDTH;
        Lanes dot{};
        for (long j = 0; j < WIDTH; j += 16) dot += load(dy + j) * load(y + j);
        delta_.data()[query(at + i, h) / WIDTH] = total(dot);
        convert(WIDTH, dy, dout_.data() + query(at + i, h));
      }
    }
  }

  // Computes dqkv_ from dout_ and delta_.
  void attend_back(Kept& s) {
    for (long g = 0; g < net_.kv_heads; g++) {
      const long q = query(0, g * group_), k = key(0, g), first = g * group_ * n_;
      std::fill_n(dq_.data(), n_ * group_ * WIDTH, 0.f);
      for (auto* b : {&dk_, &dv_}) std::fill_n(b->data(), n_ * WIDTH, 0.f);
      attention_.backward(row_->tree, s.q.data() + q, s.k.data() + k, s.v.data() + k, s.lse.data() + first, dout_.data() + q,
                          delta_.data() + first, dq_.data(), dk_.data(), dv_.data());
      for (long i = 0; i < n_; i++) {
        Narrow* to = dqkv_.data() + i * wide_ + g * WIDTH;
        for (long h = 0; h < group_; h++)
          rotate(dq_.data() + (i * group_ + h) * WIDTH, cos(i), sin(i), -1, to + (g * (group_ - 1) + h) * WIDTH);
        rotate(dk_.data() + i * WIDTH, cos(i), sin(i), -1, to + net_.heads * WIDTH);
        convert(WIDTH, dv_.data() + i * WIDTH, to + (net_.heads + net_.kv_heads) * WIDTH);
      }
    }
  }

  // Computes, for up to CHUNK places, the output of the last norm (h_), the factor 1 / rms of each (r), and the logits.
  void tell(const Place* places, long m, float* r) {
    for (long i = 0; i < m; i++)
      r[i] = normalise(d_, net_.eps, x_.data() + places[i].at * d_, net_.last.norm.data(), h_.data() + i * d_);
    forward(net_.embed, h_.data(), padded(m, 32), 0, net_.vocab, logits_.data(), net_.vocab, false);
  }

  // Returns, for each of the row's places, the probability that its prediction lacks, times its share; sets `loss` to
  // the loss of all.
  std::vector<float> missing(double& loss) {
    std::vector<float> out;
    const long count = row_->places.size();
    for (long at = 0; at < count; at += CHUNK) {
      const Place* places = row_->places.data() + at;
      const long m = std::min(CHUNK, count - at);
      float r[CHUNK];
      tell(places, m, r);
      for (long i = 0; i < m; i++) {
        const double cost = cross_entropy(net_.vocab, logits_.data() + i * net_.vocab, places[i].target, 1, dlogits_.data());
        loss += places[i].share * cost;
        out.push_back(places[i].share * (1 - std::exp(-cost)));
      }
    }
    return out;
  }

  // Keeps only these runs of the values that were computed for the backward pass.
  void stay(const std::vector<Range>& runs) {
    move_up(runs, x_.data(), n_, 1, d_);
    for (auto& s : kept_) s.stay(runs, n_, net_.kv_heads, group_, d_, m_);
  }

  // Returns the loss of the row's chosen places; writes their gradients to dx_.
  double head() {
    const long count = row_->places.size(), depth = padded(count, 32);
    Narrow *dlogits = left2_.get(depth * net_.vocab), *h = left1_.data();
    double loss = 0;
    std::fill(dw_.begin(), dw_.end(), 0.f);
    for (long at = 0; at < count; at += CHUNK) {
      const Place* places = row_->places.data() + at;
      const long m = std::min(CHUNK, count - at), whole = padded(m, 32);
      float r[CHUNK];
      tell(places, m, r);
      for (long i = 0; i < m; i++) {
        const long line = i * net_.vocab;
        loss += cross_entropy(net_.vocab, logits_.data() + line, places[i].target, places[i].share, dlogits_.data() + line);
      }
      std::fill(dlogits_.data() + m * net_.vocab, dlogits_.data() + whole * net_.vocab, Narrow(0));
      pack_tiles(dlogits_.data(), whole, net_.vocab, net_.vocab, dlogits + at * 16, depth);
      pack(h_.data(), whole, d_, d_, h + at * 16, depth);
      backward(net_.embed, dlogits_.data(), whole, 0, d_, sums_.data());
      for (long i = 0; i < m; i++) {
        const long here = places[i].at * d_;
        normalise_back(d_, x_.data() + here, net_.last.norm.data(), r[i], sums_.data() + i * d_, dx_.data() + here, dw_.data(),
                       h_.data() + i * d_);
      }
    }
    weight_gradient(dlogits, h, depth, net_.embed);
    add_norm(dw_, net_.last);
    return loss;
  }
};

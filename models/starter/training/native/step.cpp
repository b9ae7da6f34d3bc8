// Computes loss and gradients of a batch on CPU cores, several times faster than PyTorch's own operators at these
// sizes. Each thread takes one row at a time (row.h) and computes no pair of tokens that the tree hides (attention.h).
// check_native.py compares the results with model.py.
#include <torch/extension.h>

#include <atomic>
#include <thread>

#include "row.h"

using at::Tensor;

static const float* floats(const Tensor& t) { return t.data_ptr<float>(); }
static const long* longs(const Tensor& t) { return t.data_ptr<long>(); }

class Step {
 public:
  Step(long heads, long kv_heads, double eps, Tensor cos, Tensor sin, long threads)
      : cos_(cos), sin_(sin), workers_(threads) {
    net_.heads = heads;
    net_.kv_heads = kv_heads;
    net_.eps = eps;
    net_.cos = floats(cos_);
    net_.sin = floats(sin_);
    ask_for_tiles();
  }

  // parameters: the groups [embed, last norm, then for each layer norm1, qkv, o, norm2, gate_up, down], each one or several
  // matrices, `rounded` to 4 bits before use or not; gradients: a tensor a group, set. Of the branches' tokens `part` goes back, drawn
  // by `seed` (drawn.h). Returns the loss: the sum of share * cross-entropy.
  double run(const std::vector<std::vector<Tensor>>& parameters, const std::vector<Tensor>& gradients, const Tensor& tokens,
             const Tensor& positions, const Tensor& context, const Tensor& branch, const Tensor& rooted, const Tensor& index,
             const Tensor& target, const Tensor& share, bool rounded, double part, unsigned long seed) {
    pybind11::gil_scoped_release release;
    const std::vector<Weight*> weights = prepare(gradients);
    net_.table = floats(parameters[0][0]);
    each(weights.size(), [&](long i, auto&) {
      long first = 0;
      for (auto& p : parameters[i]) {
        weights[i]->set(floats(p), first, p.size(0), rounded);
        first += p.size(0);
      }
      std::memset(weights[i]->gradient, 0, gradients[i].nbytes());
    });

    const long rows = tokens.size(0), n = tokens.size(1);
    if (n != length_) workers_ = std::vector<std::unique_ptr<Worker>>(workers_.size());
    length_ = n;
    std::vector<RowOfBatch> batch(rows);
    for (long i = 0; i < rows; i++) {
      const long at = i * n;
      batch[i] = {{longs(tokens) + at, longs(tokens) + at + n}, {longs(positions) + at, longs(positions) + at + n},
                  segments(n, longs(context) + at, longs(branch) + at, rooted.data_ptr<bool>() + at), {}};
    }
    for (long i = 0; i < index.numel(); i++) {
      const long place = longs(index)[i];
      batch[place / n].places.push_back({place % n, longs(target)[i], LOSS_SCALE * floats(share)[i]});
    }
    std::vector<double> loss(rows);
    each(rows, [&](long i, auto& worker) {
      if (!worker) worker = std::make_unique<Worker>(net_, n);
      std::mt19937_64 chance(seed + i);
      loss[i] = worker->run(batch[i], part, chance);
    });
    if constexpr (LOSS_SCALE != 1)
      each(weights.size(), [&](long i, auto&) {
        float* g = weights[i]->gradient;
        for (long j = 0; j < gradients[i].numel(); j += 16) store(g + j, load(g + j) / LOSS_SCALE);
      });
    double total = 0;
    for (double l : loss) total += l;
    return total / LOSS_SCALE;
  }

 private:
  Network net_;
  Tensor cos_, sin_;
  std::vector<std::unique_ptr<Worker>> workers_;
  long length_ = 0;

  std::vector<Weight*> prepare(const std::vector<Tensor>& gradients) {
    if (net_.layers.empty()) net_.layers = std::vector<Layer>((gradients.size() - 2) / 6);
    std::vector<Weight*> all{&net_.embed, &net_.last};
    for (auto& l : net_.layers) all.insert(all.end(), {&l.norm1, &l.qkv, &l.o, &l.norm2, &l.gate_up, &l.down});
    for (size_t i = 0; i < all.size(); i++) {
      all[i]->out = gradients[i].size(0);
      all[i]->in = gradients[i].dim() == 2 ? gradients[i].size(1) : 0;
      all[i]->gradient = gradients[i].data_ptr<float>();
    }
    net_.vocab = net_.embed.out;
    net_.width = net_.embed.in;
    net_.mlp = net_.layers[0].down.in;
    return all;
  }

  // Calls f(i, worker) for each i below count, on all threads.
  template <class F>
  void each(long count, F f) {
    std::atomic<long> waiting{0};
    std::vector<std::thread> threads;
    for (auto& worker : workers_)
      threads.emplace_back([&] {
        for (long i; (i = waiting++) < count;) f(i, worker);
      });
    for (auto& t : threads) t.join();
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  pybind11::class_<Step>(m, "Step", pybind11::module_local())  // one module a head_dim
      .def(pybind11::init<long, long, double, Tensor, Tensor, long>())
      .def("run", &Step::run);
}

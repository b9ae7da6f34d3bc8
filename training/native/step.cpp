// Loss and gradients of a batch on CPU cores, several times faster than PyTorch's own operators at this width: each thread takes
// a row at a time (row.h) and computes no pair of tokens that the tree hides (attention.h). check_native.py compares with model.py.
#include <atomic>
#include <thread>

#include "row.h"

// weights and gradients: [embed, last norm, then for each layer qkv, o, gate_up, down, norm1, norm2]; gradients one such list a
// thread, fp32, added to. Returns the loss: the sum of share * cross-entropy.
double step(const std::vector<Tensor>& weights, const std::vector<std::vector<Tensor>>& gradients, long heads, double eps,
            const Tensor& cos, const Tensor& sin, const Tensor& tokens, const Tensor& positions, const Tensor& context,
            const Tensor& branch, const Tensor& rooted, const Tensor& index, const Tensor& target, const Tensor& share) {
  const long layers = (weights.size() - 2) / 6, rows = tokens.size(0), n = tokens.size(1);
  Network net{layers, heads, weights[0].size(1), weights[5].size(1), float(eps), weights[0], weights[1],
              {}, {}, {}, {}, {}, {}, f(cos), f(sin)};
  TORCH_CHECK(net.width == heads * WIDTH, "heads must have ", WIDTH, " channels and fill the width");
  const auto each = [layers](const std::vector<Tensor>& from, auto& to) {
    for (long l = 0; l < layers; l++) {
      std::vector<Tensor>* lists[] = {&to.qkv, &to.o, &to.gate_up, &to.down, &to.norm1, &to.norm2};
      for (int i = 0; i < 6; i++) lists[i]->push_back(from[2 + 6 * l + i]);
    }
  };
  each(weights, net);
  std::vector<std::vector<long>> chosen(rows), next(rows);
  std::vector<std::vector<float>> weight(rows);
  for (long i = 0; i < index.numel(); i++) {
    const long place = index.data_ptr<long>()[i], row = place / n;
    chosen[row].push_back(place % n);
    next[row].push_back(target.data_ptr<long>()[i]);
    weight[row].push_back(f(share)[i]);
  }
  std::atomic<long> waiting{0};
  std::vector<double> loss(gradients.size(), 0);
  const auto work = [&](size_t thread) {
    at::set_num_threads(1);
    c10::InferenceMode quick;
    Gradients g{gradients[thread][0], gradients[thread][1], {}, {}, {}, {}, {}, {}};
    each(gradients[thread], g);
    for (long row; (row = waiting++) < rows;) {
      const long at = row * n;
      Row one(net, n, tokens.data_ptr<long>() + at, positions.data_ptr<long>() + at,
              segments(n, context.data_ptr<long>() + at, branch.data_ptr<long>() + at, rooted.data_ptr<bool>() + at));
      loss[thread] += one.run(chosen[row], next[row], weight[row], g);
    }
  };
  pybind11::gil_scoped_release release;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < gradients.size(); t++) threads.emplace_back(work, t);
  double total = 0;
  for (size_t t = 0; t < gradients.size(); t++) {
    threads[t].join();
    total += loss[t];
  }
  return total;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("step", &step); }

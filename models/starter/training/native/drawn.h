// Chooses the branches of a row for which gradients are computed. Branches that the model already predicts teach it
// next to nothing, and the backward pass is two thirds of the work. So branches are drawn, with higher probability the
// more there is to learn from them, and are weighted by the inverse of their probability: on average the gradient is
// that of the whole row (importance sampling: Katharopoulos and Fleuret 2018, eq. 3).
#pragma once
#include <cmath>
#include <random>

#include "tiles.h"
#include "tree.h"

struct Place {
  long at, target;  // a token in the row, and the one to be told behind it
  float share;      // of the loss
};

// Tokens and positions have the length of the row, a multiple of 32.
struct RowOfBatch {
  std::vector<long> tokens, positions;
  std::vector<Segment> tree;
  std::vector<Place> places;
};

struct Drawn {
  RowOfBatch row;
  std::vector<Range> runs;  // where its tokens were
};

// Returns the probability of each segment: 1 for segments that others see; for branches such that on average `part` of
// their tokens is drawn, as far as there is something to learn. `missing`: for each place, the probability that the
// prediction lacks, which is about the size of its gradient.
inline std::vector<double> probabilities(const RowOfBatch& row, const std::vector<float>& missing, double part) {
  const size_t count = row.tree.size();
  std::vector<size_t> owner(row.tokens.size());
  for (size_t s = 0; s < count; s++) std::fill(owner.begin() + row.tree[s].own.begin, owner.begin() + row.tree[s].own.end, s);
  std::vector<double> worth(count), p(count, 1);
  for (size_t i = 0; i < missing.size(); i++) worth[owner[row.places[i].at]] += double(missing[i]) * missing[i];
  double all = 0;
  for (size_t s = 0; s < count; s++) {
    const auto& segment = row.tree[s];
    if (!segment.branch) continue;
    all += segment.own.size();
    worth[s] = std::sqrt(worth[s] / segment.own.size());  // for its cost
  }
  const auto tokens = [&](double scale) {
    double sum = 0;
    for (size_t s = 0; s < count; s++)
      if (row.tree[s].branch) sum += row.tree[s].own.size() * (p[s] = std::min(1., scale * worth[s]));
    return sum;
  };
  double low = 0, high = 1;
  while (tokens(high) < part * all && high < 1e30) high *= 2;
  for (int i = 0; i < 40; i++) (tokens((low + high) / 2) < part * all ? low : high) = (low + high) / 2;
  tokens(high);
  return p;
}

inline Drawn draw(const RowOfBatch& row, const std::vector<float>& missing, double part, std::mt19937_64& chance) {
  const auto p = probabilities(row, missing, part);
  // Systematic sampling: a segment is drawn where the running sum of probabilities passes a whole number, so that each
  // draw has about the same number of segments.
  double sum = std::uniform_real_distribution<double>()(chance);
  Drawn out;
  long size = 0;
  std::vector<long> now(row.tokens.size(), -1);  // where a token of the row is among those drawn
  std::vector<double> weight(row.tokens.size());
  for (size_t s = 0; s < p.size(); s++) {
    const auto& segment = row.tree[s];
    const double before = std::floor(sum);
    if (std::floor(sum += p[s]) == before) continue;
    for (long i = segment.own.begin; i < segment.own.end; i++) {
      now[i] = size++;
      weight[i] = 1 / p[s];
      out.row.tokens.push_back(row.tokens[i]);
      out.row.positions.push_back(row.positions[i]);
    }
    const auto moved = [&](Range r) { return Range{now[r.begin], now[r.begin] + r.size()}; };
    Segment here{moved(segment.own), {}, segment.branch};
    for (auto r : segment.earlier) here.earlier.push_back(moved(r));
    out.row.tree.push_back(here);
    out.runs.push_back(segment.own);
  }
  for (auto place : row.places) {
    if (now[place.at] < 0) continue;
    place.share *= weight[place.at];
    place.at = now[place.at];
    out.row.places.push_back(place);
  }
  out.row.tokens.resize(padded(size, 32));
  out.row.positions.resize(padded(size, 32));
  return out;
}

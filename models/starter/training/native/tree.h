// Describes which tokens of a row of `packing.py` see each other: a token sees the root, its own context and its own
// branch (`tree_mask`), each a run of adjacent tokens.
#pragma once
#include <vector>

struct Range {
  long begin, end;
  long size() const { return end - begin; }
};

// Adjacent tokens that see the same earlier runs and, among themselves, only earlier tokens.
struct Segment {
  Range own;
  std::vector<Range> earlier;
  bool branch;  // behind a context: nothing sees it but itself

  template <class F>
  void each(F f) const {
    for (auto r : earlier) f(r);
    f(own);
  }
  long keys() const {
    long n = 0;
    each([&](Range r) { n += r.size(); });
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
      Segment s{{i, end}, {}, context[i] > 0 && branch[i] > 0};
      if (context[i] == 0) {
        root = s.own;
      } else {
        if (rooted[i] && root.size()) s.earlier.push_back(root);
        if (branch[i] == 0) shared = s.own;
        else s.earlier.push_back(shared);
      }
      out.push_back(s);
    }
    i = end;
  }
  return out;
}

#include "models/fit/simplex_search.h"

#include <algorithm>
#include <cmath>

namespace spillway::models::fit {
namespace {

struct Vertex {
  std::vector<double> at;
  double loss = 0;
};

class Simplex {
 public:
  Simplex(std::span<const Bounded> box, const std::function<double(std::span<const double>)>& loss)
      : box_(box), loss_(loss) {}

  [[nodiscard]] std::vector<double> inside(const std::vector<double>& free) const {
    std::vector<double> point(box_.size());
    for (std::size_t i = 0; i < box_.size(); ++i)
      point[i] = box_[i].low + (box_[i].high - box_[i].low) / (1 + std::exp(-free[i]));
    return point;
  }
  [[nodiscard]] std::vector<double> start() const {
    std::vector<double> free(box_.size());
    for (std::size_t i = 0; i < box_.size(); ++i) {
      const double share = std::clamp((box_[i].start - box_[i].low) / (box_[i].high - box_[i].low), 1e-4, 1 - 1e-4);
      free[i] = std::log(share / (1 - share));
    }
    return free;
  }
  std::vector<double> descend(const std::vector<double>& from, int evaluations);

 private:
  Vertex vertex(std::vector<double> free) {
    const std::vector<double> point = inside(free);
    ++spent_;
    return {std::move(free), loss_(point)};
  }
  // centroid + factor (centroid - worst)
  Vertex beyond(const std::vector<double>& centroid, const Vertex& worst, double factor) {
    std::vector<double> free(centroid.size());
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = centroid[i] + factor * (centroid[i] - worst.at[i]);
    return vertex(std::move(free));
  }
  void shrink(std::vector<Vertex>& corners, double factor);

  std::span<const Bounded> box_;
  const std::function<double(std::span<const double>)>& loss_;
  int spent_ = 0;
};

void Simplex::shrink(std::vector<Vertex>& corners, double factor) {
  for (std::size_t c = 1; c < corners.size(); ++c) {
    std::vector<double> free = corners[c].at;
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = corners[0].at[i] + factor * (free[i] - corners[0].at[i]);
    corners[c] = vertex(std::move(free));
  }
}

std::vector<double> Simplex::descend(const std::vector<double>& from, int evaluations) {
  const std::size_t n = from.size();
  const auto size = static_cast<double>(n);
  const double expand = 1 + 2 / size, contract = 0.75 - 0.5 / size, reduce = 1 - 1 / size;
  spent_ = 0;
  std::vector<Vertex> corners{vertex(from)};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> free = from;
    free[i] += 0.5;
    corners.push_back(vertex(std::move(free)));
  }
  const auto by_loss = [](const Vertex& left, const Vertex& right) { return left.loss < right.loss; };
  while (spent_ < evaluations) {
    std::stable_sort(corners.begin(), corners.end(), by_loss);
    std::vector<double> centroid(n, 0.0);
    for (std::size_t c = 0; c < n; ++c)
      for (std::size_t i = 0; i < n; ++i) centroid[i] += corners[c].at[i] / size;
    Vertex& worst = corners[n];
    Vertex reflected = beyond(centroid, worst, 1);
    if (reflected.loss < corners[0].loss) {
      Vertex expanded = beyond(centroid, worst, expand);
      worst = expanded.loss < reflected.loss ? std::move(expanded) : std::move(reflected);
    } else if (reflected.loss < corners[n - 1].loss) {
      worst = std::move(reflected);
    } else {
      const bool outside = reflected.loss < worst.loss;
      Vertex contracted = beyond(centroid, worst, outside ? contract : -contract);
      if (contracted.loss < (outside ? reflected.loss : worst.loss)) {
        worst = std::move(contracted);
      } else {
        shrink(corners, std::max(reduce, 0.5));
      }
    }
  }
  return std::min_element(corners.begin(), corners.end(), by_loss)->at;
}

}  // namespace

std::vector<double> simplex_search(std::span<const Bounded> box,
                                   const std::function<double(std::span<const double>)>& loss, int evaluations,
                                   int restarts) {
  Simplex simplex(box, loss);
  std::vector<double> free = simplex.start();
  for (int i = 0; i < restarts; ++i) free = simplex.descend(free, evaluations);
  return simplex.inside(free);
}

}  // namespace spillway::models::fit

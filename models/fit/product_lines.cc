#include "models/fit/product_lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <Eigen/Cholesky>

#include "base/quantile.h"
#include "models/fit/gemm_rows.h"

namespace spillway::models::fit {
namespace {

constexpr double shared = 0.4, length = 0.7;  // octaves of k
constexpr double noise = 0.02;                // of one measurement against another day's
constexpr double median_of_sigma = 0.6745, least_sigma = 1e-3;
constexpr double class_points = 4;     // that a line's class weighs as much as, in how far its residuals lie apart
constexpr double most_sigmas = 3;      // an outlier counts as so many
constexpr double tail = 2;             // octaves beyond which nothing is left of a point
constexpr double least_change = 2e-3;  // a line that changes less is left out

struct Residual {
  double octave = 0, value = 0;
  std::size_t product_class = 0;
};
using Sides = std::pair<std::int64_t, std::int64_t>;
using Sigmas = std::array<double, product_class_count>;  // noise included

double covariance(double octaves) { return shared * std::exp(-octaves * octaves / (2 * length * length)); }

Sigmas sigmas_of(const std::map<Sides, std::vector<Residual>>& lines) {
  std::array<std::vector<double>, product_class_count> sizes;
  for (const auto& [sides, line] : lines)
    for (const Residual& residual : line) sizes[residual.product_class].push_back(std::abs(residual.value));
  Sigmas sigmas{};
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c].empty()) continue;
    sigmas[c] = quantile(sizes[c], 0.5) / median_of_sigma;
  }
  return sigmas;
}

// Of one line without the noise: residuals of most lines are small and those of some large, so each line has its own,
// shrunk towards that of its class.
Sigmas sigmas_of_line(const std::vector<Residual>& line, const Sigmas& of_class) {
  Sigmas sigmas{};
  for (std::size_t c = 0; c < sigmas.size(); ++c) {
    double squares = class_points * of_class[c] * of_class[c], count = class_points;
    for (const Residual& residual : line) {
      if (residual.product_class != c) continue;
      squares += residual.value * residual.value;
      ++count;
    }
    sigmas[c] = std::sqrt(std::max(squares / count - noise * noise, least_sigma * least_sigma));
  }
  return sigmas;
}

// Points of the smoothed line: where something was measured, half way between, and where nothing is left of it.
std::vector<double> octaves_of(const std::vector<Residual>& line) {
  std::vector<double> octaves = {line.front().octave - tail};
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0) octaves.push_back((line[i - 1].octave + line[i].octave) / 2);
    octaves.push_back(line[i].octave);
  }
  octaves.push_back(line.back().octave + tail);
  return octaves;
}

Curve smoothed(std::vector<Residual> line, const Sigmas& of_class) {
  const Sigmas sigmas = sigmas_of_line(line, of_class);
  std::sort(line.begin(), line.end(), [](const Residual& a, const Residual& b) { return a.octave < b.octave; });
  const auto count = static_cast<Eigen::Index>(line.size());
  Eigen::MatrixXd matrix(count, count);
  Eigen::VectorXd values(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Residual& one = line[static_cast<std::size_t>(i)];
    const double sigma = sigmas[one.product_class], most = most_sigmas * std::hypot(sigma, noise);
    values[i] = std::clamp(one.value, -most, most);
    for (Eigen::Index j = 0; j < count; ++j) {
      const Residual& other = line[static_cast<std::size_t>(j)];
      matrix(i, j) = sigma * sigmas[other.product_class] * covariance(one.octave - other.octave);
    }
    matrix(i, i) += sigma * sigma * (1 - shared) + noise * noise;
  }
  const Eigen::VectorXd weights = matrix.ldlt().solve(values);
  std::vector<CurvePoint> points;
  for (const double octave : octaves_of(line)) {
    double value = 0;
    const auto near = std::min_element(line.begin(), line.end(), [&](const Residual& a, const Residual& b) {
      return std::abs(a.octave - octave) < std::abs(b.octave - octave);
    });
    for (Eigen::Index j = 0; j < count; ++j) {
      const Residual& other = line[static_cast<std::size_t>(j)];
      value +=
          weights[j] * sigmas[near->product_class] * sigmas[other.product_class] * covariance(octave - other.octave);
    }
    points.push_back(
        {std::exp2(octave), octave < line.front().octave || octave > line.back().octave ? 1 : std::exp(value)});
  }
  return Curve(std::move(points), Curve::Scale::log);
}

}  // namespace

std::vector<ProductLine> fit_product_lines(const std::vector<GpuPoint>& points, const PointTimes& times,
                                           const std::array<bool, product_class_count>& allowed,
                                           std::uint64_t left_out_fold, const Origin& origin) {
  std::map<Sides, std::vector<Residual>> lines;
  for (const GpuPoint& point : points) {
    if (point.kind != PointKind::product || point.precision != Precision::bf16 ||
        fold_of(point.m, point.n, point.k) == left_out_fold || !allowed[product_class(point)])
      continue;
    const std::optional<double> predicted = times.seconds(point);
    if (predicted)
      lines[{point.m, point.n}].push_back(
          {std::log2(static_cast<double>(point.k)), std::log(point.value.median / *predicted), product_class(point)});
  }
  const Sigmas sigmas = sigmas_of(lines);
  std::vector<ProductLine> fitted;
  for (const auto& [sides, line] : lines) {
    Curve curve = smoothed(line, sigmas);
    const bool changes = std::any_of(curve.points().begin(), curve.points().end(),
                                     [](const CurvePoint& point) { return std::abs(point.y - 1) >= least_change; });
    if (changes) fitted.push_back({Precision::bf16, sides.first, sides.second, std::move(curve), origin});
  }
  return fitted;
}

}  // namespace spillway::models::fit

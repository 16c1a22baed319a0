#include "hwprofiles/curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

void require(bool sound, std::size_t point, const char* cause) {
  if (!sound)
    throw InputError("", "point " + std::to_string(point), cause, "give finite points with strictly rising x");
}

double fraction_between(double low, double high, double x, Curve::Scale scale) {
  if (scale == Curve::Scale::linear) return (x - low) / (high - low);
  return std::log(x / low) / std::log(high / low);
}

}  // namespace

Curve::Curve(std::vector<CurvePoint> points, Scale scale) : points_(std::move(points)), scale_(scale) {
  require(!points_.empty(), 0, "a curve needs at least one point");
  for (std::size_t i = 0; i < points_.size(); ++i) {
    require(std::isfinite(points_[i].x) && std::isfinite(points_[i].y), i, "not a finite number");
    require(points_[i].y >= 0, i, "y is negative");
    require(scale_ == Scale::linear || points_[i].x > 0, i, "x must be above 0 on a logarithmic axis");
    require(i == 0 || points_[i].x > points_[i - 1].x, i, "x does not rise");
  }
}

CurveValue Curve::at(double x) const {
  SPILLWAY_ASSERT(!points_.empty());
  if (!(x >= points_.front().x)) return {points_.front().y, true};
  if (x >= points_.back().x) return {points_.back().y, x > points_.back().x};
  const auto above = std::upper_bound(points_.begin(), points_.end(), x,
                                      [](double value, const CurvePoint& point) { return value < point.x; });
  const CurvePoint& low = *(above - 1);
  return {low.y + (above->y - low.y) * fraction_between(low.x, above->x, x, scale_), false};
}

void Curve::scale_y(double factor) {
  SPILLWAY_ASSERT(std::isfinite(factor) && factor > 0);
  for (CurvePoint& point : points_) point.y *= factor;
}

CurveFamily::CurveFamily(std::vector<Member> members) : members_(std::move(members)) {
  require(!members_.empty(), 0, "a family of curves needs at least one member");
  for (std::size_t i = 0; i < members_.size(); ++i) {
    require(std::isfinite(members_[i].parameter) && members_[i].parameter > 0, i, "the parameter must be above 0");
    require(i == 0 || members_[i].parameter > members_[i - 1].parameter, i, "the parameter does not rise");
    require(!members_[i].curve.empty(), i, "a member has no points");
  }
}

CurveValue CurveFamily::at(double parameter, double x) const {
  SPILLWAY_ASSERT(!members_.empty());
  const auto above = std::upper_bound(members_.begin(), members_.end(), parameter,
                                      [](double value, const Member& member) { return value < member.parameter; });
  if (above == members_.begin()) return {members_.front().curve.at(x).value, true};
  const CurveValue low = (above - 1)->curve.at(x);
  const double low_parameter = (above - 1)->parameter;
  if (above == members_.end()) return {low.value, low.extrapolated || parameter > low_parameter};
  if (parameter <= low_parameter) return low;
  const CurveValue high = above->curve.at(x);
  const double share = fraction_between(low_parameter, above->parameter, parameter, Curve::Scale::log);
  return {low.value + (high.value - low.value) * share, low.extrapolated || high.extrapolated};
}

void CurveFamily::scale_y(double factor) {
  for (Member& member : members_) member.curve.scale_y(factor);
}

}  // namespace spillway::hwprofiles

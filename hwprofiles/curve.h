// Measured efficiencies as tables: points with rising x, interpolated in between, clamped outside.
//
// Between two points y is linear in x, or in log(x) for Scale::log (sizes and flop counts span
// decades). Outside the table the nearest end holds and the answer says that it was extrapolated.
// A CurveFamily adds a second axis (queue depth, group size): linear in the log of that parameter
// between its two neighbouring curves.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace spillway::hwprofiles {

struct CurvePoint {
  double x = 0, y = 0;
};

struct CurveValue {
  double value = 0;
  bool extrapolated = false;  // x (or the parameter) lay outside the table
};

class Curve {
 public:
  enum class Scale { linear, log };

  Curve() = default;
  // Throws InputError (no file, place "point N") unless there is a point, x rises strictly, x > 0
  // for Scale::log, and every number is finite and y is not negative.
  Curve(std::vector<CurvePoint> points, Scale scale);

  // O(log points). Precondition: not empty.
  [[nodiscard]] CurveValue at(double x) const;
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::span<const CurvePoint> points() const { return points_; }
  [[nodiscard]] Scale scale() const { return scale_; }
  // Multiplies every y by a positive finite factor.
  void scale_y(double factor);

 private:
  std::vector<CurvePoint> points_;
  Scale scale_ = Scale::log;
};

// One curve per value of a second parameter, rising strictly and positive.
class CurveFamily {
 public:
  struct Member {
    double parameter = 0;
    Curve curve;
  };

  CurveFamily() = default;
  // Throws InputError as Curve does.
  explicit CurveFamily(std::vector<Member> members);

  // O(log members + log points). Precondition: not empty.
  [[nodiscard]] CurveValue at(double parameter, double x) const;
  [[nodiscard]] bool empty() const { return members_.empty(); }
  [[nodiscard]] std::span<const Member> members() const { return members_; }
  void scale_y(double factor);

 private:
  std::vector<Member> members_;
};

}  // namespace spillway::hwprofiles

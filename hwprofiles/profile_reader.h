// Reads what profiles have beyond plain fields: numbers with a unit and an origin, curves. Internal to this floor.
#pragma once

#include <string>
#include <vector>

#include "base/field_reader.h"
#include "hwprofiles/fields.h"
#include "hwprofiles/profile_base.h"

namespace spillway::hwprofiles {

class ProfileReader final : public ProfileVisitor, public FieldReader {
 public:
  // `homes`: provenance, source and date of values that give none of their own.
  ProfileReader(const Json& object, const ValueHomes& homes, std::vector<FieldProblem>& problems);

  void quantity(const FieldInfo& info, Leaf& leaf) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;

 private:
  Origin origin_of(const Json& object, const std::string& place);
  // The value in base units; problems are recorded and false returned.
  bool measured(const Json& leaf, const FieldInfo& info, const std::string& place, double& value, Origin& origin);
  bool in_range(double value, const FieldInfo& info, const std::string& place);
  struct Axes {
    double x = 1, y = 1;
    Curve::Scale scale = Curve::Scale::log;
  };
  bool axes(const Json& object, const FieldInfo& y, Dimension x, const std::string& place, Axes& axes);
  bool points(const Json& object, const FieldInfo& y, const Axes& axes, const std::string& place, Curve& curve);

  const ValueHomes& homes_;
};

}  // namespace spillway::hwprofiles

// Lists the leaves of a noun as text. Internal to this floor.
#pragma once

#include <vector>

#include "base/field_path.h"
#include "hwprofiles/fields.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

class LeafLister final : public ProfileVisitor, public PathVisitor {
 public:
  // `every_point`: curves as all their points (to compare), else as a summary (to show).
  explicit LeafLister(bool every_point) : every_point_(every_point) {}
  std::vector<ProfileLeaf> take() { return std::move(leaves_); }

  void text(const FieldInfo& info, std::optional<std::string>& value) override;
  void flag(const FieldInfo& info, std::optional<bool>& value) override;
  void word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) override;
  void quantity(const FieldInfo& info, Leaf& leaf) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;

 private:
  bool every_point_;
  std::vector<ProfileLeaf> leaves_;
};

}  // namespace spillway::hwprofiles

// Lists the leaves of a noun as text. Internal to this floor.
#pragma once

#include <vector>

#include "hwprofiles/path_fields.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

class LeafLister final : public PathVisitor {
 public:
  // `every_point`: curves as all their points (to compare), else as a summary (to show).
  explicit LeafLister(bool every_point) : every_point_(every_point) {}
  std::vector<ProfileLeaf> take() { return std::move(leaves_); }

  void text(std::string_view key, std::string& value, bool required) override;
  void flag(std::string_view key, bool& value) override;
  void choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) override;
  void number(const FieldInfo& info, Leaf& leaf) override;
  void integer(const FieldInfo& info, std::int64_t& value) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;

 private:
  bool every_point_;
  std::vector<ProfileLeaf> leaves_;
};

}  // namespace spillway::hwprofiles

#include "hwprofiles/profile_leaves.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::hwprofiles {
namespace {

std::string print_curve(const Curve& curve, const FieldInfo& y, Dimension x, bool every_point) {
  if (every_point) {
    std::string text;
    for (const CurvePoint& point : curve.points()) text += fmt::format("{:.17g}:{:.17g} ", point.x, point.y);
    return text;
  }
  const auto by_y = [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; };
  const auto [low, high] = std::minmax_element(curve.points().begin(), curve.points().end(), by_y);
  const auto word = [](double value, Dimension dimension) {
    const PrintedQuantity printed = print_quantity(value, dimension);
    return printed.value + (printed.unit.empty() ? "" : " " + printed.unit);
  };
  return fmt::format("{} points, {} to {} at {} to {}", curve.points().size(), word(low->y, y.dimension),
                     word(high->y, y.dimension), word(curve.points().front().x, x), word(curve.points().back().x, x));
}

}  // namespace

void LeafLister::text(std::string_view key, std::string& value, bool) {
  if (!value.empty()) leaves_.push_back({path_of(key), value, "", {}});
}

void LeafLister::flag(std::string_view key, bool& value) {
  leaves_.push_back({path_of(key), value ? "true" : "false", "", {}});
}

void LeafLister::choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) {
  leaves_.push_back({path_of(key), names[index], "", {}});
}

void LeafLister::number(const FieldInfo& info, Leaf& leaf) {
  if (!leaf.present()) return;
  PrintedQuantity printed = print_quantity(leaf.value(), info.dimension);
  leaves_.push_back({path_of(info.key), std::move(printed.value), std::move(printed.unit), leaf.origin()});
}

void LeafLister::integer(const FieldInfo& info, std::int64_t& value) {
  leaves_.push_back({path_of(info.key), std::to_string(value), "", {}});
}

void LeafLister::curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) {
  if (curve) leaves_.push_back({path_of(y.key), print_curve(curve->value, y, x, every_point_), "", curve->origin});
}

void LeafLister::family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) {
  if (!family) return;
  for (const CurveFamily::Member& member : family->value.members()) {
    leaves_.push_back({fmt::format("{}[{}={}]", path_of(y.key), parameter, member.parameter),
                       print_curve(member.curve, y, x, every_point_), "", family->origin});
  }
}

std::vector<ProfileLeaf> leaves_of(const HardwareProfile& profile) {
  HardwareProfile copy = profile;  // visitors may change what they visit; this one does not
  LeafLister lister(false);
  describe(copy, lister);
  return lister.take();
}

}  // namespace spillway::hwprofiles

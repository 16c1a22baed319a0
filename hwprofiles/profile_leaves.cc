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

void LeafLister::text(const FieldInfo& info, std::optional<std::string>& value) {
  if (value) leaves_.push_back({path_of(info.key), *value, "", {}});
}

void LeafLister::flag(const FieldInfo& info, std::optional<bool>& value) {
  if (value) leaves_.push_back({path_of(info.key), *value ? "true" : "false", "", {}});
}

void LeafLister::word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) {
  if (place) leaves_.push_back({path_of(info.key), std::string(words[*place].name), "", {}});
}

void LeafLister::quantity(const FieldInfo& info, Leaf& leaf) {
  if (!leaf.present()) return;
  if (leaf.origin() == nullptr)
    return leaves_.push_back({path_of(info.key), std::to_string(std::llround(leaf.value())), "", {}});
  PrintedQuantity printed = print_quantity(leaf.value(), info.dimension);
  leaves_.push_back({path_of(info.key), std::move(printed.value), std::move(printed.unit), *leaf.origin()});
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

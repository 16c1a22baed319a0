#include "hwprofiles/profile_writer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/field_writer.h"
#include "hwprofiles/fields.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {
namespace {

using Json = nlohmann::ordered_json;

Json rounded(double value, int digits = 9) {
  const double short_one = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
  if (short_one == std::floor(short_one) && std::abs(short_one) < 1e15) return static_cast<std::int64_t>(short_one);
  return short_one;
}

// Both axes in base units: B, B/s, none.
std::string base_unit(Dimension dimension) {
  for (const std::string& unit : units_of(dimension))
    if (unit_factor(dimension, unit) == 1) return unit;
  return "";
}

Json axes(const FieldInfo& y, Dimension x, Curve::Scale scale) {
  return {{"x_unit", base_unit(x)},
          {"unit", base_unit(y.dimension)},
          {"scale", scale == Curve::Scale::log ? "log" : "linear"}};
}

Json points(const Curve& curve) {
  Json list = Json::array();
  for (const CurvePoint& point : curve.points()) list.push_back(Json::array({rounded(point.x), rounded(point.y)}));
  return list;
}

class ProfileWriter final : public ProfileVisitor, public FieldWriter {
 public:
  // `origin`: of the document; leaves tell where theirs differs.
  ProfileWriter(Json head, const Origin& origin) : FieldWriter(std::move(head)), origin_(origin) {}

  void quantity(const FieldInfo& info, Leaf& leaf) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;

 private:
  void add_origin(Json& item, const Origin& origin) const;
  Origin origin_;
};

void ProfileWriter::add_origin(Json& item, const Origin& origin) const {
  if (origin.provenance != origin_.provenance) item["provenance"] = provenance_name(origin.provenance);
  if (origin.source != origin_.source) item["source"] = origin.source;
  if (origin.date != origin_.date) item["date"] = origin.date;
  if (origin.spread > 0) item["spread"] = std::strtod(fmt::format("{:.3g}", origin.spread).c_str(), nullptr);
}

void ProfileWriter::quantity(const FieldInfo& info, Leaf& leaf) {
  if (!leaf.present()) return;
  if (leaf.origin() == nullptr) {
    at(info) = rounded(leaf.value(), 15);
    return;
  }
  const std::string unit = print_quantity(leaf.value(), info.dimension).unit;
  const int digits = info.dimension == Dimension::bytes ? 15 : 9;  // sizes are exact
  Json item = {{"value", rounded(leaf.value() / unit_factor(info.dimension, unit), digits)}};
  if (!unit.empty()) item["unit"] = unit;
  add_origin(item, *leaf.origin());
  at(info) = std::move(item);
}

void ProfileWriter::curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) {
  if (!curve) return;
  Json item = axes(y, x, curve->value.scale());
  item["points"] = points(curve->value);
  add_origin(item, curve->origin);
  at(y) = std::move(item);
}

void ProfileWriter::family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) {
  if (!family) return;
  Json item = axes(y, x, family->value.members().front().curve.scale());
  item["members"] = Json::array();
  for (const CurveFamily::Member& member : family->value.members())
    item["members"].push_back({{parameter, rounded(member.parameter)}, {"points", points(member.curve)}});
  add_origin(item, family->origin);
  at(y) = std::move(item);
}

Json head_of(ProfileKind kind, const std::string& name, const std::string& title, const Origin& origin) {
  Json head = {{"schema", "spillway-hardware-profile/1"},
               {"kind", profile_kind_name(kind)},
               {"name", name},
               {"title", title},
               {"provenance", provenance_name(origin.provenance)},
               {"source", origin.source}};
  if (!origin.date.empty()) head["date"] = origin.date;
  return head;
}

}  // namespace

std::string profile_text(const NvmeProfile& drive, const Origin& file_origin) {
  NvmeProfile copy = drive;  // visitors may change what they visit; this one does not
  ProfileWriter writer(head_of(ProfileKind::nvme, drive.name, drive.title, file_origin), file_origin);
  describe(copy, writer);
  return writer.text();
}

std::string profile_text(const HostProfile& host, const Origin& file_origin) {
  HostProfile copy = host;
  std::vector<std::string> parents;
  for (const PcieNode& node : host.pcie) parents.push_back(node.up ? host.pcie[*node.up].name : "");
  ProfileWriter writer(head_of(ProfileKind::host, host.name, host.title, file_origin), file_origin);
  describe(copy, parents, writer);
  return writer.text();
}

std::string profile_text(const GpuProfile& gpu, const Origin& file_origin) {
  GpuProfile copy = gpu;
  ProfileWriter writer(head_of(ProfileKind::gpu, gpu.name, gpu.title, file_origin), file_origin);
  describe(copy, writer);
  return writer.text();
}

}  // namespace spillway::hwprofiles

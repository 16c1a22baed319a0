#include "hwprofiles/profile_writer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

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

// The JSON object that JsonFieldReader would read the same fields from.
class JsonFieldWriter final : public FieldVisitor {
 public:
  JsonFieldWriter(Json head, const Origin& file_origin) : file_origin_(file_origin) {
    open_.push_back(std::move(head));
  }
  std::string text() { return open_.front().dump(2) + "\n"; }

  void text(std::string_view key, std::string& value, bool required) override {
    if (required || !value.empty()) at(key) = value;
  }
  void flag(std::string_view key, bool& value) override { at(key) = value; }
  void choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) override {
    at(key) = names[index];
  }
  void number(const FieldInfo& info, Leaf& leaf) override {
    if (!leaf.present()) return;
    const std::string unit = print_quantity(leaf.value(), info.dimension).unit;
    const int digits = info.dimension == Dimension::bytes ? 15 : 9;  // sizes are exact
    Json item = {{"value", rounded(leaf.value() / unit_factor(info.dimension, unit), digits)}};
    if (!unit.empty()) item["unit"] = unit;
    add_origin(item, leaf.origin());
    at(info.key) = std::move(item);
  }
  void integer(const FieldInfo& info, std::int64_t& value) override { at(info.key) = value; }
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override {
    if (!curve) return;
    Json item = axes(y, x, curve->value.scale());
    item["points"] = points(curve->value);
    add_origin(item, curve->origin);
    at(y.key) = std::move(item);
  }
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override {
    if (!family) return;
    Json item = axes(y, x, family->value.members().front().curve.scale());
    item["members"] = Json::array();
    for (const CurveFamily::Member& member : family->value.members())
      item["members"].push_back({{parameter, rounded(member.parameter)}, {"points", points(member.curve)}});
    add_origin(item, family->origin);
    at(y.key) = std::move(item);
  }
  bool begin_group(std::string_view key, bool) override {
    keys_.emplace_back(key);
    open_.push_back(Json::object());
    return true;
  }
  void end_group() override {
    Json done = std::move(open_.back());
    open_.pop_back();
    if (!done.empty()) open_.back()[keys_.back()] = std::move(done);
    keys_.pop_back();
  }
  std::size_t begin_list(std::string_view key, std::size_t current) override {
    keys_.emplace_back(key);
    open_.push_back(Json::array());
    return current;
  }
  void begin_element(std::size_t) override { open_.push_back(Json::object()); }
  void end_element() override {
    Json done = std::move(open_.back());
    open_.pop_back();
    open_.back().push_back(std::move(done));
  }
  void end_list() override { end_group(); }

 private:
  Json& at(std::string_view key) { return open_.back()[std::string(key)]; }

  void add_origin(Json& item, const Origin& origin) const {
    if (origin.provenance != file_origin_.provenance) item["provenance"] = provenance_name(origin.provenance);
    if (origin.source != file_origin_.source) item["source"] = origin.source;
    if (origin.date != file_origin_.date) item["date"] = origin.date;
    if (origin.spread > 0) item["spread"] = std::strtod(fmt::format("{:.3g}", origin.spread).c_str(), nullptr);
  }
  // Both axes in base units: B, B/s, none.
  static std::string base_unit(Dimension dimension) {
    for (const std::string& unit : units_of(dimension))
      if (unit_factor(dimension, unit) == 1) return unit;
    return "";
  }
  static Json axes(const FieldInfo& y, Dimension x, Curve::Scale scale) {
    return {{"x_unit", base_unit(x)},
            {"unit", base_unit(y.dimension)},
            {"scale", scale == Curve::Scale::log ? "log" : "linear"}};
  }
  static Json points(const Curve& curve) {
    Json list = Json::array();
    for (const CurvePoint& point : curve.points()) list.push_back(Json::array({rounded(point.x), rounded(point.y)}));
    return list;
  }

  Origin file_origin_;
  std::vector<Json> open_;  // the innermost last
  std::vector<std::string> keys_;
};

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
  JsonFieldWriter writer(head_of(ProfileKind::nvme, drive.name, drive.title, file_origin), file_origin);
  describe(copy, writer);
  return writer.text();
}

std::string profile_text(const HostProfile& host, const Origin& file_origin) {
  HostProfile copy = host;
  std::vector<std::string> parents;
  for (const PcieNode& node : host.pcie) parents.push_back(node.up ? host.pcie[*node.up].name : "");
  JsonFieldWriter writer(head_of(ProfileKind::host, host.name, host.title, file_origin), file_origin);
  describe(copy, parents, writer);
  return writer.text();
}

std::string profile_text(const GpuProfile& gpu, const Origin& file_origin) {
  GpuProfile copy = gpu;
  JsonFieldWriter writer(head_of(ProfileKind::gpu, gpu.name, gpu.title, file_origin), file_origin);
  describe(copy, writer);
  return writer.text();
}

}  // namespace spillway::hwprofiles

#include "hwprofiles/profile_schema.h"

#include <fmt/format.h>

#include "base/field_schema.h"
#include "hwprofiles/fields.h"

namespace spillway::hwprofiles {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "bytes";
    case Dimension::rate:
      return "rate";
    case Dimension::time:
      return "time";
    case Dimension::flop_rate:
      return "flop_rate";
    case Dimension::power:
      return "power";
    case Dimension::money:
      return "money";
    case Dimension::money_per_hour:
      return "money_per_hour";
    case Dimension::money_per_kwh:
      return "money_per_kwh";
    case Dimension::operations:
      return "operations";
    case Dimension::years:
      return "years";
    case Dimension::fraction:
      return "fraction";
    case Dimension::count:
      return "count";
    case Dimension::sequence:
      return "sequence";
    case Dimension::tokens:
      return "tokens";
    case Dimension::plain:
      return "plain";
  }
  return "plain";
}

Json units(Dimension dimension) {
  Json list = Json::array();
  for (const std::string& unit : units_of(dimension)) list.push_back(unit);
  return {{"enum", std::move(list)}};
}

Json with_origin(Json properties) {
  properties["provenance"] = {{"enum", {"measured", "datasheet", "fitted", "assumed"}},
                              {"description", "Where it comes from; without, as the document says."}};
  properties["source"] = {{"type", "string"}};
  properties["date"] = {{"type", "string"}};
  properties["spread"] = {{"type", "number"}, {"minimum", 0}};
  properties["note"] = {{"type", "string"}};
  return properties;
}

Json quantity_schema(Dimension dimension) {
  const std::vector<std::string> names = units_of(dimension);
  const bool unitless = unit_factor(dimension, "") != 0;
  Json value = {{"type", dimension == Dimension::count ? "integer" : "number"}, {"minimum", 0}};
  Json required = Json::array({"value"});
  if (!unitless) required.push_back("unit");
  Json forms = Json::array();
  forms.push_back({{"type", "object"},
                   {"properties", with_origin({{"value", value}, {"unit", units(dimension)}})},
                   {"required", std::move(required)},
                   {"additionalProperties", false}});
  std::string pattern;
  for (const std::string& name : names)
    pattern += (pattern.empty() && name.empty() ? "" : pattern.empty() ? "" : "|") + name;
  forms.push_back({{"type", "string"}, {"pattern", "^ *[0-9]*\\.?[0-9]*([eE][+-]?[0-9]+)? *(" + pattern + ") *$"}});
  if (unitless) forms.push_back(value);
  return {{"anyOf", std::move(forms)}};
}

Json points_schema() {
  return {{"type", "array"},
          {"minItems", 1},
          {"items", {{"type", "array"}, {"items", {{"type", "number"}}}, {"minItems", 2}, {"maxItems", 2}}}};
}

Json curve_schema(Dimension y, Dimension x) {
  return {{"x_unit", units(x)}, {"unit", units(y)}, {"scale", {{"enum", {"log", "linear"}}}}};
}

Json closed(Json properties, Json required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

class ProfileSchema final : public ProfileVisitor, public FieldSchema {
 public:
  void quantity(const FieldInfo& info, Leaf& leaf) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;
};

void ProfileSchema::quantity(const FieldInfo& info, Leaf& leaf) {
  const std::string name(name_of(info.dimension));
  define(name, [&] { return quantity_schema(info.dimension); });
  FieldInfo shown = info;
  shown.required = info.required || leaf.required();
  add(shown, {{"$ref", "#/$defs/" + name}});
}

void ProfileSchema::curve(const FieldInfo& y, Dimension x, Maybe<Curve>& /*curve*/) {
  const std::string name = fmt::format("{}_over_{}", name_of(y.dimension), name_of(x));
  define(name, [&] {
    Json properties = curve_schema(y.dimension, x);
    properties["points"] = points_schema();
    return closed(with_origin(std::move(properties)), Json::array({"points"}));
  });
  add(y, {{"$ref", "#/$defs/" + name}});
}

void ProfileSchema::family(const FieldInfo& y, Dimension x, std::string_view parameter,
                           Maybe<CurveFamily>& /*family*/) {
  const std::string name = fmt::format("{}_over_{}_by_{}", name_of(y.dimension), name_of(x), parameter);
  define(name, [&] {
    Json member = {{std::string(parameter), {{"type", "number"}}}, {"points", points_schema()}};
    Json properties = curve_schema(y.dimension, x);
    properties["members"] = {
        {"type", "array"}, {"minItems", 1}, {"items", closed(std::move(member), Json::array({parameter, "points"}))}};
    return closed(with_origin(std::move(properties)), Json::array({"members"}));
  });
  add(y, {{"$ref", "#/$defs/" + name}});
}

// Takes what a schema requires of its objects out of it, into a schema of its own: a profile with a base may lack it.
Json requirements_of(Json& schema) {
  Json taken = Json::object();
  for (const char* key : {"required", "minProperties"}) {
    const auto found = schema.find(key);
    if (found == schema.end()) continue;
    taken[key] = std::move(*found);
    schema.erase(key);
  }
  const auto properties = schema.find("properties");
  if (properties == schema.end()) return taken;
  Json inner = Json::object();
  for (const auto& [key, property] : properties->items())
    if (Json of_property = requirements_of(property); !of_property.empty()) inner[key] = std::move(of_property);
  if (!inner.empty()) taken["properties"] = std::move(inner);
  return taken;
}

template <class Describe>
Json schema_of(ProfileKind kind, Json& definitions, Describe describe_fields) {
  ProfileSchema schema;
  ProfileHead head;
  describe_head(head, kind, schema);
  describe_fields(schema);
  Json made = schema.take();
  definitions.update(made["$defs"]);
  made.erase("$defs");
  return made;
}

}  // namespace

std::string profile_schema() {
  Json definitions = Json::object(), kinds = Json::object();
  const auto add = [&](ProfileKind kind, auto describe_fields) {
    kinds[std::string(profile_kind_name(kind))] = schema_of(kind, definitions, describe_fields);
  };
  add(ProfileKind::gpu, [gpu = GpuProfile()](ProfileVisitor& visitor) mutable { describe(gpu, visitor); });
  add(ProfileKind::nvme, [drive = NvmeProfile()](ProfileVisitor& visitor) mutable { describe(drive, visitor); });
  add(ProfileKind::host, [host = HostProfile(), parents = std::vector<std::string>()](ProfileVisitor& visitor) mutable {
    describe(host, parents, visitor);
  });
  add(ProfileKind::network, [net = NetworkProfile()](ProfileVisitor& visitor) mutable { describe(net, visitor); });
  add(ProfileKind::system, [system = HardwareProfile(), named = SystemReferences()](ProfileVisitor& visitor) mutable {
    describe(system, named, visitor);
  });
  Json choices = Json::array(), names = Json::array(), whole = Json::object();
  for (const auto& [kind, schema] : kinds.items()) {
    names.push_back(kind);
    whole["whole_" + kind] = requirements_of(schema);
    const Json of_kind = {{"kind", {{"const", kind}}}};
    choices.push_back({{"if", {{"properties", of_kind}}}, {"then", {{"$ref", "#/$defs/" + kind}}}});
    choices.push_back({{"if", {{"properties", of_kind}, {"not", {{"required", {"base"}}}}}},
                       {"then", {{"$ref", "#/$defs/whole_" + kind}}}});
  }
  definitions.update(kinds);
  definitions.update(whole);
  const Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "spillway-hardware-profile.v1"},
      {"title", "spillway hardware profile"},
      {"description",
       "One component (gpu, nvme, host, network) or a system that names components. Every quantity may be text with a "
       "unit (\"80 GiB\") or an object that tells value, unit, provenance, source and date."},
      {"type", "object"},
      {"required", {"schema", "kind", "name", "title"}},
      {"properties", {{"kind", {{"enum", names}}}}},
      {"allOf", choices},
      {"$defs", definitions}};
  return schema.dump(2) + "\n";
}

}  // namespace spillway::hwprofiles

#include "hwprofiles/price_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/nearest_name.h"
#include "hwprofiles/profile_library.h"
#include "base/quantity.h"

namespace spillway::hwprofiles {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t largest_file = 16U << 20U;

struct Entry {
  std::string_view key, unit;
  Maybe<double> PriceList::*member;
  double least, most;
};
constexpr double endless = 1e15;
constexpr std::array conditions = {DriveCondition::as_new, DriveCondition::used, DriveCondition::discontinued};
const std::array<Entry, 7> entries = {{{"network_per_gpu", "USD", &PriceList::network_usd_per_gpu, 0, endless},
                                       {"pcie_switch", "USD", &PriceList::pcie_switch_usd, 0, endless},
                                       {"pcie_switch_lanes", "", &PriceList::pcie_switch_lanes, 17, 1024},
                                       {"electricity", "USD/kWh", &PriceList::electricity_usd_per_kwh, 0, endless},
                                       {"power_overhead", "", &PriceList::power_overhead, 1, 10},
                                       {"power_idle_share", "", &PriceList::power_idle_share, 0, 1},
                                       {"maintenance_per_year", "", &PriceList::maintenance_per_year, 0, 1}}};

class Reader {
 public:
  Reader(const std::string& path, PriceList& list, std::span<const std::string> also)
      : path_(path), list_(list), also_(also) {}

  void read() {
    const std::string text = ByteSource::open(path_, largest_file).read_all(largest_file);
    Json root;
    try {
      root = Json::parse(text);
    } catch (const nlohmann::json::exception& error) {
      throw json_error(path_, error, "correct it there");
    }
    if (!root.is_object() || root.value("schema", Json()) != "spillway-prices")
      fail("/schema", "not a price list", R"(give it "schema": "spillway-prices")");
    if (root.value("version", Json()) != 1) fail("/version", "expected version 1", "write \"version\": 1");
    std::vector<std::string> keys = {"$schema", "schema", "version", "note", "machines", "drives", "drives_per_tb"};
    for (const Entry& entry : entries) keys.emplace_back(entry.key);
    known(root, "", keys);
    list_.path = path_;
    for (const Entry& entry : entries) {
      const std::string key(entry.key);
      if (root.contains(key)) list_.*entry.member = leaf(root[key], "/" + key, entry.unit, entry.least, entry.most);
    }
    if (root.contains("machines")) read_machines(root["machines"]);
    if (root.contains("drives")) read_drives(root["drives"]);
    if (root.contains("drives_per_tb")) read_per_tb(root["drives_per_tb"]);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(path_, place, cause, remedy);
  }
  void known(const Json& object, const std::string& place, const std::vector<std::string>& keys) const {
    if (!object.is_object()) fail(place, "expected an object", "see docs/procurement.md");
    for (const auto& [key, value] : object.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(place + "/" + key, "unknown key '" + key + "'", suggest(key, keys));
  }

  // A price under a name that nothing bears would be passed over without a word.
  void named(ProfileKind kind, const std::string& place, const std::string& name) const {
    std::vector<std::string> names;
    for (const ProfileEntry& entry : ProfileLibrary::shared().list())
      if (entry.kind == kind || (kind == ProfileKind::system && entry.kind == ProfileKind::gpu))
        names.push_back(entry.name);
    for (const std::string& own : also_)
      if (std::find(names.begin(), names.end(), own) == names.end()) names.push_back(own);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(place, "no " + std::string(kind == ProfileKind::nvme ? "drive" : "system") + " profile '" + name + "'",
           suggest(name, names, "`spillway profile list` names them all"));
  }

  [[nodiscard]] Sourced<double> leaf(const Json& json, const std::string& place, std::string_view unit, double least,
                                     double most, bool has_condition = false) const {
    std::vector<std::string> keys = {"value", "unit", "provenance", "source", "date"};
    if (has_condition) keys.emplace_back("condition");
    known(json, place, keys);
    for (const char* key : {"provenance", "source", "date"})
      if (!json.contains(key) || !json[key].is_string() || json[key].get_ref<const std::string&>().empty())
        fail(place + "/" + key, "a price tells its " + std::string(key),
             R"x(such as "provenance": "assumed", "source": "offer of ...", "date": "2026-03")x");
    const std::string given = json.contains("unit") && json["unit"].is_string() ? json["unit"].get<std::string>() : "";
    if (given != unit)
      fail(place + "/unit", "'" + given + "' instead of '" + std::string(unit) + "'",
           unit.empty() ? "leave the unit out" : "give it in " + std::string(unit));
    if (!json.contains("value") || !json["value"].is_number() || !(json["value"].get<double>() >= least) ||
        !(json["value"].get<double>() <= most))
      fail(place + "/value", "expected a number from " + Json(least).dump() + " to " + Json(most).dump(),
           "correct the value");
    Sourced<double> value;
    value.value = json["value"].get<double>();
    value.origin.source = json["source"].get<std::string>();
    value.origin.date = json["date"].get<std::string>();
    const std::string provenance = json["provenance"].get<std::string>();
    for (const OriginKind kind : {OriginKind::measured, OriginKind::datasheet, OriginKind::fitted, OriginKind::assumed})
      if (provenance_name(kind) == provenance) {
        value.origin.provenance = kind;
        return value;
      }
    fail(place + "/provenance", "no provenance '" + provenance + "'", "take measured, datasheet, fitted or assumed");
  }

  void read_machines(const Json& machines) const {
    if (!machines.is_object()) fail("/machines", "expected an object", "name system profiles");
    for (const auto& [name, prices] : machines.items()) {
      const std::string place = "/machines/" + name;
      named(ProfileKind::system, place, name);
      known(prices, place, {"price", "per_hour"});
      MachinePrice& machine = list_.machines[name];
      if (prices.contains("price")) machine.price_usd = leaf(prices["price"], place + "/price", "USD", 0, endless);
      if (prices.contains("per_hour"))
        machine.usd_per_hour = leaf(prices["per_hour"], place + "/per_hour", "USD/h", 0, endless);
    }
  }
  void read_drives(const Json& drives) const {
    if (!drives.is_object()) fail("/drives", "expected an object", "name drive profiles");
    for (const auto& [name, price] : drives.items()) {
      const std::string place = "/drives/" + name;
      named(ProfileKind::nvme, place, name);
      DrivePrice& drive = list_.drives_usd[name];
      drive = {leaf(price, place, "USD", 0, endless, true), DriveCondition::as_new};
      if (!price.contains("condition")) continue;
      const Json& given = price["condition"];
      const auto known_one = std::find_if(conditions.begin(), conditions.end(),
                                          [&](DriveCondition condition) { return given == to_string(condition); });
      if (known_one == conditions.end())
        fail(place + "/condition", "no condition " + given.dump(), "take new, used or discontinued");
      drive.condition = *known_one;
    }
  }
  void read_per_tb(const Json& segments) const {
    if (!segments.is_object()) fail("/drives_per_tb", "expected an object", "name segments");
    for (const auto& [name, price] : segments.items())
      list_.drives_usd_per_tb[name] = leaf(price, "/drives_per_tb/" + name, "USD/TB", 0, endless);
  }

  const std::string& path_;
  PriceList& list_;
  std::span<const std::string> also_;
};

std::string bundled_path() {
  std::vector<std::string> paths;
  if (const char* data = std::getenv("SPILLWAY_DATA"); data != nullptr && *data != '\0')
    paths.push_back(std::string(data) + "/prices.json");
  paths.emplace_back(SPILLWAY_SOURCE_PRICES);
  paths.emplace_back(SPILLWAY_INSTALLED_PRICES);
  std::error_code error;
  for (const std::string& path : paths)
    if (std::filesystem::is_regular_file(path, error)) return path;
  throw InputError("prices.json", "", "the bundled price list is not where it belongs", "install spillway again");
}

}  // namespace

std::string_view to_string(DriveCondition condition) {
  switch (condition) {
    case DriveCondition::as_new:
      return "new";
    case DriveCondition::used:
      return "used";
    case DriveCondition::discontinued:
      return "discontinued";
  }
  return "new";
}

Maybe<double> PriceList::drive_usd(const NvmeProfile& drive) const {
  if (drive.price_usd) return drive.price_usd;
  if (const auto found = drives_usd.find(drive.name); found != drives_usd.end()) {
    const DrivePrice& named = found->second;
    if (named.condition == DriveCondition::as_new) return named.usd;
    if (takes_any_condition) {
      Sourced<double> price = named.usd;
      price.origin.source = std::string(to_string(named.condition)) + ": " + price.origin.source;
      return price;
    }
  }
  // What a TB of TLC costs says nothing of 3D XPoint, or of flash with one bit a cell.
  if (drive.media.find("TLC") == std::string::npos && drive.media.find("QLC") == std::string::npos) return std::nullopt;
  const auto segment = drives_usd_per_tb.find(drive.segment);
  if (segment == drives_usd_per_tb.end() || !drive.capacity) return std::nullopt;
  Sourced<double> price = segment->second;
  price.value *= static_cast<double>(drive.capacity->value.count()) / 1e12;
  price.origin.source = "by capacity, " + drive.segment + " drives: " + price.origin.source;
  return price;
}

MachinePrice PriceList::machine(const HardwareProfile& hardware) const {
  MachinePrice found{hardware.price_usd, hardware.price_usd_per_hour};
  if (found.price_usd || found.usd_per_hour) return found;
  const auto named = machines.find(hardware.name);
  return named == machines.end() ? found : named->second;
}

PriceList PriceList::bundled() {
  PriceList list;
  const std::string path = bundled_path();
  Reader(path, list, {}).read();
  return list;
}

PriceList PriceList::load(const std::string& path, std::span<const std::string> also) {
  PriceList list = bundled();
  if (!path.empty()) Reader(path, list, also).read();
  return list;
}

}  // namespace spillway::hwprofiles

#include "hwprofiles/price_list.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/data_folder.h"
#include "base/field_reader.h"
#include "base/field_schema.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_schema.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::uint64_t largest_file = 16U << 20U;
constexpr double endless = 1e15;

struct Bounds {
  std::string_view unit;
  double least = 0, most = endless;
};

const Words& condition_words() {
  static const Words words = {{"new"}, {"used"}, {"discontinued"}};
  return words;
}

// A price tells where it comes from.
void describe(Sourced<double>& price, const Bounds& bounds, FieldVisitor& visitor) {
  fields::number(visitor, {.key = "value", .min = bounds.least, .max = bounds.most, .required = true}, price.value);
  visitor.constant({.key = "unit", .required = !bounds.unit.empty()}, bounds.unit);
  fields::word(visitor, {.key = "provenance", .about = "Where it comes from.", .required = true},
               price.origin.provenance, provenance_words());
  fields::text(visitor, {.key = "source", .about = "Who says so, such as \"offer of ...\".", .required = true},
               price.origin.source);
  fields::text(visitor, {.key = "date", .about = "Of the price, such as 2026-03.", .required = true},
               price.origin.date);
}

void describe(FieldVisitor& visitor, std::string_view key, std::string_view about, const Bounds& bounds,
              Maybe<double>& price) {
  fields::group(visitor, {.key = key, .about = about}, [&] {
    Sourced<double> given = price.value_or(Sourced<double>{});
    describe(given, bounds, visitor);
    price = std::move(given);
  });
}

void describe(PriceList& list, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-prices", .version = 1, .noun = "a price list"});
  std::string note;
  fields::text(visitor, {.key = "note", .about = "For people; not read by the program."}, note);
  fields::map(visitor, {.key = "machines", .about = "By system profile: the price of one, or its rent with power."},
              list.machines, [&](MachinePrice& machine) {
                visitor.rule(R"({"minProperties": 1})");
                describe(visitor, "price", "Of a whole machine.", {.unit = "USD"}, machine.price_usd);
                describe(visitor, "per_hour", "Of a whole machine, power included.", {.unit = "USD/h"},
                         machine.usd_per_hour);
              });
  fields::map(visitor, {.key = "drives", .about = "By drive profile, each."}, list.drives_usd, [&](DrivePrice& drive) {
    describe(drive.usd, {.unit = "USD"}, visitor);
    fields::word(visitor, {.key = "condition", .about = "Only new ones are bought unless asked for."}, drive.condition,
                 condition_words());
  });
  fields::map(visitor, {.key = "drives_per_tb", .about = "By segment, for drives of TLC and QLC not named."},
              list.drives_usd_per_tb, [&](Sourced<double>& price) { describe(price, {.unit = "USD/TB"}, visitor); });
  describe(visitor, "network_per_gpu", "Adapters, cables, the share of the switches.", {.unit = "USD"},
           list.network_usd_per_gpu);
  describe(visitor, "pcie_switch", "One.", {.unit = "USD"}, list.pcie_switch_usd);
  describe(visitor, "pcie_switch_lanes", "Of one.", {"", 17, 1024}, list.pcie_switch_lanes);
  describe(visitor, "electricity", "", {.unit = "USD/kWh"}, list.electricity_usd_per_kwh);
  describe(visitor, "power_overhead", "Facility over machines (PUE).", {"", 1, 10}, list.power_overhead);
  describe(visitor, "power_idle_share", "Of a machine's largest power, while no kernel runs.", {"", 0, 1},
           list.power_idle_share);
  describe(visitor, "maintenance_per_year", "Share of the capital.", {"", 0, 1}, list.maintenance_per_year);
}

PriceList read_prices(const std::string& path) {
  const auto root = parse_document(read_file(path, largest_file), path);
  PriceList list;
  read_fields(root, path, "", [&](FieldVisitor& visitor) { describe(list, visitor); });
  for (const auto& [name, machine] : list.machines)
    if (!machine.price_usd && !machine.usd_per_hour)
      throw InputError(path, "/machines/" + name, "a machine without a price", "give price or per_hour");
  list.path = path;
  return list;
}

// A price under a name that nothing bears would be passed over without a word.
void check_names(const PriceList& list, std::span<const std::string> also) {
  const auto check = [&](ProfileKind kind, const std::string& place, const std::string& name) {
    std::vector<std::string> names;
    for (const ProfileEntry& entry : ProfileLibrary::shared().list())
      if (entry.kind == kind || (kind == ProfileKind::system && entry.kind == ProfileKind::gpu))
        names.push_back(entry.name);
    for (const std::string& own : also)
      if (std::find(names.begin(), names.end(), own) == names.end()) names.push_back(own);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(list.path, place + name,
                       "no " + std::string(kind == ProfileKind::nvme ? "drive" : "system") + " profile '" + name + "'",
                       suggest(name, names, "`spillway profile list` names them all"));
  };
  for (const auto& [name, price] : list.machines) check(ProfileKind::system, "/machines/", name);
  for (const auto& [name, price] : list.drives_usd) check(ProfileKind::nvme, "/drives/", name);
}

// The entries of `own` go over those of `list`.
void put_over(PriceList& list, const PriceList& own) {
  list.path = own.path;
  for (const auto& [name, price] : own.machines) {
    MachinePrice& machine = list.machines[name];
    if (price.price_usd) machine.price_usd = price.price_usd;
    if (price.usd_per_hour) machine.usd_per_hour = price.usd_per_hour;
  }
  for (const auto& [name, price] : own.drives_usd) list.drives_usd[name] = price;
  for (const auto& [segment, price] : own.drives_usd_per_tb) list.drives_usd_per_tb[segment] = price;
  for (Maybe<double> PriceList::*each :
       {&PriceList::network_usd_per_gpu, &PriceList::pcie_switch_usd, &PriceList::pcie_switch_lanes,
        &PriceList::electricity_usd_per_kwh, &PriceList::power_overhead, &PriceList::power_idle_share,
        &PriceList::maintenance_per_year})
    if (own.*each) list.*each = own.*each;
}

std::string bundled_path() {
  std::error_code error;
  for (const std::string& path : data_places("prices.json", "hwprofiles/prices.json"))
    if (std::filesystem::is_regular_file(path, error)) return path;
  throw InputError("prices.json", "", "the bundled price list is not where it belongs", "install spillway again");
}

}  // namespace

std::string_view to_string(DriveCondition condition) { return condition_words()[condition].name; }

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
  PriceList list = read_prices(bundled_path());
  check_names(list, {});
  return list;
}

PriceList PriceList::load(const std::string& path, std::span<const std::string> also) {
  PriceList list = bundled();
  if (path.empty()) return list;
  const PriceList own = read_prices(path);
  check_names(own, also);
  put_over(list, own);
  return list;
}

std::string prices_schema() {
  PriceList list;
  FieldSchema schema;
  describe(list, schema);
  return schema.document("spillway-prices.v1", "spillway price list",
                         "What things cost (docs/procurement.md). Every price tells its day and its source. A file of "
                         "one's own goes over the bundled list entry by entry.");
}

}  // namespace spillway::hwprofiles

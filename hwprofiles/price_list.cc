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

constexpr std::uint64_t largest_price_list = 16U << 20U;
constexpr double endless = 1e15;

struct Bounds {
  std::string_view unit;
  double least = 0, most = endless;
};

const Words& condition_words() {
  static const Words words = {{"new"}, {"used"}, {"discontinued"}};
  return words;
}

PriceKind kind_of(OriginKind provenance) {
  return provenance == OriginKind::measured    ? PriceKind::quote
         : provenance == OriginKind::datasheet ? PriceKind::list
                                               : PriceKind::assumed;
}

// A figure tells where it comes from.
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

void describe(Price& price, const Bounds& bounds, FieldVisitor& visitor) {
  describe(static_cast<Sourced<double>&>(price), bounds, visitor);
  std::optional<PriceKind> kind;
  fields::word(visitor, {.key = "kind", .about = "What stands behind it."}, kind, price_kind_words());
  price.kind = kind.value_or(kind_of(price.origin.provenance));
  const auto end = [&](std::string_view key, std::string_view about, double& value) {
    std::optional<double> given;
    fields::number(visitor, {.key = key, .min = bounds.least, .max = bounds.most, .about = about, .above_min = true},
                   given);
    value = given.value_or(0);
  };
  end("low", "The least that it may be.", price.low);
  end("high", "The most that it may be.", price.high);
  fields::integer(visitor, {.key = "quantity", .min = 1, .max = 1e9, .about = "That it holds for, at least."},
                  price.quantity);
  fields::text(visitor, {.key = "index", .about = "Of its class, a key of \"indices\"."}, price.index);
}

template <class Figure>
void describe(FieldVisitor& visitor, std::string_view key, std::string_view about, const Bounds& bounds,
              std::optional<Figure>& price) {
  fields::group(visitor, {.key = key, .about = about}, [&] {
    Figure given = price.value_or(Figure{});
    describe(given, bounds, visitor);
    price = std::move(given);
  });
}

void describe(PriceList& list, FieldVisitor& visitor) {
  visitor.head({.schema = "spillway-prices", .version = 1, .noun = "a price list"});
  std::string note;
  fields::text(visitor, {.key = "note", .about = "For people; not read by the program."}, note);
  fields::map(visitor, {.key = "machines", .about = "By machine: the price of one, or its rent with power."},
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
              list.drives_usd_per_tb, [&](Price& price) { describe(price, {.unit = "USD/TB"}, visitor); });
  describe(visitor, "network_per_gpu", "Adapters, cables, the share of the switches.", {.unit = "USD"},
           list.network_usd_per_gpu);
  describe(visitor, "pcie_switch", "One.", {.unit = "USD"}, list.pcie_switch_usd);
  describe(visitor, "pcie_switch_lanes", "Of one.", {"", 17, 1024}, list.pcie_switch_lanes);
  describe(visitor, "electricity", "", {.unit = "USD/kWh"}, list.electricity_usd_per_kwh);
  describe(visitor, "power_overhead", "Facility over machines (PUE).", {"", 1, 10}, list.power_overhead);
  describe(visitor, "power_idle_share", "Of a machine's largest power, while no kernel runs.", {"", 0, 1},
           list.power_idle_share);
  describe(visitor, "maintenance_per_year", "Share of the capital.", {"", 0, 1}, list.maintenance_per_year);
  fields::map(visitor, {.key = "indices", .about = "How prices of a class moved, by class."}, list.indices,
              [&](PriceIndex& index) {
                fields::map(visitor, {.key = "points", .about = "By date, on any scale.", .least_items = 1},
                            index.points, [&](double& value) {
                              fields::number(visitor, {.key = "", .max = endless, .required = true, .above_min = true},
                                             value);
                            });
                fields::text(visitor, {.key = "source", .about = "Who publishes it.", .required = true}, index.source);
              });
}

// All its prices with their places.
template <class See>
void each_price(const PriceList& list, See see) {
  const auto one = [&](const std::string& place, const std::optional<Price>& price) {
    if (price) see(place, *price);
  };
  for (const auto& [name, machine] : list.machines) {
    one("/machines/" + name + "/price", machine.price_usd);
    one("/machines/" + name + "/per_hour", machine.usd_per_hour);
  }
  for (const auto& [name, drive] : list.drives_usd) see("/drives/" + name, drive.usd);
  for (const auto& [segment, price] : list.drives_usd_per_tb) see("/drives_per_tb/" + segment, price);
  one("/network_per_gpu", list.network_usd_per_gpu);
  one("/pcie_switch", list.pcie_switch_usd);
  one("/electricity", list.electricity_usd_per_kwh);
}

// Dates of a known form, a range around the value, an index that there is.
void check_prices(const PriceList& list, const PriceList& indices, const std::string& path) {
  each_price(list, [&](const std::string& place, const Price& price) {
    try {
      static_cast<void>(years_of(price.origin.date));
    } catch (const InputError& error) {
      throw InputError(path, place + "/date", error.cause(), error.remedy());
    }
    if ((price.low > 0 && price.low > price.value) || (price.high > 0 && price.high < price.value))
      throw InputError(path, place, "its range does not hold the price", "give low <= value <= high");
    if (price.index.empty() || list.indices.contains(price.index) || indices.indices.contains(price.index)) return;
    std::vector<std::string> names;
    for (const auto& [name, index] : indices.indices) names.push_back(name);
    throw InputError(path, place + "/index", "no index '" + price.index + "'",
                     suggest(price.index, names, "add it to \"indices\""));
  });
  for (const auto& [name, index] : list.indices)
    for (const auto& [date, value] : index.points) try {
        static_cast<void>(years_of(date));
      } catch (const InputError& error) {
        throw InputError(path, "/indices/" + name + "/points/" + date, error.cause(), error.remedy());
      }
}

PriceList read_prices(const std::string& path) {
  const auto root = parse_document(read_file(path, largest_price_list), path);
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
  for (const auto& [name, index] : own.indices) list.indices[name] = index;
  for (std::optional<Price> PriceList::*each :
       {&PriceList::network_usd_per_gpu, &PriceList::pcie_switch_usd, &PriceList::electricity_usd_per_kwh})
    if (own.*each) list.*each = own.*each;
  for (Maybe<double> PriceList::*each : {&PriceList::pcie_switch_lanes, &PriceList::power_overhead,
                                         &PriceList::power_idle_share, &PriceList::maintenance_per_year})
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

Price PriceList::on_date(const Price& price) const {
  if (date.empty() || price.origin.date.empty()) {
    Price undated = price;
    if (undated.low <= 0) undated.low = price.value / range_factor(price.kind);
    if (undated.high <= 0) undated.high = price.value * range_factor(price.kind);
    return undated;
  }
  const auto index = indices.find(price.index);
  return brought(price, index == indices.end() ? nullptr : &index->second, date);
}

std::string PriceList::newest_date() const {
  std::string newest;
  double at = 0;
  each_price(*this, [&](const std::string&, const Price& price) {
    const bool is_year = price.origin.date.size() == 4;  // may be of its first day
    const double here = years_of(price.origin.date) - (is_year ? 0.5 : 0);
    if (newest.empty() || here > at) {
      newest = price.origin.date;
      at = here;
    }
  });
  return newest;
}

namespace {

// A profile's own price: what kind of price it is, its provenance says.
Price own_price(const Sourced<double>& given) {
  Price price;
  static_cast<Sourced<double>&>(price) = given;
  price.kind = kind_of(given.origin.provenance);
  return price;
}

}  // namespace

std::vector<PriceList::Named> PriceList::all() const {
  std::vector<Named> found;
  each_price(*this, [&](const std::string& place, const Price& price) { found.push_back({place.substr(1), price}); });
  return found;
}

std::optional<Price> PriceList::drive_usd(const NvmeProfile& drive) const {
  if (drive.price_usd) return on_date(own_price(*drive.price_usd));
  if (const auto found = drives_usd.find(drive.name); found != drives_usd.end()) {
    const DrivePrice& named = found->second;
    if (named.condition == DriveCondition::as_new) return on_date(named.usd);
    if (takes_any_condition) {
      Price price = on_date(named.usd);
      price.origin.source = std::string(to_string(named.condition)) + ": " + price.origin.source;
      return price;
    }
  }
  // What a TB of TLC costs says nothing of 3D XPoint, or of flash with one bit a cell.
  if (drive.media.find("TLC") == std::string::npos && drive.media.find("QLC") == std::string::npos) return std::nullopt;
  const auto segment = drives_usd_per_tb.find(drive.segment);
  if (segment == drives_usd_per_tb.end() || !drive.capacity) return std::nullopt;
  Price price = on_date(segment->second);
  for (double* const each : {&price.value, &price.low, &price.high})
    *each *= static_cast<double>(drive.capacity->value.count()) / 1e12;
  price.origin.source = "by capacity, " + drive.segment + " drives: " + price.origin.source;
  return price;
}

MachinePrice PriceList::machine(const HardwareProfile& hardware) const {
  MachinePrice found;
  if (hardware.price_usd) found.price_usd = on_date(own_price(*hardware.price_usd));
  if (hardware.price_usd_per_hour) found.usd_per_hour = on_date(own_price(*hardware.price_usd_per_hour));
  if (found.price_usd || found.usd_per_hour) return found;
  const auto named = machines.find(hardware.name);
  if (named == machines.end()) return found;
  if (named->second.price_usd) found.price_usd = on_date(*named->second.price_usd);
  if (named->second.usd_per_hour) found.usd_per_hour = on_date(*named->second.usd_per_hour);
  return found;
}

PriceList PriceList::bundled() {
  PriceList list = read_prices(bundled_path());
  check_names(list, {});
  check_prices(list, list, list.path);
  return list;
}

PriceList PriceList::load(const std::string& path, std::span<const std::string> also, const std::string& date) {
  PriceList list = bundled();
  if (!path.empty()) {
    const PriceList own = read_prices(path);
    check_names(own, also);
    check_prices(own, list, path);
    put_over(list, own);
  }
  list.date = date.empty() ? list.newest_date() : date;
  static_cast<void>(years_of(list.date));
  for (std::optional<Price> PriceList::*each :
       {&PriceList::network_usd_per_gpu, &PriceList::pcie_switch_usd, &PriceList::electricity_usd_per_kwh})
    if (list.*each) list.*each = list.on_date(*(list.*each));
  return list;
}

std::string prices_schema() {
  PriceList list;
  FieldSchema schema;
  describe(list, schema);
  return schema.document(
      "spillway-prices.v1", "spillway price list",
      "What things cost (docs/how-to/buy-or-rent.md). Every price tells its day and its source. A file of "
      "one's own goes over the bundled list entry by entry.");
}

}  // namespace spillway::hwprofiles

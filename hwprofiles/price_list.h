// PriceList: what things cost, each price with its day and who says so, in one file that a buyer edits.
//
//   {
//     "schema": "spillway-prices", "version": 1, "note": "...",
//     "machines": {"dgx-h100": {"price": {"value": 320000, "unit": "USD", "provenance": "assumed", "source": "...",
//                                         "date": "2025"},
//                               "per_hour": {...}}},                // USD/h of a whole machine, power included
//     "drives": {"samsung-990-pro-2tb": {..., "condition": "used"}},  // USD each; condition: new (default), used,
//                                                                     // discontinued
//     "drives_per_tb": {"enterprise": {...}, "consumer": {...}},    // USD/TB by segment, for TLC and QLC not named
//     "network_per_gpu": {...},           // USD: adapters, cables, the share of the switches
//     "pcie_switch": {...}, "pcie_switch_lanes": {...},             // USD; lanes of one
//     "electricity": {...},               // USD/kWh
//     "power_overhead": {...},            // facility over machines (PUE), >= 1
//     "power_idle_share": {...},          // of a machine's largest power, while no kernel runs; 0 to 1
//     "maintenance_per_year": {...},      // share of the capital; 0 to 1
//     "indices": {"enterprise_flash": {"points": {"2025-05": 1, "2026-02": 3.57}, "source": "..."}}
//   }
//
// A price may also say its "kind" (list, street, quote, assumed), its range "low" and "high", the "quantity" it holds
// for, and the "index" of its class. Without a kind it is a quote if measured, a list's if of a datasheet, else
// assumed.
//
// All keys but schema and version may be left out of a user's file: it goes over the bundled list, entry by entry.
// Every entry has all five keys; a unit that doesn't fit, a negative number, an unknown key or the name of no profile
// is an error. Prices of used and of discontinued drives are not taken unless asked for. Published schema:
// docs/schemas/prices.schema.json.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "hwprofiles/price.h"

namespace spillway::hwprofiles {

struct MachinePrice {
  std::optional<Price> price_usd, usd_per_hour;  // of a whole machine
};

enum class DriveCondition : unsigned char { as_new, used, discontinued };
std::string_view to_string(DriveCondition condition);

struct DrivePrice {
  Price usd;
  DriveCondition condition = DriveCondition::as_new;
};

struct PriceList {
  std::string path;
  bool takes_any_condition = false;                // used and discontinued drives too
  std::map<std::string, MachinePrice> machines;    // by the machine's profile
  std::map<std::string, DrivePrice> drives_usd;    // by drive profile
  std::map<std::string, Price> drives_usd_per_tb;  // by segment
  std::map<std::string, PriceIndex> indices;       // by class
  std::optional<Price> network_usd_per_gpu, pcie_switch_usd, electricity_usd_per_kwh;
  Maybe<double> pcie_switch_lanes, power_overhead, power_idle_share, maintenance_per_year;
  std::string date;  // to which the functions below, and the three prices above, are brought; load() sets it

  struct Named {
    std::string name;  // "machines/dgx-h100/price"
    Price price;
  };
  // Machines, drives, then the rest, as the file has them but on_date() the three prices above.
  [[nodiscard]] std::vector<Named> all() const;

  // On the list's date, with a range (price.h).
  [[nodiscard]] Price on_date(const Price& price) const;
  // Of all its prices.
  [[nodiscard]] std::string newest_date() const;

  // All of the following on the list's date. The profile's own (bundled profiles have none), else the list's, else, of
  // TLC and QLC, capacity x the segment's price per TB; none: nobody says. A condition other than new stands in the
  // source.
  [[nodiscard]] std::optional<Price> drive_usd(const NvmeProfile& drive) const;
  [[nodiscard]] MachinePrice machine(const HardwareProfile& hardware) const;

  // The bundled one (hwprofiles/prices.json), beside the profiles of the source tree or the installed program's data.
  static PriceList bundled();
  // The bundled one under the entries of `path`; an empty path: as it is. Machines and drives are the library's or in
  // `also`. `date`: of the answer that it is for; empty: that of its newest price. Throws InputError (file, JSON
  // pointer).
  static PriceList load(const std::string& path, std::span<const std::string> also = {}, const std::string& date = "");
};

}  // namespace spillway::hwprofiles

// The machines, their number, technique and drives that train a programme at least cost: `spillway report procurement`.
//
// 1. Options: the fastest layout of every run on every fleet (option_search.h), replayed again with drives that never
//    bind where it writes to drives.
// 2. Drives: for each option that writes, the number of each model with the least cost if all that the step wants to
//    write is written (drive_choice.h). The cheapest models are replayed again on the machine with exactly these: what
//    that replay takes and writes is what counts, and the cheapest of them then is taken. A technique's plan may write
//    less than the step wants, or nothing: then more drives are tried, and where that doesn't help the option buys
//    none.
// 3. Cost: one set of formulas (fleet_cost.h) over inputs, runs and options, in a FormulaWorkbook that spreadsheets
// repeat.
// 4. The cheapest option that trains all tokens by the deadline, while the fleet is kept, is chosen; each assumption is
// then moved alone, on all
//    options, to see how far the cost goes and whether another option would be the cheapest.
// The answer is a function of the programme, the profiles and the price list: no clock, no randomness, any number of
// threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/offload/pcie_answer.h"
#include "studies/procurement/drive_choice.h"
#include "studies/procurement/formula_table.h"
#include "studies/procurement/price_odds.h"
#include "studies/procurement/todays_fleet.h"

namespace spillway::studies {

inline constexpr std::size_t drives_replayed = 6;  // models of drive replayed for an option that writes, at most
inline constexpr double step_time_error = 0.1;     // by which a step without a known range may be off (assumed)

struct PricedOption {
  FleetOption fleet;
  HardwareProfile hardware;          // the machine, with the drives chosen, if any
  std::vector<RunReplay> runs;       // as replayed last, by run
  std::optional<DriveChoice> drive;  // of an option that writes to drives
  bool writes_nothing = false;       // its technique might write to drives, and its plan keeps all
  std::string saves_nothing;         // what it writes for no gain in memory, in words; empty: it gains some
  double machine_watts = 0, idle_watts = 0;
  MachinePrice price;
  std::string power_from;  // in words
  std::string failure;     // why it can't be bought: does not fit, no drives hold, no price
  std::size_t place = 0;   // case of the table "Options"; only without failure
  double days = 0, usd_per_billion = 0, programme_usd = 0;
  std::optional<double> buy_usd, rent_usd;  // the purchase; the rent of the programme's days alone; none: no price
  bool in_time = false, in_budget = false;
  [[nodiscard]] double least_usd() const;  // of the two
  [[nodiscard]] bool is_rented() const { return !price.price_usd && price.usd_per_hour.has_value(); }
  [[nodiscard]] std::string name() const;  // "4 x dgx-h100 (32 GPUs), full"
  // With which `run` does on the programme's scenario what run r was priced by.
  [[nodiscard]] std::vector<std::string> settings_of(std::size_t r) const;
  // Measured over replayed time of its runs, in 80 % of steps like them: their ranges, by their time; step_time_error
  // both ways for one without a known range.
  [[nodiscard]] FigureRange busy_range() const;
  [[nodiscard]] std::string drive_name() const;  // "4 x micron-... per GPU"; empty without drives
};

struct Sensitivity {
  std::string input, unit;
  double low = 0, high = 0;                 // of the input
  double low_usd = 0, high_usd = 0;         // per 1e9 tokens of the chosen option then
  double low_years = 0, high_years = 0;     // life of its drives
  std::string low_cheapest, high_cheapest;  // the option that is cheapest then
};

// A price that some option is costed with, on the list's date.
struct UsedPrice {
  std::string name;  // "dgx-h100", "electricity"
  std::string unit;
  Price price;
  bool by_chosen = false;
};

struct ProcurementAnswer {
  std::vector<PricedOption> options;       // cheapest first; those with a failure last, as found
  std::optional<std::size_t> chosen;       // of options: cheapest in time and budget; none: no
  std::optional<std::size_t> with_drives;  // the cheapest that writes to drives, in time or not
  std::vector<DriveChoice> drives;         // of `with_drives`, by model: replayed ones, cheapest first; those that
                                           // carry it and were not replayed; those that can't
  std::vector<std::size_t> drive_places;   // case of "Drives" of each that was replayed
  std::vector<RunReplay> without_drives;   // of `with_drives`: its runs with nothing offloaded; empty: they can't be
  std::optional<PcieAnswer> pcie;          // of `with_drives`, else none
  std::vector<Sensitivity> sensitivity;    // of the chosen option (else the cheapest), most of the cost first
  std::vector<Sensitivity> drive_sensitivity;  // of `with_drives`, where that is another
  std::vector<UsedPrice> prices;
  std::vector<double> odds;  // by option: how often it is the cheapest when prices are drawn from their ranges
  std::optional<std::size_t> deciding_price;  // of prices
  double odds_if_low = 0, odds_if_high = 0;   // of the chosen option, where that price is in its lower, upper half
  FormulaWorkbook book;
  std::size_t inputs = 0, machine_prices = 0, drive_prices = 0;  // tables of the book
  std::size_t runs = 0, priced = 0, drive_runs = 0, drive_table = 0;
  std::vector<std::string> warnings;  // of all replays, each once
  std::optional<Result> step;         // of the chosen option (else the cheapest), its first run, with its course
  std::optional<TodaysFleet> today;   // where the request names one
};

// Throws InputError where the programme is at fault, Cancelled when progress says so.
ProcurementAnswer answer_procurement(const ProcurementRequest& request, const OptionProgress& progress = {});

}  // namespace spillway::studies

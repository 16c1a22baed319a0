// Which machines, how many, with which technique and which drives train a programme at least cost: `spillway report
// procurement`.
//
// 1. Options: the fastest layout of every run on every fleet (option_search.h), replayed again with drives that never
//    bind where it writes to drives.
// 2. Drives: for each option that writes, the model and number with the least cost (drive_choice.h), and a last replay
//    on the machine with exactly these; its step time is the one that counts.
// 3. Cost: one set of formulas (cost_model.h) over inputs, runs and options, in a LiveBook that spreadsheets repeat.
// 4. The cheapest option that trains all tokens by the deadline is chosen; each assumption is then moved alone, on all
//    options, to see how far the cost goes and whether another option would be the cheapest.
// The answer is a function of the programme, the profiles and the price list: no clock, no randomness, any number of
// threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planners/procurement/drive_choice.h"
#include "planners/report/live_table.h"
#include "planners/report/pcie_report.h"

namespace spillway {

struct PricedOption {
  FleetOption fleet;
  HardwareProfile hardware;          // the machine, with the drives chosen, if any
  std::vector<RunReplay> runs;       // as replayed last, by run
  std::optional<DriveChoice> drive;  // of an option that writes to drives
  double machine_watts = 0, idle_watts = 0;
  MachinePrice price;
  std::string power_from;  // in words
  std::string failure;     // why it can't be bought: does not fit, no drives hold, no price
  std::size_t place = 0;   // case of the table "Options"; only without failure
  double days = 0, usd_per_billion = 0, programme_usd = 0;
  bool in_time = false;
  [[nodiscard]] std::string name() const;        // "dgx-h100 x 4 (32 GPUs), full"
  [[nodiscard]] std::string drive_name() const;  // "4 x micron-... per GPU"; empty without drives
};

struct Sensitivity {
  std::string input, unit;
  double low = 0, high = 0;                 // of the input
  double low_usd = 0, high_usd = 0;         // per 1e9 tokens of the chosen option then
  double low_years = 0, high_years = 0;     // life of its drives
  std::string low_cheapest, high_cheapest;  // the option that is cheapest then
};

struct ProcurementAnswer {
  std::vector<PricedOption> options;           // cheapest first; those with a failure last, as found
  std::optional<std::size_t> chosen;           // of options: cheapest in time; none: no
  std::optional<std::size_t> with_drives;      // the cheapest that writes to drives, in time or not
  std::vector<DriveChoice> drives;             // of `with_drives`, by model, cheapest first, those that can't last
  std::vector<std::size_t> drive_places;       // case of "Drives" of each that can
  std::optional<PcieAnswer> pcie;              // of `with_drives`, else none
  std::vector<Sensitivity> sensitivity;        // of the chosen option (else the cheapest), most of the cost first
  std::vector<Sensitivity> drive_sensitivity;  // of `with_drives`, where that is another
  LiveBook book;
  std::size_t inputs = 0, runs = 0, priced = 0, drive_table = 0;  // tables of the book
  std::vector<std::string> warnings;
};

// Throws InputError where the programme is at fault, Cancelled when progress says so.
ProcurementAnswer answer_procurement(const Programme& programme, const OptionProgress& progress = {});

ReportDocument procurement_report(const Programme& programme, const ProcurementAnswer& answer);

}  // namespace spillway

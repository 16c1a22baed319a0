#include "studies/procurement/cost_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "studies/offload/storage_links.h"
#include "studies/procurement/fleet_cost.h"

namespace spillway::studies {
namespace {

FormulaInput number(double value) { return {value, {}, 1}; }

std::string told(const Sourced<double>& price) {
  return fmt::format("{}, {}: {}", price.origin.date, provenance_name(price.origin.provenance), price.origin.source);
}

double value_or(const Maybe<double>& leaf, double otherwise) { return leaf ? leaf->value : otherwise; }

}  // namespace

void CostCases::add_inputs(FormulaWorkbook& book) {
  FormulaTable table{"Inputs", "What all options share: change a shaded cell and all sheets follow", {}, {}, {}};
  FormulaCase shared{"value", {}, {}};
  const auto give = [&](const std::string& name, double value, const std::string& from) {
    const auto& fields = cost_fields();
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const FormulaField& f) { return f.name == name; });
    SPILLWAY_ASSERT(field != fields.end());
    table.fields.push_back({name, field->label, field->unit, ""});
    shared.given[name] = number(value);
    shared.notes[name] = from;
  };
  const auto price = [&](const std::string& name, const Maybe<double>& leaf) {
    give(name, value_or(leaf, name == "power_overhead" ? 1 : 0), leaf ? told(*leaf) : "not in the price list");
  };
  give("tokens", in_.tokens(), "the programme");
  give("period_months", in_.period_months, "the programme");
  give("utilisation", in_.utilisation, "the programme; the rest is repairs, restarts, evaluation");
  price("electricity", in_.prices.electricity_usd_per_kwh);
  price("power_overhead", in_.prices.power_overhead);
  price("maintenance", in_.prices.maintenance_per_year);
  give("write_amplification", in_.endurance.write_amplification, "the programme; 1: files written and freed whole");
  give("retention_credit", retention_factor(in_.endurance.retention),
       in_.endurance.retention == RetentionRelaxation::none ? "as rated" : "published, offered by no vendor");
  give("used", in_.endurance.used_fraction, "the programme");
  give("machine_price_factor", 1, "for what-if");
  give("drive_price_factor", 1, "for what-if");
  price("network_price", in_.prices.network_usd_per_gpu);
  price("switch_price", in_.prices.pcie_switch_usd);
  table.cases.push_back(std::move(shared));
  inputs_ = book.add(std::move(table));
}

void CostCases::add_prices(const std::vector<PricedOption>& options, FormulaWorkbook& book) {
  FormulaTable machines{
      "Machines", "Prices of machines: change a shaded cell and all sheets follow", machine_price_fields(), {}, {}};
  for (const PricedOption& option : options) {
    if (!machine_place_.emplace(option.fleet.machine, machines.cases.size()).second) continue;
    const MachinePrice& price = option.price;
    FormulaCase made{option.fleet.machine, {}, {}};
    made.given["machine_price"] = number(value_or(price.price_usd, 0));
    made.given["machine_rent"] = number(option.is_rented() ? price.usd_per_hour->value : 0);
    machines.cases.push_back(std::move(made));
  }
  machine_prices_ = book.add(std::move(machines));
  FormulaTable drives{"Drive models",
                      "Prices and ratings of drives: change a shaded cell and all sheets follow",
                      drive_price_fields(),
                      {},
                      {}};
  for (const NvmeProfile& drive : in_.drives) {
    const auto usd = in_.prices.drive_usd(drive);
    if (!usd || !drive_place_.emplace(drive.name, drives.cases.size()).second) continue;
    FormulaCase made{drive.name, {}, {}};
    made.given["drive_price"] = number(usd->value);
    made.given["drive_endurance_tb"] = number(drive_endurance(drive).bytes / 1e12);
    made.given["drive_watts"] = number(value_or(drive.active_watts, 0));
    drives.cases.push_back(std::move(made));
  }
  drive_prices_ = book.add(std::move(drives));
}

FormulaCase CostCases::run(const std::string& name, const RunReplay& run, std::size_t r) const {
  FormulaCase made{name + (in_.runs.size() > 1 ? ": " + in_.runs[r].name : ""), {}, {}};
  made.given = {{"tokens", number(in_.runs[r].tokens)},
                {"tokens_per_step", number(static_cast<double>(run.tokens_per_step))},
                {"step_seconds", number(run.step_seconds())},
                {"written_gb", number(run.written_bytes / 1e9)}};
  return made;
}

FormulaCase CostCases::option(const PricedOption& option, const NvmeProfile* drive, std::int64_t count,
                              std::size_t runs_table, const std::vector<std::size_t>& places) const {
  FormulaCase made{option.name(), {}, {}};
  for (const std::string& name : shared_cost_fields()) made.given[name] = {0, {{inputs_, 0, name}}, 1};
  const bool buys = !option.is_rented();
  const auto cell = [](std::size_t table, std::size_t place, const std::string& field) {
    return FormulaInput{0, {{table, place, field}}, 1};
  };
  made.given["gpus"] = number(static_cast<double>(option.fleet.gpus));
  made.given["gpus_per_machine"] = number(static_cast<double>(option.hardware.gpu_count));
  for (const char* field : {"machine_price", "machine_rent"})
    made.given[field] = cell(machine_prices_, machine_place_.at(option.fleet.machine), field);
  const bool one_machine = option.fleet.gpus <= option.hardware.gpu_count;
  made.given["network_price"] = buys && !one_machine ? cell(inputs_, 0, "network_price") : number(0);
  made.given["pays_power"] = number(buys ? 1 : 0);
  made.given["machine_watts"] = number(option.machine_watts);
  made.given["idle_watts"] = number(option.idle_watts);
  FormulaInput days{0, {}, 1}, written{0, {}, 1};
  for (const std::size_t place : places) {
    days.cells.push_back({runs_table, place, "busy_days"});
    written.cells.push_back({runs_table, place, "written_tb"});
  }
  made.given["busy_days"] = std::move(days);
  made.given["written_tb"] = std::move(written);
  made.given["switch_price"] = cell(inputs_, 0, "switch_price");
  if (drive == nullptr) {
    for (const char* field : {"drives_per_gpu", "drive_price", "drive_watts", "switches_per_machine"})
      made.given[field] = number(0);
    made.given["drive_endurance_tb"] = number(1);
    return made;
  }
  made.given["drives_per_gpu"] = number(static_cast<double>(count));
  for (const char* field : {"drive_price", "drive_endurance_tb", "drive_watts"})
    made.given[field] = cell(drive_prices_, drive_place_.at(drive->name), field);
  const Endurance endurance = drive_endurance(*drive);
  if (!endurance.is_flash) made.given["retention_credit"] = number(1);
  if (!endurance.collects_garbage) made.given["write_amplification"] = number(1);
  made.given["switches_per_machine"] = number(static_cast<double>(switches(option, *drive, count)));
  return made;
}

std::int64_t CostCases::switches(const PricedOption& option, const NvmeProfile& drive, std::int64_t count) const {
  const HardwareProfile machine = ProfileLibrary::shared().load_system(option.fleet.machine);
  return added_switches(
      with_drives(machine, drive, count, std::min(option.fleet.gpus, machine.gpu_count), switch_lanes_of(in_.prices)));
}

}  // namespace spillway::studies

#include "studies/procurement/fleet_cost.h"

namespace spillway::studies {

const std::vector<FormulaField>& run_fields() {
  static const std::vector<FormulaField> fields = {
      {"tokens", "tokens to train", "tokens", ""},
      {"tokens_per_step", "tokens of a step", "tokens", ""},
      {"step_seconds", "step time, replayed", "s", ""},
      {"written_gb", "written to drives per step by the GPU that writes most", "GB", ""},
      {"steps", "steps", "", "ceil(tokens / tokens_per_step)"},
      {"busy_days", "training without a pause", "days", "steps * step_seconds / 86400"},
      {"written_tb", "written to drives by the GPU that writes most", "TB", "steps * written_gb / 1000"}};
  return fields;
}

namespace {

const std::vector<FormulaField>& given_fields() {
  static const std::vector<FormulaField> fields = {
      // of the programme
      {"tokens", "tokens of the programme", "tokens", ""},
      {"period_months", "period the fleet is kept", "months", ""},
      {"utilisation", "share of the time it trains", "", ""},
      {"electricity", "electricity", "USD/kWh", ""},
      {"power_overhead", "facility power over machines' power (PUE)", "", ""},
      {"maintenance", "maintenance a year, share of the capital", "", ""},
      {"write_amplification", "write amplification of the workload", "", ""},
      {"retention_credit", "endurance credited for short retention", "x", ""},
      {"used", "share of the first drives' rating used before", "", ""},
      {"machine_price_factor", "factor on machines' prices", "x", ""},
      {"drive_price_factor", "factor on drives' prices", "x", ""},
      // of the fleet
      {"gpus", "GPUs", "", ""},
      {"gpus_per_machine", "GPUs per machine", "", ""},
      {"machine_price", "price of a machine, without network and these drives", "USD", ""},
      {"network_price", "network per GPU", "USD", ""},
      {"machine_rent", "rent of a machine, power included", "USD/h", ""},
      {"pays_power", "pays for power itself (1) or by the rent (0)", "", ""},
      {"machine_watts", "machine while it trains", "W", ""},
      {"idle_watts", "machine while it does not", "W", ""},
      {"busy_days", "programme, training without a pause", "days", ""},
      {"written_tb", "written in the programme by the GPU that writes most", "TB", ""},
      // of its drives
      {"drives_per_gpu", "drives per GPU", "", ""},
      {"drive_price", "price of a drive", "USD", ""},
      {"drive_endurance_tb", "a drive takes, as rated for these writes", "TB", ""},
      {"drive_watts", "a drive while it is written to", "W", ""},
      {"switches_per_machine", "PCIe switches added per machine", "", ""},
      {"switch_price", "price of a PCIe switch", "USD", ""}};
  return fields;
}

// Over those above.
const std::vector<FormulaField>& derived_fields() {
  static const std::vector<FormulaField> fields = {
      // time
      {"days", "programme, pauses included", "days", "busy_days / utilisation"},
      {"period_days", "period", "days", "period_months * 365 / 12"},
      {"tokens_in_period", "tokens trained in the period", "tokens", "tokens * period_days / days"},
      // wear
      {"tbw_month", "written a month to each drive", "TB",
       "written_tb / days * 365 / 12 / max(drives_per_gpu, 1) * write_amplification"},
      {"drive_life_tb", "what is left for a first drive to take", "TB",
       "drive_endurance_tb * (retention_credit - used)"},
      {"drive_life_years", "life of a first drive, written to without a pause", "years",
       "drive_life_tb / max(written_tb / busy_days * 365 / max(drives_per_gpu, 1) * write_amplification, 0.00001)"},
      {"drive_kept_years", "how long it is kept, pauses included", "years", "drive_life_years / utilisation"},
      {"new_life_years", "how long one that replaces it is kept, new", "years",
       "drive_endurance_tb * retention_credit / max(tbw_month, 0.000001) / 12"},
      {"replacements", "replacements of each drive in the period", "",
       "ceil(max(0, period_months / 12 - drive_kept_years) / new_life_years)"},
      // capital
      {"machines", "machines", "", "ceil(gpus / gpus_per_machine)"},
      {"drives", "drives in use", "", "gpus * drives_per_gpu"},
      {"machine_capital", "machines", "USD", "machines * machine_price * machine_price_factor + gpus * network_price"},
      {"drive_capital", "first set of drives", "USD", "drives * drive_price * drive_price_factor"},
      {"switch_capital", "PCIe switches", "USD", "machines * switches_per_machine * switch_price"},
      {"capital", "capital", "USD", "machine_capital + drive_capital + switch_capital"},
      // running
      {"power_kw", "power of the fleet while it trains, facility included", "kW",
       "(machines * machine_watts + drives * drive_watts) / 1000 * power_overhead"},
      {"mean_kw", "power on average over the period", "kW",
       "(machines * (machine_watts * utilisation + idle_watts * (1 - utilisation)) + drives * drive_watts * "
       "utilisation) / 1000 * power_overhead"},
      {"energy_mwh", "energy over the period", "MWh", "mean_kw * period_days * 24 / 1000"},
      {"energy_cost", "energy", "USD", "energy_mwh * 1000 * electricity * pays_power"},
      {"rent_cost", "rent", "USD", "machines * machine_rent * machine_price_factor * period_days * 24"},
      {"maintenance_cost", "maintenance", "USD", "capital * maintenance * period_months / 12"},
      {"replacement_cost", "replacement drives", "USD", "drives * replacements * drive_price * drive_price_factor"},
      {"running", "running cost", "USD", "energy_cost + rent_cost + maintenance_cost + replacement_cost"},
      // answer
      {"total", "cost over the period", "USD", "capital + running"},
      {"usd_per_billion", "cost per 1e9 trained tokens", "USD", "total / tokens_in_period * 1000000000"},
      {"usd_per_billion_alone", "cost per 1e9 tokens if nothing else is trained in the period", "USD",
       "total / tokens * 1000000000"},
      {"gpu_hours", "GPU hours of the period", "h", "gpus * period_days * 24"},
      {"usd_per_gpu_hour", "cost per GPU hour, kept for the period", "USD/h", "total / gpu_hours"},
      {"usd_per_gpu_hour_alone", "rent per GPU hour that costs as much for this programme alone", "USD/h",
       "total / (gpus * days * 24)"},
      {"capital_per_month", "capital written off a month", "USD", "capital / period_months"},
      {"kwh_per_billion", "energy per 1e9 trained tokens", "kWh", "energy_mwh * 1000 / tokens_in_period * 1000000000"},
      {"programme_cost", "the programme's share", "USD", "usd_per_billion * tokens / 1000000000"},
      {"drive_usd_per_billion", "of which drives and switches, per 1e9 tokens", "USD",
       "(drive_capital + switch_capital + replacement_cost) / tokens_in_period * 1000000000"}};
  return fields;
}

}  // namespace

const std::vector<FormulaField>& cost_fields() {
  static const std::vector<FormulaField> fields = [] {
    std::vector<FormulaField> all = given_fields();
    all.insert(all.end(), derived_fields().begin(), derived_fields().end());
    return all;
  }();
  return fields;
}

const std::vector<FormulaField>& machine_price_fields() {
  static const std::vector<FormulaField> fields = {{"machine_price", "price, without network and drives", "USD", ""},
                                                   {"machine_rent", "rent, power included", "USD/h", ""}};
  return fields;
}

const std::vector<FormulaField>& drive_price_fields() {
  static const std::vector<FormulaField> fields = {{"drive_price", "price", "USD", ""},
                                                   {"drive_endurance_tb", "takes, as rated for these writes", "TB", ""},
                                                   {"drive_watts", "draws while it is written to", "W", ""}};
  return fields;
}

const std::vector<std::string>& shared_cost_fields() {
  static const std::vector<std::string> names = {
      "tokens",         "period_months",        "utilisation",         "electricity",
      "power_overhead", "maintenance",          "write_amplification", "retention_credit",
      "used",           "machine_price_factor", "drive_price_factor"};
  return names;
}

}  // namespace spillway::studies

#include "scenario/machine_power.h"

#include <fmt/format.h>

namespace spillway::scenario {

MachinePower machine_power(const HardwareProfile& hardware, const PriceList& prices, double busy) {
  MachinePower power;
  double most = 0;
  if (hardware.power_watts) {
    most = hardware.power_watts->value;
    power.from = fmt::format("{:.0f} W at most ({})", most, hardware.power_watts->origin.source);
  } else {
    const double host = hardware.host.power_watts ? hardware.host.power_watts->value : 0;
    const double gpus =
        static_cast<double>(hardware.gpu_count) * (hardware.gpu.tdp_watts ? hardware.gpu.tdp_watts->value : 0);
    most = gpus + host;
    power.from = fmt::format("the GPUs' {:.0f} W and the host's {:.0f} W at most", gpus, host);
  }
  const double rest = prices.power_idle_share ? prices.power_idle_share->value : 0;
  power.idle_watts = most * rest;
  power.training_watts = most * (rest + (1 - rest) * busy);
  return power;
}

double machine_usd_per_hour(const HardwareProfile& hardware, const PriceList& prices, double months) {
  const MachinePrice price = prices.machine(hardware);
  if (!price.price_usd) return price.usd_per_hour ? price.usd_per_hour->value : 0;
  constexpr double year_hours = 365.0 * 24;
  const double maintenance = prices.maintenance_per_year ? prices.maintenance_per_year->value : 0;
  const double overhead = prices.power_overhead ? prices.power_overhead->value : 1;
  const double tariff = prices.electricity_usd_per_kwh ? prices.electricity_usd_per_kwh->value : 0;
  const double kilowatts = machine_power(hardware, prices, 1).training_watts / 1000 * overhead;
  return price.price_usd->value * (12 / months + maintenance) / year_hours + kilowatts * tariff;
}

std::string_view told_cost() {
  return "machines written off over 36 months of all hours or rented, with maintenance and full power, training "
         "without "
         "a pause; no network between them, no drives bought on top: `report procurement` counts these, and pauses";
}

double gpu_usd_per_hour(const HardwareProfile& hardware, const PriceList& prices) {
  if (hardware.gpu.price_usd_per_hour) return hardware.gpu.price_usd_per_hour->value;
  return machine_usd_per_hour(hardware, prices) / static_cast<double>(hardware.gpu_count);
}

}  // namespace spillway::scenario

// Power draw and cost of a machine while it trains. Power: between its rest and its stated maximum, by how busy its
// GPUs are.
//
//   training = maximum x (rest + (1 - rest) x busy)      rest: the share of its maximum that it draws at rest
// The maximum is the machine's stated one, else the GPUs' and the host's together. Drives bought on top are not in it.
#pragma once

#include <string>
#include <string_view>

#include "hwprofiles/hardware_profile.h"
#include "hwprofiles/price_list.h"

namespace spillway::scenario {

struct MachinePower {
  double training_watts = 0, idle_watts = 0;
  std::string from;  // what the maximum is, in words
};

// busy: share of the step in which a GPU computes, on average, [0, 1]. O(1).
MachinePower machine_power(const HardwareProfile& hardware, const PriceList& prices, double busy);

// Hourly cost of a whole machine while it trains without a pause. It is the rent, else the price written off over
// `months` of all hours, with maintenance and power. 0: nobody states a price. The formula is that of a bill
// (studies/procurement/fleet_cost.h) for a utilisation of 1, without a network and drives.
constexpr double write_off_months = 36;
double machine_usd_per_hour(const HardwareProfile& hardware, const PriceList& prices, double months = write_off_months);
// Words for the parts that such a cost counts and leaves out.
std::string_view told_cost();
// Hourly cost of one GPU with its part of the machine: the profile's own price, else the machine's. 0: nobody states
// one.
double gpu_usd_per_hour(const HardwareProfile& hardware, const PriceList& prices);

}  // namespace spillway::scenario

#include "studies/procurement/todays_fleet.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "scenario/machine_power.h"

namespace spillway::studies {
namespace {

constexpr double seconds_a_day = 86'400, joules_a_kwh = 3.6e6;

void add_plans(const ProcurementRequest& request, const FleetOption& option, TodaysFleet& fleet) {
  double seconds = 0, busy = 0;
  HardwareProfile hardware = ProfileLibrary::shared().load_system(fleet.machine);
  for (std::size_t r = 0; r < option.plans.size(); ++r) {
    const ReplayedPlan replayed = replay_plan_of(option.plans[r], nullptr, 0, switch_lanes_of(request.prices), true);
    if (replayed.run.written_bytes > 0) {
      fleet.failure = "it would write to drives, and which ones it has isn't said: compare with keep or full";
      return;
    }
    hardware = replayed.loaded.hardware;
    fleet.runs.push_back(replayed.run);
    fleet.layouts.push_back(option.plans[r].candidate.name);
    const double steps = std::ceil(request.runs[r].tokens / static_cast<double>(replayed.run.tokens_per_step));
    seconds += steps * replayed.run.step_seconds();
    busy += steps * replayed.run.step_seconds() * replayed.run.busy();
  }
  const auto machines = static_cast<double>((fleet.gpus + hardware.gpu_count - 1) / hardware.gpu_count);
  const double watts = machines * machine_power(hardware, request.prices, busy / seconds).training_watts;
  fleet.days = seconds / seconds_a_day / request.utilisation;
  fleet.kilowatts = watts / 1000;
  fleet.kwh_per_billion = watts * seconds / joules_a_kwh / (request.tokens() / 1e9);
}

}  // namespace

TodaysFleet todays_fleet(const ProcurementRequest& request, const OptionProgress& progress) {
  TodaysFleet fleet{.machine = request.today->machine,
                    .technique = request.today->technique.name,
                    .gpus = request.today->gpus,
                    .failure = {},
                    .layouts = {},
                    .runs = {}};
  ProcurementRequest asked = request;
  asked.machines = {fleet.machine};
  asked.gpus = {fleet.gpus};
  asked.techniques = {request.today->technique};
  const ProfileLibrary& library = ProfileLibrary::shared();
  const std::int64_t in_machine = library.load_system(fleet.machine).gpu_count;
  std::erase_if(asked.tensor_parallel, [in_machine](std::int64_t split) { return split > in_machine; });
  if (asked.tensor_parallel.empty()) asked.tensor_parallel = {1};
  try {
    const FleetOption option = find_options(asked, progress).front();
    fleet.failure = option.failure;
    if (fleet.failure.empty()) add_plans(request, option, fleet);
  } catch (const InputError& error) {
    fleet.failure = error.cause();
  }
  return fleet;
}

}  // namespace spillway::studies

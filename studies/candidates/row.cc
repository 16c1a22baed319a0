#include "studies/candidates/row.h"

#include <cmath>
#include <utility>

#include "base/give_back.h"
#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"
#include "studies/candidates/objective.h"

namespace spillway::studies {

Rates rates_of(const HardwareProfile& hardware) {
  static const PriceList prices = PriceList::bundled();
  const auto gpus = static_cast<double>(hardware.gpu_count);
  const double overhead = prices.power_overhead ? prices.power_overhead->value : 1;
  const MachinePower power = machine_power(hardware, prices, 1);
  return {.usd_per_hour = gpu_usd_per_hour(hardware, prices),
          .rest_watts = power.idle_watts * overhead / gpus,
          .busy_watts = power.training_watts * overhead / gpus};
}

Rates operator*(const Rates& rates, double gpus) {
  return {rates.usd_per_hour * gpus, rates.rest_watts * gpus, rates.busy_watts * gpus};
}

std::optional<double> Row::life_years() const {
  const double years = shortest_life_years(result);
  return std::isfinite(years) ? std::optional(years) : std::nullopt;
}

double Row::allocator_efficiency() const {
  const MemoryResult& memory = result.memory;
  if (memory.peak_reserved <= Bytes(0)) return 0;
  return static_cast<double>(memory.peak_allocated.count()) / static_cast<double>(memory.peak_reserved.count());
}

std::optional<double> Row::cost_per_million_tokens() const {
  if (!(rates.usd_per_hour > 0) || tokens_per_step <= 0) return std::nullopt;
  return figures_of(*this).value(Objective::cost_per_token) * 1e6;
}

Row row_of(Candidate candidate, std::shared_ptr<const HardwareProfile> hardware, KeptReplay replay) {
  Row row;
  row.candidate = std::move(candidate);
  row.is_done = true;
  static_cast<KeptReplay&>(row) = std::move(replay);
  row.rates = rates_of(*hardware) * static_cast<double>(row.gpus);
  row.hardware = std::move(hardware);
  return row;
}

Row row_of(Candidate candidate, const LoadedScenario& loaded, Result result) {
  give_back(result.path);
  give_back(result.op_start);
  give_back(result.op_end);
  return row_of(std::move(candidate), std::make_shared<const HardwareProfile>(loaded.hardware),
                {.result = std::move(result),
                 .moved = {},
                 .gpus = loaded.scenario.model.empty() ? 1 : loaded.setup.gpus(),
                 .tokens_per_step = loaded.options.tokens_per_step});
}

}  // namespace spillway::studies

#include "hwprofiles/spread.h"

#include "base/input_error.h"
#include "base/quantile.h"

namespace spillway::hwprofiles {
Spread spread_of(std::vector<double> samples) {
  SPILLWAY_ASSERT(!samples.empty());
  Spread spread{quantile(samples, 0.5), 0};
  if (samples.size() >= 4 && spread.median > 0)
    spread.relative = (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / spread.median;
  return spread;
}

}  // namespace spillway::hwprofiles

#include "cli/options/offload_plan_file.h"

#include <utility>

#include "base/output_file.h"
#include "sim/replay/order_plan.h"
#include "sim/replay/plan.h"

namespace spillway::cli {

void write_offload_plan(const Trace& trace, OffloadPlan offload, const std::string& path) {
  if (path.empty()) return;
  offload.digest = digest_of_works(trace);
  Plan plan;
  plan.fates = std::move(offload);
  OutputFile out(path);
  out.write(plan_json(plan));
  out.commit();
}

}  // namespace spillway::cli

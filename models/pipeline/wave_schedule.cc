#include "models/pipeline/list_order.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway {

// A wave is a forward run down the devices and one back: 2 chunks per device. At most p micro-batches are under way, as
// under 1F1B, and a device prefers backwards, then the wave that is farther on.
PipelinePlan build_hanayo(const PipelineRequest& request) {
  PipelinePlan plan = zigzag_plan("hanayo", request.devices, request.micro_batches, request.chunks);
  ListRules rules;
  rules.times.positions = {{.forward = 2, .input_gradient = 2, .weight_gradient = 2}};
  rules.window = request.devices;
  write_list_order(plan, rules);
  return plan;
}

}  // namespace spillway
